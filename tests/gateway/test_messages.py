"""The Messages API through the gateway, by Anthropic's own SDK; and a gateway in front of a gateway."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import anthropic
import pytest
from aiohttp import web

from listening import listening
from toolspeak.errors import StreamCut
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Finished, TextDelta, ThoughtDelta
from toolspeak.models.embedded.local import Local
from toolspeak.models.http import Http
from toolspeak.models.resolve import model as named
from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker
from toolspeak.types import Request, Usage

WEATHER = {
    "name": "weather",
    "description": "The weather in a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Xiamen"}}\n</tool_call>'
OTHER = CALL.replace("Xiamen", "Fuzhou")
QUESTION = [{"role": "user", "content": "Weather in Xiamen?"}]
ASKED: dict[str, Any] = {"model": "m", "max_tokens": 200, "messages": QUESTION}

Talk = Callable[[anthropic.AsyncAnthropic], Awaitable[Any]]
Serve = Callable[..., Any]


def hermes(*replies: str) -> Speaker:
    return Speaker(Scripted(replies), "hermes")


def talk(serve_models: Serve, model: Any, say: Talk) -> Any:
    """What `say` makes of a client of a gateway in front of `model`."""

    async def go() -> Any:
        async with (
            serve_models(m=model) as running,
            anthropic.AsyncAnthropic(base_url=running.url, api_key="none", max_retries=0) as client,
        ):
            return await say(client)

    return asyncio.run(go())


def test_plain_words(serve_models: Serve) -> None:
    model = hermes("Hello there")
    reply = talk(serve_models, model, lambda client: client.messages.create(**ASKED, system="Be brief"))
    assert [(block.type, block.text) for block in reply.content] == [("text", "Hello there")]
    assert (reply.stop_reason, reply.role, reply.model, reply.id[:4]) == ("end_turn", "assistant", "m", "msg_")
    assert model.model.requests[0].messages[0] == {"role": "system", "content": "Be brief"}


def test_a_call_after_a_text_and_its_result_fed_back(serve_models: Serve) -> None:
    model = hermes("Let me look. " + CALL + "\n" + OTHER, "It is 35 degrees.")

    async def say(client: anthropic.AsyncAnthropic) -> Any:
        first = await client.messages.create(**ASKED, tools=[WEATHER])
        assert [block.type for block in first.content] == ["text", "tool_use", "tool_use"]
        assert first.stop_reason == "tool_use"
        assert [block.input for block in first.content[1:]] == [{"city": "Xiamen"}, {"city": "Fuzhou"}]
        results = [{"type": "tool_result", "tool_use_id": block.id, "content": "35"} for block in first.content[1:]]
        turns = [*QUESTION, {"role": "assistant", "content": first.content}, {"role": "user", "content": results}]
        return await client.messages.create(model="m", max_tokens=200, messages=turns, tools=[WEATHER])

    assert talk(serve_models, model, say).content[0].text == "It is 35 degrees."
    told = json.dumps(model.model.requests[1].messages)
    assert "35" in told
    assert "Fuzhou" in told


@pytest.mark.parametrize("streamed", [False, True])
def test_the_runner_of_tools_keeps_the_conversation(serve_models: Serve, streamed: bool) -> None:
    """It asks for a thread, which would hold only the end of the conversation, until it hears that there is none."""
    model = hermes(CALL, OTHER, "It is 35 degrees in both.")

    @anthropic.beta_async_tool
    async def weather(city: str) -> str:
        """The weather in a city."""
        return f"35 in {city}"

    async def say(client: anthropic.AsyncAnthropic) -> Any:
        runner = client.beta.messages.tool_runner(**ASKED, tools=[weather], stream=streamed)
        return await runner.until_done()

    assert talk(serve_models, model, say).content[0].text == "It is 35 degrees in both."
    last = json.dumps(model.model.requests[-1].messages)
    assert all(part in last for part in ("Weather in Xiamen?", "35 in Xiamen", "35 in Fuzhou"))
    assert len(model.model.requests) == 3


def test_a_thread_and_a_result_without_its_call_are_refused(serve_models: Serve) -> None:
    orphan = [*QUESTION, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "35"}]}]

    async def say(client: anthropic.AsyncAnthropic) -> tuple[Any, str]:
        with pytest.raises(anthropic.BadRequestError) as thread:
            await client.messages.create(**ASKED, extra_body={"thread": {"type": "new"}})
        with pytest.raises(anthropic.BadRequestError) as result:
            await client.messages.create(**{**ASKED, "messages": orphan})
        return thread.value.body, str(result.value)

    body, words = talk(serve_models, hermes(), say)
    assert body["error"]["details"] == {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    assert "messages.1.content.0.tool_use_id: no tool_use block before it has the id 't1'" in words


def test_the_helper_that_streams(serve_models: Serve) -> None:
    async def say(client: anthropic.AsyncAnthropic) -> Any:
        async with client.messages.stream(**ASKED, tools=[WEATHER], thinking={"type": "adaptive"}) as stream:
            kinds = [event.type async for event in stream]
            return kinds, await stream.get_final_message()

    kinds, final = talk(serve_models, hermes("<think>hm</think>Let me look. " + CALL), say)
    assert kinds[0] == "message_start"
    assert {"thinking", "signature", "text", "input_json"} <= set(kinds)
    assert kinds[-1] == "message_stop"
    assert [block.type for block in final.content] == ["thinking", "text", "tool_use"]
    thought, text, call = final.content
    assert (thought.thinking, text.text, call.input) == ("hm", "Let me look. ", {"city": "Xiamen"})
    assert (final.stop_reason, call.name) == ("tool_use", "weather")


def test_the_client_that_does_not_await(serve_models: Serve) -> None:
    def say(url: str) -> Any:
        with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0) as client:
            return [event.type for event in client.messages.create(**ASKED, stream=True)]

    async def go() -> Any:
        async with serve_models(m=hermes("Hello")) as running:
            return await asyncio.to_thread(say, running.url)

    assert [kind for kind in asyncio.run(go()) if kind != "content_block_delta"] == [
        "message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop",
    ]  # fmt: skip


def test_the_beta_client(serve_models: Serve) -> None:
    def say(client: anthropic.AsyncAnthropic) -> Any:
        return client.beta.messages.create(**ASKED, tools=[WEATHER], betas=["a-beta-of-2099"])

    reply = talk(serve_models, hermes(CALL), say)
    assert reply.content[0].input == {"city": "Xiamen"}


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "weather"}])
def test_a_call_that_is_demanded_is_asked_for_until_it_comes(serve_models: Serve, choice: Any) -> None:
    other = CALL.replace('"weather"', '"now"')
    model = hermes(other if choice["type"] == "tool" else "I would rather talk.", CALL)
    tools = [WEATHER, {"name": "now", "input_schema": {"type": "object"}}]
    reply = talk(serve_models, model, lambda c: c.messages.create(**ASKED, tools=tools, tool_choice=choice))
    assert [block.input for block in reply.content if block.type == "tool_use"] == [{"city": "Xiamen"}]
    assert "re-asked" in [note["rule"] for note in reply.model_extra["toolspeak"]["notes"]]


def test_no_call_where_none_may_come(serve_models: Serve) -> None:
    choice = {"type": "none"}
    say: Talk = lambda c: c.messages.create(**ASKED, tools=[WEATHER], tool_choice=choice)  # noqa: E731
    reply = talk(serve_models, hermes("Just words."), say)
    assert (reply.content[0].text, reply.stop_reason) == ("Just words.", "end_turn")


def test_thoughts_are_fed_back(serve_models: Serve) -> None:
    said = [ThoughtDelta("hm"), TextDelta("A"), Finished()]
    model = Scripted([said, said], capabilities=["tools"])

    async def say(client: anthropic.AsyncAnthropic) -> None:
        first = await client.messages.create(**ASKED, thinking={"type": "enabled", "budget_tokens": 1024})
        assert [block.type for block in first.content] == ["thinking", "text"]
        turns = [*QUESTION, first.to_param(), {"role": "user", "content": "More"}]
        await client.messages.create(model="m", max_tokens=9, messages=turns)

    talk(serve_models, model, say)
    assert model.requests[1].messages[1] == {"role": "assistant", "content": "A", "reasoning_content": "hm"}


def spoken(*events: Any) -> Scripted:
    return Scripted([events], capabilities=["tools"])


def test_usage_is_told_streamed_or_not(serve_models: Serve) -> None:
    spent = Usage(7, 5, 3, 1)

    async def streamed(client: anthropic.AsyncAnthropic) -> Any:
        async with client.messages.stream(**ASKED) as stream:
            return await stream.get_final_message()

    for say in (streamed, lambda client: client.messages.create(**ASKED)):
        usage = talk(serve_models, spoken(TextDelta("a"), Finished("stop", spent)), say).usage
        assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (4, 3, 5)
        assert usage.output_tokens_details.thinking_tokens == 1


@pytest.mark.parametrize(("finish", "reason"), [("length", "max_tokens"), ("content_filter", "refusal")])
def test_why_a_reply_ended(serve_models: Serve, finish: Any, reason: str) -> None:
    reply = talk(serve_models, spoken(TextDelta("a"), Finished(finish)), lambda client: client.messages.create(**ASKED))
    assert reply.stop_reason == reason


def test_errors_before_the_stream_have_their_status_and_shape(serve_models: Serve) -> None:
    async def say(client: anthropic.AsyncAnthropic) -> None:
        with pytest.raises(anthropic.NotFoundError) as caught:
            await client.messages.create(**ASKED | {"model": "n"}, stream=True)
        assert caught.value.body["error"]["type"] == "not_found_error"
        assert caught.value.request_id
        assert caught.value.request_id == caught.value.body["request_id"]
        search = {"type": "web_search_20250305", "name": "web_search"}
        with pytest.raises(anthropic.BadRequestError) as wrong:
            await client.messages.create(**ASKED, tools=[search], tool_choice={"type": "tool", "name": "web_search"})
        assert wrong.value.body["type"] == "error"
        with pytest.raises(anthropic.InternalServerError) as failed:
            await client.messages.create(**ASKED)
        assert failed.value.body["error"] == {"type": "api_error", "message": "the model's reply broke off"}

    talk(serve_models, Scripted([StreamCut("x")], capabilities=["tools"]), say)


class Breaks(Scripted):
    """Says something, then breaks off."""

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        yield ThoughtDelta("hm")
        yield TextDelta("half of")
        yield CallStart("weather", "x")
        yield ArgumentsDelta('{"ci')
        raise StreamCut("x")


def test_an_error_in_the_middle_is_an_event(serve_models: Serve) -> None:
    seen: list[Any] = []

    async def say(client: anthropic.AsyncAnthropic) -> None:
        async def hear() -> None:
            async for event in await client.messages.create(**ASKED, tools=[WEATHER], stream=True):
                seen.append(event)

        with pytest.raises(anthropic.APIStatusError, match="broke off") as caught:
            await hear()
        assert caught.value.body["error"]["type"] == "api_error"

    talk(serve_models, Breaks([], capabilities=["tools"]), say)
    assert [event.type for event in seen] == ["message_start", "content_block_start", "content_block_delta"]


async def told(url: str, body: Any, path: str = "/v1/messages?beta=true", **headers: str) -> tuple[int, Any, Any]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(url + path, json=body, headers={"anthropic-version": "1999-01-01", **headers}) as response,
    ):
        return response.status, await response.json(), response.headers


def test_headers_a_query_and_unknown_fields_do_not_matter(serve_models: Serve) -> None:
    async def go() -> None:
        async with serve_models(m=hermes("Hi")) as running:
            body = {**ASKED, "metadata": {"user_id": "u"}, "context_management": {"edits": []}, "speed": None, "x": 1}
            status, reply, heads = await told(running.url, body)
            assert (status, reply["content"][0]["text"]) == (200, "Hi")
            assert heads["x-toolspeak-ignored"] == "context_management, metadata, x"
            status, reply, _ = await told(running.url, {"model": "m"})
            assert (status, reply["type"], reply["error"]["type"]) == (400, "error", "invalid_request_error")
            status, reply, _ = await told(running.url, {}, "/v1/messages/batches")
            assert (status, reply["type"], reply["error"]["type"]) == (404, "error", "not_found_error")

    asyncio.run(go())


def test_a_silent_stream_is_told_to_be_alive_after_its_opening(serve_models: Serve) -> None:
    from toolspeak.gateway.config.settings import GatewayLimits

    go_on = asyncio.Event()

    class Slow(Scripted):
        async def stream(self, request: Any) -> AsyncIterator[Any]:
            await go_on.wait()
            yield TextDelta("late")
            yield Finished()

    async def go() -> list[bytes]:
        limits = {"limits": GatewayLimits(first=0.02, keep_alive=0.02)}
        async with (
            serve_models(m=Slow([], capabilities=["tools"]), settings=limits) as running,
            aiohttp.ClientSession() as session,
            session.post(running.url + "/v1/messages", json={**ASKED, "stream": True}) as response,
        ):
            lines: list[bytes] = []
            async for line in response.content:
                lines.append(line)
                if b"ping" in line:
                    go_on.set()
            return [line.split()[1] for line in lines if line.startswith(b"event:")]

    events = asyncio.run(go())
    assert events[:2] == [b"message_start", b"ping"]
    assert events[-1] == b"message_stop"


# ------------------------------------------------------------------ models and counts


def test_models_are_listed_in_the_form_of_who_asks(serve_models: Serve) -> None:
    async def say(client: anthropic.AsyncAnthropic) -> Any:
        with pytest.raises(anthropic.NotFoundError, match="Set the client's model to one that is served: m; or"):
            await client.models.retrieve("n")
        catalog = await client._client.get("/v1/models?client_version=0.1.0")
        assert (catalog.json()["models"], catalog.json()["data"][0]["id"]) == ([], "m")
        return [model async for model in client.models.list()], await client.models.retrieve("m")

    listed, one = talk(serve_models, hermes(), say)
    assert [(model.id, model.type, model.display_name) for model in listed] == [("m", "model", "m")]
    assert one == listed[0]


def test_tokens_are_estimated_where_nobody_can_count(serve_models: Serve) -> None:
    async def go() -> None:
        async with serve_models(m=hermes()) as running:
            path = "/v1/messages/count_tokens?beta=true"
            body = {"model": "m", "messages": QUESTION}
            status, few, headers = await told(running.url, body, path)
            assert (status, headers["x-toolspeak-estimate"]) == (200, "true")
            _, more, heads = await told(running.url, {**body, "tools": [WEATHER], "system": "Be", "speed": "x"}, path)
            assert heads["x-toolspeak-ignored"] == "speed"
            assert 0 < few["input_tokens"] < more["input_tokens"]
            status, wrong, _ = await told(running.url, {"model": "m"}, path)
            assert (status, wrong["error"]["type"]) == (400, "invalid_request_error")

    asyncio.run(go())


@pytest.fixture(scope="module")
def local() -> Local:
    return Local()


def test_tokens_are_counted_by_the_models_own_tokenizer(serve_models: Serve, local: Local) -> None:
    async def say(client: anthropic.AsyncAnthropic) -> Any:
        count = await client.messages.count_tokens(model="m", messages=QUESTION)
        reply = await client.messages.create(**ASKED | {"max_tokens": 4})
        raw = await client.messages.with_raw_response.count_tokens(model="m", messages=QUESTION, tools=[WEATHER])
        assert "x-toolspeak-estimate" not in raw.headers
        return count.input_tokens, reply.usage.input_tokens + reply.usage.cache_read_input_tokens

    counted, spent = talk(serve_models, local, say)
    assert counted == spent


def test_the_embedded_model_calls_a_tool(serve_models: Serve, local: Local) -> None:
    async def say(client: anthropic.AsyncAnthropic) -> Any:
        async with client.messages.stream(**ASKED, tools=[WEATHER], tool_choice={"type": "any"}) as stream:
            return await stream.get_final_message()

    final = talk(serve_models, local, say)
    assert (final.stop_reason, final.content[-1].name) == ("tool_use", "weather")
    assert set(final.content[-1].input) == {"city"}


# ------------------------------------------------------------------ a gateway in front of a gateway


@asynccontextmanager
async def chained(serve_models: Serve, model: Any, key: str = "sk-far") -> AsyncGenerator[Any]:
    """A client of a gateway, which asks another in front of `model` through the Messages API."""
    async with serve_models(far=model) as far:
        between = Http(far.url + "/v1", "far", api="anthropic", key=key, name="far")
        async with (
            serve_models(m=between) as near,
            anthropic.AsyncAnthropic(base_url=near.url, api_key="none", max_retries=0) as client,
        ):
            yield client


def test_calls_pass_through_two_gateways(serve_models: Serve) -> None:
    model = hermes("<think>hm</think>Let me look. " + CALL, "35 degrees")

    async def go() -> None:
        async with chained(serve_models, model) as client:
            thinking = {"type": "adaptive"}
            async with client.messages.stream(**ASKED, tools=[WEATHER], thinking=thinking) as stream:
                final = await stream.get_final_message()
            thought, text, call = final.content
            assert (thought.thinking, text.text, call.input) == ("hm", "Let me look. ", {"city": "Xiamen"})
            result = {"type": "tool_result", "tool_use_id": call.id, "content": "no such city", "is_error": True}
            turns = [*QUESTION, final.to_param(), {"role": "user", "content": [result]}]
            reply = await client.messages.create(model="m", max_tokens=9, messages=turns, tools=[WEATHER])
            assert reply.content[0].text == "35 degrees"
            count = await client.messages.count_tokens(model="m", messages=QUESTION)
            assert count.input_tokens > 0

    asyncio.run(go())
    assert "no such city" in json.dumps(model.model.requests[1].messages)


def test_an_error_of_the_far_gateway_is_told(serve_models: Serve) -> None:
    async def go() -> None:
        async with chained(serve_models, Breaks([], capabilities=["tools"])) as client:
            with pytest.raises(anthropic.APIStatusError) as caught:
                await client.messages.create(**ASKED, tools=[WEATHER])
            assert "127.0.0.1" not in str(caught.value)
            assert "sk-far" not in str(caught.value)

    asyncio.run(go())


# ------------------------------------------------------------------ servers of one's own


class Upstream:
    """A server that answers each path with the next of its answers, the last for ever; it remembers what came."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {name: list(told) for name, told in answers.items()}
        self.seen: list[tuple[str, dict[str, str], Any]] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        self.seen.append((request.path, dict(request.headers), await request.json()))
        told = self.answers.get(request.path.rpartition("/")[2].replace("-", "_"), [])
        if not told:
            return web.json_response({"error": {"message": "not found"}}, status=404)
        one = told.pop(0) if len(told) > 1 else told[0]
        return web.json_response(one, status=400 if "error" in one else 200)


