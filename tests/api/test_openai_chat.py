"""OpenAI's chat completions: requests into JSON, and what servers really send into events."""

import json
from typing import Any

import pytest
from hypothesis import strategies as st

from properties import property_test
from replies import delta, events_in, frames
from toolspeak.api.json_balance import Balance
from toolspeak.api.openai_chat import ReplyReader, write_request
from toolspeak.errors import BadRequest, KeyRefused, ModelError, RateLimited, ServerFailed, StreamCut
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Noted, TextDelta, ThoughtDelta
from toolspeak.types import Note, Request, Tool, Usage

DONE = "[DONE]"


def piece(arguments: Any = None, **fields: Any) -> dict[str, Any]:
    """A piece of a call with what of index, id and name is given."""
    function = {"name": fields.pop("name", None), "arguments": arguments}
    return fields | {"function": {key: value for key, value in function.items() if value is not None}}


def calls(*pieces: dict[str, Any]) -> dict[str, Any]:
    return delta(tool_calls=list(pieces))


def read(data: bytes, size: int | None = None) -> list[Event]:
    return events_in(ReplyReader(), data, size)


def merged(events: list[Event]) -> list[Event]:
    """The same events with neighbouring pieces of arguments joined."""
    out: list[Event] = []
    for event in events:
        if isinstance(event, ArgumentsDelta) and out and isinstance(out[-1], ArgumentsDelta):
            out[-1] = ArgumentsDelta(out[-1].json + event.json)
        else:
            out.append(event)
    return out


def call(name: str, key: str, arguments: str, **end: Any) -> list[Event]:
    return [CallStart(name, key), ArgumentsDelta(arguments), CallEnd(**end)]


CITY = '{"city": "Xiamen"}'
A = call("weather", "a", CITY)
CALLED = Finished("tool_calls")

DOUBLED = r'{"o": [{"k": 1}, {"k": 2, "p": "/a", "\u0070": "/b"}]}'


