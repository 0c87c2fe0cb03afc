"""The Responses API through the gateway, by the SDK that people use."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pydantic
import pytest

from toolspeak.errors import StreamCut
from toolspeak.events import Finished, TextDelta
from toolspeak.gateway.access.keys import digest
from toolspeak.gateway.config.settings import GatewayLimits, Key, ModelSettings, StoreSettings
from toolspeak.models.fallback import Adaptive
from toolspeak.models.http import Http
from toolspeak.models.resolve import model as named_model
from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker
from toolspeak.types import Request, Usage

WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "The weather in a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}
PATCH = {"type": "custom", "name": "patch", "description": "Changes files."}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Xiamen"}}\n</tool_call>'
TWO = CALL + CALL.replace("Xiamen", "Paris")


def hermes(*replies: str) -> Speaker:
    return Speaker(Scripted(replies), "hermes")


class Breaking(Scripted):
    """Begins to answer and breaks off."""

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        yield TextDelta("Hel")
        raise StreamCut("http://secret.example:1/ broke")


def sdk(url: str, key: str = "none") -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=url + "/v1", api_key=key, max_retries=0)


@pytest.fixture
def asked(serve_models: Callable[..., Any]) -> Callable[..., Any]:
    """`async with asked(model, store=...) as client:`, a client of the SDK before one model, `m`."""

    @asynccontextmanager
    async def made(model: Any, **settings: Any) -> AsyncIterator[openai.AsyncOpenAI]:
        async with serve_models(m=model, settings=settings) as running, sdk(running.url) as client:
            try:
                yield client
            finally:
                if running.gateway.store:
                    running.gateway.store.close()

    return made


@pytest.fixture
def store(tmp_path: Path) -> StoreSettings:
    return StoreSettings(str(tmp_path / "kept.sqlite"), responses=True)


async def raw(client: openai.AsyncOpenAI, **body: Any) -> tuple[int, Any]:
    """The status and body of a request as no SDK would send it."""
    answer = await client._client.post("/responses", json={"model": "m", "input": "Hi", **body})
    return answer.status_code, answer.json()


def test_a_text(asked: Callable[..., Any]) -> None:
    async def go() -> None:
        async with asked(hermes("Hello.")) as client:
            reply = await client.responses.create(model="m", input="Hi", instructions="Be brief.")
        assert (reply.output_text, reply.status, reply.error) == ("Hello.", "completed", None)
        assert (reply.instructions, reply.tool_choice, reply.tools) == ("Be brief.", "auto", [])
        assert reply.id.startswith("resp_")

    asyncio.run(go())


def test_two_calls_and_their_results(asked: Callable[..., Any]) -> None:
    model = hermes("Let me look. " + TWO, "Sunny in both.")

    async def go() -> None:
        async with asked(model) as client:
            items: list[Any] = [{"role": "user", "content": "Weather in Xiamen and Paris?"}]
            reply = await client.responses.create(model="m", input=items, tools=[WEATHER])
            assert [item.type for item in reply.output] == ["message", "function_call", "function_call"]
            calls = reply.output[1:]
            assert [json.loads(call.arguments) for call in calls] == [{"city": "Xiamen"}, {"city": "Paris"}]
            items += reply.output
            items += [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"} for call in calls]
            reply = await client.responses.create(model="m", input=items, tools=[WEATHER])
            assert reply.output_text == "Sunny in both."

    asyncio.run(go())
    said = json.dumps(model.model.requests[1].messages, ensure_ascii=False)
    assert said.count("sunny") == 2
    assert said.count("Let me look.") == 1


def test_a_stream_ends_with_what_was_streamed(asked: Callable[..., Any]) -> None:
    async def go() -> None:
        async with (
            asked(hermes("<think>hm</think>Let me look. " + CALL)) as client,
            client.responses.stream(model="m", input="Weather?", tools=[WEATHER]) as stream,
        ):
            events = [event async for event in stream]
            final = await stream.get_final_response()
        kinds = [event.type for event in events]
        assert kinds[:2] == ["response.created", "response.in_progress"]
        assert kinds[-1] == "response.completed"
        assert "response.reasoning_text.delta" in kinds
        text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        assert text == final.output_text == "Let me look. "
        assert [item.type for item in final.output] == ["reasoning", "message", "function_call"]
        assert json.loads(final.output[2].arguments) == {"city": "Xiamen"}

    asyncio.run(go())


@pytest.mark.parametrize(
    ("reply", "more"),
    [
        ("Hello.", {}),
        ("", {}),
        ("<think>hm</think>Let me look. " + TWO, {"tools": [WEATHER]}),
        (CALL.replace("weather", "patch").replace("city", "input"), {"tools": [PATCH]}),
        (CALL, {"tools": [WEATHER], "tool_choice": "required"}),
        ("<think>hm</think>Hello.", {"reasoning": {"summary": "auto"}}),
    ],
)
@pytest.mark.parametrize(
    "limits", [GatewayLimits(), GatewayLimits(first=0.0, keep_alive=0.01)], ids=["prompt", "kept-alive"]
)
def test_every_stream_counts_its_events_from_0(
    asked: Callable[..., Any], reply: str, more: dict[str, Any], limits: GatewayLimits
) -> None:
    """The first event opens an empty response, and the SDK's helper builds the same from the events as was sent."""

    async def go() -> list[Any]:
        async with asked(hermes(*[reply] * 4), limits=limits) as client:
            events: list[Any] = [
                event async for event in await client.responses.create(model="m", input="Hi", stream=True, **more)
            ]
            async with client.responses.stream(model="m", input="Hi", **more) as stream:
                async for _ in stream:
                    pass
                final = await stream.get_final_response()
        assert [item.type for item in final.output] == [item.type for item in events[-1].response.output]
        return events

    events = asyncio.run(go())
    assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].response.output == []