@asynccontextmanager
async def upstream(**answers: Any) -> AsyncGenerator[Upstream]:
    """A server by the last parts of its paths: `chat=[…]` for `/api/chat`."""
    server = Upstream(**answers)
    async with listening(server.answer) as server.url:
        yield server


def test_the_provider_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    use = {"type": "tool_use", "id": "t", "name": "now", "input": {}}
    told = {"type": "message", "content": [use], "stop_reason": "tool_use", "usage": {"input_tokens": 1}}

    async def go() -> None:
        async with upstream(messages=[told]) as server:
            monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
            monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant")
            events = [event async for event in named("anthropic:m").stream(Request([{"role": "user", "content": "x"}]))]
        called = [CallStart("now", "t"), ArgumentsDelta("{}"), CallEnd()]
        assert events == [*called, Finished("tool_calls", Usage(1))]
        ((path, headers, body),) = server.seen
        assert (path, headers["x-api-key"], headers["anthropic-version"]) == ("/v1/messages", "sk-ant", "2023-06-01")
        assert "Authorization" not in headers
        assert body == {
            "model": "m", "messages": [{"role": "user", "content": "x"}], "max_tokens": 8192, "stream": True,
        }  # fmt: skip

    asyncio.run(go())


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "weather"}])
def test_a_choice_that_ollama_has_no_word_for_is_enforced(serve_models: Serve, choice: Any) -> None:
    words = {"message": {"content": "It is warm."}, "done": True}
    call = {
        "message": {"tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Xiamen"}}}]},
        "done": True,
    }

    async def go() -> None:
        async with upstream(chat=[words, call]) as server:
            async with serve_models(m=Http(server.url, "m", api="ollama")) as running:
                body = {**ASKED, "tools": [WEATHER, {"name": "now"}], "tool_choice": choice}
                status, reply, _ = await told(running.url, body)
        assert (status, reply["content"][-1]["input"]) == (200, {"city": "Xiamen"})
        assert [note["rule"] for note in reply["toolspeak"]["notes"]] == ["re-asked"]
        held = json.dumps(server.seen[0][2]["format"])  # by a schema that only calls fit
        assert [name in held for name in ("weather", "now")] == [True, choice["type"] == "any"]

    asyncio.run(go())


