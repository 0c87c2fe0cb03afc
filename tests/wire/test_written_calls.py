"""Calls that are written out inside an argument of another call: where the outer one ends is a guess, so none runs."""

from __future__ import annotations

from functools import partial

import pytest
from spoken import TALKING, wire
from wire_cases import read_in_pieces

from toolspeak.types import Tool
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.lexicon import program

TEXT = {"type": "string"}
TOOLS = (
    Tool("delete_file", "", {"type": "object", "properties": {"path": TEXT}, "required": ["path"]}),
    Tool(
        "write", "", {"type": "object", "properties": {"path": TEXT, "content": TEXT}, "required": ["path", "content"]}
    ),
)
PAGES = ("A\n%s\nB\n%s\nC\n", "%s\n%s\ntext", "# T\n```\n%s\n```\n\n```\n%s\n```\nEnd", "1. %s\n2. %s\n")

read = partial(read_in_pieces, tools=TOOLS)


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
@pytest.mark.parametrize("page", PAGES)
def test_no_call_inside_an_argument_runs(d: Dialect, page: str) -> None:
    content = page.replace("%s", wire(d, ("delete_file", {"path": "/data"})))
    escaped = wire(d, ("write", {"path": "/t.md", "content": content}))
    written = [escaped, wire(d, ("write", {"path": "/t.md", "content": "CONTENT"})).replace("CONTENT", content)]
    for text in written[: 1 if d.name == "empower" else 2]:  # a string in a string has no quotes of its own
        assert [call.name for call in read(d, text).calls if call.whole and call.name == "delete_file"] == [], text


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
def test_a_call_after_another_runs(d: Dialect) -> None:
    calls = [("write", {"path": "/t.md", "content": "A call."}), ("delete_file", {"path": "/data"})]
    if d.between or d.items or d.close:
        assert [call.whole for call in read(d, wire(d, *calls)).calls] == [True, True]


@pytest.mark.parametrize("d", [d for d in TALKING if program(d, True).value_closers], ids=lambda d: d.name)
def test_no_call_is_whole_whose_closers_its_value_quotes(d: Dialect) -> None:
    """It ran with the value up to the quotation."""
    call = wire(d, ("delete_file", {"path": "MARK"})).strip()
    closers = call.partition("MARK")[2].strip()
    for quoted in ("END = '{}'\nb = 1", 'END = "{}"', "It ends with `{}` then.", "x{0}{0}"):
        text = call.replace("MARK", quoted.format(closers, closers))
        assert not any(one.whole for one in read(d, text).calls), quoted