def test_a_stream_that_fails_counts_its_events_from_0(asked: Callable[..., Any]) -> None:
    async def go() -> list[dict[str, Any]]:
        body = {"model": "m", "input": "Hi", "stream": True}
        async with asked(Speaker(Breaking(()), "hermes")) as client:
            answer = await client._client.post("/responses", json=body)
        return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]

    events = asyncio.run(go())
    assert events[-1]["type"] == "response.failed"
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


def test_a_value_is_parsed(asked: Callable[..., Any]) -> None:
    class Person(pydantic.BaseModel):
        name: str
        age: int

    async def go() -> None:
        model = Scripted(['{"name": "Alice", "age": 31}'], capabilities=["schema"])
        async with asked(model) as client:
            reply = await client.responses.parse(model="m", input="Alice is 31", text_format=Person)
        assert reply.output_parsed == Person(name="Alice", age=31)
        assert model.requests[0].schema is not None

    asyncio.run(go())


def test_the_plain_client_too(serve_models: Callable[..., Any]) -> None:
    def ask(url: str) -> tuple[str, list[str]]:
        with openai.OpenAI(base_url=url + "/v1", api_key="none") as client:
            whole = client.responses.create(model="m", input="Hi").output_text
            return whole, [event.type for event in client.responses.create(model="m", input="Hi", stream=True)]

    async def go() -> None:
        async with serve_models(m=hermes("One.", "Two.")) as running:
            whole, kinds = await asyncio.to_thread(ask, running.url)
        assert (whole, kinds[-1]) == ("One.", "response.completed")

    asyncio.run(go())


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "weather"}])
def test_a_call_that_must_come_comes(asked: Callable[..., Any], choice: Any) -> None:
    async def go() -> None:
        async with asked(hermes("I would rather talk.", CALL)) as client:
            fields: dict[str, Any] = {"model": "m", "input": "Hi", "tools": [WEATHER], "tool_choice": choice}
            async with client.responses.stream(**fields) as stream:
                reply = await stream.get_final_response()
        async with asked(hermes("I would rather talk.", CALL)) as client:
            whole = await client.responses.create(**fields)
        for one in (reply, whole):
            assert [item.type for item in one.output].count("function_call") == 1
            assert one.to_dict()["toolspeak"]["notes"][0]["rule"] == "re-asked"

    asyncio.run(go())


