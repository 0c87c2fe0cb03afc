"""A text between three quotes, as in Python, in every dialect that quotes texts: its quotes are no part of it."""

from __future__ import annotations

import random

import pytest
from spoken import TALKING, schema_of, wire
from wire_cases import cuts, merged, stream

from toolspeak.types import Tool
from toolspeak.wire.decode import parse
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect

TEXTS = [
    "x = 1",
    "",
    'import os\nprint("x")\n',
    'say "hi" now',
    ' "hi", "path": "b"\n',
    "it's\n",
    "\n{\n  \"a\": 'b',\n}\n",
]
TOOL = Tool("write", "", schema_of({"content": "", "path": ""}))
QUOTING = [d for d in TALKING if '"STAND"' in wire(d, ("write", {"content": "STAND", "path": "a"}))]


def check_read(d: Dialect, written: dict[str, str]) -> None:
    """Each content is read whole from how it is written, the same at every cut."""
    rng = random.Random(d.name)
    frame = wire(d, ("write", {"content": "STAND", "path": "a"}))
    for content, quoted in written.items():
        text = frame.replace('"STAND"', quoted)
        reply = parse(text, d, [TOOL])
        assert [(call.arguments, call.whole) for call in reply.calls] == [({"content": content, "path": "a"}, True)], (
            text
        )
        for chunks in (list(text), *cuts(text, rng)):
            assert merged(stream(d, chunks, [TOOL])) == merged(stream(d, [text], [TOOL])), text


@pytest.mark.parametrize("d", QUOTING, ids=lambda d: d.name)
def test_three_quotes_around_a_text(d: Dialect) -> None:
    check_read(d, {content: f'"""{content}"""' for content in TEXTS})


@pytest.mark.parametrize("d", QUOTING, ids=lambda d: d.name)
def test_three_quotes_that_one_closes(d: Dialect) -> None:
    text = wire(d, ("write", {"content": "STAND", "path": "a"})).replace('"STAND"', '"""x = 1"')
    assert not any(call.whole for call in parse(text, d, [TOOL]).calls)


def test_most_dialects_quote_texts() -> None:
    assert len(QUOTING) > 40


JSON = [d for d in QUOTING if "Keywords" not in repr(d.call)]


@pytest.mark.parametrize("d", JSON, ids=lambda d: d.name)
def test_a_docstring_that_is_not_escaped_is_the_text(d: Dialect) -> None:
    check_read(d, {content: f'"{content}"' for content in ('"""Doc."""', '"""Doc."""\nimport os\n')})


@pytest.mark.parametrize("d", JSON, ids=lambda d: d.name)
def test_a_sum_of_such_texts_is_an_expression(d: Dialect) -> None:
    text = wire(d, ("write", {"content": "STAND", "path": "a"})).replace('"STAND"', '"""a""" + """b"""')
    for chunks in ([text], list(text)):
        assert not any(call.whole for call in collect(stream(d, chunks, [TOOL])).calls)
