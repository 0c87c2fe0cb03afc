"""What servers send in place of a JSON object as text: an object, its text encoded once more, null, and lists."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolspeak as ts
from replies import delta, events_in, frames
from toolspeak.api import anthropic, ollama, openai_chat, openai_responses
from toolspeak.plan.calls import checked
from toolspeak.types import Tool

OBJECT = {"city": 'Xi\'an "北" \\ {'}
TEXT = json.dumps(OBJECT)
SENT: dict[str, tuple[Any, bool]] = {
    "an object": (OBJECT, False),
    "its text": (TEXT, False),
    "encoded twice": (json.dumps(TEXT), True),
    "encoded twice, with blanks": (f" {json.dumps(TEXT)}\n", True),
}
NOTHING: dict[str, Any] = {
    "null": None,
    "the text null": "null",
    "no text": "",
    "an empty object": {},
    "its text": "{}",
}
REFUSED: dict[str, tuple[Any, str]] = {
    "a list": ([OBJECT], "a list"),
    "the text of a list": (json.dumps([OBJECT]), "a list"),
    "a list, encoded twice": (json.dumps(json.dumps([OBJECT])), "a text"),
    "a text": (json.dumps("Xiamen"), "a text"),
    "encoded three times": (json.dumps(json.dumps(TEXT)), "a text"),
    "a number": ("3", "3"),
    "true": ("true", "true"),
}
WEATHER = Tool("weather", "", {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
NOW = Tool("now", "", {"type": "object", "properties": {}})


def chat(arguments: Any) -> list[tuple[Any, bytes]]:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "weather", "arguments": arguments}}
    message = {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"tool_calls": [call]}}]}
    streams = [frames(delta(tool_calls=[call]), delta("tool_calls"), "[DONE]")]
    if isinstance(arguments, str):
        rows = [{"index": 0, "function": {"arguments": part}} for part in arguments]
        begun = {**call, "function": {"name": "weather", "arguments": ""}}
        deltas = [delta(tool_calls=[row]) for row in (begun, *rows)]
        streams.append(frames(*deltas, delta("tool_calls"), "[DONE]"))
    return [(openai_chat, data) for data in (json.dumps(message).encode(), *streams)]


def messages(arguments: Any) -> list[tuple[Any, bytes]]:
    block = {"type": "tool_use", "id": "c1", "name": "weather", "input": arguments}
    whole = json.dumps({"type": "message", "content": [block], "stop_reason": "tool_use", "usage": {}}).encode()
    if not isinstance(arguments, str):
        return [(anthropic, whole)]
    rows = [{"type": "content_block_start", "index": 0, "content_block": {**block, "input": {}}}]
    rows += [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": part}}
        for part in arguments
    ]
    end: list[Any] = [{"type": "content_block_stop", "index": 0}]
    end += [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}}, {"type": "message_stop"}]
    return [(anthropic, whole), (anthropic, frames(*rows, *end))]


def responses(arguments: Any) -> list[tuple[Any, bytes]]:
    item = {"type": "function_call", "id": "f1", "call_id": "c1", "name": "weather", "arguments": arguments}
    whole = {"object": "response", "status": "completed", "output": [item]}
    return [(openai_responses, json.dumps(whole).encode())]


def chats(arguments: Any) -> list[tuple[Any, bytes]]:
    call = {"function": {"name": "weather", "arguments": arguments}}
    reply = {"message": {"role": "assistant", "content": "", "tool_calls": [call]}, "done": True, "done_reason": "stop"}
    return [(ollama, json.dumps(reply).encode() + b"\n")]


APIS = (chat, messages, responses, chats)


def read(api: Any, arguments: Any) -> list[ts.ToolCall]:
    """The call of the reply, in each form in which a server may send it, in pieces of some sizes."""
    calls: list[ts.ToolCall] = []
    for module, data in api(arguments):
        for size in (1, 7, None):
            reply = ts.collect(events_in(module.ReplyReader(lambda: "c1"), data, size))
            assert len(reply.calls) == 1
            calls += reply.calls
    return calls


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("arguments", "encoded"), SENT.values(), ids=SENT)
def test_the_object_is_read(api: Any, arguments: Any, encoded: bool) -> None:
    for call in read(api, arguments):
        assert (call.arguments, call.whole) == (OBJECT, True)
        assert [note.rule for note in call.notes] == ["encoded-arguments"] * encoded


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("arguments", NOTHING.values(), ids=NOTHING)
def test_nothing_is_an_empty_object(api: Any, arguments: Any) -> None:
    for call in read(api, arguments):
        assert (call.arguments, call.json, call.whole, call.notes) == ({}, "{}", True, ())
        assert not checked(ts.ToolCall("c1", "now", call.arguments, call.json), [NOW])[1]
        (problem,) = checked(call, [WEATHER])[1]
        assert "required argument 'city' is missing" in problem.message


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("arguments", "kind"), REFUSED.values(), ids=REFUSED)
def test_anything_else_is_refused_with_the_true_reason(api: Any, arguments: Any, kind: str) -> None:
    for call in read(api, arguments):
        assert (call.arguments, call.whole) == ({}, False)
        (problem,) = checked(call, [WEATHER], "tool_calls")[1]
        assert f"was not run: its arguments are {kind}, and no JSON object." in problem.message


def test_a_doubled_key_in_an_encoded_text_is_seen() -> None:
    for api in APIS:
        for call in read(api, json.dumps('{"city": "Rome", "city": "Xiamen"}')):
            assert (call.whole, "doubled-key" in [note.rule for note in call.notes]) == (False, True)


def test_a_cut_text_of_a_text_is_cut() -> None:
    encoded = json.dumps(TEXT)
    for at in range(1, len(encoded)):
        call = {"index": 0, "id": "c1", "function": {"name": "weather", "arguments": encoded[:at]}}
        data = frames(delta(tool_calls=[call]), delta("length"), "[DONE]")
        (read_call,) = ts.collect(events_in(openai_chat.ReplyReader(), data)).calls
        assert not read_call.whole
        assert "no JSON object" not in checked(read_call, [WEATHER], "length")[1][0].message


@pytest.mark.parametrize("index", [[0, 1], [0, 0], [None, None]])
def test_calls_with_encoded_arguments_follow_one_another(index: list[Any]) -> None:
    rows = [
        {"index": at, "id": f"c{n}", "function": {"name": "weather", "arguments": json.dumps(TEXT)}}
        for n, at in enumerate(index)
    ]
    data = frames(*(delta(tool_calls=[row]) for row in rows), delta("tool_calls"), "[DONE]")
    reply = ts.collect(events_in(openai_chat.ReplyReader(), data, 5))
    assert [(call.id, call.arguments, call.whole) for call in reply.calls] == [(f"c{n}", OBJECT, True) for n in (0, 1)]
