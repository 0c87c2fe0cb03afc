"""Chat completions through the gateway, by the SDK that people use, in front of models that write their calls as text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, cast

import openai
import pytest
from pydantic import BaseModel

from toolspeak.errors import ServerFailed
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Finished, Logprobs, TextDelta
from toolspeak.models.base import Model
from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker
from toolspeak.types import Usage

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Xiamen"}}\n</tool_call>'
OTHER = CALL.replace("Xiamen", "Rome")
QUESTION: Any = [{"role": "user", "content": "Weather in Xiamen?"}]
Scene = Callable[[openai.AsyncOpenAI], Awaitable[None]]
Play = Callable[..., Any]


def hermes(*replies: Any) -> Speaker:
    return Speaker(Scripted(replies), "hermes")


def native(*replies: Any, can: tuple[Any, ...] = ("tools",)) -> Scripted:
    return Scripted(replies, capabilities=can)


@pytest.fixture
def play(serve_models: Callable[..., Any]) -> Play:
    """Plays a scene with the SDK before a gateway that serves `model` as `m`."""

    def go(model: Model, scene: Scene) -> None:
        async def run() -> None:
            sdk = openai.AsyncOpenAI
            async with (
                serve_models(m=model) as running,
                sdk(base_url=running.url + "/v1", api_key="x", max_retries=0) as client,
            ):
                await scene(client)

        asyncio.run(run())

    return go


def ask(client: openai.AsyncOpenAI, **more: Any) -> Any:
    return client.chat.completions.create(**{"model": "m", "messages": QUESTION, **more})


# ------------------------------------------------------------------ calls


def test_a_call_comes_whole(play: Play) -> None:
    async def scene(client: openai.AsyncOpenAI) -> None:
        choice = (await ask(client, tools=[WEATHER])).choices[0]
        assert choice.finish_reason == "tool_calls"
        assert choice.message.content == "Let me look. "
        call = choice.message.tool_calls[0]
        assert call.function.arguments == '{"city": "Xiamen"}'
        assert call.id.startswith("call_")
        assert len(call.id) >= 21

    play(hermes("Let me look. " + CALL), scene)


def test_a_call_alone_has_null_for_content(play: Play) -> None:
    async def scene(client: openai.AsyncOpenAI) -> None:
        message = (await ask(client, tools=[WEATHER])).choices[0].message
        assert message.content is None
        assert len(message.tool_calls) == 1

    play(hermes(CALL), scene)


def test_a_text_has_no_list_of_calls(play: Play) -> None:
    async def scene(client: openai.AsyncOpenAI) -> None:
        raw = await client.chat.completions.with_raw_response.create(model="m", messages=QUESTION, tools=[WEATHER])  # type: ignore[list-item]
        message = json.loads(raw.text)["choices"][0]["message"]
        assert "tool_calls" not in message
        assert message["content"] == "Sunny."

    play(hermes("Sunny."), scene)


def test_text_streams_and_the_call_follows(play: Play) -> None:
    async def scene(client: openai.AsyncOpenAI) -> None:
        async with client.chat.completions.stream(model="m", messages=QUESTION, tools=[WEATHER]) as stream:  # type: ignore[list-item]
            final = await stream.get_final_completion()
        choice = final.choices[0]
        assert (choice.finish_reason, choice.message.content) == ("tool_calls", "Let me look. ")
        assert choice.message.tool_calls is not None
        assert choice.message.tool_calls[0].function.name == "weather"

    play(hermes("Let me look. " + CALL), scene)


DIALECTS = {
    "hermes": CALL,
    "qwen3-coder": "<tool_call>\n<function=weather>\n<parameter=city>\nXiamen\n</parameter>\n</function>\n</tool_call>",
    "mistral-v3": '[TOOL_CALLS][{"name": "weather", "arguments": {"city": "Xiamen"}, "id": "abcdefghi"}]',
    "functools": 'functools[{"name": "weather", "arguments": {"city": "Xiamen"}}]',
    "empower": '<f>[{"name": "weather", "arguments": "{\\"city\\": \\"Xiamen\\"}"}]',
    "tool-json": '{"tool": "weather", "tool_input": {"city": "Xiamen"}, "message": null}',
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("choice", ["auto", "required", {"type": "function", "function": {"name": "weather"}}])
def test_every_choice_in_every_dialect(play: Play, dialect: str, choice: Any) -> None:
    async def scene(client: openai.AsyncOpenAI) -> None:
        reply = (await ask(client, tools=[WEATHER], tool_choice=choice)).choices[0]
        async with client.chat.completions.stream(
            model="m",
            messages=QUESTION,
            tools=[WEATHER],  # type: ignore[list-item]
            tool_choice=choice,
        ) as stream:
            streamed = (await stream.get_final_completion()).choices[0]
        for one in (reply, streamed):
            assert one.finish_reason == "tool_calls"
            assert json.loads(one.message.tool_calls[0].function.arguments) == {"city": "Xiamen"}

    play(Speaker(Scripted([DIALECTS[dialect]], repeat=True), dialect), scene)


def test_with_no_tool_allowed_a_call_is_text(play: Play) -> None:
    model = hermes("Sunny.")

    async def scene(client: openai.AsyncOpenAI) -> None:
        choice = (await ask(client, tools=[WEATHER], tool_choice="none")).choices[0]
        assert (choice.finish_reason, choice.message.tool_calls) == ("stop", None)

    play(model, scene)
    assert "weather" not in str(model.model.requests[0].messages[:-1])  # type: ignore[attr-defined]


@pytest.mark.parametrize("model", [hermes, lambda *_: native(TWO)], ids=["dialect", "native"])
@pytest.mark.parametrize("stream", [False, True])
def test_one_call_where_only_one_may_come(play: Play, model: Any, stream: bool) -> None:
    async def scene(client: openai.AsyncOpenAI) -> None:
        asked = {"tools": [WEATHER], "parallel_tool_calls": False, "stream": stream}
        if stream:
            chunks = [chunk async for chunk in await ask(client, **asked)]
            indexes = {call.index for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()}
            told = chunks[-1].choices[0].model_extra["toolspeak"]
        else:
            choice = (await ask(client, **asked)).choices[0]
            indexes, told = set(range(len(choice.message.tool_calls))), choice.model_extra["toolspeak"]
        assert indexes == {0}
        assert [note["rule"] for note in told["notes"]] == ["one-call"]

    play(model(CALL + "\n" + OTHER), scene)


TWO = [
    *(CallStart("weather", "a"), ArgumentsDelta('{"city": "Xiamen"}'), CallEnd()),
    *(CallStart("weather", "b"), ArgumentsDelta('{"city": "Rome"}'), CallEnd()),
    Finished("tool_calls"),
]


def test_two_calls_in_a_stream(play: Play) -> None:
    async def scene(client: openai.AsyncOpenAI) -> None:
        async with client.chat.completions.stream(model="m", messages=QUESTION, tools=[WEATHER]) as stream:  # type: ignore[list-item]
            calls = (await stream.get_final_completion()).choices[0].message.tool_calls or []
        assert [json.loads(call.function.arguments)["city"] for call in calls] == ["Xiamen", "Rome"]
        assert len({call.id for call in calls}) == 2

    play(hermes(CALL + "\n" + OTHER), scene)


def test_an_id_of_the_server_that_was_there_before_is_replaced(play: Play) -> None:
    said: Any = {
        "role": "assistant",
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{}"}}],
    }
    messages = [*QUESTION, said, {"role": "tool", "tool_call_id": "a", "content": "wet"}]

    async def scene(client: openai.AsyncOpenAI) -> None:
        one, other = (await ask(client, tools=[WEATHER], messages=messages)).choices[0].message.tool_calls
        assert one.id.startswith("call_")
        assert other.id == "b"

    play(native(TWO), scene)


def test_a_cut_call_is_withheld_and_length_wins(play: Play) -> None:
    cut = [TextDelta("Well. "), CallStart("weather", "a"), ArgumentsDelta('{"ci'), CallEnd(False), Finished("length")]

    async def scene(client: openai.AsyncOpenAI) -> None:
        choice = (await ask(client, tools=[WEATHER], max_tokens=5)).choices[0]
        assert (choice.finish_reason, choice.message.tool_calls, choice.message.content) == ("length", None, "Well. ")

    play(native(cut), scene)


def test_a_whole_call_at_the_length_says_length(play: Play) -> None:
    async def scene(client: openai.AsyncOpenAI) -> None:
        choice = (await ask(client, tools=[WEATHER])).choices[0]
        assert (choice.finish_reason, len(choice.message.tool_calls)) == ("length", 2)

    play(native([*TWO[:-1], Finished("length")]), scene)


def test_a_wrong_call_is_asked_again_and_all_is_paid(play: Play) -> None:
    def wrong(city: str) -> list[Any]:
        return [CallStart("wether", city), ArgumentsDelta("{}"), CallEnd(), Finished("tool_calls", Usage(10, 5))]

    right = [*TWO[:3], Finished("tool_calls", Usage(20, 5))]

    async def scene(client: openai.AsyncOpenAI) -> None:
        reply = await ask(client, tools=[WEATHER])
        assert reply.choices[0].message.tool_calls[0].function.name == "weather"
        assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (30, 10)
        chunks = [
            c async for c in await ask(client, tools=[WEATHER], stream=True, stream_options={"include_usage": True})
        ]
        assert chunks[-1].usage.total_tokens == 40
        assert all(chunk.usage is None for chunk in chunks[:-1])
        names = [call.function.name for c in chunks for x in c.choices for call in x.delta.tool_calls or ()]
        assert set(names) - {None} == {"weather"}

    play(native(wrong("a"), right, wrong("b"), right), scene)


def test_never_right_is_told_and_not_to_be_retried(play: Play) -> None:
    async def scene(client: openai.AsyncOpenAI) -> None:
        with pytest.raises(openai.InternalServerError, match="no valid reply") as caught:
            await ask(client, tools=[WEATHER])
        assert caught.value.status_code == 502
        assert caught.value.response.headers["x-should-retry"] == "false"
        assert caught.value.code == "no_valid_reply"

    play(hermes(*[CALL.replace("weather", f"weather{i}") for i in range(9)]), scene)


# ------------------------------------------------------------------ other kinds of tools


def test_functions_from_before_there_were_tools(play: Play) -> None:
    asked = {"functions": [WEATHER["function"]], "function_call": {"name": "weather"}}

    async def scene(client: openai.AsyncOpenAI) -> None:
        choice = (await ask(client, **asked)).choices[0]
        assert (choice.finish_reason, choice.message.tool_calls) == ("function_call", None)
        assert json.loads(choice.message.function_call.arguments) == {"city": "Xiamen"}
        chunks = [chunk async for chunk in await ask(client, stream=True, **asked)]
        pieces = [c.choices[0].delta.function_call for c in chunks if c.choices[0].delta.function_call]
        assert pieces[0].name == "weather"
        assert json.loads("".join(piece.arguments for piece in pieces)) == {"city": "Xiamen"}
        back = [
            {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": "{}"}},
            {"role": "function", "name": "weather", "content": "wet"},
        ]
        assert (await ask(client, messages=[*QUESTION, *back], functions=[WEATHER["function"]])).choices[
            0
        ].message.content == "Wet."

    play(hermes(CALL, CALL, "Wet."), scene)


def test_a_custom_tool_takes_a_text(play: Play) -> None:
    tool = {"type": "custom", "custom": {"name": "shell", "description": "Runs a command."}}
    wire = '<tool_call>\n{"name": "shell", "arguments": {"input": "ls -l \\"x\\""}}\n</tool_call>'

    async def scene(client: openai.AsyncOpenAI) -> None:
        choice = (await ask(client, tools=[tool], tool_choice={"type": "custom", "custom": {"name": "shell"}})).choices[
            0
        ]
        call = choice.message.tool_calls[0]
        assert (call.type, call.custom.name, call.custom.input) == ("custom", "shell", 'ls -l "x"')
        chunks = [chunk async for chunk in await ask(client, tools=[tool], stream=True)]
        told = [call.model_extra["custom"] for c in chunks for call in c.choices[0].delta.tool_calls or ()]
        assert "".join(one["input"] for one in told) == 'ls -l "x"'
        back = [choice.message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "x"}]
        assert (await ask(client, messages=[*QUESTION, *back], tools=[tool])).choices[0].message.content == "Done."

    play(hermes(wire, wire, "Done."), scene)


def test_allowed_tools_leave_the_others_out(play: Play) -> None:
    other = {"type": "function", "function": {"name": "rain"}}
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "weather"}}]}
    model = hermes(CALL)

    async def scene(client: openai.AsyncOpenAI) -> None:
        choice = {"type": "allowed_tools", "allowed_tools": allowed}
        reply = await ask(client, tools=[WEATHER, other], tool_choice=choice)
        assert reply.choices[0].message.tool_calls[0].function.name == "weather"

    play(model, scene)
    assert '"rain"' not in str(model.model.requests[0].messages)  # type: ignore[attr-defined]


# ------------------------------------------------------------------ refusals


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"messages": [{"role": "tool", "tool_call_id": "x", "content": "y"}]},
        "messages.0.tool_call_id: no call before it",
    ),
    ({"messages": [{"role": "function", "name": "f", "content": "y"}]}, "messages.0: no call of a function 'f'"),
    ({"tool_choice": "required"}, "no tool is offered"),
    ({"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "x"}}}, "no tool 'x'"),
    ({"tools": [{"type": "web_search"}]}, "only functions and custom tools"),
    ({"tools": [{"type": "function", "function": {"name": "no name"}}]}, "is no name for a tool"),
    ({"tools": [WEATHER, WEATHER]}, "weather"),
    ({"modalities": ["text", "audio"]}, "only text"),
    ({"n": 9}, "^.*n: expected"),
    ({"top_logprobs": 3}, "needs logprobs"),
    ({"tools": [WEATHER], "logprobs": True}, "logprobs are not available together with tools"),
    ({"stop": [""]}, "stop"),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "schema is missing"),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "strin"}}}},
        "response_format: the schema is invalid",
    ),
]


@pytest.mark.parametrize(("asked", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_what_cannot_be_is_refused_plainly(play: Play, asked: dict[str, Any], said: str) -> None:
    async def scene(client: openai.AsyncOpenAI) -> None:
        with pytest.raises(openai.BadRequestError, match=said):
            await ask(client, **asked)

    play(hermes("Hi"), scene)


def test_a_model_that_is_not_there_is_told(play: Play) -> None:
    async def scene(client: openai.AsyncOpenAI) -> None:
        with pytest.raises(openai.NotFoundError, match="no model 'n' here"):
            await ask(client, model="n")

    play(hermes("Hi"), scene)


# ------------------------------------------------------------------ texts that must fit a schema


class City(BaseModel):
    name: str
    people: int


XIAMEN = '{"name": "Xiamen", "people": 5}'


def test_a_text_is_asked_for_and_checked_and_asked_again(play: Play) -> None:
    model = hermes("It is big.", f"```json\n{XIAMEN}\n```")

    async def scene(client: openai.AsyncOpenAI) -> None:
        reply = await client.chat.completions.parse(model="m", messages=QUESTION, response_format=City)
        assert reply.choices[0].message.parsed == City(name="Xiamen", people=5)

    play(model, scene)
    first, second = model.model.requests  # type: ignore[attr-defined]
    assert first.schema is None
    assert '"people"' in str(first.messages[0])
    assert "it is not JSON" in str(second.messages[-1])


AROUND = [
    (f"Here is the JSON:\n```json\n{XIAMEN}\n```", ["words-left-out"]),
    (f"```json\n{XIAMEN}\n```\nLet me know!", ["words-left-out"]),
    (f"Sure!\n{XIAMEN}", ["words-left-out"]),
    ('{"name": "Xiamen", "people": 5,}', ["trailing-comma"]),
    ("{'name': 'Xiamen', 'people': 5}", ["single-quotes"]),
    ('{"name": "Xiamen", "people": "5"}', ["coerced"]),
    ("Sure:\n```json\n{'name': 'Xiamen', 'people': '5',}\n```", ["words-left-out", "trailing-comma"]),
]


@pytest.mark.parametrize(("text", "rules"), AROUND)
def test_a_value_among_words_is_repaired_like_a_call(play: Play, text: str, rules: list[str]) -> None:
    async def scene(client: openai.AsyncOpenAI) -> None:
        form = {"type": "json_schema", "json_schema": {"name": "c", "schema": City.model_json_schema()}}
        raw = await client.chat.completions.with_raw_response.create(
            model="m", messages=cast("Any", QUESTION), response_format=cast("Any", form)
        )
        assert json.loads(raw.parse().choices[0].message.content or "") == json.loads(XIAMEN)
        assert set(rules) <= set(raw.headers["x-toolspeak-notes"].split(", "))
        async with client.chat.completions.stream(model="m", messages=QUESTION, response_format=City) as stream:
            final = await stream.get_final_completion()
        assert final.choices[0].message.parsed == City(name="Xiamen", people=5)

    play(hermes(text, text), scene)


@pytest.mark.parametrize(
    "text",
    [
        f"{XIAMEN} or {XIAMEN.replace('5', '6')}",  # two values
        f'{{"cities": {XIAMEN}, "more": oops!}}',  # a part of a broken value
    ],
)
def test_a_value_that_may_not_be_the_wanted_one_is_asked_for_again(play: Play, text: str) -> None:
    model = hermes(text, XIAMEN)

    async def scene(client: openai.AsyncOpenAI) -> None:
        reply = await client.chat.completions.parse(model="m", messages=QUESTION, response_format=City)
        assert reply.choices[0].message.content == XIAMEN

    play(model, scene)
    assert len(model.model.requests) == 2  # type: ignore[attr-defined]


def test_nothing_of_a_wrong_text_leaves_in_a_stream(play: Play) -> None:
    async def scene(client: openai.AsyncOpenAI) -> None:
        async with client.chat.completions.stream(model="m", messages=QUESTION, response_format=City) as stream:
            final = await stream.get_final_completion()
        assert final.choices[0].message.parsed == City(name="Xiamen", people=5)
        assert final.choices[0].message.content == XIAMEN

    play(hermes('{"name": "Xiamen"}', XIAMEN), scene)


def test_a_text_that_never_fits(play: Play) -> None:
    async def scene(client: openai.AsyncOpenAI) -> None:
        with pytest.raises(openai.InternalServerError, match="/people: expected"):
            await ask(
                client,
                response_format={
                    "type": "json_schema",
                    "json_schema": {"name": "c", "schema": City.model_json_schema()},
                },
            )

    play(hermes(*[f'{{"name": "{i}", "people": "many"}}' for i in range(9)]), scene)


def test_any_object_will_do(play: Play) -> None:
    async def scene(client: openai.AsyncOpenAI) -> None:
        reply = await ask(client, response_format={"type": "json_object"})
        assert json.loads(reply.choices[0].message.content) == {"a": [1]}

    play(hermes("[1]", '{"a": [1]}'), scene)


def test_beside_tools_a_call_is_fine_and_a_text_must_fit(play: Play) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "c", "schema": City.model_json_schema()}}

    async def scene(client: openai.AsyncOpenAI) -> None:
        called = (await ask(client, tools=[WEATHER], response_format=form)).choices[0]
        assert called.finish_reason == "tool_calls"
        said = (await ask(client, tools=[WEATHER], response_format=form)).choices[0]
        assert said.message.content == XIAMEN

    play(hermes(CALL, "Big.", XIAMEN), scene)


def test_a_model_that_is_held_to_a_schema_streams(play: Play) -> None:
    async def scene(client: openai.AsyncOpenAI) -> None:
        chunks = [c async for c in await ask(client, stream=True, response_format={"type": "json_object"})]
        assert len([c for c in chunks if c.choices and c.choices[0].delta.content]) == 2
        with pytest.raises(openai.APIError, match="does not fit its schema"):  # what was streamed cannot be repaired
            async for _ in await ask(client, stream=True, response_format={"type": "json_object"}):
                pass

    good = [TextDelta("{"), TextDelta("}"), Finished()]
    play(native(good, [TextDelta("{"), Finished()], can=("tools", "schema", "enforced")), scene)


def test_a_server_that_is_trusted_with_a_schema_and_forgets_it_is_told_in_words(play: Play) -> None:
    model = native([TextDelta("Big."), Finished()], [TextDelta(XIAMEN), Finished()], can=("tools", "schema"))

    async def scene(client: openai.AsyncOpenAI) -> None:
        reply = await client.chat.completions.parse(model="m", messages=QUESTION, response_format=City)
        assert reply.choices[0].message.parsed == City(name="Xiamen", people=5)

    play(model, scene)
    first, second = model.requests
    assert first.schema == second.schema is not None
    assert '"people"' in str(second.messages[-1]["content"])


# ------------------------------------------------------------------ several replies, stops, likelihoods, settings


def test_several_replies_come_side_by_side(play: Play) -> None:
    model = Scripted(["one", "two", "three"], chunk=1)

    async def scene(client: openai.AsyncOpenAI) -> None:
        texts = ["", "", ""]
        order = []
        async for chunk in await ask(client, n=3, stream=True, seed=7):
            for choice in chunk.choices:
                texts[choice.index] += choice.delta.content or ""
                order.append(choice.index)
        assert sorted(texts) == ["one", "three", "two"]
        assert order != sorted(order)

    play(model, scene)
    assert sorted(request.seed or 0 for request in model.requests) == [7, 8, 9]


def test_several_replies_in_one_body(play: Play) -> None:
    def said(text: str) -> list[Any]:
        return [TextDelta(text), Finished("stop", Usage(3, 1))]

    async def scene(client: openai.AsyncOpenAI) -> None:
        reply = await ask(client, n=2)
        assert [choice.index for choice in reply.choices] == [0, 1]
        assert {choice.message.content for choice in reply.choices} == {"a", "b"}
        assert reply.usage.total_tokens == 8

    play(native(said("a"), said("b")), scene)


def test_an_error_of_one_reply_is_told(play: Play) -> None:
    async def scene(client: openai.AsyncOpenAI) -> None:
        with pytest.raises(openai.InternalServerError):
            await ask(client, n=2)

    play(native([TextDelta("a"), Finished()], ServerFailed("it burns")), scene)


def test_a_stop_string_cuts_the_text_and_no_marker(play: Play) -> None:
    model = hermes(CALL, "One. STOP " + CALL)

    async def scene(client: openai.AsyncOpenAI) -> None:
        called = (await ask(client, tools=[WEATHER], stop=['"name"', "STOP"])).choices[0]
        assert called.finish_reason == "tool_calls"
        said = (await ask(client, tools=[WEATHER], stop=['"name"', "STOP"])).choices[0]
        assert (said.finish_reason, said.message.content, said.message.tool_calls) == ("stop", "One. ", None)

    play(model, scene)
    assert [request.stop for request in model.model.requests] == [(), ()]  # type: ignore[attr-defined]


def test_likelihoods_come_with_the_text_and_never_with_calls(play: Play) -> None:
    token = {"token": "Hi", "logprob": -0.5, "bytes": [72, 105], "top_logprobs": []}
    said = [Logprobs([token]), TextDelta("Hi"), Finished()]

    async def scene(client: openai.AsyncOpenAI) -> None:
        choice = (await ask(client, logprobs=True)).choices[0]
        assert choice.logprobs.content[0].logprob == -0.5
        chunks = [chunk async for chunk in await ask(client, logprobs=True, stream=True)]
        tokens = [c.choices[0].logprobs.content[0].token for c in chunks if c.choices[0].logprobs]
        assert tokens == ["Hi"]
        assert (await ask(client, logprobs=True, tools=[WEATHER])).choices[0].logprobs is None

    play(native(said, said, [Logprobs([token]), *TWO]), scene)


def test_the_thought_of_an_empower_model(play: Play) -> None:
    model = Speaker(Scripted(["<thinking>Rain?</thinking>" + DIALECTS["empower"]], repeat=True), "empower")

    async def scene(client: openai.AsyncOpenAI) -> None:
        message = (await ask(client, tools=[WEATHER], extra_body={"include_thinking": True})).choices[0].message
        assert message.model_extra["reasoning_content"] == "Rain?"
        assert message.tool_calls[0].function.name == "weather"
        message = (await ask(client, tools=[WEATHER], extra_body={"include_thinking": False})).choices[0].message
        assert "reasoning_content" not in message.model_extra

    play(model, scene)
    told = [str(request.messages) for request in model.model.requests]  # type: ignore[attr-defined]
    assert "include your thinking" in told[0]
    assert "include your thinking" not in told[1]


IMAGE = {"type": "image_url", "image_url": {"url": "http://127.0.0.1:9/never-fetched.png"}}


def test_an_image_passes_through_a_dialect_untouched(play: Play) -> None:
    model = hermes(CALL)
    messages = [{"role": "user", "content": [{"type": "text", "text": "Weather here?"}, IMAGE]}]

    async def scene(client: openai.AsyncOpenAI) -> None:
        await ask(client, messages=messages, tools=[WEATHER])

    play(model, scene)
    assert model.model.requests[0].messages[-1]["content"] == messages[0]["content"]  # type: ignore[attr-defined]


def test_the_sync_client(serve_models: Callable[..., Any]) -> None:
    def go(url: str) -> None:
        with openai.OpenAI(base_url=url + "/v1", api_key="none") as client:
            reply = client.chat.completions.create(model="m", messages=QUESTION, tools=[WEATHER])  # type: ignore[list-item]
            assert reply.choices[0].finish_reason == "tool_calls"
            stream = client.chat.completions.create(model="m", messages=QUESTION, stream=True)
            assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "Hello"

    async def run() -> None:
        async with serve_models(m=hermes(CALL, "Hello")) as running:
            await asyncio.to_thread(go, running.url)

    asyncio.run(run())


def test_what_was_repaired_or_ignored_is_told_in_headers(play: Play) -> None:
    async def scene(client: openai.AsyncOpenAI) -> None:
        raw = await client.chat.completions.with_raw_response.create(
            model="m",
            messages=QUESTION,
            tools=[WEATHER],
            extra_body={"mirostat\r\nx: y": 1},  # type: ignore[list-item]
        )
        assert raw.headers["x-toolspeak-notes"]
        assert raw.headers["x-toolspeak-ignored"] == "mirostat??x??y"
        assert raw.parse().choices[0].toolspeak["notes"]  # type: ignore[attr-defined]

    play(hermes(CALL.replace("\n</tool_call>", "")), scene)


@pytest.mark.parametrize("streamed", [False, True])
def test_the_markers_of_a_call_around_something_else_are_asked_again(play: Play, streamed: bool) -> None:
    """A client would take the text for the answer, and stop."""
    model = hermes("<tool_call>\nls -la\n</tool_call>", CALL)

    async def scene(client: openai.AsyncOpenAI) -> None:
        if not streamed:
            choice = (await ask(client, tools=[WEATHER])).choices[0]
            assert choice.message.content is None
        else:
            async with client.chat.completions.stream(model="m", messages=QUESTION, tools=[WEATHER]) as stream:  # type: ignore[list-item]
                choice = (await stream.get_final_completion()).choices[0]
        assert choice.finish_reason == "tool_calls"
        assert choice.message.tool_calls[0].function.arguments == '{"city": "Xiamen"}'

    play(model, scene)
