"""Models over HTTP against a real server on loopback that misbehaves in every way seen in the field."""

import asyncio
import base64
import gc
import json
import os
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import toolspeak
from replies import delta
from toolspeak.errors import (
    BadRequest,
    KeyRefused,
    ModelError,
    ModelUnreachable,
    RateLimited,
    ServerFailed,
    StreamCut,
    UnknownModel,
    UsageError,
)
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, TextDelta
from toolspeak.models import retries as retry
from toolspeak.models.base import Model
from toolspeak.models.http.client import Http, Timeouts
from toolspeak.models.http.providers import PROVIDERS
from toolspeak.types import Request, Tool, Usage

Serve = Callable[..., Any]

KEY = "sk-test-4f9a8b7c6d5e4f3a2b1c"
ASK = Request([{"role": "user", "content": "hi"}])


def sse(*payloads: Any) -> bytes:
    lines = (payload if isinstance(payload, str) else json.dumps(payload) for payload in payloads)
    return "".join(f"data: {line}\n\n" for line in lines).encode()


HELLO = sse(delta(content="Hel"), delta(content="lo"), delta("stop"), "[DONE]")
HELLO_EVENTS = [TextDelta("Hello"), Finished("stop")]


def run(main: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(main, 600))


async def ask(model: Http, request: Request = ASK) -> list[Event]:
    return [event async for event in model.stream(request)]


async def refusal(model: Http, request: Request = ASK) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(model, request)
    return caught.value


def pieces(data: bytes, *, size: int = 0, end: bool = True, cut: bool = False, wait: float = 0.0) -> Any:
    """An answer that streams `data` in pieces; then it ends, or tears the connection, or hangs."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        step = size or max(1, len(data))
        for i in range(0, len(data), step):
            await response.write(data[i : i + step])
            await asyncio.sleep(wait)
        if cut:
            assert request.transport is not None
            request.transport.abort()
        elif not end:
            await asyncio.sleep(60)
        return response

    return answer


hanging = pieces(sse(delta(content="Hel")), end=False)


async def never(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(60)
    return web.Response()


def error(status: int, message: str, **headers: str) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=status, headers=headers)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST", 0.01)


def test_it_is_a_model() -> None:
    model = Http("http://localhost:1", "m")
    assert isinstance(model, Model)
    assert model.capabilities == {"tools", "schema"}
    assert Http("http://localhost:1", "m", native=False).capabilities == frozenset()
    assert Http("http://localhost:1", "m", api="completions", native=False).capabilities == {"prompt"}


def test_a_reply_streams_as_it_is_written(serve: Serve) -> None:
    async def main() -> None:
        async with serve(pieces(HELLO, size=60, wait=0.05)) as server:
            times: list[float] = []
            async for _ in Http(f"{server.url}/v1", "m", key=KEY).stream(ASK):
                times.append(time.monotonic())
            assert times[-1] - times[0] > 0.05
            assert server.paths == ["POST /v1/chat/completions"]
            assert json.loads(Http(server.url, "m").body(ASK)) == server.bodies[0]
            assert Http(server.url, "m").endpoint == f"{server.url}/v1/chat/completions"
            assert server.bodies[0]["messages"] == [{"role": "user", "content": "hi"}]
            assert server.headers[0]["Authorization"] == f"Bearer {KEY}"

    run(main())


def test_a_stream_split_at_every_byte(serve: Serve) -> None:
    async def main() -> None:
        tool = {"index": 0, "id": "a", "function": {"name": "w", "arguments": '{"city": "厦门"}'}}
        data = sse(delta(content="é"), delta(tool_calls=[tool]), delta("tool_calls"), "[DONE]")
        async with serve(pieces(data, size=1)) as server:
            assert await ask(Http(server.url, "m"), Request(tools=(Tool("w"),))) == [
                TextDelta("é"),
                CallStart("w", "a"),
                ArgumentsDelta('{"city": "厦门"}'),
                CallEnd(),
                Finished("tool_calls"),
            ]

    run(main())


def test_the_content_type_is_not_believed(serve: Serve) -> None:
    async def main() -> None:
        whole = {"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}
        async with serve(
            web.Response(body=HELLO, content_type="application/json"),
            web.Response(text=json.dumps(whole), content_type="text/event-stream"),
        ) as server:
            model = Http(server.url, "m")
            assert await ask(model) == HELLO_EVENTS
            assert await ask(model) == [TextDelta("Hello"), Finished("stop")]

    run(main())


def test_connections_are_used_again(serve: Serve) -> None:
    async def main() -> None:
        late_end = pieces(HELLO, wait=0.02)
        async with serve(HELLO, late_end, error(400, "no"), HELLO) as server:
            model = Http(server.url, "m")
            assert await ask(model) == await ask(model) == HELLO_EVENTS
            assert isinstance(await refusal(model), BadRequest)
            await ask(model)
            assert (len(server.paths), server.connections) == (4, 1)
            await model.aclose()
            await ask(model)
            assert server.connections == 2
            assert await asyncio.gather(*(ask(model) for _ in range(20))) == [HELLO_EVENTS] * 20
            assert server.connections <= 21

    run(main())


def test_one_model_serves_several_loops_and_leaves_nothing_open(serve: Serve) -> None:
    model: Http | None = None

    async def main() -> None:
        nonlocal model
        async with serve(HELLO) as server:
            model = model or Http(server.url, "m")
            model.address = Http(server.url, "m").address
            assert await ask(model) == await ask(model) == HELLO_EVENTS
            assert server.connections == 1

    run(main())
    run(main())
    gc.collect()  # an open session would warn here, and a warning is an error


def test_models_made_anew_share_their_connections(serve: Serve) -> None:
    async def main() -> None:
        async with serve(HELLO, error(400, "no"), HELLO) as server:
            for _ in range(5):
                try:
                    await ask(Http(server.url, "m"))
                except BadRequest:
                    gc.collect()
            assert server.connections == 1

    run(main())


def test_a_loop_that_outlives_the_program_says_nothing_at_the_end() -> None:
    """The loop of code that does not await runs in a thread to the last: no warning, no complaint of asyncio."""
    code = """
