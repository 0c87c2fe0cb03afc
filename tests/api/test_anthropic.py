"""The Messages API: requests and replies, both directions, held against the types of Anthropic's SDK."""

import json
from contextlib import suppress
from typing import Any

import anthropic.types.beta
import pytest
from anthropic.types import ErrorResponse, Message, MessageTokensCount, ModelInfo, RawMessageStreamEvent
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from hypothesis import strategies as st
from pydantic import TypeAdapter

from properties import property_test
from toolspeak import dialect as get
from toolspeak.api import anthropic as api
from toolspeak.api.incoming import IncomingRequest, Stamp
from toolspeak.errors import BadRequest, KeyRefused, ModelError, Refused, ServerFailed, StreamCut
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Noted, TextDelta, ThoughtDelta
from toolspeak.gateway.body import check_body
from toolspeak.models.http import Http
from toolspeak.schema.validators import judge
from toolspeak.types import Note, Reply, Request, Tool, ToolCall, Usage
from toolspeak.wire.decode import parse
from toolspeak.wire.reading.collect import collect
from toolspeak.wire.render import render

EVENTS: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
BODIES: TypeAdapter[Any] = TypeAdapter(MessageCreateParamsStreaming)
STAMP = Stamp("0123", 1_700_000_000, "m")
PNG = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
FAR = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}

# ------------------------------------------------------------------ requests

