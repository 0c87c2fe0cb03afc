"""Every beginning of a call: it is never whole with other arguments than those that the model wrote."""

from __future__ import annotations

import zlib
from typing import Any

import pytest
from spoken import TALKING, wire
from wire_cases import told

import toolspeak as ts
from properties import rotated
from toolspeak.schema.infer import as_tools
from toolspeak.wire.decode import parse
from toolspeak.wire.dialect import Dialect

CALL = ("delete_file", {"path": "/data"})
OPEN_SCHEMAS: tuple[dict[str, Any], ...] = (
    {"type": "object"},
    {"type": "object", "properties": {}},
    {"type": "object", "properties": {"force": {"type": "string"}}, "additionalProperties": True},
    {"type": "object", "properties": {}, "patternProperties": {"^p": {"type": "string"}}},
    {"type": "object", "additionalProperties": {"type": "string"}},
)
"""Tools that may take more parameters than they list."""


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
def test_a_call_that_is_cut_is_not_whole_for_a_tool_that_takes_any_parameter(d: Dialect) -> None:
    text = wire(d, CALL)
    offers = [as_tools([{"name": "delete_file", "parameters": schema}]) for schema in OPEN_SCHEMAS]
    for tools in (None, *offers):
        for i in rotated(range(len(text)), 5, zlib.crc32(d.name.encode())):
            reply = parse(text[:i], d, tools)
            assert [call for call in told(reply) if call[2] and call[:2] != CALL] == [], text[:i]
        assert told(parse(text, d, tools)) == [(*CALL, True)]


def test_code_that_may_be_the_beginning_of_a_name_is_not_whole() -> None:
    d, code = ts.dialect("llama3-builtin"), {"name": "code_interpreter", "parameters": {"type": "object"}}
    search = {"name": "brave_search", "parameters": {"type": "object"}}
    for text, tools in (("brave_se", None), ("brave_se", [code, search])):
        reply = ts.parse("<|python_tag|>" + text, d, tools)
        assert ([call.whole for call in reply.calls], reply.finish) == ([False], "length")
    for text, tools in (("x = 1", None), ("x", [code, search]), ("brave_search", [code]), ("1", None)):
        assert [call.whole for call in ts.parse("<|python_tag|>" + text, d, tools).calls] == [True]