def test_a_custom_tool_and_its_output(asked: Callable[..., Any]) -> None:
    patch = '<tool_call>\n{"name": "patch", "arguments": {"input": "*** Begin\\n+x"}}\n</tool_call>'

    async def go() -> None:
        async with asked(hermes(patch, "Done.")) as client:
            reply = await client.responses.create(model="m", input="Add x", tools=[PATCH])
            [call] = reply.output
            assert (call.type, call.input) == ("custom_tool_call", "*** Begin\n+x")
            items = [
                {"role": "user", "content": "Add x"},
                call,
                {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "ok"},
            ]
            assert (await client.responses.create(model="m", input=items, tools=[PATCH])).output_text == "Done."

    asyncio.run(go())


def test_an_agent_that_sends_everything_each_time(asked: Callable[..., Any]) -> None:
    """What coding agents send: freeform tools, namespaces, encrypted reasoning that is not there, nothing kept."""
    lark = {"type": "grammar", "syntax": "lark", "definition": "start: /.+/s"}
    space = {"type": "namespace", "name": "mcp__docs", "description": "Docs.", "tools": [WEATHER]}
    body: dict[str, Any] = {
        "model": "m",
        "instructions": "You are an agent.",
        "tools": [PATCH | {"format": lark}, space],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "store": False,
        "stream": True,
        "prompt_cache_key": "abc",
        "client_metadata": {"x": "y"},
    }
    search = '<think>hm</think><tool_call>\n{"name": "mcp__docs__weather", "arguments": {"city": "X"}}\n</tool_call>'
    patch = '<tool_call>\n{"name": "patch", "arguments": {"input": "*** Begin"}}\n</tool_call>'
    model = hermes(search, patch)

    async def turn(client: openai.AsyncOpenAI, items: list[Any]) -> list[dict[str, Any]]:
        answer = await client._client.post("/responses", json={**body, "input": items})
        ignored = answer.headers["x-toolspeak-ignored"].split(", ")
        assert {"tools.1.description", "prompt_cache_key", "client_metadata"} <= set(ignored)
        rows = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
        done = [row["item"] for row in rows if row["type"] == "response.output_item.done"]
        assert rows[-1]["type"] == "response.completed"
        assert rows[-1]["response"]["output"] == done
        return done

    async def go() -> None:
        async with asked(model) as client:
            items: list[Any] = [{"role": "user", "content": [{"type": "input_text", "text": "Go."}]}]
            thought, call = await turn(client, items)
            assert thought["summary"] == [{"type": "summary_text", "text": "hm"}]
            assert (call["namespace"], call["name"]) == ("mcp__docs", "weather")
            items += [thought, call, {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}]
            [call] = await turn(client, items)
            assert (call["type"], call["input"]) == ("custom_tool_call", "*** Begin")

    asyncio.run(go())
    said = json.dumps(model.model.requests[1].messages, ensure_ascii=False)
    assert all(words in said for words in ("You are an agent.", "Go.", "mcp__docs__weather", "sunny"))


def test_a_reply_that_breaks_off_is_never_complete(asked: Callable[..., Any]) -> None:
    async def go() -> None:
        async with asked(Breaking([])) as client:
            stream = await client.responses.create(model="m", input="Hi", stream=True)
            assert (await anext(stream)).type == "response.created"
            with pytest.raises(openai.APIError, match="broke off"):
                [event async for event in stream]
            answer = await client._client.post("/responses", json={"model": "m", "input": "Hi", "stream": True})
            with pytest.raises(openai.InternalServerError, match="broke off"):
                await client.responses.create(model="m", input="Hi")
        assert "response.output_text.delta" in answer.text
        assert "response.completed" not in answer.text
        assert "secret" not in answer.text
        last = json.loads(answer.text.strip().split("\n\n")[-1].split("data: ")[1])
        assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")

    asyncio.run(go())