TEXT = st.text(min_size=1, max_size=8)
NAME = st.from_regex(r"[a-z_][a-z0-9_-]{0,12}", fullmatch=True)
JSON_OBJECT = st.dictionaries(st.text(max_size=4), st.one_of(st.none(), st.booleans(), st.integers(), TEXT), max_size=3)
MIXED = st.lists(st.one_of(st.builds(lambda text: {"type": "text", "text": text}, TEXT), st.sampled_from([PNG, FAR])),
                 min_size=1, max_size=3).filter(lambda parts: any(part["type"] != "text" for part in parts))  # fmt: skip


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Conversations that both forms can say: see `api.anthropic.content`."""
    messages: list[dict[str, Any]] = []
    if draw(st.booleans()):
        messages.append({"role": "system", "content": draw(TEXT)})
    messages.append({"role": "user", "content": draw(TEXT | MIXED)})
    for turn in range(draw(st.integers(0, 3))):
        ids = [f"call_{turn}{i}" for i in range(draw(st.integers(0, 2)))]
        said: dict[str, Any] = {"role": "assistant", "content": draw(st.none() | TEXT) if ids else draw(TEXT)}
        if draw(st.booleans()):
            said["reasoning_content"] = draw(TEXT)
        if ids:
            said["tool_calls"] = [
                {"id": key, "type": "function", "function": {
                    "name": draw(NAME), "arguments": json.dumps(draw(JSON_OBJECT), ensure_ascii=False)}}
                for key in ids
            ]  # fmt: skip
        messages.append(said)
        error = st.builds(lambda told: json.dumps({"error": told}, ensure_ascii=False), TEXT | JSON_OBJECT)
        error |= error.map(lambda text: json.dumps({"error": text}, ensure_ascii=False))
        messages += [{"role": "tool", "tool_call_id": key, "content": draw(TEXT | error | MIXED)} for key in ids]
        if not ids or draw(st.booleans()):
            messages.append({"role": "user", "content": draw(TEXT | MIXED)})
    return messages


@st.composite
def requests(draw: st.DrawFn) -> Request:
    names = draw(st.lists(NAME, unique=True, min_size=1, max_size=3))
    tools = tuple(
        Tool(name, draw(st.just("") | TEXT), {"type": "object", "properties": {}}, strict=draw(st.booleans()))
        for name in names
    )
    choice = draw(st.sampled_from(["auto", "none", "required", *names]))
    effort = draw(st.none() | st.sampled_from(["low", "medium", "high", "max"]))
    return Request(
        draw(conversations()),
        tools,
        choice=choice,
        parallel=choice == "none" or draw(st.booleans()),
        max_tokens=draw(st.integers(1, 10_000)),
        temperature=draw(st.none() | st.sampled_from([0, 0.5, 1])),
        stop=tuple(draw(st.lists(TEXT, max_size=2))),
        schema=draw(st.none() | st.just({"type": "object", "properties": {}})),
        thinking=draw(st.none() | st.booleans()),
        sampling=draw(st.sampled_from([{}, {"top_p": 0.5}, {"top_k": 3, "top_p": 1}]))
        | ({"reasoning_effort": effort} if effort else {}),
    )


@property_test(100, requests())
def test_a_request_is_read_as_it_was_written(request: Request) -> None:
    body = json.loads(json.dumps(api.write_request(request, "m", thoughts=True)))
    check_body(body, api.BODY)
    asked = api.read_request(body)
    assert asked.request == request
    assert (asked.model, asked.stream, asked.n) == ("m", True, 1)
    assert set(asked.ignored) <= {"signature"}


@property_test(100, requests())
def test_what_is_written_is_what_the_sdk_would_send(request: Request) -> None:
    BODIES.validate_python(api.write_request(request, "m", thoughts=True), strict=True)


def test_turns_of_blocks_are_our_messages() -> None:
    body = {
        "model": "m",
        "max_tokens": 9,
        "system": [{"type": "text", "text": "Be"}, {"type": "text", "text": "brief", "cache_control": {"type": "x"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "redacted_thinking", "data": "x"},
                    {"type": "text", "text": "I "},
                    {"type": "text", "text": "look", "citations": None},
                    {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "厦门"}},
                    {"type": "tool_use", "id": "t2", "name": "now", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "35"}]},
                    {"type": "tool_result", "tool_use_id": "t2", "content": "no clock", "is_error": True},
                    {"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain", "data": "D"}},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                ],
            },
        ],
    }  # fmt: skip
    check_body(body, api.BODY)
    asked = api.read_request(body)
    call = {"type": "function", "function": {"name": "weather", "arguments": '{"city": "厦门"}'}}
    assert list(asked.request.messages) == [
        {"role": "system", "content": "Be\n\nbrief"},
        {"role": "user", "content": "a\n\nb"},
        {
            "role": "assistant",
            "content": "I look",
            "reasoning_content": "hm",
            "tool_calls": [
                {"id": "t1", **call},
                {"id": "t2", "type": "function", "function": {"name": "now", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "t1", "content": "35"},
        {"role": "tool", "tool_call_id": "t2", "content": '{"error": "no clock"}'},
        {"role": "user", "content": [{"type": "text", "text": "T"}, {"type": "text", "text": "D"}, PNG]},
    ]
    assert asked.ignored == ("cache_control", "redacted_thinking", "signature")


PLAIN: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}


def test_examples_of_a_tools_input_are_shown() -> None:
    """To a server with its own tools behind the description, to a prompted model as calls in its dialect."""
    tool = {"name": "weather", "description": "The weather.", "input_schema": {"type": "object"}}
    examples = [{"city": "厦门"}, {"city": "Paris", "unit": "<tool_call>"}]
    tools = [
        {**tool, "input_examples": examples, "eager_input_streaming": True},
        {**tool, "name": "bare", "input_examples": None},
    ]
    asked = api.read_request(PLAIN | {"tools": tools})
    offered = asked.request.tools or ()
    assert [tool.examples for tool in offered] == [tuple(examples), ()]
    assert asked.eager == {"weather"}
    assert not {one for one in asked.ignored if one.startswith("tools.")}
    sent = json.loads(Http("http://host/v1", "m").body(asked.request))["tools"]
    assert sent[0]["function"]["description"] == (
        'The weather.\n\nExamples of its arguments:\n{"city": "厦门"}\n{"city": "Paris", "unit": "<tool_call>"}'
    )
    assert sent[1]["function"]["description"] == "The weather."
    for dialect in ("hermes", "qwen3-coder"):
        d = get(dialect)
        told = str(render(asked.request.messages, offered, d).messages[0]["content"])
        head, _, calls = told.partition("\n\nExamples of calls:\n")
        assert "Examples" not in head
        read = parse(calls, d, offered).calls
        assert [call.name for call in read] == ["weather"] * 2
        assert read[0].arguments == examples[0]
        assert calls.count("<tool_call>") == 2  # the one in an argument is broken


def test_settings_are_read() -> None:
    tools = [
        {"type": "custom", "name": "a", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}
    ]
    body = PLAIN | {
        "tools": tools,
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "stop_sequences": ["END", ""],
        "metadata": {"user_id": "u"},
        "service_tier": "auto",
        "output_format": {"type": "json_schema", "schema": {"type": "object"}},
        "anthropic_new_field": 1,
    }
    check_body(body, api.BODY)
    asked = api.read_request(body)
    request = asked.request
    assert [tool.name for tool in request.tools or ()] == ["a"]
    assert (request.choice, request.parallel, request.thinking, request.stop) == ("required", False, True, ("END",))
    assert (request.schema, request.max_tokens, asked.thoughts) == ({"type": "object"}, 9, True)
    assert asked.ignored == (
        "anthropic_new_field", "metadata", "service_tier", "thinking.budget_tokens", "tools.cache_control",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("thinking", "asked", "told"),
    [
        (None, None, False),
        ({"type": "disabled"}, False, False),
        ({"type": "adaptive"}, True, True),
        ({"type": "adaptive", "display": "omitted"}, True, False),
        ({"type": "between_tools"}, None, False),
    ],
)
def test_thoughts_are_told_to_who_asked_for_them(thinking: Any, asked: bool | None, told: bool) -> None:
    read = api.read_request(PLAIN | {"thinking": thinking})
    assert (read.request.thinking, read.thoughts) == (asked, told)


def test_a_tool_may_be_called_like_a_word_of_the_choice() -> None:
    tools = [{"name": "none"}, {"name": "other"}]
    asked = api.read_request(PLAIN | {"tools": tools, "tool_choice": {"type": "tool", "name": "none"}}).request
    assert (asked.choice, [tool.name for tool in asked.tools or ()]) == ("required", ["none"])


def said(*blocks: Any, role: str = "user") -> dict[str, Any]:
    return PLAIN | {"messages": [{"role": role, "content": list(blocks)}]}


IMAGE = {"type": "image", "source": {"type": "file", "file_id": "f"}}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (PLAIN | {"max_tokens": None}, "max_tokens: expected"),
        ({"model": "m", "messages": PLAIN["messages"]}, "max_tokens"),
        (PLAIN | {"messages": []}, "messages"),
        (PLAIN | {"messages": [{"role": "tool", "content": "x"}]}, "messages.0.role"),
        (PLAIN | {"temperature": 1.5}, "temperature"),
        (PLAIN | {"tools": [{"name": "a", "input_schema": 1}]}, "tools.0.input_schema"),
        (PLAIN | {"tools": [{"name": "a"}, {"name": "a"}]}, "two tools are named 'a'"),
        (PLAIN | {"tool_choice": {"type": "tool"}}, "tool_choice.name"),
        (PLAIN | {"tool_choice": {"type": "sure"}}, "tool_choice"),
        (PLAIN | {"tool_choice": {"type": "any"}}, "no tool is offered"),
        (PLAIN | {"tools": [{"name": "a"}], "tool_choice": {"type": "tool", "name": "b"}}, "no tool 'b' among"),
        (
            PLAIN | {"tools": [{"name": "get_weather"}], "tool_choice": {"type": "tool", "name": "get_wether"}},
            "Did you mean 'get_weather'",
        ),
        (PLAIN | {"mcp_servers": "x"}, "mcp_servers: expected"),
        (PLAIN | {"output_config": {"format": {"type": "json_schema"}}}, "a schema is missing"),
        (PLAIN | {"output_config": {"effort": "utmost"}}, "output_config"),
        (said(IMAGE), r"messages\.0\.content\.0\.source: .*'file'"),
        (said({"type": "image"}), "not a source of the type 'None'"),
        (said({"type": "document", "source": {"type": "base64", "data": "x"}}), "as text only"),
        (said({"type": "text"}), r"messages\.0\.content\.0\.text: expected a string, got nothing"),
        (said({"type": "text", "text": 1}), "expected a string, got int"),
        (said({"type": "tool_result", "content": "x"}), "tool_use_id"),
        (said({"type": "tool_use", "id": "x", "name": "a", "input": {}}), "'tool_use' cannot be passed on"),
        (
            said({"type": "search_result", "title": "t", "source": "s", "content": {}}),
            "a list of blocks, got an object",
        ),
        (said({"type": "teleport", "id": "x"}), "Input tag 'teleport': a block of the type 'teleport' cannot"),
        (said({"type": "teleport", "id": "x"}, role="system"), r"messages\.0\.content\.0: Input tag 'teleport'"),
        (PLAIN | {"messages": [{"role": "user"}]}, "expected a text or a list of blocks, got nothing"),
        (PLAIN | {"compaction": {"type": "summarize"}}, "ask for a summary of it in a message"),
        (said({"type": "tool_use", "id": "x", "input": {}}, role="assistant"), "name"),
        (said({"text": "x"}), r"messages\.0"),
        (said("x"), r"messages\.0"),
    ],
)
def test_what_cannot_be_done_is_refused_plainly(body: dict[str, Any], words: str) -> None:
    def read() -> None:
        check_body(body, api.BODY)
        api.read_request(body)

    with pytest.raises((Refused, ValueError), match=words) as caught:
        read()
    assert getattr(caught.value, "status", 0) == 400


KINDS = ["text", "image", "document", "search_result", "tool_use", "tool_result", "thinking", "redacted_thinking", "x"]
FIELDS = [
    "text",
    "source",
    "content",
    "input",
    "id",
    "name",
    "tool_use_id",
    "thinking",
    "title",
    "data",
    "url",
    "is_error",
]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT | st.sampled_from(["base64", "url", "text", "content"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(
        st.sampled_from(["type", "data", "media_type", "url", "text", "content"]), inner, max_size=4),
    max_leaves=6,
)  # fmt: skip
BLOCKS = st.builds(
    lambda kind, fields: {**fields, "type": kind},
    st.sampled_from(KINDS), st.dictionaries(st.sampled_from(FIELDS), ANYTHING, max_size=5),
)  # fmt: skip
TURNS = st.builds(
    lambda role, content: {"role": role, "content": content},
    st.sampled_from(["user", "assistant", "system"]),
    st.lists(st.builds(lambda block, inner: {**block, "content": inner}, BLOCKS, st.lists(BLOCKS, max_size=2)) | BLOCKS,
             max_size=3) | ANYTHING,
)  # fmt: skip


@property_test(100, st.lists(TURNS, min_size=1, max_size=3), ANYTHING | st.lists(BLOCKS, max_size=2))
def test_any_body_is_read_or_refused(turns: list[Any], system: Any) -> None:
    body = PLAIN | {"messages": turns, "system": system}
    with suppress(Refused):  # nothing else may be raised
        check_body(body, api.BODY)
        asked = api.read_request(body)
        json.dumps(api.write_request(asked.request, "m"))


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Request(seed=1), "seed"),
        (Request(logprobs=0), "logprobs"),
        (Request(sampling={"frequency_penalty": 0.5}), "frequency_penalty"),
        (Request(sampling={"reasoning_effort": "minimal"}), "reasoning_effort"),
        (Request([{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]), "input_audio"),
    ],
)
def test_what_the_api_cannot_be_asked_is_refused(request_: Request, words: str) -> None:
    with pytest.raises(Refused, match=words):
        api.write_request(request_, "m")


def test_a_setting_that_changes_nothing_is_left_out() -> None:
    body = api.write_request(Request(sampling={"frequency_penalty": 0, "presence_penalty": 0.0}), "m")
    assert body == {"model": "m", "messages": [], "max_tokens": 8192, "stream": True}


def test_calls_in_a_conversation_without_tools_are_of_tools_that_are_told() -> None:
    call = {"id": "functions.now:0", "type": "function", "function": {"name": "now", "arguments": "{bro"}}
    request = Request(
        [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "functions.now:0", "content": "12"},
        ]
    )
    body = api.write_request(request, "m")
    assert body["tools"] == [{"name": "now", "input_schema": {"type": "object"}}]
    assert body["tool_choice"] == {"type": "none"}
    assert body["messages"][1:] == [
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "functions_now_0", "name": "now", "input": {"arguments": "{bro"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "functions_now_0", "content": "12"}]},
    ]  # fmt: skip


# ------------------------------------------------------------------ replies


def read(data: bytes, size: int | None = None) -> list[Event]:
    reader, step = api.ReplyReader(), size or max(1, len(data))
    events = [event for i in range(0, len(data), step) for event in reader.feed(data[i : i + step])]
    return events + reader.close()


def events_in(data: bytes) -> list[dict[str, Any]]:
    """The events of a stream: each is named as its type says, and is one that the SDK knows."""
    out: list[dict[str, Any]] = []
    for event in data.decode().split("\n\n")[:-1]:
        name, _, payload = event.partition("\n")
        value = json.loads(payload.removeprefix("data: "))
        assert name == f"event: {value['type']}"
        if value["type"] != "error":
            EVENTS.validate_python(value, strict=True)
        out.append(value)
    return out


def written(events: list[Event], asked: IncomingRequest | None = None) -> bytes:
    writer = api.ReplyWriter(asked or IncomingRequest("m", Request(), stream=True), STAMP)
    return writer.begin() + b"".join(writer.feed(event) for event in events) + writer.close()


SPENT = st.builds(
    lambda cached, fresh, thought, said: Usage(cached + fresh, thought + said, cached, thought),
    *(st.integers(0, 9) for _ in range(4)),
)
SAID = st.builds(lambda text: [TextDelta(text)], TEXT) | st.builds(lambda text: [ThoughtDelta(text)], TEXT)


@st.composite
def replies(draw: st.DrawFn) -> list[Event]:
    events: list[Event] = [event for part in draw(st.lists(SAID, max_size=4)) for event in part]
    calls = draw(st.integers(0, 3))
    for i in range(calls):
        text = json.dumps(draw(JSON_OBJECT), ensure_ascii=draw(st.booleans()))
        cut = draw(st.integers(1, len(text)))
        pieces = [ArgumentsDelta(piece) for piece in (text[:cut], text[cut:]) if piece]
        events += [CallStart(draw(NAME), f"call_{i}"), *pieces, CallEnd()]
    finish = "tool_calls" if calls else draw(st.sampled_from(["stop", "length", "content_filter"]))
    return [*events, Finished(finish, draw(SPENT))]


@property_test(100, replies(), st.none() | st.integers(1, 40))
def test_a_stream_is_read_as_it_was_written(events: list[Event], size: int | None) -> None:
    assert read(written(events), size) == events


@property_test(100, replies())
def test_a_stream_is_as_the_sdk_takes_it(events: list[Event]) -> None:
    told = events_in(written(events))
    kinds = [event["type"] for event in told]
    assert (kinds[0], kinds[-2:]) == ("message_start", ["message_delta", "message_stop"])
    assert kinds.count("message_start") == kinds.count("message_delta") == 1
    held: int | None = None
    blocks = 0
    for event in told[1:-2]:
        if event["type"] == "content_block_start":
            assert held is None
            held = event["index"]
            assert held == blocks
            blocks += 1
            assert event["content_block"].get("input", {}) == {}
        else:
            assert event["index"] == held
        if event["type"] == "content_block_stop":
            held = None
    assert held is None


@property_test(100, replies(), st.none() | st.integers(1, 40))
def test_a_body_is_read_as_it_was_written(events: list[Event], size: int | None) -> None:
    reply = collect(events)
    body = json.loads(json.dumps(api.write_reply([reply], IncomingRequest("m", Request()), STAMP)))
    Message.model_validate(body, strict=True)
    again = collect(read(json.dumps(body, ensure_ascii=False).encode(), size))
    for name in ("text", "thought", "finish", "usage"):
        assert getattr(again, name) == getattr(reply, name)
    assert [(c.id, c.name, c.arguments) for c in again.calls] == [(c.id, c.name, c.arguments) for c in reply.calls]


def test_blocks_of_several_kinds() -> None:
    events: list[Event] = [
        ThoughtDelta("hm"), TextDelta("a"), TextDelta("b"), CallStart("now", "x"), ArgumentsDelta("{}"), CallEnd(),
        CallStart("now", "y"), ArgumentsDelta("{}"), CallEnd(), Noted(Note("re-asked", "why")),
        Finished("tool_calls", Usage(7, 2, 3, 1)),
    ]  # fmt: skip
    told = events_in(written(events))
    starts = [event["content_block"]["type"] for event in told if event["type"] == "content_block_start"]
    assert starts == ["thinking", "text", "tool_use", "tool_use"]
    deltas = [event["delta"]["type"] for event in told if event["type"] == "content_block_delta"]
    assert deltas == ["thinking_delta", "signature_delta", "text_delta", "text_delta", *["input_json_delta"] * 2]
    end = told[-2]
    assert end["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert end["usage"] == {
        "input_tokens": 4, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 3, "output_tokens": 2,
        "output_tokens_details": {"thinking_tokens": 1},
    }  # fmt: skip
    assert end["toolspeak"] == {"notes": [{"rule": "re-asked", "detail": "why"}]}


def test_thoughts_that_nobody_asked_for_are_not_told() -> None:
    asked = IncomingRequest("m", Request(), stream=True, thoughts=False)
    told = events_in(written([ThoughtDelta("hm"), TextDelta("a"), ThoughtDelta("so"), Finished()], asked))
    assert [event["content_block"]["type"] for event in told if event["type"] == "content_block_start"] == ["text"]
    assert api.write_reply([Reply("a", "hm")], asked, STAMP)["content"] == [{"type": "text", "text": "a"}]


def test_a_stop_string_is_told_where_it_is_known() -> None:
    data = written([TextDelta("a"), Noted(Note("stop-sequence", "END")), Finished()])
    assert events_in(data)[-2]["delta"] == {"stop_reason": "stop_sequence", "stop_sequence": "END"}
    assert read(data) == [TextDelta("a"), Noted(Note("stop-sequence", "END")), Finished()]


def stream(*events: Any) -> bytes:
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def block(index: int, begun: Any, *deltas: Any) -> list[Any]:
    return [
        {"type": "content_block_start", "index": index, "content_block": begun},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def ends(reason: str = "end_turn", **usage: int) -> list[Any]:
    delta = {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    return [delta, {"type": "message_stop"}]


START = {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}}
USE = {"type": "tool_use", "id": "t", "name": "now", "input": {}}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            stream(START, {"type": "ping"}, *block(0, USE), *ends("tool_use", output_tokens=3)),
            [CallStart("now", "t"), ArgumentsDelta("{}"), CallEnd(), Finished("tool_calls", Usage(5, 3))],
        ),
        (
            stream(START, *block(0, USE | {"input": {"a": 1}}), *ends("end_turn")),
            [CallStart("now", "t"), ArgumentsDelta('{"a": 1}'), CallEnd(), Finished("tool_calls", Usage(5, 1))],
        ),
        (
            stream(START, *block(0, USE, {"type": "input_json_delta", "partial_json": '{"a'}), *ends("max_tokens")),
            [CallStart("now", "t"), ArgumentsDelta('{"a'), CallEnd(False), Finished("length", Usage(5, 1))],
        ),
        (
            stream(START, *block(0, USE, {"type": "input_json_delta", "partial_json": '{"a":'})[:-1],
                   *block(0, USE | {"id": "u"}, {"type": "input_json_delta", "partial_json": " 1}"}), *ends("tool_use")),
            [CallStart("now", "t"), ArgumentsDelta('{"a":'), ArgumentsDelta(" 1}"), CallEnd(False),
             Finished("tool_calls", Usage(5, 1))],
        ),
        (
            stream(START, *block(0, USE, *({"type": "input_json_delta", "partial_json": part} for part in ('{"p": 1, "', 'p": 2}'))),
                   *ends("tool_use")),
            [CallStart("now", "t"), ArgumentsDelta('{"p": 1, "'), ArgumentsDelta('p": 2}'), Noted(Note("doubled-key", "p")),
             CallEnd(False), Finished("tool_calls", Usage(5, 1))],
        ),
        (
            stream(START, *block(0, {"type": "server_tool_use", "id": "s", "name": "web", "input": {}},
                                 {"type": "input_json_delta", "partial_json": "{}"}),
                   *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "a"}), *ends("pause_turn")),
            [TextDelta("a"), Noted(Note("unknown-finish", "pause_turn")), Finished("stop", Usage(5, 1))],
        ),
        (
            stream(START, {"type": "something_new", "x": 1}, ends("refusal")[0]),
            [Noted(Note("no-done", "the stream ended without message_stop")), Finished("content_filter", Usage(5, 1))],
        ),
    ],
)  # fmt: skip
def test_streams_as_servers_send_them(data: bytes, expected: list[Event]) -> None:
    for size in (None, 1, 7):
        assert read(data, size) == expected


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        (b"", StreamCut, "no stop_reason"),
        (stream(START, *block(0, {"type": "text", "text": "a"})), StreamCut, "no stop_reason"),
        (stream(START, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
         ServerFailed, "Overloaded"),
        (stream({"type": "error", "error": {"type": "authentication_error", "message": "bad"}}), KeyRefused, "bad"),
        (b'{"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}', BadRequest, "no"),
        (b'{"choices": []}', ServerFailed, "expected a message"),
        (b"<html><title>Login</title>", ServerFailed, "web page"),
    ],
)  # fmt: skip
def test_what_is_no_reply_is_an_error(data: bytes, kind: type[ModelError], words: str) -> None:
    with pytest.raises(kind, match=words):
        read(data)


def test_a_ping_is_no_sign_of_progress() -> None:
    reader = api.ReplyReader()
    reader.feed(stream(START))
    before = reader.received
    reader.feed(stream({"type": "ping"}))
    assert reader.received == before


# ------------------------------------------------------------------ errors, models, counts


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, "invalid_request_error"), (401, "authentication_error"), (403, "permission_error"),
     (404, "not_found_error"), (405, "invalid_request_error"), (429, "rate_limit_error"), (500, "api_error"),
     (502, "api_error"), (503, "overloaded_error"), (504, "timeout_error")],
)  # fmt: skip
def test_errors_are_as_the_sdk_knows_them(status: int, kind: str) -> None:
    body = api.write_error(Refused("why", status=status))
    assert ErrorResponse.model_validate(body, strict=True).error.type == kind
    (event,) = events_in(api.ReplyWriter(IncomingRequest("m", Request()), STAMP).error(Refused("why", status=status)))
    assert event == body


def test_a_body_too_large_has_a_type_of_its_own() -> None:
    assert api.write_error(Refused("why", status=413))["error"]["type"] == "request_too_large"


def test_models_and_counts_are_as_the_sdk_knows_them() -> None:
    told = api.write_models(["a", "b"])
    assert [ModelInfo.model_validate_json(json.dumps(row), strict=True).id for row in told["data"]] == ["a", "b"]
    assert (told["first_id"], told["last_id"], told["has_more"]) == ("a", "b", False)
    assert api.write_models([])["first_id"] is None
    assert MessageTokensCount.model_validate(api.write_counted(3), strict=True).input_tokens == 3
    assert api.read_count(api.write_counted(3)) == 3
    assert api.read_count({"input_tokens": True}) is None


def test_a_call_in_a_body_holds_its_arguments() -> None:
    reply = Reply(calls=(ToolCall("x", "now", {"a": [1]}, '{"a": [1]}'),), finish="tool_calls")
    body = api.write_reply([reply], IncomingRequest("m", Request()), STAMP)
    assert body["content"] == [{"type": "tool_use", "id": "x", "name": "now", "input": {"a": [1]}}]
    assert body["stop_reason"] == "tool_use"


def test_what_anthropic_runs_is_left_out_and_named() -> None:
    hosted = [
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "code_execution_20250825", "name": "code_execution"},
        {"type": "mcp_toolset", "mcp_server_name": "x"},
        {"type": "advisor_20260301", "name": "advisor"},
    ]
    own = {"name": "look", "input_schema": {"type": "object"}}
    asked = api.read_request(PLAIN | {"tools": [*hosted, own]})
    assert [tool.name for tool in asked.request.tools or ()] == ["look"]
    assert {"tools.0.web_search_20250305", "tools.1.code_execution_20250825"} <= set(asked.ignored)


CLIENT_TOOLS: list[Any] = [
    ({"type": "bash_20250124", "name": "bash"}, {"command": "ls"}, {"restart": 1}),
    ({"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 9},
     {"command": "str_replace", "path": "/a", "old_str": "x", "new_str": "y"}, {"command": "undo_edit", "path": "/a"}),
    ({"type": "text_editor_20250124", "name": "str_replace_editor"}, {"command": "undo_edit", "path": "/a"}, {}),
    ({"type": "memory_20250818", "name": "memory"}, {"command": "rename", "old_path": "/a", "new_path": "/b"},
     {"command": "forget"}),
    ({"type": "computer_20250124", "name": "computer", "display_width_px": 800, "display_height_px": 600},
     {"action": "left_click", "coordinate": [1, 2]}, {"action": "zoom"}),
    ({"type": "computer_20251124", "name": "computer", "display_width_px": 8, "display_height_px": 6, "enable_zoom": True},
     {"action": "zoom", "region": [0, 0, 1, 1]}, {"action": "left_click", "coordinate": [1]}),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "right", "wrong"), CLIENT_TOOLS)
def test_a_tool_that_the_client_runs_has_the_arguments_that_its_type_says(tool: Any, right: Any, wrong: Any) -> None:
    choice = {"type": "tool", "name": tool["name"]}
    asked = api.read_request(PLAIN | {"tools": [tool], "tool_choice": choice})
    [offered] = asked.request.tools or ()
    assert (offered.name, asked.request.choice) == (tool["name"], tool["name"])
    assert offered.description
    assert judge(offered.parameters).is_valid(right)
    assert not judge(offered.parameters).is_valid(wrong)
    assert set(asked.ignored) <= {"tools.max_characters"}


def _arguments_in_the_sdk(toolset: str, member: str) -> tuple[set[str], set[str]]:
    """The arguments of a member, and those that must be given, as the SDK has them."""
    words = "".join(word.capitalize() for word in f"{toolset}_{member}_input".split("_"))
    fields = getattr(anthropic.types.beta, f"Beta{words}").model_fields
    names = {name: field.alias or name for name, field in fields.items()}
    return set(names.values()), {names[name] for name, field in fields.items() if field.is_required()}


@pytest.mark.parametrize("toolset", ["computer", "browser"])
def test_a_toolset_is_a_function_for_each_member(toolset: str) -> None:
    kind = f"{toolset}_toolset_20260801"
    configs: Any = {"zoom": {"enabled": False}, "type": {"defer_loading": True}}
    if toolset == "browser":
        configs["javascript_exec"] = {"enabled": True}
    asked = api.read_request(PLAIN | {"tools": [{"type": kind, "configs": configs, "cache_control": None}]})
    offered = {tool.name.removeprefix(f"{toolset}_"): tool for tool in asked.request.tools or ()}
    known = set(getattr(anthropic.types.beta, f"Beta{toolset.capitalize()}ToolsetConfigsParam").__annotations__)
    assert set(offered) == known - {"zoom", "file_upload"}
    for name, tool in offered.items():
        arguments = set(tool.parameters["properties"]), set(tool.parameters["required"])
        assert arguments == _arguments_in_the_sdk(toolset, name), name
        assert tool.description
    assert asked.request.deferred == {f"{toolset}_type": None}
    with pytest.raises(Refused, match="is not a member"):
        api.read_request(PLAIN | {"tools": [{"type": kind, "configs": {"teleport": {}}}]})


def test_a_call_of_a_toolset_goes_out_and_comes_back_by_the_members_name() -> None:
    tools = [{"type": "browser_toolset_20260801"}, {"type": "computer_toolset_20260801"}]
    asked = api.read_request(PLAIN | {"tools": tools})
    target = {"type": "ref", "ref": "ref_7"}
    arguments = {"target": target}
    call = ToolCall("toolu_1", "browser_left_click", arguments, json.dumps(arguments))
    body = api.write_reply([Reply(calls=(call,), finish="tool_calls")], asked, STAMP)
    [block] = anthropic.types.beta.BetaMessage.model_validate(body).content
    assert (block.type, block.name, block.toolset_name) == ("tool_use", "left_click", "browser")
    writer = api.ReplyWriter(asked, STAMP)
    begun = writer.feed(CallStart("computer_screenshot", "toolu_2")).decode()
    assert '"name":"screenshot","toolset_name":"computer"' in begun
    state = {"type": "browser_state", "tabs": [{"tab_id": "3", "title": "Rain", "url": "https://a.b", "active": True}],
             "state_changes": [{"type": "tab_opened", "tab_id": "3"}]}  # fmt: skip
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "ok"}, state]}
    turns = [
        *PLAIN["messages"],
        {"role": "assistant", "content": body["content"]},
        {"role": "user", "content": [result]},
    ]
    again = api.read_request(PLAIN | {"tools": tools, "messages": turns})
    _, said, answer = again.request.messages
    assert said["tool_calls"][0]["function"]["name"] == "browser_left_click"
    assert json.loads(said["tool_calls"][0]["function"]["arguments"]) == arguments
    assert "- 3 (active): Rain https://a.b\ntab opened: tab_id 3" in answer["content"]
    assert again.ignored == ()


def test_a_tool_that_is_none_is_refused() -> None:
    meant = {"type": "teleport", "name": "x", "input_schema": {}}
    for tool, words in ((meant, "not supported; leave the type out"), ({"input_schema": {}}, "name")):
        with pytest.raises(Refused, match=words):
            api.read_request(PLAIN | {"tools": [tool]})


def test_what_newer_clients_and_servers_have_left_in_a_conversation_is_left_out_and_named() -> None:
    """What the model is asked now must be understood; what stands before its last turn was."""
    turns: list[Any] = [
        {"role": "user", "content": [{"type": "text", "text": "Go."}, {"type": "teleport", "id": "x"}]},
        {
            "role": "assistant",
            "content": [{"type": "fallback", "to": {"model": "b"}}, {"type": "text", "text": "Done."}],
        },
        {"role": "user", "content": "And now?"},
    ]
    asked = api.read_request(PLAIN | {"messages": turns, "tools": [{"type": "oracle_v2", "name": "oracle"}], "soon": 1})
    assert [message["content"] for message in asked.request.messages] == ["Go.", "Done.", "And now?"]
    assert asked.ignored == ("fallback", "soon", "teleport", "tools.0.oracle_v2")
    oracle = {"tools": [{"type": "oracle_v2", "name": "oracle"}], "tool_choice": {"type": "tool", "name": "oracle"}}
    assert api.read_request(PLAIN | oracle).demanded == "oracle_v2"


NOTE = {"name": "note", "description": "Writes a note.", "input_schema": {"type": "object"}}


def changed(kind: str, **tool: Any) -> dict[str, Any]:
    return {"role": "system", "content": [{"type": f"tool_{kind}", "tool": tool}]}


def test_tools_come_and_go_in_the_middle_of_a_conversation() -> None:
    late = {**NOTE, "name": "late", "defer_loading": True}
    turns: list[Any] = [
        {"role": "user", "content": "x"},
        changed("addition", type="tool_reference", name="late"),
        changed(
            "addition", type="tool_definition", definition={**NOTE, "name": "later", "eager_input_streaming": True}
        ),
        changed("removal", type="tool_reference", name="note"),
        changed("addition", type="mcp_toolset_reference", server_name="s"),
    ]
    asked = api.read_request(PLAIN | {"messages": turns, "tools": [NOTE, late]})
    assert [tool.name for tool in asked.request.tools or ()] == ["late", "later"]
    assert asked.request.deferred == {"late": 1, "later": 2}
    assert asked.eager == {"later"}
    assert [message["content"] for message in asked.request.messages] == [
        "x", "The tool late can be called now.", "The tool later can be called now.", "The tool note can no longer be called.", "",
    ]  # fmt: skip
    assert asked.ignored == ("tool_addition",)
    again = api.read_request(
        PLAIN | {"messages": [*turns, changed("addition", type="tool_reference", name="note")], "tools": [NOTE, late]}
    )
    assert [tool.name for tool in again.request.tools or ()] == ["note", "late", "later"]


def test_a_tool_that_a_turn_defines_must_be_one() -> None:
    for definition in ({"description": "Nameless."}, {**NOTE, "input_schema": "x"}, None):
        turn = changed("addition", type="tool_definition", definition=definition)
        with pytest.raises(Refused, match=r"messages\.1\.content\.0\.tool\.definition: expected a tool"):
            api.read_request(PLAIN | {"messages": [{"role": "user", "content": "x"}, turn]})


def test_a_system_turn_may_be_for_one_turn_or_set_the_effort_alone() -> None:
    turns = [
        {"role": "user", "content": "a"},
        {"role": "system", "content": "Be short.", "clear_at": "next_user_message"},
        {"role": "assistant", "content": "b"},
        {"role": "system", "output_config": {"effort": "low"}},
        {"role": "user", "content": "c"},
        {"role": "system", "content": "Be long.", "clear_at": "next_user_message"},
    ]
    body = PLAIN | {"messages": turns, "output_config": {"effort": "high"}}
    check_body(body, api.BODY)
    request = api.read_request(body).request
    assert [message["content"] for message in request.messages] == ["a", "b", "c", "Be long."]
    assert request.sampling["reasoning_effort"] == "low"


def test_a_compacted_conversation_goes_on_from_its_summary() -> None:
    change = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "note"}}
    block = {"type": "compaction", "content": "We wrote a parser.", "signature": "s", "tool_changes": [change]}
    turns = [{"role": "assistant", "content": [block]}, {"role": "user", "content": "Go on."}]
    asked = api.read_request(PLAIN | {"messages": turns, "tools": [NOTE]})
    assert "We wrote a parser." in str(asked.request.messages[0]["content"])
    assert asked.request.tools == ()


def test_deferred_tools_are_known_and_what_refers_to_them() -> None:
    late = {"input_schema": {"type": "object"}, "defer_loading": True}
    tools = [{"name": "find"}, {"name": "a", **late}, {"name": "b", **late}, {"name": "c", **late}]
    found = [{"type": "tool_reference", "tool_name": "b"}, {"type": "tool_reference", "tool_name": "gone"}]
    server = {
        "type": "tool_search_tool_search_result",
        "tool_references": [{"type": "tool_reference", "tool_name": "c"}],
    }
    turns = [
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": [
            {"type": "server_tool_use", "id": "s1", "name": "tool_search_tool_bm25", "input": {"query": "c"}},
            {"type": "tool_search_tool_result", "tool_use_id": "s1", "content": server},
            {"type": "tool_use", "id": "t0", "name": "find", "input": {}},
            {"type": "tool_use", "id": "t1", "name": "find", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t0", "content": "none"},
                                     {"type": "tool_result", "tool_use_id": "t1", "content": found}]},
    ]  # fmt: skip
    asked = api.read_request(PLAIN | {"tools": tools, "messages": turns})
    assert asked.request.deferred == {"a": None, "b": 3, "c": 1}
    assert not asked.request.search
    assert asked.request.messages[3]["content"].startswith("The tool b can be called now.")
    searched = [*tools, {"type": "tool_search_tool_bm25", "name": "tool_search_tool_bm25"}]
    assert api.read_request(PLAIN | {"tools": searched}).request.search
    assert asked.ignored == ("server_tool_use",)


def test_only_a_tool_of_the_providers_gives_an_object() -> None:
    called = {"type": "tool_use", "id": "x", "name": "a", "input": {}}
    found = {
        "type": "tool_search_tool_search_result",
        "tool_references": [{"type": "tool_reference", "tool_name": "a"}],
    }
    blocks = [{"type": "tool_search_tool_result", "tool_use_id": "s", "content": found}, called]
    rows: list[Any] = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": blocks}]
    asked = PLAIN | {"tools": [{"name": "a", "defer_loading": True}]}
    check_body(asked | {"messages": rows}, api.BODY)
    assert api.read_request(asked | {"messages": rows}).request.deferred == {"a": 1}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": {"a": 1}}]}
    with pytest.raises(Refused, match=r"messages\.2\.content\.0\.content: expected a text or a list of blocks"):
        api.read_request(asked | {"messages": [*rows, result]})