import asyncio, sys, threading
from aiohttp import web
from toolspeak.models.http import Http
from toolspeak.types import Request

loop = asyncio.new_event_loop()
loop.slow_callback_duration = 60  # a busy machine is no complaint
threading.Thread(target=loop.run_forever, daemon=True).start()

async def main():
    async def hello(request):
        return web.json_response({"choices": [{"message": {"content": "Hello"}}]})
    app = web.Application()
    app.router.add_post("/v1/chat/completions", hello)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    global model
    model = Http("http://127.0.0.1:%d" % runner.addresses[0][1], "m")
    print([event async for event in model.stream(Request())][0].text)

asyncio.run_coroutine_threadsafe(main(), loop).result(20)
"""
    done = _python("-X", "dev", "-W", "error", "-c", code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello\n", "")


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    source = str(Path(toolspeak.__file__).parents[1])
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": source},
    )


def test_a_server_that_does_not_close_the_reply_does_not_hold_it_up(serve: Serve) -> None:
    async def main() -> None:
        async with serve(pieces(HELLO, end=False)) as server:
            assert await ask(Http(server.url, "m")) == HELLO_EVENTS

    run(main())


@pytest.mark.parametrize("moment", ["before the headers", "in the text"])
def test_cancelling_is_seen_by_the_server(serve: Serve, moment: str) -> None:
    async def main() -> None:
        async with serve(never if moment == "before the headers" else hanging) as server:
            task = asyncio.ensure_future(_all(Http(server.url, "m").stream(ASK)))
            while not server.paths:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(server.aborted.wait(), 60)  # it would wait for ever

    run(main())


def test_closing_the_iterator_closes_the_connection(serve: Serve) -> None:
    async def main() -> None:
        async with serve(hanging) as server:
            stream = Http(server.url, "m").stream(ASK)
            assert await anext(stream) == TextDelta("Hel")
            await stream.aclose()
            await asyncio.wait_for(server.aborted.wait(), 60)  # it would wait for ever

    run(main())


async def _into(events: list[Event], model: Http) -> None:
    async for event in model.stream(ASK):
        events.append(event)


async def _all(stream: Any) -> list[Event]:
    return [event async for event in stream]


ANSWERS: list[tuple[str, Any, type[ModelError], str]] = [
    ("401", error(401, f"Incorrect API key provided: {KEY}"), KeyRefused, r"refused the key \(401\).*check the key, given in TOOLSPEAK_API_KEY, or in Python"),
    ("401 masked", error(401, f"Incorrect key: {KEY[:8]}****{KEY[-4:]}. Get one"), KeyRefused, r"key: \[hidden\]"),
    ("401 base64", error(401, f"Refused: {base64.b64encode(f':{KEY}'.encode()).decode()}"), KeyRefused, r"Refused: \S{0,4}\[hidden\]\S{0,4};"),
    ("401 hexadecimal", error(401, f"Refused: {KEY.encode().hex()}"), KeyRefused, r"Refused: \[hidden\];"),
    ("403", error(403, "no access to this model"), KeyRefused, r"\(403\): no access to this model"),
    ("400", error(400, f"bad temperature {KEY}"), BadRequest, r"\(400\): bad temperature \[hidden\]"),
    ("404", web.json_response({"error": "model 'x' not found"}, status=404), BadRequest, "model 'x' not found .*name right"),
    ("422", web.json_response({"detail": [{"msg": "bad", "loc": ["a"]}]}, status=422), BadRequest, "bad"),
    ("500", error(500, f"boom {KEY}"), ServerFailed, r"\(500\): boom \[hidden\]"),
    ("502 page", web.Response(status=502, text="<html><title>Bad Gateway</title>", content_type="text/html"), ServerFailed, r"\(502\): Bad Gateway"),
    ("200 page", web.Response(text="<html><title>Log in</title>", content_type="text/html"), ServerFailed, "a web page .*Log in"),
    ("garbage", web.Response(body=b"\x00\xff\xfe garbage"), StreamCut, "in the middle"),
    ("empty", web.Response(), StreamCut, "in the middle"),
    ("not JSON", web.Response(text="{hello}"), ServerFailed, "not JSON"),
    ("other JSON", web.json_response({"hello": 1}), ServerFailed, "expected a chat completion"),
    ("redirect", web.Response(status=307, headers={"Location": f"http://u:{KEY}@elsewhere.example/v1?key={KEY}"}), ServerFailed, r"redirects \(307\) to http://elsewhere.example/v1:"),
    ("in the stream", sse({"error": {"message": f"boom {KEY}", "code": 500}}), ServerFailed, r"boom \[hidden\]"),
    ("torn before the first event", pieces(b": wait\n\n", cut=True), StreamCut, "broke off"),
    ("long words", error(400, "x" * 100_000), BadRequest, "x…$"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "kind", "words"), [case[1:] for case in ANSWERS], ids=[case[0] for case in ANSWERS])
def test_what_the_server_says_becomes_an_error_without_a_secret(
    serve: Serve, answer: Any, kind: type[ModelError], words: str
) -> None:
    async def main() -> None:
        async with serve(answer) as server:
            model = Http(server.url.replace("//", "//user:pa55word@"), "m", key=KEY, retries=0)
            caught = await refusal(model)
            assert type(caught) is kind
            assert server.url in str(caught)
            with pytest.raises(kind, match=words):
                raise caught
            assert len(str(caught)) < 1000
            no_secret(model, caught)

    run(main())


def no_secret(model: Http, caught: BaseException) -> None:
    shown = [str(caught), repr(caught), repr(caught.args), *traceback.format_exception(caught), repr(model), model.name]
    shown += [repr(vars(caught)), repr(model.address)]
    for secret in (KEY, KEY[:12], "pa55word", base64.b64encode(b"user:pa55word").decode()):
        assert secret not in "\n".join(shown)


def test_a_server_without_a_key_names_the_variable_to_set(serve: Serve) -> None:
    async def main() -> None:
        async with serve(error(401, "who are you")) as server:
            model = Http(server.url, "m", provider=PROVIDERS["openai"], name="openai:m")
            assert f"openai:m at {server.url}/v1: " in str(await refusal(model))
            assert str(await refusal(model)).endswith("no key was sent: set OPENAI_API_KEY")

    run(main())


def test_the_key_comes_from_the_environment(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        monkeypatch.setenv("OPENAI_API_KEY", KEY + "\n")
        async with serve(HELLO) as server:
            await ask(Http(server.url, "m", provider=PROVIDERS["openai"]))
            await ask(Http(server.url, "m"))  # another server never gets it
            assert [headers.get("Authorization") for headers in server.headers] == [f"Bearer {KEY}", None]

    run(main())


def test_user_and_password_of_the_address_are_sent_and_not_shown(serve: Serve) -> None:
    async def main() -> None:
        async with serve(HELLO) as server:
            model = Http(server.url.replace("//", "//user:p%40ss@") + "/v1?tenant=7", "m")
            await ask(model)
            assert server.headers[0]["Authorization"] == "Basic " + base64.b64encode(b"user:p@ss").decode()
            assert server.paths == ["POST /v1/chat/completions?tenant=7"]
            assert model.name == f"{server.url}/v1#m"

    run(main())


@pytest.mark.parametrize("key", ["a\nb", "schlüssel", "a\x00b"])
def test_a_key_that_no_header_can_hold(key: str) -> None:
    with pytest.raises(UsageError, match="character that is not allowed in a key") as caught:
        Http("http://localhost", "m", key=key)
    assert key not in str(caught.value)


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://u:pa55word@h/", "http://", "http://u:pa55word@h:port/v1", "http://u:pa55word@[x/v1", "http://h:0", "http://a b/v1", "http://a..b", "http://" + "a" * 70])  # fmt: skip
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(UsageError, match="expected an address such as") as caught:
        Http(url, "m")
    assert "pa55word" not in str(caught.value)


def test_nobody_is_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://user:pa55word@127.0.0.1:{free.getsockname()[1]}/v1"
    caught = run(refusal(model := Http(url, "m", key=KEY)))
    assert type(caught) is ModelUnreachable
    assert "check that it runs" in str(caught)
    no_secret(model, caught)


def test_a_host_that_has_no_address() -> None:
    assert "no answer from the server" in str(run(refusal(Http("http://nowhere.invalid/v1", "m", retries=0))))


def test_a_server_that_speaks_no_http() -> None:
    async def main() -> None:
        async def speak(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"220 smtp ready\r\n\r\n")
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            caught = await refusal(Http(f"http://127.0.0.1:{port}", "m", retries=0))
            assert type(caught) is ModelUnreachable

    run(main())


def test_a_server_that_never_answers(serve: Serve) -> None:
    async def main() -> None:
        async with serve(never) as server:
            caught = await refusal(Http(server.url, "m", timeout=Timeouts(first=0.1)))
            assert isinstance(caught, ModelUnreachable)
            assert caught.timed_out
            assert "within 0.1 s" in str(caught)
            assert len(server.paths) == 1  # the same work again would not be faster

    run(main())


def test_keep_alive_comments_are_no_answer(serve: Serve) -> None:
    async def main() -> None:
        async with serve(pieces(b": wait\n\n" * 100, size=8, wait=0.02)) as server:
            assert isinstance(await refusal(Http(server.url, "m", timeout=Timeouts(first=0.2))), ModelUnreachable)

    run(main())


def test_a_stream_that_stalls_keeps_what_came(serve: Serve) -> None:
    async def main() -> None:
        async with serve(pieces(sse(delta(content="Hel")), end=False)) as server:
            caught = await refusal(Http(server.url, "m", timeout=Timeouts(first=60, between=0.1)))
            assert isinstance(caught, StreamCut)
            assert caught.text.startswith("Hel")
            assert "no data arrived for 0.1 s" in str(caught)

    run(main())


def test_a_stream_cut_in_the_middle_is_not_asked_again(serve: Serve) -> None:
    async def main() -> None:
        for cut in (pieces(sse(delta(content="Hel")), cut=True), pieces(sse(delta(content="Hel")))):
            async with serve(cut) as server:
                got: list[Event] = []
                with pytest.raises(StreamCut) as caught:
                    await _into(got, Http(server.url, "m"))
                assert got == [TextDelta("Hel")]
                assert caught.value.text == "Hel"
                assert str(caught.value).endswith("; 3 characters of its text had arrived")
                assert len(server.paths) == 1

    run(main())


def test_a_run_whose_reply_breaks_off_says_what_came_and_runs_none_of_its_calls(serve: Serve) -> None:
    ran: list[str] = []

    def look(city: str) -> str:
        """Look."""
        ran.append(city)
        return "rain"

    call = {"index": 0, "id": "c", "function": {"name": "look", "arguments": '{"city": "Rome"}'}}
    sent = sse(delta(content="I look."), delta(tool_calls=[call]))

    async def main() -> None:
        async with serve(pieces(sent, cut=True)) as server:
            with pytest.raises(StreamCut, match="; 7 characters of its text had arrived") as caught:
                await toolspeak.arun("?", tools=[look], model=Http(server.url, "m"))
            assert (caught.value.text, ran) == ("I look.", [])

    run(main())


@pytest.mark.parametrize("first", [error(500, "x"), error(503, "x"), error(429, "x"), pieces(b"", cut=True), pieces(b""), sse({"error": {"code": 503, "message": "x"}})])  # fmt: skip
def test_what_passes_is_asked_again(serve: Serve, first: Any) -> None:
    async def main() -> None:
        async with serve(first, HELLO) as server:
            assert await ask(Http(server.url, "m")) == HELLO_EVENTS
            assert len(server.paths) == 2

    run(main())


def test_tries_are_bounded(serve: Serve) -> None:
    async def main() -> None:
        async with serve(error(503, "busy")) as server:
            assert "busy" in str(await refusal(Http(server.url, "m", retries=3)))
            assert len(server.paths) == 4

    run(main())


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 501])
def test_what_will_not_pass_is_not_asked_again(serve: Serve, status: int) -> None:
    async def main() -> None:
        async with serve(error(status, "no")) as server:
            await refusal(Http(server.url, "m"))
            assert len(server.paths) == 1

    run(main())


def test_a_spent_quota_is_not_asked_again(serve: Serve) -> None:
    async def main() -> None:
        async with serve(error(429, "You exceeded your current quota, please check your plan")) as server:
            assert isinstance(await refusal(Http(server.url, "m")), RateLimited)
            assert len(server.paths) == 1

    run(main())


def test_retry_after_is_honoured(serve: Serve) -> None:
    async def main() -> None:
        async with serve(error(429, "slow", **{"Retry-After": "0.3"}), HELLO) as server:
            began = time.monotonic()
            assert await ask(Http(server.url, "m")) == HELLO_EVENTS
            assert time.monotonic() - began >= 0.3

    run(main())


def test_a_long_retry_after_is_told_at_once(serve: Serve) -> None:
    async def main() -> None:
        async with serve(error(429, "slow", **{"Retry-After": "3600"})) as server:
            caught = await refusal(Http(server.url, "m"))
            assert isinstance(caught, RateLimited)
            assert caught.retry_after == 3600
            assert len(server.paths) == 1

    run(main())


def test_retry_after_in_every_form() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    date = format_datetime(now + timedelta(seconds=7), usegmt=True)
    cases = {
        "3": 3.0,
        "0.5": 0.5,
        "-1": 0.0,
        date: 7.0,
        "Wed, 31 Dec 2025 23:00:00 GMT": 0.0,
        "": None,
        "soon": None,
        "nan": None,
        "inf": None,
    }
    assert {header: retry.retry_after(header, now) for header in cases} == cases
    assert retry.retry_after(None) is None


def test_pauses_are_jittered_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST", 0.5)
    for tried, bound in ((1, 0.5), (2, 1.0), (3, 2.0), (9, 8.0)):
        pauses = [retry.pause(ServerFailed("x", code=503), tried) or 0.0 for _ in range(200)]
        assert max(pauses) <= bound
        assert min(pauses) < bound / 4
        assert max(pauses) > bound / 2
    told = [retry.pause(ServerFailed("x", code=503, retry_after=2.0), 1) or 0.0 for _ in range(50)]
    assert 2.0 <= min(told) <= max(told) <= 2.25


def test_the_only_model_is_found(serve: Serve) -> None:
    async def main() -> None:
        async with serve(web.json_response({"data": [{"id": "only"}]}), HELLO) as server:
            model = Http(f"{server.url}/v1")
            await ask(model)
            await ask(model)
            assert server.paths == ["GET /v1/models", "POST /v1/chat/completions", "POST /v1/chat/completions"]
            assert server.bodies[1]["model"] == "only"

    run(main())


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            web.json_response({"data": [{"id": "one"}, {"id": "two"}]}),
            "has the models one, two; name one: #name at the end",
        ),
        (web.json_response({"data": []}), "has no model"),
        (web.json_response([1]), "has no model"),
        (
            error(404, "no"),
            "does not list its models: .*/v1/models answers 404. Check the path .* or name one: #name at the end",
        ),
        (web.Response(text="<html>"), "does not list its models"),
    ],
)
def test_several_models_or_none(serve: Serve, answer: Any, words: str) -> None:
    async def main() -> None:
        async with serve(answer) as server:
            with pytest.raises(UnknownModel, match=words):
                await ask(Http(server.url))

    run(main())


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "registry.ollama.ai/library/gemma3:latest does not support tools"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (500, "tools param requires --jinja flag"),
        (404, "No endpoints found that support tool use. To learn more about provider routing, visit"),
        (400, "`tool calling` is not supported with this model"),
    ],
)
def test_a_server_that_refuses_tools_says_so_in_a_field(serve: Serve, status: int, message: str) -> None:
    async def main() -> None:
        async with serve(error(status, message)) as server:
            caught = await refusal(Http(server.url, "m"), Request(tools=(Tool("w"),)))
            assert isinstance(caught, BadRequest)
            assert caught.tools_refused
            assert len(server.paths) == 1

    run(main())


def test_an_ordinary_refusal_is_not_about_tools(serve: Serve) -> None:
    async def main() -> None:
        async with serve(
            error(400, "Invalid schema for function 'get': in context=(), 'list' is not supported")
        ) as server:
            caught = await refusal(Http(server.url, "m"), Request(tools=(Tool("get"),)))
            assert isinstance(caught, BadRequest)
            assert not caught.tools_refused

    run(main())


def test_what_the_server_cannot_do_is_refused_before_it_is_asked() -> None:
    for model, request, words in (
        (
            Http("http://h", "m", native=False),
            Request(tools=(Tool("w"),)),
            "takes no tools in a request; give the model a dialect",
        ),
        (Http("http://h", "m"), Request(grammar="root ::= x"), "takes no grammar"),
        (Http("http://h", "m"), Request(prompt="x"), "takes no prompt"),
        (Http("http://h", "m", api="completions"), Request([{"role": "user", "content": "x"}]), "continues a prompt"),
        (Http("http://h", "m"), Request([{"role": "user", "content": object()}]), "not JSON"),  # type: ignore[typeddict-item]
    ):
        with pytest.raises(UsageError, match=words):
            run(ask(model, request))


def test_raw_completions(serve: Serve) -> None:
    async def main() -> None:
        data = sse(
            {"choices": [{"index": 0, "text": "Hel", "finish_reason": None}]},
            {"choices": [{"index": 0, "text": "lo", "finish_reason": "length"}]},
            {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
            "[DONE]",
        )
        async with serve(data) as server:
            model = Http(server.url, "m", api="completions")
            request = Request(prompt="<s>hi", max_tokens=2, temperature=0.0, seed=1, stop=("END",))
            assert await ask(model, request) == [TextDelta("Hello"), Finished("length", Usage(3, 2))]
            assert server.paths == ["POST /v1/completions"]
            sent = {"prompt": "<s>hi", "max_tokens": 2, "temperature": 0.0, "seed": 1, "stop": ["END"], "model": "m"}
            assert server.bodies[0].items() >= sent.items()

    run(main())


def test_ten_megabytes_of_model_output(serve: Serve) -> None:
    async def main() -> None:
        data = sse(*[delta(content="x" * 10_000)] * 1000, delta("stop"), "[DONE]")
        async with serve(pieces(data, size=65_536)) as server:
            events = await ask(Http(server.url, "m"))
            assert sum(len(event.text) for event in events if isinstance(event, TextDelta)) == 10_000_000

    run(main())


def test_loading_the_module_loads_no_http_library() -> None:
    done = _python("-c", "import sys, toolspeak.models.http; print('aiohttp' in sys.modules)")
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_a_reply_that_nobody_listens_to_comes_in_one_piece(serve: Serve) -> None:
    async def main() -> None:
        whole = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}
        async with serve(json.dumps(whole).encode()) as server:
            assert await ask(Http(server.url, "m"), Request(ASK.messages, whole=True)) == [
                TextDelta("Hi"),
                Finished("stop"),
            ]
            assert server.bodies[0]["stream"] is False
            assert "stream_options" not in server.bodies[0]

    run(main())