def test_a_reply_cut_by_its_length_is_incomplete(asked: Callable[..., Any]) -> None:
    async def go() -> None:
        async with asked(Scripted([[TextDelta("Hel"), Finished("length", Usage(3, 2))]] * 2)) as client:
            reply = await client.responses.create(model="m", input="Hi", max_output_tokens=2)
            assert (reply.status, reply.incomplete_details.reason) == ("incomplete", "max_output_tokens")
            assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.total_tokens) == (3, 2, 5)
            stream = await client.responses.create(model="m", input="Hi", stream=True)
            assert [event.type async for event in stream][-1] == "response.incomplete"

    asyncio.run(go())


@pytest.mark.parametrize("kind", ["web_search", "web_search_preview_2025_03_11", "code_interpreter", "mcp"])
def test_what_its_provider_runs_is_left_out_and_named(asked: Callable[..., Any], kind: str) -> None:
    model = hermes("Hi")

    async def go() -> None:
        async with asked(model) as client:
            tools: Any = [WEATHER, {"type": kind, "external_web_access": False}]
            told = await client.responses.with_raw_response.create(model="m", input="Hi", tools=tools)
            assert told.headers["x-toolspeak-ignored"] == f"tools.1.{kind}"
            assert told.parse().output_text == "Hi"

    asyncio.run(go())


def test_errors_are_in_the_shape_of_the_api(asked: Callable[..., Any]) -> None:
    async def go() -> None:
        async with asked(hermes("Hi")) as client:
            search: Any = {"type": "web_search"}
            with pytest.raises(openai.BadRequestError, match="only its provider runs") as caught:
                await client.responses.create(model="m", input="Hi", tools=[search], tool_choice=search)
            assert caught.value.param == "tool_choice.type"
            with pytest.raises(openai.BadRequestError):
                await client.responses.create(model="m", input="Hi", tools=[search], tool_choice="required")
            with pytest.raises(openai.NotFoundError, match="no model 'n' here"):
                await client.responses.create(model="n", input="Hi")
            assert (await raw(client, input=3))[0] == 400
            assert (await raw(client, temperature=9))[1]["error"]["param"] == "temperature"

    asyncio.run(go())


# ------------------------------------------------------------------ kept


def test_without_a_store_nothing_is_kept(asked: Callable[..., Any]) -> None:
    async def go() -> None:
        async with asked(hermes("One.", "Two.")) as client:
            assert (await client.responses.create(model="m", input="Hi")).to_dict()["store"] is False
            reply = await client.responses.create(model="m", input="Hi", store=True)
            assert reply.to_dict()["store"] is False
            with pytest.raises(openai.BadRequestError, match=r"turn the store on \(\[store\] with path") as caught:
                await client.responses.create(model="m", input="Hi", previous_response_id=reply.id)
            assert caught.value.param == "previous_response_id"
            for call in (client.responses.retrieve, client.responses.delete, client.responses.input_items.list):
                with pytest.raises(openai.NotFoundError):
                    await call(reply.id)

    asyncio.run(go())


@pytest.mark.parametrize("streamed", [False, True])
def test_a_conversation_goes_on(asked: Callable[..., Any], store: StoreSettings, streamed: bool) -> None:
    model = hermes("Let me look. " + CALL, "Sunny.", "You are welcome.")

    async def ask(client: openai.AsyncOpenAI, **fields: Any) -> Any:
        if not streamed:
            return await client.responses.create(model="m", tools=[WEATHER], **fields)
        async with client.responses.stream(model="m", tools=[WEATHER], **fields) as stream:
            return await stream.get_final_response()

    async def go() -> None:
        async with asked(model, store=store) as client:
            first = await ask(client, input="Weather in Xiamen?", instructions="Be brief.")
            assert first.to_dict()["store"] is True
            result = {"type": "function_call_output", "call_id": first.output[1].call_id, "output": "sunny"}
            second = await ask(client, input=[result], previous_response_id=first.id)
            assert (second.output_text, second.previous_response_id) == ("Sunny.", first.id)
            third = await ask(client, input="Thanks!", previous_response_id=second.id)
            assert third.output_text == "You are welcome."
            await client.responses.delete(first.id)
            assert (await client.responses.retrieve(third.id)).output_text == "You are welcome."

    asyncio.run(go())
    said = json.dumps(model.model.requests[2].messages, ensure_ascii=False)
    for words in ("Weather in Xiamen?", "Let me look.", "sunny", "Sunny.", "Thanks!"):
        assert words in said
    assert "Be brief." not in said


