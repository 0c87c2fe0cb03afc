"""Replies with several calls of which one names a tool that is not offered."""

from __future__ import annotations

import json

import pytest
from test_siblings import at_every_cut, calls
from wire_cases import rules

from toolspeak.dialects import get
from toolspeak.types import Reply
from toolspeak.wire.dialect import ARGS, NAME, JsonCall

ROME = {"city": "Rome"}
KNOWN, UNKNOWN = ("weather", ROME, True), ("nothing", ROME, True)
BARE = ["hermes", "tool-json", "generic-json", "llama3-json", "xlam", "function-name"]
"""Dialects whose calls may be JSON objects without marks."""


def written(dialect: str, *names: str) -> list[str]:
    """The calls as JSON objects, each with the dialect's keys."""
    d = get(dialect)
    shape = next(form[0] for form in (d.call, *d.forms) if isinstance(form[0], JsonCall))
    keys = {slot: key for key, slot in reversed(shape.keys)}
    return [json.dumps({keys[NAME]: name, keys[ARGS]: ROME}) for name in names]


def read(text: str, dialect: str) -> Reply:
    return at_every_cut(text, dialect)


SERIES = {
    "lines": "{}\n{}\n{}",
    "list": "[{}, {}, {}]",
    "commas": "{}, {}, {}",
    "fence": "```json\n{}\n{}\n{}\n```",
    "list in a fence": "```json\n[{}, {}, {}]\n```",
}


def series(form: str, objects: list[str]) -> str:
    return SERIES[form].replace("{}", "%s") % tuple(objects)


@pytest.mark.parametrize("before", ["", "I look.\n"])
@pytest.mark.parametrize("form", SERIES)
@pytest.mark.parametrize("dialect", BARE)
def test_an_unknown_tool_after_a_call_is_a_call(dialect: str, form: str, before: str) -> None:
    if "fence" in form and before:
        pytest.skip("several calls in a fence after a text are an example")
    reply = read(before + series(form, written(dialect, "weather", "nothing", "weather")), dialect)
    assert (calls(reply), reply.text.strip()) == ([KNOWN, UNKNOWN, KNOWN], before.strip())
    assert "unknown-tool" in rules(reply)


@pytest.mark.parametrize("form", SERIES)
@pytest.mark.parametrize("dialect", BARE)
def test_the_text_is_whole_where_an_object_is_no_call(dialect: str, form: str) -> None:
    """An object that has not the form of a call is text, after a call too, and that call is not whole."""
    first, _, last = written(dialect, "weather", "nothing", "weather")
    for other in ('{"id": "Bob", "age": 7}', '{"city": "Rome"}', '{"name": "two words", "arguments": {}}'):
        text = series(form, [first, other, last])
        reply = read(text, dialect)
        assert other in reply.text
        assert [call for call in calls(reply)[:1] if call[2]] == []


@pytest.mark.parametrize(
    "text", ["<tool_call>\n{}\n{}\n</tool_call>", "<tool_call>{}{}</tool_call>", "<tool_call>\n{}\n{}"]
)
@pytest.mark.parametrize("names", [("weather", "nothing"), ("nothing", "weather")])
def test_two_objects_between_the_marks_of_one(text: str, names: tuple[str, str]) -> None:
    reply = read(text.replace("{}", "%s") % tuple(written("hermes", *names)), "hermes")
    assert (calls(reply), reply.text) == ([(name, ROME, True) for name in names], "")


@pytest.mark.parametrize("dialect", BARE)
def test_an_object_after_a_text_is_about_calls(dialect: str) -> None:
    """Behind a call and a text, an unknown tool is no call."""
    first, second = written(dialect, "weather", "nothing")
    reply = read(f"{first}\nSo much for that.\n{second}", dialect)
    assert [call[0] for call in calls(reply)] == ["weather"]
    assert reply.text.strip() == f"So much for that.\n{second}"
