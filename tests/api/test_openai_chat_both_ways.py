"""Chat completions both ways: what is written reads as what it was, and what clients write is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import strategies as st

from properties import property_test
from toolspeak.api import openai_chat as chat
from toolspeak.api.incoming import IncomingRequest, Stamp
from toolspeak.errors import Refused
from toolspeak.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    Event,
    Finished,
    Logprobs,
    Noted,
    TextDelta,
    ThoughtDelta,
)
from toolspeak.gateway.body import check_body, parse_body
from toolspeak.gateway.config.settings import GatewayLimits
from toolspeak.schema.infer import as_tools
from toolspeak.types import Note, Reply, Request, Usage
from toolspeak.wire.reading.collect import collect

STAMP = Stamp("0" * 24, 1_700_000_000, "m")
texts = st.text(st.characters(codec="utf-8"), max_size=12)
words = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)
ids = st.from_regex(r"call_[A-Za-z0-9_-]{16,20}", fullmatch=True)
arguments = st.dictionaries(
    words, st.none() | st.booleans() | st.integers() | texts | st.lists(texts, max_size=2), max_size=3
)
schemas = st.sampled_from(
    [
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"type": "array"},
    ]
)
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
counts = st.integers(0, 1000)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Messages in which every result answers a call before it."""
    told: list[dict[str, Any]] = draw(
        st.lists(st.builds(lambda t: {"role": "system", "content": t}, texts), max_size=1)
    )
    told.append({"role": "user", "content": draw(texts | st.just([{"type": "image_url", "image_url": {"url": "x"}}]))})
    for key in draw(st.lists(ids, unique=True, max_size=3)):
        function = {"name": draw(words), "arguments": json.dumps(draw(arguments))}
        call = {"id": key, "type": "function", "function": function}
        said: dict[str, Any] = {"role": "assistant", "content": draw(st.none() | texts), "tool_calls": [call]}
        if thought := draw(texts):
            said["reasoning_content"] = thought
        told += [said, {"role": "tool", "tool_call_id": key, "content": draw(texts)}]
    return told


@st.composite
def requests(draw: st.DrawFn) -> Request:
    named = draw(st.lists(words, unique=True, max_size=3))
    described = [
        {"name": n, "description": draw(texts), "parameters": SCHEMA, "strict": draw(st.booleans())} for n in named
    ]
    tools = as_tools(described) or ()
    return Request(
        messages=draw(conversations()),  # type: ignore[arg-type]
        tools=tools,
        choice=draw(st.sampled_from(["auto", "none", "required", *named])) if tools else "auto",
        parallel=draw(st.booleans()) if tools else True,
        max_tokens=draw(st.none() | st.integers(1, 10_000)),
        temperature=draw(st.none() | st.floats(0, 2)),
        seed=draw(st.none() | st.integers(-(2**63), 2**63 - 1)),
        stop=tuple(draw(st.lists(texts.filter(bool), max_size=4))),
        schema=draw(st.none() | schemas),
        thinking=draw(st.none() | st.booleans()),
        logprobs=draw(st.none() | st.integers(0, 20)),
        sampling=draw(st.dictionaries(st.sampled_from(["top_p", "min_p"]), st.floats(0, 1))),
    )


@property_test(100, requests())
def test_a_request_written_is_read_as_it_was(request: Request) -> None:
    body = parse_body(json.dumps(chat.write_request(request, "m", thoughts=True)).encode(), GatewayLimits())
    check_body(body, chat.BODY)
    asked = chat.read_request(body)
    assert asked.request == request
    assert (asked.model, asked.stream, asked.usage, asked.ignored) == ("m", True, True, ())


TOKEN = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}
some_calls = st.builds(
    lambda name, key, values: [CallStart(name, key), ArgumentsDelta(json.dumps(values)), CallEnd()],
    words,
    ids,
    arguments,
)
said = st.lists(
    st.one_of(
        texts.filter(bool).map(lambda t: [TextDelta(t)]),
        texts.filter(bool).map(lambda t: [ThoughtDelta(t)]),
        texts.filter(bool).map(lambda t: [Logprobs([TOKEN]), TextDelta(t)]),
    ),
    max_size=6,
).map(lambda groups: [event for group in groups for event in group])
notes = st.lists(st.builds(Note, words, texts), max_size=2).map(lambda found: [Noted(note) for note in found])
usages = st.builds(Usage, counts, counts, counts, counts)


@st.composite
def replies(draw: st.DrawFn) -> list[Event]:
    """The events of a reply, in the order in which the gateway tells them."""
    called = draw(st.lists(some_calls, max_size=3, unique_by=lambda call: call[0].id))
    calls = [event for call in called for event in call]
    finish = "length" if draw(st.booleans()) else "tool_calls" if calls else "stop"
    return [*draw(said), *calls, *draw(notes), Finished(finish, draw(usages))]  # type: ignore[arg-type,list-item]


def sent(replies: list[list[Event]], asked: IncomingRequest) -> bytes:
    writer = chat.ReplyWriter(asked, STAMP)
    out = [writer.begin()]
    out += [writer.feed(event, i) for i, events in enumerate(replies) for event in events]
    return b"".join([*out, writer.close()])


def received(data: bytes, cut: int) -> list[Event]:
    reader = chat.ReplyReader()
    events = [event for i in range(0, len(data), cut) for event in reader.feed(data[i : i + cut])]
    return events + reader.close()


@property_test(200, replies(), st.integers(1, 400))
def test_a_stream_written_is_read_as_it_was(events: list[Event], cut: int) -> None:
    data = sent([events], IncomingRequest("m", Request(), stream=True))
    assert received(data, cut) == received(data, len(data)) == events
    assert data.endswith(b"data: [DONE]\n\n")