def test_items_are_named_by_their_ids(asked: Callable[..., Any], store: StoreSettings) -> None:
    model = hermes("Let me look. " + CALL, "Sunny.", "Bye.")

    async def go() -> None:
        async with asked(model, store=store) as client:
            ask = client.responses.create
            first = await ask(model="m", tools=[WEATHER], input="Weather in Xiamen?")
            named: list[Any] = [{"type": "item_reference", "id": item.id} for item in first.output]
            result = {"type": "function_call_output", "call_id": first.output[1].call_id, "output": "sunny"}
            question = {"role": "user", "content": "Weather in Xiamen?"}
            second = await ask(model="m", tools=[WEATHER], input=[question, *named, result])
            assert second.output_text == "Sunny."
            assert model.model.requests[1].messages[-1] != model.model.requests[0].messages[-1]
            with pytest.raises(openai.BadRequestError, match=r"input\.0\.id: there is no item 'msg_none_0'") as caught:
                await ask(model="m", input=[{"type": "item_reference", "id": "msg_none_0"}])
            assert caught.value.code == "item_not_found"
            third = await ask(model="m", input=[*named[:1], {"role": "user", "content": "Bye"}])
            assert third.output_text == "Bye."

    asyncio.run(go())
    said = json.dumps(model.model.requests[1].messages, ensure_ascii=False)
    for words in ("Weather in Xiamen?", "Let me look.", "sunny"):
        assert words in said


def test_without_a_store_no_item_can_be_named(asked: Callable[..., Any]) -> None:
    async def go() -> None:
        async with asked(hermes("Hi")) as client:
            with pytest.raises(openai.BadRequestError, match="send the item itself"):
                await client.responses.create(model="m", input=[{"type": "item_reference", "id": "msg_1"}])

    asyncio.run(go())


def test_what_is_kept_can_be_seen_and_dropped(asked: Callable[..., Any], store: StoreSettings) -> None:
    async def go() -> None:
        async with asked(hermes("One.", "Two."), store=store) as client:
            items = [{"role": "user", "content": text} for text in ("a", "b", "c")]
            made = await client.responses.create(model="m", input=items)
            shown = await client.responses.retrieve(made.id)
            assert shown.to_dict() == made.to_dict()
            page = await client.responses.input_items.list(made.id, limit=2)
            assert [item.content[0].text for item in page.data] == ["c", "b"]
            listed = [item.content[0].text async for item in client.responses.input_items.list(made.id, limit=2)]
            assert listed == ["c", "b", "a"]
            listed = [item.content[0].text async for item in client.responses.input_items.list(made.id, order="asc")]
            assert listed == ["a", "b", "c"]
            await client.responses.delete(made.id)
            with pytest.raises(openai.NotFoundError):
                await client.responses.retrieve(made.id)
            with pytest.raises(openai.BadRequestError, match="there is no response"):
                await client.responses.create(model="m", input="x", previous_response_id=made.id)
            private = await client.responses.create(model="m", input="x", store=False)
            with pytest.raises(openai.NotFoundError):
                await client.responses.retrieve(private.id)

    asyncio.run(go())


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=101", "limit=" + "0" * 8 + "1" * 5000, "limit=x", "limit=²", "order=up", "after=nobody"]
)
def test_a_page_that_cannot_be_is_refused(asked: Callable[..., Any], store: StoreSettings, query: str) -> None:
    async def go() -> None:
        async with asked(hermes("One."), store=store) as client:
            made = await client.responses.create(model="m", input="x")
            answer = await client._client.get(f"/responses/{made.id}/input_items?{query}")
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_value")

    asyncio.run(go())


