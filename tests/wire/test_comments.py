"""Comments beside calls that are written as Python."""

from __future__ import annotations

from typing import Any

import pytest
from test_siblings import at_every_cut

from cost import LINEAR, growth
from toolspeak.dialects import get, names
from toolspeak.types import Reply, Tool
from toolspeak.wire.decode import parse
from toolspeak.wire.dialect import Dialect, Keywords

CITY: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS: list[Tool[..., Any]] = [Tool("weather", "", CITY), Tool("ping", "", {"type": "object", "properties": {}})]
CALL = 'weather(city="Rome")'
Read = tuple[str, dict[str, Any], bool]
ROME: Read = ("weather", {"city": "Rome"}, True)
PING: Read = ("ping", {}, True)
PYTHON = [
    d for d in map(get, names()) if isinstance(part := d.call[-1], Keywords) and part.assign == "=" and part.escapes
]
SEVERAL = [d for d in PYTHON if d.name != "llama3-builtin"]
"""A tag of `llama3-builtin` begins a single call."""


def read(d: Dialect, code: str) -> Reply:
    opener, closer = (d.items[0], d.items[2]) if d.items else ("", "")
    return at_every_cut(d.open + opener + code + closer + d.close, d.name, TOOLS)


def calls(reply: Reply) -> list[tuple[str, Any, bool]]:
    return [(call.name, call.arguments, call.whole) for call in reply.calls]


def test_these_dialects_write_python() -> None:
    expected = ["gemma3", "lfm2", "llama3-builtin", "llama4-pythonic", "olmo3", "pythonic"]
    assert sorted(d.name for d in PYTHON) == expected


@pytest.mark.parametrize("d", SEVERAL, ids=lambda d: d.name)
@pytest.mark.parametrize(
    ("code", "expected", "comments"),
    [
        (f"{CALL}  # Rome's weather\n", [ROME], ["Rome's weather"]),
        (f"# First:\n{CALL}\n", [ROME], ["First:"]),
        (f"# a\n#b\n{CALL}  # c\n# d\n", [ROME], ["a", "b", "c", "d"]),
        (f"{CALL}; ping()", [ROME, PING], []),
        (f"# {CALL}\nping()", [PING], [CALL]),
        ('weather(city="# 1")', [("weather", {"city": "# 1"}, True)], []),
        ('weather(city="f("a")  # b")', [("weather", {"city": 'f("a")  # b'}, True)], []),
    ],
)
def test_a_comment_is_no_part_of_a_call(d: Dialect, code: str, expected: object, comments: list[str]) -> None:
    reply = read(d, code)
    assert (calls(reply), reply.text, reply.finish) == (expected, "", "tool_calls")
    assert [note.detail for note in reply.notes if note.rule == "comment"] == comments


@pytest.mark.parametrize("d", SEVERAL, ids=lambda d: d.name)
def test_a_comment_before_the_closer_on_its_line(d: Dialect) -> None:
    assert calls(read(d, f"{CALL}  # the weather")) == [ROME]


@pytest.mark.parametrize("d", [d for d in SEVERAL if d.items], ids=lambda d: d.name)
def test_a_comment_behind_a_comma(d: Dialect) -> None:
    assert calls(read(d, f"{CALL},  # then\nping()")) == [ROME, PING]


@pytest.mark.parametrize("d", SEVERAL, ids=lambda d: d.name)
def test_a_comment_without_a_call_is_text(d: Dialect) -> None:
    reply = read(d, "# nothing")
    assert (reply.calls, "# nothing" in reply.text) == ((), True)


def test_a_comment_behind_a_call_that_nothing_closes() -> None:
    reply = at_every_cut('<|python_tag|>weather.call(city="Rome")  # look', "llama3-builtin", TOOLS)
    assert calls(reply) == [ROME]


def test_many_comments_take_linear_time() -> None:
    for code in ("# a\n", "# ", "#"):
        assert growth(lambda n, c=code: lambda: parse(f"[{CALL}{c * n}]", get("pythonic"), TOOLS), 200) <= LINEAR