@property_test(100, replies())
def test_a_body_written_is_read_as_it_was(events: list[Event]) -> None:
    events = [event for event in events if not isinstance(event, Logprobs)]
    reply = collect(events)
    body = json.dumps(chat.write_reply([reply], IncomingRequest("m", Request()), STAMP), ensure_ascii=False).encode()
    read = collect(received(body, len(body)))
    assert read == reply


def test_every_chunk_is_what_clients_expect() -> None:
    events: list[Event] = [
        TextDelta("Hi\u2028\n"),
        CallStart("f", "c"),
        ArgumentsDelta("{}"),
        CallEnd(),
        Finished("tool_calls"),
    ]
    data = sent([events, [TextDelta("x"), Finished()]], IncomingRequest("m", Request(), stream=True, n=2, usage=True))
    lines = data.decode().removesuffix("\n\n").split("\n\n")
    assert all(line.startswith("data: ") and "\n" not in line for line in lines)
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    assert [c["choices"][0]["delta"].get("role") for c in chunks[:2]] == ["assistant", "assistant"]
    assert [c["usage"] for c in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1]["choices"] == []
    assert len({(c["id"], c["created"], c["model"]) for c in chunks}) == 1
    calls = [call for c in chunks[:-1] for call in c["choices"][0]["delta"].get("tool_calls", ())]
    assert calls[0] == {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    assert calls[1] == {"index": 0, "function": {"arguments": "{}"}}
    quiet = sent([events], IncomingRequest("m", Request(), stream=True, usage=False))
    assert b"usage" not in quiet


def test_a_chunk_is_one_line_for_every_client() -> None:
    """Some clients split a stream's lines where Unicode does, though events do not end there."""
    said = "a\u2028b\u2029c\x85d\ne\rf✓"
    events: list[Event] = [
        TextDelta(said),
        ThoughtDelta(said),
        Logprobs([{"token": said}]),
        TextDelta(said),
        Finished(),
    ]
    lines = sent([events], IncomingRequest("m", Request(), stream=True, usage=False)).decode().splitlines()
    assert all(line.startswith("data: ") for line in lines[::2])
    assert not any(lines[1::2])
    deltas = [json.loads(line[6:])["choices"][0]["delta"] for line in lines[:-2:2]]
    assert [next(iter(delta.values())) for delta in deltas[1:-1]] == [said] * 3


# ------------------------------------------------------------------ what clients write


def read(**fields: Any) -> IncomingRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], **fields}
    check_body(body, chat.BODY)
    return chat.read_request(body)


F = {"name": "f", "parameters": SCHEMA}
G = {"name": "g", "parameters": SCHEMA}


def test_what_is_not_known_is_named() -> None:
    asked = read(
        store=True,
        metadata={"a": "b"},
        user=None,
        prediction={},
        web_search_options={},
        chat_template_kwargs={"x": 1, "enable_thinking": True},
    )
    assert asked.ignored == ("chat_template_kwargs.x", "metadata", "prediction", "store", "web_search_options")
    assert asked.request.thinking is True


def test_fields_that_say_nothing_are_nothing() -> None:
    fields = [name for name in chat.BODY["properties"] if name not in ("model", "messages")]
    assert read(**dict.fromkeys(fields)) == read()


def test_functions_become_tools_and_one_call_comes() -> None:
    asked = read(functions=[F], function_call={"name": "f"})
    assert ([tool.name for tool in asked.request.tools or ()], asked.request.choice) == (["f"], "f")
    assert asked.request.parallel is False
    assert asked.echo["legacy"] is True


def test_a_tool_named_like_a_choice() -> None:
    named = {**F, "name": "none"}
    tools = [{"type": "function", "function": one} for one in (named, G)]
    request = read(tools=tools, tool_choice={"type": "function", "function": {"name": "none"}}).request
    assert ([tool.name for tool in request.tools or ()], request.choice) == (["none"], "required")


def test_what_an_sdk_dumps_is_taken_back() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    dumped = {
        "role": "assistant", "content": None, "refusal": None, "audio": None, "function_call": None,
        "annotations": None, "tool_calls": [call],
    }  # fmt: skip
    messages = read(messages=[{"role": "user", "content": "x"}, dumped]).request.messages
    assert messages[1] == {"role": "assistant", "content": None, "tool_calls": [call]}


def test_reasoning_by_its_other_name() -> None:
    (message,) = read(messages=[{"role": "assistant", "content": "x", "reasoning": "hm"}]).request.messages
    assert message == {"role": "assistant", "content": "x", "reasoning_content": "hm"}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"functions": [F], "tools": [{"type": "function", "function": F}]}, "functions"),
        ({"functions": [F], "function_call": {"name": "x"}}, "function_call"),
        ({"tools": [{"type": "function"}]}, "tools.0.function"),
        ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": F}]}}}, "tool_choice.allowed_tools"),
        ({"messages": [{"role": "assistant", "audio": {"id": "x"}}]}, "messages.0.audio"),
        ({"messages": [{"role": "king", "content": ""}]}, "messages.0.role"),
        ({"messages": [{"role": "tool", "content": ""}]}, "messages.0.tool_call_id"),
        ({"messages": []}, "messages"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"temperature": 3}, "temperature"),
        ({"audio": {}}, "audio"),
    ],
)  # fmt: skip
def test_a_refusal_says_where(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(Refused) as caught:
        read(**fields)
    assert caught.value.param == param
    assert caught.value.status == 400


def test_a_reply_without_calls_has_no_list_of_them() -> None:
    body = chat.write_reply([Reply("x")], IncomingRequest("m", Request()), STAMP)
    assert "tool_calls" not in body["choices"][0]["message"]