def test_nobody_reads_what_is_anothers(serve_models: Callable[..., Any], store: StoreSettings) -> None:
    keys = tuple(Key(name, digest(f"key-of-{name}")) for name in ("ann", "bob"))

    async def go() -> None:
        async with serve_models(m=hermes("One.", "Two."), settings={"store": store, "keys": keys}) as running:
            ann, bob = (sdk(running.url, f"key-of-{name}") for name in ("ann", "bob"))
            async with ann, bob:
                made = await ann.responses.create(model="m", input="mine")
                for call in (bob.responses.retrieve, bob.responses.delete, bob.responses.input_items.list):
                    with pytest.raises(openai.NotFoundError):
                        await call(made.id)
                with pytest.raises(openai.BadRequestError, match="there is no response"):
                    await bob.responses.create(model="m", input="x", previous_response_id=made.id)
                assert (await ann.responses.retrieve(made.id)).output_text == "One."
                await ann.responses.create(model="m", input="x", previous_response_id=made.id)
            running.gateway.store.close()

    asyncio.run(go())


def test_a_conversation_that_has_grown_too_long_is_refused(asked: Callable[..., Any], store: StoreSettings) -> None:
    async def go() -> None:
        async with asked(hermes("One."), store=store, limits=GatewayLimits(body=3000)) as client:
            made = await client.responses.create(model="m", input="x" * 2500)
            with pytest.raises(openai.BadRequestError, match="start another one"):
                await client.responses.create(model="m", input="y", previous_response_id=made.id)

    asyncio.run(go())


# ------------------------------------------------------------------ behind and in front of others


def test_a_gateway_behind_a_gateway(serve_models: Callable[..., Any]) -> None:
    """An upstream that speaks the Responses API is a model like any other."""

    async def go() -> None:
        async with serve_models(m=hermes("<think>hm</think>Let me look. " + TWO)) as behind:
            model = Http(behind.url + "/v1", "m", api="responses")
            async with serve_models(n=model) as running, sdk(running.url) as client:
                reply = await client.responses.create(model="n", input="Weather?", tools=[WEATHER])
        assert [item.type for item in reply.output] == ["reasoning", "message", "function_call", "function_call"]
        assert [json.loads(item.arguments)["city"] for item in reply.output[2:]] == ["Xiamen", "Paris"]

    asyncio.run(go())


def test_a_server_of_this_api_has_a_name() -> None:
    made = named_model("openai-responses:big", key="k")
    assert isinstance(made, Adaptive | Http)
    asking = Http("http://127.0.0.1:9/v1", "big", api="responses")
    assert asking.endpoint == "http://127.0.0.1:9/v1/responses"
    sent = json.loads(asking.body(Request([{"role": "user", "content": "Hi"}])))
    assert sent == {
        "model": "big", "input": [{"type": "message", "role": "user", "content": "Hi"}], "stream": True, "store": False,
    }  # fmt: skip


def test_the_embedded_model_calls(serve_models: Callable[..., Any]) -> None:
    pytest.importorskip("xllamacpp")

    async def go() -> None:
        question = "What is the weather in Paris?"
        async with (
            serve_models(local=ModelSettings("local", ("local",))) as running,
            sdk(running.url) as client,
            client.responses.stream(model="local", input=question, tools=[WEATHER], tool_choice="required") as stream,
        ):
            final = await stream.get_final_response()
        [call] = [item for item in final.output if item.type == "function_call"]
        assert call.name == "weather"
        assert isinstance(json.loads(call.arguments)["city"], str)

    asyncio.run(go())
