"""Upstreams that fail in every way seen in the field, through the gateway: never a false end, never half a call."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable, Coroutine
from typing import Any

import aiohttp
import pytest
from faults import STREAM, Behaviour, Faulty, call, faulty, sends, whole

from replies import delta, frames
from toolspeak.gateway.config.load import parse_config
from toolspeak.gateway.config.settings import ModelSettings
from toolspeak.gateway.registry import Models
from toolspeak.models.http.timeouts import Timeouts
from toolspeak.models.pool import Pool
from toolspeak.models.wrapper import load

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
ARGUMENTS = '{"city": "厦门"}'
TEXT = frames(delta(content="Hel"), delta(content="lo"), delta("stop"), "[DONE]")
CALLS = frames(
    call(0, "", "weather", "call_1"),
    *(call(0, piece) for piece in ('{"city": ', '"厦门"', "}")),
    delta("tool_calls"),
    "[DONE]",
)
HALF_CALL = frames(delta(content="Hel"), call(0, '{"city": "Xia', "weather", "call_1"))
KEY = "sk-upstream-4f9a8b7c6d5e"


class Answer:
    """What a client got: the status, and a body or the frames of a stream."""

    def __init__(self, status: int, headers: Any, body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.raw = body
        self.streamed = headers["content-type"].startswith("text/event-stream")
        lines = body.decode().split("\n\n")
        self.frames = (
            [line.removeprefix("data: ") for line in lines if line.startswith("data: ")] if self.streamed else []
        )
        self.values = [json.loads(frame) for frame in self.frames if frame != "[DONE]"]
        if not self.streamed:
            self.values = [json.loads(body)]

    @property
    def error(self) -> dict[str, Any]:
        """The error, which is the last that came."""
        assert "[DONE]" not in self.frames, self.raw
        assert not any(c.get("finish_reason") for v in self.values for c in v.get("choices", ())), self.raw
        assert b"tool_calls" not in self.raw
        return self.values[-1]["error"]

    @property
    def choices(self) -> list[dict[str, Any]]:
        assert all("error" not in value for value in self.values), self.raw
        if self.streamed:
            assert self.frames[-1] == "[DONE]"
        return [choice for value in self.values for choice in value["choices"]]

    @property
    def text(self) -> str:
        said = ((c.get("delta") or c.get("message") or {}).get("content") for c in self.choices)
        return "".join(filter(None, said))

    @property
    def calls(self) -> list[tuple[str, str]]:
        made: list[list[str]] = []
        for choice in self.choices:
            for one in (choice.get("delta") or choice.get("message") or {}).get("tool_calls", ()):
                if name := one["function"].get("name"):
                    made.append([name, ""])
                made[-1][1] += one["function"].get("arguments", "")
        return [(name, arguments) for name, arguments in made]

    @property
    def finish(self) -> str:
        (reason,) = [c["finish_reason"] for c in self.choices if c.get("finish_reason")]
        return reason


async def post(url: str, *, stream: bool, tools: bool = True, **more: Any) -> Answer:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": stream, **more}
    if tools:
        body["tools"] = [WEATHER]
    async with aiohttp.ClientSession() as session, session.post(url + "/v1/chat/completions", json=body) as response:
        return Answer(response.status, response.headers, await response.read())


def run(main: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(main, 600))


def settings(server: Faulty | str, mode: Any = "native", **more: Any) -> ModelSettings:
    url = server if isinstance(server, str) else f"{server.url}/v1#up"
    return ModelSettings("m", (url,), mode=mode, key=KEY, **more)


def pool_of(running: Any) -> Pool:
    return running.gateway.models.find("m").model


def through(
    serve_models: Callable[..., Any], *behaviours: Behaviour, stream: bool, times: Timeouts | None = None
) -> Answer:
    """What comes out of the gateway in front of such an upstream."""

    async def go() -> Answer:
        async with faulty(*behaviours) as server, serve_models(m=settings(server)) as running:
            if times:
                pool_of(running).upstreams[0].model.model.model.timeouts = times  # type: ignore[attr-defined]
            answer = await post(running.url, stream=stream)
            assert server.url.partition("//")[2] not in answer.raw.decode()
            assert KEY not in answer.raw.decode()
            assert pool_of(running).in_flight == 0
            return answer

    return run(go())


both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])

BROKEN: dict[str, tuple[Behaviour, str]] = {
    "reset in a text": (sends(STREAM, frames(delta(content="Hel")), end="reset"), "upstream_cut"),
    "closed in a text": (sends(STREAM, frames(delta(content="Hel"))), "upstream_cut"),
    "half closed in a text": (sends(STREAM, frames(delta(content="Hel")), end="half"), "upstream_cut"),
    "reset in the arguments": (sends(STREAM, HALF_CALL, end="reset"), "upstream_cut"),
    "closed in the arguments": (sends(STREAM, HALF_CALL), "upstream_cut"),
    "closed in a frame": (sends(STREAM, frames(delta(content="Hel")), b'data: {"choi'), "upstream_cut"),
    "closed in a code point": (sends(STREAM, frames(delta(content="Hel")), frames(delta(content="厦"))[:-14]), "upstream_cut"),
    "an error event": (
        sends(STREAM, frames(delta(content="Hel"), {"error": {"message": "CUDA died", "code": 500}})),
        "upstream_failed",
    ),
    "a frame that is no JSON": (sends(STREAM, frames(delta(content="Hel"), "{nonsense")), "upstream_failed"),
    "arguments that never close": (
        sends(STREAM, frames(call(0, '{"city": "Xia', "weather", "call_1"), delta("stop"), "[DONE]")),
        "no_valid_reply",
    ),
}  # fmt: skip


@both
@pytest.mark.parametrize("name", BROKEN)
def test_a_reply_that_breaks_off_is_an_error(serve_models: Callable[..., Any], name: str, stream: bool) -> None:
    behaviour, code = BROKEN[name]
    answer = through(serve_models, behaviour, stream=stream)
    assert answer.error["code"] == code
    assert answer.status == (200 if answer.streamed else 502)
    if not answer.streamed:  # the gateway does not ask again for a reply that has begun: its client may
        assert answer.headers.get("x-should-retry") == (None if code == "upstream_cut" else "false")
    if stream and code == "upstream_cut":
        assert "Hel" in answer.raw.decode()


REFUSED: dict[str, tuple[bytes, int, str]] = {
    "no headers": (b"", 502, "upstream_unreachable"),
    "a page": (whole("200 OK", b"<html><title>Sign in</title></html>", Content_Type="text/html"), 502, "upstream_failed"),
    "an error with 200": (whole("200 OK", b'{"error": {"message": "out of memory"}}'), 502, "upstream_failed"),
    "something else with 200": (whole("200 OK", b'{"hello": "world"}'), 502, "upstream_failed"),
    "500": (whole("500 Internal Server Error", b'{"error": "boom"}'), 502, "upstream_failed"),
    "401": (whole("401 Unauthorized", b'{"error": "who are you"}'), 502, "upstream_key_refused"),
    "404": (whole("404 Not Found", b'{"error": "no such model"}'), 400, "upstream_refused"),
    "400": (whole("400 Bad Request", b'{"error": {"message": "too many tokens"}}'), 400, "upstream_refused"),
    "429 for longer than a minute": (whole("429 Too Many", b"{}", Retry_After="90"), 429, "upstream_rate_limited"),
    "a redirect": (whole("302 Found", b"", Location="http://elsewhere.invalid/"), 502, "upstream_failed"),
}  # fmt: skip


@both
@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_has_a_status(serve_models: Callable[..., Any], name: str, stream: bool) -> None:
    sent, status, code = REFUSED[name]
    answer = through(serve_models, sends(sent, end="reset" if not sent else "close"), stream=stream)
    assert (answer.status, answer.error["code"]) == (status, code)
    assert not answer.streamed
    assert (answer.headers.get("x-should-retry") == "false") == (status == 502)
    assert (answer.headers.get("retry-after") == "90") == (status == 429)


def test_the_warning_about_a_refused_key_names_the_model_and_the_variable(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("BIG_KEY", KEY)

    async def go() -> None:
        async with faulty(sends(whole("401 Unauthorized", b'{"error": "who are you"}'))) as server:
            model = f'[models.big]\nupstream = "{server.url}/v1#up"\nkey = {{ env = "BIG_KEY" }}\n'
            served = Models(parse_config(model).models)
            await load(served.find("big").model)
            served.stop()

    run(go())
    (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warning.endswith("check the key, `key` of models.big, from $BIG_KEY")
    assert KEY not in caplog.text


@both
def test_nobody_there(serve_models: Callable[..., Any], stream: bool) -> None:
    async def go() -> None:
        async with serve_models(m=settings("http://127.0.0.1:9/v1#up")) as running:
            answer = await post(running.url, stream=stream)
            assert (answer.status, answer.error["code"]) == (502, "upstream_unreachable")
            failed = [(await post(running.url, stream=stream)).status for _ in range(4)]
            assert failed == [502] * 4  # a request counts once, with its retries; then the breaker opens
            answer = await post(running.url, stream=stream)
            assert (answer.status, answer.error["code"]) == (503, "upstream_down")
            assert "its last error: the model's server cannot be reached" in answer.error["message"]
            assert "127.0.0.1" not in answer.error["message"]
            assert 1 <= int(answer.headers["retry-after"]) <= 10
            assert pool_of(running).upstreams[0].state == "open"
            async with aiohttp.ClientSession() as session, session.get(running.url + "/readyz") as response:
                assert response.status == 503

    run(go())


@both
def test_silence(serve_models: Callable[..., Any], stream: bool) -> None:
    times = Timeouts(60.0, 0.2, 0.2)
    answer = through(serve_models, sends(end="silence"), stream=stream, times=times)
    assert (answer.status, answer.error["code"]) == (504, "upstream_unreachable")
    answer = through(serve_models, sends(STREAM, end="silence"), stream=stream, times=times)
    assert (answer.status, answer.error["code"]) == (504, "upstream_unreachable")
    between = sends(STREAM, frames(delta(content="Hel")), *[b": keep-alive\n\n"] * 8, pause=0.05, end="silence")
    answer = through(serve_models, between, stream=stream, times=Timeouts(60.0, 60.0, 0.2))
    assert answer.error["code"] == "upstream_cut"


@both
def test_a_rate_limit_is_waited_out(serve_models: Callable[..., Any], stream: bool) -> None:
    limited = sends(whole("429 Too Many Requests", b"{}", Retry_After="0"))
    answer = through(serve_models, limited, sends(STREAM, TEXT), stream=stream)
    assert (answer.text, answer.finish) == ("Hello", "stop")


def cuts(data: bytes, *, crlf: bool = False, size: int = 1) -> Behaviour:
    data = data.replace(b"\n", b"\r\n") if crlf else data
    return sends(STREAM, *(data[i : i + size] for i in range(0, len(data), size)))


ODD: dict[str, Behaviour] = {
    "a byte at a time": cuts(CALLS),
    "CRLF, cut anywhere": cuts(CALLS, crlf=True),
    "in threes, through code points": cuts(CALLS, size=3),
    "no DONE": sends(STREAM, CALLS.replace(b"data: [DONE]\n\n", b"")),
    "finished twice": sends(STREAM, CALLS.replace(b"data: [DONE]", frames(delta("tool_calls")) + b"data: [DONE]")),
    "more after DONE": sends(STREAM, CALLS + frames(delta(content="more"))),
    "a whole body": sends(
        whole("200 OK", json.dumps({"choices": [{"index": 0, "finish_reason": "stop", "message": {"content": None, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}]}}]}).encode())
    ),
    "in gzip": sends(whole("200 OK", gzip.compress(CALLS), Content_Type="text/event-stream", Content_Encoding="gzip")),
    "in the text": sends(STREAM, frames(
        *(delta(content=c) for c in ("<tool", '_call>\n{"name": "weather", "arguments": ', ARGUMENTS + "}\n</tool_", "call>")),
        delta("stop"), "[DONE]")),
}  # fmt: skip


@both
@pytest.mark.parametrize("name", ODD)
def test_a_call_comes_whole_however_it_was_sent(serve_models: Callable[..., Any], name: str, stream: bool) -> None:
    async def go() -> None:
        async with faulty(ODD[name]) as server, serve_models(m=settings(server, dialect="hermes")) as running:
            answer = await post(running.url, stream=stream)
            assert [(name, json.loads(text)) for name, text in answer.calls] == [("weather", {"city": "厦门"})]
            assert (answer.finish, answer.text) == ("tool_calls", "")
            assert ("call-in-text" in answer.raw.decode()) == (name == "in the text")

    run(go())


@both
def test_calls_out_of_order(serve_models: Callable[..., Any], stream: bool) -> None:
    sent = frames(
        call(1, '{"city": "B', "weather", "call_b"), call(0, '{"city": "A', "weather", "call_a"),
        call(1, '"}'), call(0, '"}'), delta("tool_calls"), "[DONE]",
    )  # fmt: skip
    answer = through(serve_models, sends(STREAM, sent), stream=stream)
    assert sorted(json.loads(text)["city"] for _, text in answer.calls) == ["A", "B"]


@both
def test_a_call_with_a_key_twice_is_not_passed_on(serve_models: Callable[..., Any], stream: bool) -> None:
    sent = frames(call(0, '{"city": "A", "city": "B"}', "weather", "call_1"), delta("tool_calls"), "[DONE]")
    answer = through(serve_models, sends(STREAM, sent), sends(STREAM, TEXT), stream=stream)
    assert (answer.calls, answer.text, answer.finish) == ([], "Hello", "stop")


def test_a_line_without_end_is_bounded(serve_models: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolspeak.api.sse_parser.LONGEST", 100_000)
    monkeypatch.setattr("toolspeak.api.json_stream.LONGEST", 100_000)
    answer = through(serve_models, sends(STREAM, *[b"data: " + b"x" * 20_000] * 20), stream=True)
    assert (answer.status, answer.error["code"]) == (502, "upstream_failed")


def test_one_of_two_upstreams_is_dead(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with faulty(sends(STREAM, TEXT)) as server:
            both = ModelSettings("m", ("http://127.0.0.1:9/v1#up", f"{server.url}/v1#up"), mode="native")
            async with serve_models(m=both) as running:
                answers = [await post(running.url, stream=True) for _ in range(12)]
                assert [answer.text for answer in answers] == ["Hello"] * 12
                pool = pool_of(running)
                assert [one.state for one in pool.upstreams] == ["open", "closed"]
                assert pool.upstreams[0].requests == 5

    run(go())


def test_nothing_is_sent_again_once_a_client_has_read_of_it(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        cut = sends(STREAM, frames(delta(content="Hel")))
        async with faulty(cut) as server, serve_models(m=settings(server)) as running:
            assert (await post(running.url, stream=True)).error
            assert len(server.requests) == 1

    run(go())


# ------------------------------------------------------------------ other APIs, and tools in a dialect

LINES = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nConnection: close\r\n\r\n"


def lines(*payloads: Any) -> bytes:
    return "".join(json.dumps(payload) + "\n" for payload in payloads).encode()


@both
def test_ollama(serve_models: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, stream: bool) -> None:
    wanted = {"function": {"name": "weather", "arguments": {"city": "Xiamen"}}}
    good = lines({"message": {"content": "", "tool_calls": [wanted]}}, {"message": {"content": ""}, "done": True})
    cut = lines({"message": {"content": "Hel"}})
    error = lines({"message": {"content": "Hel"}}, {"error": "out of memory"})

    async def go() -> None:
        async with faulty(sends(LINES, good), sends(LINES, cut), sends(LINES, error)) as server:
            monkeypatch.setenv("OLLAMA_HOST", server.url)
            async with serve_models(m=settings("ollama:up")) as running:
                answer = await post(running.url, stream=stream)
                assert (answer.calls, answer.finish) == ([("weather", '{"city": "Xiamen"}')], "tool_calls")
                assert (await post(running.url, stream=stream)).error["code"] == "upstream_cut"
                assert (await post(running.url, stream=stream)).error["code"] == "upstream_failed"

    run(go())


@pytest.mark.parametrize("path", ["chat/completions", "messages", "responses"])
def test_calls_that_are_sent_while_they_are_written_end_where_the_model_is_cut(
    serve_models: Callable[..., Any], path: str
) -> None:
    schema = WEATHER["function"]["parameters"]
    tools: Any = {
        "chat/completions": [WEATHER], "messages": [{"name": "weather", "input_schema": schema}],
        "responses": [{"type": "function", "name": "weather", "parameters": schema}],
    }  # fmt: skip
    asked = [{"role": "user", "content": "hi"}]
    body = {"input": asked} if path == "responses" else {"messages": asked, "max_tokens": 64}
    two = (call(0, ARGUMENTS, "weather", "call_1"), call(1, '{"city": "Xia', "weather", "call_2"))

    async def go() -> None:
        reply = frames(*two, delta("length"), "[DONE]")
        async with (
            faulty(sends(STREAM, reply)) as server,
            serve_models(m=settings(server, arguments="live")) as running,
            aiohttp.ClientSession() as session,
        ):
            choice = {"type": "any"} if path == "messages" else "required"
            sent = {"model": "m", "stream": True, "tools": tools[path], "tool_choice": choice, **body}
            async with session.post(f"{running.url}/v1/{path}", json=sent) as response:
                text = await response.text()
        cut = {"chat/completions": '"finish_reason":"length"', "messages": '"stop_reason":"max_tokens"'}
        assert cut.get(path, "response.incomplete") in text.replace(": ", ":")
        assert "cut-call" in text
        assert "Xia" in text
        assert "event: error" not in text
        assert "response.failed" not in text

    run(go())


TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPOKEN = '<tool_call>\n{"name": "weather", "arguments": {"city": "Xiamen"}}\n</tool_call>'


@both
def test_exact_prompts(serve_models: Callable[..., Any], stream: bool) -> None:
    def said(*texts: str, finish: str | None = "stop") -> bytes:
        rows = [{"choices": [{"index": 0, "text": text, "finish_reason": None}]} for text in texts]
        last = [{"choices": [{"index": 0, "text": "", "finish_reason": finish}]}, "[DONE]"] if finish else []
        return frames(*rows, *last)

    async def go() -> None:
        texts = [SPOKEN[i : i + 5] for i in range(0, len(SPOKEN), 5)]
        replies = (said(*texts), said("Hel", "lo"), said(*texts[:5], finish="length"), said(*texts[:5], finish=None))
        async with faulty(*(sends(STREAM, reply) for reply in replies)) as server:
            raw = settings(server, "raw", dialect="hermes", template=TEMPLATE)
            async with serve_models(m=raw) as running:
                answer = await post(running.url, stream=stream)
                assert (answer.calls, answer.finish) == ([("weather", '{"city": "Xiamen"}')], "tool_calls")
                prompt = server.requests[0]["prompt"]
                assert prompt.endswith("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n")
                assert "weather" in prompt
                assert "<|im_end|>" in server.requests[0]["stop"]

                answer = await post(running.url, stream=stream, tools=False)
                assert (answer.text, answer.finish) == ("Hello", "stop")
                assert "weather" not in server.requests[1]["prompt"]

                answer = await post(running.url, stream=stream)
                assert answer.finish == "length"
                assert b"tool_calls" not in answer.raw
                assert (await post(running.url, stream=stream)).error["code"] == "upstream_cut"

                image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]
                answer = await post(running.url, stream=stream, messages=image)
                assert (answer.status, answer.error["code"]) == (400, "invalid_value")

    run(go())


@both
@pytest.mark.parametrize("mode", ["native", "chat"])
def test_a_raw_prompt_goes_to_the_servers_own_completions(
    serve_models: Callable[..., Any], mode: str, stream: bool
) -> None:
    async def go() -> None:
        reply = frames({"choices": [{"index": 0, "text": " 4, 5", "finish_reason": "stop"}]}, "[DONE]")
        missing = sends(whole("404 Not Found", b'{"error": "no such path"}'))
        async with faulty(sends(STREAM, reply), missing) as server, serve_models(m=settings(server, mode)) as running:
            async with aiohttp.ClientSession() as session:
                body = {"model": "m", "prompt": "1, 2, 3,", "stream": stream}
                async with session.post(running.url + "/v1/completions", json=body) as response:
                    assert response.status == 200
                    assert " 4, 5" in await response.text()
                assert server.requests[0]["prompt"] == "1, 2, 3,"
                async with session.post(running.url + "/v1/completions", json=body) as response:
                    assert response.status == 400

    run(go())


@both
def test_a_dialect_inside_messages(serve_models: Callable[..., Any], stream: bool) -> None:
    async def go() -> None:
        reply = frames(delta(content=SPOKEN[:20]), delta(content=SPOKEN[20:]), delta("stop"), "[DONE]")
        async with (
            faulty(sends(STREAM, reply)) as server,
            serve_models(m=settings(server, "chat", dialect="hermes")) as running,
        ):
            answer = await post(running.url, stream=stream)
            assert answer.calls == [("weather", '{"city": "Xiamen"}')]
            assert "tools" not in server.requests[0]
            assert "weather" in json.dumps(server.requests[0]["messages"])

    run(go())


def test_a_client_who_does_not_read_holds_the_upstream_back(serve_models: Callable[..., Any]) -> None:
    sent = 0
    piece = frames(delta(content="x" * 60_000))

    async def flood(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(STREAM)
        while sent < 200_000_000:
            writer.write(piece)
            await writer.drain()
            sent += len(piece)

    async def go() -> None:
        async with faulty(flood) as server, serve_models(m=settings(server)) as running:
            host, port = running.url.removeprefix("http://").split(":")
            _, writer = await asyncio.open_connection(host, int(port), limit=1024)
            body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}).encode()
            head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            before = -1
            while sent != before or not sent:  # until nothing moves any more
                before = sent
                await asyncio.sleep(0.5)
            assert sent < 60_000_000  # what sockets hold; the rest waits where it is
            writer.transport.abort()

    run(go())