def test_an_image_at_an_address_is_not_fetched_for_ollama(serve_models: Serve) -> None:
    def seeing(source: Any) -> Any:
        return {**ASKED, "messages": [{"role": "user", "content": [{"type": "image", "source": source}]}]}

    async def go() -> None:
        async with upstream(chat=[{"message": {"content": "A cat."}, "done": True}]) as server:
            async with serve_models(m=Http(server.url, "m", api="ollama")) as running:
                status, wrong, _ = await told(running.url, seeing({"type": "url", "url": "https://example.org/a.png"}))
                assert (status, wrong["error"]["type"]) == (400, "invalid_request_error")
                assert "not fetched" in wrong["error"]["message"]
                assert server.seen == []
                data = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
                status, reply, _ = await told(running.url, seeing(data))
        assert (status, reply["content"][0]["text"]) == (200, "A cat.")
        assert server.seen[0][2]["messages"] == [{"role": "user", "content": "", "images": ["AAAA"]}]

    asyncio.run(go())


@pytest.mark.parametrize(
    ("answers", "count"),
    [
        ({"tokenize": [{"count": 7, "tokens": []}]}, 7),
        ({"tokenize": [{"tokens": []}, {"tokens": [1, 2, 3]}], "apply_template": [{"prompt": "<x>"}]}, 3),
        ({"tokenize": [{"error": {"message": "no"}}], "apply_template": [{"prompt": "<x>"}]}, None),
        ({}, None),
    ],
)
def test_tokens_are_counted_by_servers_that_can(serve_models: Serve, answers: Any, count: int | None) -> None:
    async def go() -> None:
        async with upstream(**answers) as server, serve_models(m=Http(server.url + "/v1", "far")) as running:
            body = {"model": "m", "messages": QUESTION, "tools": [WEATHER]}
            status, reply, headers = await told(running.url, body, "/v1/messages/count_tokens")
            assert status == 200
            assert ("x-toolspeak-estimate" in headers) == (count is None)
            assert reply["input_tokens"] == count or count is None
            path, _, asked = server.seen[0]
            assert path == "/tokenize"
            assert asked["tools"][0]["function"]["name"] == "weather"

    asyncio.run(go())


def test_what_a_far_server_says_of_counting_is_told(serve_models: Serve) -> None:
    async def go() -> None:
        wrong = {"type": "error", "error": {"type": "invalid_request_error", "message": "no such model"}}
        async with upstream(count_tokens=[wrong]) as server:
            async with serve_models(m=Http(server.url, "far", api="anthropic", key="sk-x")) as running:
                body = {"model": "m", "messages": QUESTION}
                status, reply, _ = await told(running.url, body, "/v1/messages/count_tokens")
        assert (status, reply["type"]) == (400, "error")
        assert "no such model" in reply["error"]["message"]
        assert "127.0.0.1" not in str(reply)

    asyncio.run(go())
