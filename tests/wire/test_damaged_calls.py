"""A damaged call is never whole with fewer arguments than were written: foreign text inserted, or a character deleted, at every
place of a call in every dialect."""

from __future__ import annotations

import json
import zlib

import pytest
from wire_cases import merged, stream

from properties import rotated
from toolspeak.dialects import get, names
from toolspeak.types import Tool, ToolCall
from toolspeak.wire.decode import parse
from toolspeak.wire.dialect import Dialect, Tagged
from toolspeak.wire.prompt.calls import write_calls

PROPERTIES = {"path": {"type": "string"}, "dry_run": {"type": "boolean"}}
TOOLS = [Tool("delete_file", "", {"type": "object", "properties": PROPERTIES, "required": ["path"]})]
ARGUMENTS = {"path": "/data", "dry_run": True}
FOREIGN = ["XYZZY", " Only if you agree. ", "}", "]", '"', ", ", "\n\n", "<"]
"""Texts of which a model may write one where it does not belong. The marks of an end are tried too, where not
only the end of the message closes a call."""


def written(d: Dialect) -> str:
    return write_calls([ToolCall("1", "delete_file", ARGUMENTS)], d)


def damaged(d: Dialect) -> list[str]:
    text = written(d)
    places = range(text.index("delete_file") + len("delete_file"), len(text))
    ends = [] if isinstance(d.call[-1], Tagged) else [mark for mark in d.stop if mark not in text]
    inserted = [text[:at] + foreign + text[at:] for at in places for foreign in (*FOREIGN, *ends)]
    return inserted + [text[:at] + text[at + 1 :] for at in places]


@pytest.mark.parametrize("d", [d for d in map(get, names()) if d.call], ids=lambda d: d.name)
def test_a_damaged_call_is_not_whole_with_fewer_arguments(d: Dialect) -> None:
    wrong = [
        (text, call.json, [note.rule for note in call.notes])
        for text in rotated(damaged(d), 5, zlib.crc32(d.name.encode()))
        for call in parse(text, d, TOOLS).calls
        if call.whole and len(json.loads(call.json)) < len(ARGUMENTS) and "plain-argument" not in str(call.notes)
    ]
    assert wrong == []


BARE = {
    "llama3-json": '{"name": "delete_file", "parameters": {"path": "/data"}%s',
    "granite-20b-fc": '<function_call> {"name": "delete_file", "arguments": {"path": "/data"}%s',
    "tool-json": '{"tool": "delete_file", "tool_input": {"path": "/data"}%s',
    "gigachat3.1": '<|function_call|>{"name": "delete_file", "arguments": {"path": "/data"}%s',
}


@pytest.mark.parametrize("name", BARE)
@pytest.mark.parametrize(
    "behind", ["XYZZY}", ", dry_run=True}", " dry_run: true}", ', "message":, "dry_run": true}', "\nOnly if you agree."]
)
def test_an_object_without_its_brace_is_not_whole_if_something_follows(name: str, behind: str) -> None:
    (call,) = parse(BARE[name] % behind, get(name), TOOLS).calls
    assert (call.name, call.whole) == ("delete_file", False)
    (call,) = parse(BARE[name] % "", get(name), TOOLS).calls
    assert (call.arguments, call.whole) == ({"path": "/data"}, True)


@pytest.mark.parametrize(
    "behind",
    [
        'delete_file.call(path="/data"<|eot_id|>, dry_run=True)',
        'delete_file.call(<|eot_id|>path="/data", dry_run=True)',
        'delete_file.call(path="/data", <|eot_id|>dry_run=True)',
        '{"name": "delete_file", "parameters": {"path": "/data"<|eom_id|>, "dry_run": true}}',
        "import os<|eom_id|>\nprint(1)",
    ],
)
def test_the_mark_of_an_end_in_a_call_without_an_end_is_none(behind: str) -> None:
    text = "<|python_tag|>" + behind
    d, tools = get("llama3-builtin"), [*TOOLS, Tool("python", "", {"type": "object"})]
    (call,) = parse(text, d, tools).calls
    assert not call.whole
    assert merged(stream(d, list(text), tools)) == merged(stream(d, [text], tools))


def test_code_ends_before_the_mark_of_an_end_of_any_family() -> None:
    for mark in ("", "<|eom_id|>", "<|im_end|>", "</s>\n"):
        for code in ("x = 1", "print('</s>')"):
            (call,) = parse(f"<|python_tag|>{code}{mark}", get("llama3-builtin"), [Tool("python")]).calls
            assert (call.arguments, call.whole) == ({"code": code}, True)
        assert not parse(f"<|python_tag|>{mark}", get("llama3-builtin"), [Tool("python")]).calls