def NESTED(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Lists, and objects as lists of members, whose names may repeat."""
    names = st.sampled_from(["a", "b", 'a"', "a\\", "é", ""])
    return st.lists(values, max_size=3) | st.lists(st.tuples(names, values), max_size=3).map(tuple)


def written(value: Any) -> str:
    if isinstance(value, tuple):
        return "{" + ", ".join(f"{json.dumps(name)}: {written(member)}" for name, member in value) + "}"
    return "[" + ",".join(map(written, value)) + "]" if isinstance(value, list) else json.dumps(value)


STREAMS: list[tuple[str, bytes, list[Event]]] = [
    (
        "text, a thought, usage in the last chunk",
        frames(
            delta(role="assistant", content=""),
            delta(reasoning_content="hm"),
            delta(content="你"),
            delta(content="好"),
            delta("stop"),
            {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 3}}},
            DONE,
        ),
        [ThoughtDelta("hm"), TextDelta("你"), TextDelta("好"), Finished("stop", Usage(7, 2, 3))],
    ),
    (
        "reasoning by its other name, once",
        frames(delta(reasoning="hm", reasoning_content="hm"), delta(reasoning="so"), delta("stop", content="x"), DONE),
        [ThoughtDelta("hm"), ThoughtDelta("so"), TextDelta("x"), Finished("stop")],
    ),
    (
        "a call as OpenAI streams it",
        frames(
            calls(piece("", index=0, id="a", name="weather")),
            calls(piece('{"city":', index=0)),
            calls(piece(' "Xiamen"}', index=0)),
            delta("tool_calls"),
            DONE,
        ),
        [*A, CALLED],
    ),
    (
        "the id is missing",
        frames(calls(piece(CITY, index=0, name="weather")), delta("tool_calls"), DONE),
        [*call("weather", "call_1", CITY), CALLED],
    ),
    (
        "the id comes late",
        frames(calls(piece('{"city": ', index=0, name="weather")), calls(piece('"Xiamen"}', index=0, id="a")), delta("stop"), DONE),
        [*call("weather", "call_1", CITY, id="a"), CALLED],
    ),
    (
        "name and id repeated in every piece",
        frames(
            calls(piece("", index=0, id="a", name="weather")),
            calls(piece('{"city": ', index=0, id="a", name="weather")),
            calls(piece('"Xiamen"}', index=0, id="a", name="weather")),
            delta("tool_calls"),
            DONE,
        ),
        [*A, CALLED],
    ),
    (
        "the name in pieces",
        frames(calls(piece(index=0, id="a", name="wea")), calls(piece(index=0, name="ther")), calls(piece(CITY, index=0)), DONE),
        [*A, CALLED],
    ),
    (
        "no index, whole calls one by one",
        frames(calls(piece(CITY, id="a", name="weather")), calls(piece('{"x": 1}', id="b", name="add")), delta("stop"), DONE),
        [*A, *call("add", "b", '{"x": 1}'), CALLED],
    ),
    (
        "no index and no id, in one message",
        frames(calls(piece(CITY, name="weather"), piece(CITY, name="weather"), piece("", name="now")), delta("stop"), DONE),
        [*call("weather", "call_1", CITY), *call("weather", "call_2", CITY), *call("now", "call_3", "{}"), CALLED],
    ),
    (
        "no index, streamed, an id with every piece",
        frames(calls(piece('{"city": ', id="a", name="weather")), calls(piece('"Xiamen"}', id="z")), delta("stop"), DONE),
        [*A, CALLED],
    ),
    (
        "every call has index 0",
        frames(calls(piece(CITY, index=0, id="a", name="weather")), calls(piece("{}", index=0, id="b", name="now")), DONE),
        [*A, *call("now", "b", "{}"), CALLED],
    ),
    (
        "interleaved indexes",
        frames(
            calls(piece('{"city": ', index=0, id="a", name="weather"), piece('{"x"', index=1, id="b", name="add")),
            calls(piece(": 1}", index=1)),
            calls(piece('"Xiamen"}', index=0)),
            delta("tool_calls"),
            DONE,
        ),
        [*A, *call("add", "b", '{"x": 1}'), CALLED],
    ),
    (
        "arguments as an object, or none",
        frames(calls(piece({"city": "Xiamen"}, index=0, id="a", name="weather"), piece(index=1, id="b", name="now")), DONE),
        [*A, *call("now", "b", "{}"), CALLED],
    ),
    (
        "text after a call",
        frames(calls(piece(CITY, index=0, id="a", name="weather")), delta(content="ok"), delta("stop"), DONE),
        [*A, TextDelta("ok"), CALLED],
    ),
    (
        "cut by the length",
        frames(calls(piece(CITY, index=0, id="a", name="weather"), piece('{"x', index=1, id="b", name="add")), delta("length"), DONE),
        [*A, *call("add", "b", '{"x', whole=False), Finished("length")],
    ),
    (
        "a call with a name twice in an object of its arguments is not whole",
        frames(calls(piece(DOUBLED, id="a", name="weather")), calls(piece(CITY, index=1, id="b", name="weather")), delta("tool_calls"), DONE),
        [CallStart("weather", "a"), ArgumentsDelta(DOUBLED), Noted(Note("doubled-key", "p")), CallEnd(False),
         *call("weather", "b", CITY), CALLED],
    ),
    (
        "a call whose arguments stop in the middle is not whole",
        frames(calls(piece('{"city', index=0, id="a", name="weather")), delta("stop"), DONE),
        [*call("weather", "a", '{"city', whole=False), CALLED],
    ),
    (
        "a call that has another name in the middle of its arguments is not whole",
        frames(calls(piece('{"city": ', index=0, id="a", name="weather")), calls(piece('"Xiamen"}', index=0, name="now")), DONE),
        [*A[:-1], CallEnd(whole=False), CALLED],
    ),
    *(
        (
            f"a call with {what} in the middle of its arguments is not whole",
            frames(calls(piece("{}", index=1, id="z", name="now"), piece('{"city": ', index=0, id="a", name="weather")), calls(piece('"Xiamen"}', index=0, **other)), DONE),
            [*call("now", "z", "{}"), *A[:-1], CallEnd(whole=False), CALLED],
        )
        for what, other in (("the id of another call", {"id": "z"}), ("another id and its name", {"id": "b", "name": "weather"}))
    ),
    (
        "more arguments with another id, behind complete ones",
        frames(calls(piece('{"city": "Xiamen"}', index=0, id="a", name="weather")), calls(piece("{}", index=0, id="b")), DONE),
        [*call("weather", "a", CITY + "{}", whole=False), CALLED],
    ),
    (
        "a new id in every piece, as some servers make one",
        frames(calls(piece("", index=0, id="a", name="weather")), calls(piece('{"city": ', index=0, id="b")), calls(piece('"Xiamen"}', index=0, id="c")), DONE),
        [*A, CALLED],
    ),
    (
        "a call that the length cut before its arguments",
        frames(calls(piece("", index=0, id="a", name="weather")), delta("length"), DONE),
        [CallStart("weather", "a"), CallEnd(whole=False), Finished("length")],
    ),
    (
        "brackets and quotes inside strings",
        frames(calls(piece('{"t": "}\\', index=0, id="a", name="w")), calls(piece('"{["}', index=0)), delta("stop"), DONE),
        [*call("w", "a", '{"t": "}\\"{["}'), CALLED],
    ),
    (
        "a call without a name is shown and never run",
        frames(calls(piece(CITY, index=0, id="a")), DONE),
        [*call("", "a", CITY, whole=False), Noted(Note("call-without-name", "a")), CALLED],
    ),
    (
        "more for a call that has ended",
        frames(calls(piece(CITY, index=0, id="a", name="w"), piece("{}", index=1, id="b", name="v")), calls(piece("?", index=0)), DONE),
        [*call("w", "a", CITY), *call("v", "b", "{}"), Noted(Note("late-arguments", "?")), CALLED],
    ),
    (
        "several choices: the first one",
        frames({"choices": [{"index": 1, "delta": {"content": "no"}}]}, delta(content="yes"), delta("stop"), DONE),
        [TextDelta("yes"), Finished("stop")],
    ),
    ("no finish_reason anywhere", frames({"choices": [{"delta": {"content": "x"}}]}, DONE), [TextDelta("x"), Finished("stop")]),
    (
        "a finish_reason and no [DONE]",
        frames(delta(content="x"), delta("stop")),
        [TextDelta("x"), Noted(Note("no-done", "the stream ended without [DONE]")), Finished("stop")],
    ),
    (
        "an unknown finish_reason",
        frames(delta("because", content="x"), DONE),
        [TextDelta("x"), Noted(Note("unknown-finish", "because")), Finished("stop")],
    ),
    (
        "nothing counts after [DONE]",
        frames(delta("stop", content="x"), DONE, delta(content="y"), DONE),
        [TextDelta("x"), Finished("stop")],
    ),
    (
        "content in parts",
        frames(delta("stop", content=[{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "x"}]), DONE),
        [ThoughtDelta("hm"), TextDelta("x"), Finished("stop")],
    ),
    (
        "half of a surrogate pair",
        b'data: {"choices": [{"delta": {"content": "a\\ud83d\\ude00 b\\uD83D c\\ude00 \\\\ud83d"}}]}\n\ndata: [DONE]\n\n',
        [TextDelta("a😀 b\ufffd c\ufffd \\ud83d"), Finished("stop")],
    ),
    ("a refusal is text", frames(delta("stop", refusal="I cannot"), DONE), [TextDelta("I cannot"), Finished("stop")]),
    (
        "a whole reply where a stream was asked for",
        json.dumps(
            {
                "choices": [{"message": {"content": "x", "tool_calls": [piece({"city": "Xiamen"}, id="a", name="weather")]}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 2},
            },
            indent=1,
        ).encode(),
        [TextDelta("x"), *A, Finished("tool_calls", Usage(1, 2))],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("data", "expected"), [case[1:] for case in STREAMS], ids=[case[0] for case in STREAMS])
def test_events_from_what_servers_send(data: bytes, expected: list[Event]) -> None:
    assert merged(read(data)) == expected


@pytest.mark.parametrize("data", [case[1] for case in STREAMS], ids=[case[0] for case in STREAMS])
def test_events_are_the_same_at_every_cut(data: bytes) -> None:
    for size in (1, 2, 3, 7):
        assert read(data, size) == read(data)


def test_arguments_go_out_as_they_come() -> None:
    reader = ReplyReader()
    assert reader.feed(frames(calls(piece("", index=0, id="a", name="w")))) == []  # the name may still grow
    assert reader.feed(frames(calls(piece("{", index=0)))) == [CallStart("w", "a"), ArgumentsDelta("{")]
    assert reader.feed(frames(calls(piece("}", index=0)))) == [ArgumentsDelta("}")]
    assert reader.feed(frames(calls(piece("{", index=1, id="b", name="v")))) == [
        CallEnd(),
        CallStart("v", "b"),
        ArgumentsDelta("{"),
    ]


def test_ids_come_from_the_caller() -> None:
    reader = ReplyReader(iter("xyz").__next__)
    assert reader.feed(frames(calls(piece("{}", index=0, name="w"))))[0] == CallStart("w", "x")


ERRORS: list[tuple[str, bytes, type[ModelError], str]] = [
    ("cut in the text", frames(delta(content="half a")), StreamCut, "in the middle"),
    ("cut in a payload", frames(delta(content="half"), delta(content="x"))[:-9], StreamCut, "in the middle"),
    ("nothing but a piece of a payload", frames(delta(content="half"))[:-9], ServerFailed, "not JSON"),
    ("nothing at all", b"", StreamCut, "in the middle"),
    ("an error in the stream", frames(delta(content="x"), {"error": {"message": "out of memory", "code": 500}}), ServerFailed, "out of memory"),
    ("an error as text", frames({"error": "boom"}), ServerFailed, "boom"),
    ("an error event", b'event: error\ndata: {"message": "boom"}\n\n', ServerFailed, "boom"),
    ("an error event in words", b"event: error\ndata: boom\n\n", ServerFailed, "boom"),
    ("a rate limit in the stream", frames({"error": {"message": "slow", "code": "rate_limit_exceeded"}}), RateLimited, "slow"),
    ("too long, told in the stream", frames({"error": {"message": "long", "code": 400}}), BadRequest, "long"),
    ("a refused key inside a good answer", b'{"error": {"message": "bad key", "type": "authentication_error"}}', KeyRefused, "401"),
    ("finish_reason error", frames(delta("error")), ServerFailed, "finish_reason: error"),
    ("a web page", b"<!DOCTYPE html><html><title>502\n Bad Gateway</title>", ServerFailed, "web page.*: 502 Bad Gateway"),
    ("garbage", b"\x00\xff\x13", StreamCut, "in the middle"),
    ("garbage in an event", b"data: {]\n\n", ServerFailed, r"not JSON: \{\]"),
    ("a list", b"data: [1]\n\n", ServerFailed, "expected a JSON object"),
    ("nested beyond sense", b"data: " + b"[" * 100_000 + b"\n\n", ServerFailed, "not JSON"),
    ("no choices", b'{"choices": [], "usage": {"prompt_tokens": 3}}', ServerFailed, "expected a chat completion"),
    ("a stream without choices", frames({"choices": []}) + b"data: [DONE]\n\n", ServerFailed, "no choices before its end"),
    ("JSON of another kind", b'{"hello": 1}', ServerFailed, "expected a chat completion.*hello"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "kind", "words"), [case[1:] for case in ERRORS], ids=[case[0] for case in ERRORS])
def test_what_is_no_reply_is_an_error(data: bytes, kind: type[ModelError], words: str) -> None:
    with pytest.raises(kind, match=words) as caught:
        read(data)
    assert len(str(caught.value)) < 900


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "a", "b", "{", "}", '{"x": 1}', '"', "\\", "[DONE]", "stop", "length", "error"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["text", "type", "thinking", "name", "x"]), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


def mostly(*keys: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=dict.fromkeys(keys, json_values))


pieces = st.fixed_dictionaries(
    {}, optional={"index": json_values, "id": json_values, "function": mostly("name", "arguments")}
)
deltas = st.fixed_dictionaries(
    {}, optional={"content": json_values, "reasoning": json_values, "tool_calls": st.lists(pieces, max_size=3)}
)
choices = st.fixed_dictionaries(
    {"delta": deltas | json_values}, optional={"index": json_values, "finish_reason": json_values}
)
payloads = st.fixed_dictionaries(
    {"choices": st.lists(choices, max_size=2) | json_values}, optional={"usage": json_values}
)


def outcome(data: bytes, size: int | None = None) -> tuple[list[Event], type | None]:
    """The events that come, and the error in which they end."""
    reader, step, events = ReplyReader(), size or max(1, len(data)), list[Event]()
    try:
        for i in range(0, len(data), step):
            events += reader.feed(data[i : i + step])
        return merged(events + reader.close()), None
    except ModelError as caught:
        return merged(events), type(caught)


@property_test(100, st.lists(payloads | json_values, max_size=6), st.booleans(), st.integers(1, 9))
def test_whatever_comes_is_read_or_refused(stream: list[Any], done: bool, size: int) -> None:
    data = frames(*stream, *[DONE] * done)
    events, error = outcome(data)
    in_pieces, same_error = outcome(data, size)
    assert error == same_error
    if error:
        return
    assert events == in_pieces
    assert isinstance(events[-1], Finished)
    opened = 0
    for event in events:
        opened += isinstance(event, CallStart) - isinstance(event, CallEnd)
        assert opened in (0, 1)
        assert opened or not isinstance(event, ArgumentsDelta)
    assert opened == 0


@property_test(
    100,
    st.lists(st.sampled_from(["a", '"a":', "{", "}", '"', "\\", "[", "]", ":", ",", "é"]), max_size=12),
    st.integers(0, 30),
)
def test_brackets_and_names_are_counted_alike_at_every_cut(parts: list[str], at: int) -> None:
    whole, cut, text = Balance(), Balance(), "".join(parts)
    whole.feed(text)
    cut.feed(text[:at])
    cut.feed(text[at:])
    assert (whole.depth, whole.quoted, whole.complete) == (cut.depth, cut.quoted, cut.complete)
    assert whole.doubled == cut.doubled


@property_test(100, st.recursive(st.integers(0, 9) | st.sampled_from(['", "a": 1', "a", "\\"]), NESTED, max_leaves=8))
def test_a_name_is_doubled_where_a_parser_loses_a_value(value: Any) -> None:
    lost: list[str] = []

    def members(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        lost.extend(name for name in names if names.count(name) > 1)

    text = written(value)
    json.loads(text, object_pairs_hook=members)
    for size in (1, 3, len(text)):
        balance = Balance()
        for at in range(0, len(text), size):
            balance.feed(text[at : at + size])
        assert (balance.closed, balance.doubled is not None) == (True, bool(lost)), text
        assert balance.doubled is None or balance.doubled in lost


def test_a_cut_keeps_the_text_that_came() -> None:
    with pytest.raises(StreamCut) as caught:
        read(frames(delta(content="half "), delta(content="a")))
    assert caught.value.text == "half a"


def test_the_least_request() -> None:
    assert write_request(Request([{"role": "user", "content": "hi"}]), "m") == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_request_with_everything() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tools = (Tool("weather", "The weather.", schema), Tool("now"))
    body = write_request(
        Request([{"role": "user", "content": "hi"}], tools, "weather", False, 99, 0.0, 7, ("END",), {"type": "object"}),
        "m",
        usage=False,
        max_tokens_field="max_completion_tokens",
    )
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "tools": [
            {"type": "function", "function": {"name": "weather", "description": "The weather.", "parameters": schema}},
            {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}},
        ],
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
        "parallel_tool_calls": False,
        "response_format": {"type": "json_object"},
        "max_completion_tokens": 99,
        "temperature": 0.0,
        "seed": 7,
        "stop": ["END"],
    }  # fmt: skip
    assert json.loads(json.dumps(body)) == body


STRICT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (STRICT, True),
        (STRICT | {"$defs": {"a": STRICT}}, True),
        ({"type": "string"}, False),  # what OpenAI holds to is an object
        ({"type": "array", "items": STRICT}, False),
        ({"anyOf": [STRICT, {"type": "null"}]}, False),
        (STRICT | {"additionalProperties": True}, False),
        (STRICT | {"required": []}, False),
        ({"type": "object", "properties": {}}, False),
        ({"type": ["object", "null"]}, False),
        ({"properties": {"x": {}}}, False),
        ({"type": "array", "items": {"type": "object"}}, False),
        ({"anyOf": [STRICT, {"type": "object"}]}, False),
        ({"oneOf": [STRICT]}, False),
        (STRICT | {"$defs": {"a": {"type": "object"}}}, False),
    ],
)
def test_strict_is_asked_for_where_openai_can_be(schema: dict[str, Any], strict: bool) -> None:
    assert write_request(Request([], schema=schema), "m")["response_format"]["json_schema"]["strict"] is strict


def test_offering_no_tools_says_nothing_of_tools() -> None:
    body = write_request(Request([], (), "required", False), "m")
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & body.keys()


def test_messages_are_sent_as_they_are_but_for_thoughts_and_arguments() -> None:
    earlier = {
        "role": "assistant",
        "content": None,
        "reasoning_content": "hm",
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "w", "arguments": {"city": "厦门"}}}],
    }
    sent = write_request(Request([earlier]), "m")["messages"][0]  # type: ignore[list-item]
    assert "reasoning_content" not in sent
    assert sent["tool_calls"][0]["function"] == {"name": "w", "arguments": '{"city": "厦门"}'}
    assert earlier["reasoning_content"] == "hm"
    assert isinstance(earlier["tool_calls"][0]["function"]["arguments"], dict)  # type: ignore[index]
    kept = write_request(Request([earlier]), "m", thoughts=True)["messages"][0]  # type: ignore[list-item]
    assert kept["reasoning_content"] == "hm"
