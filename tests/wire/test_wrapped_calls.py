"""Calls that models wrap, or whose names, lists and arguments they write otherwise than their dialect does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hard_cases import find
from spoken import TALKING, wire
from test_siblings import at_every_cut
from wire_cases import rules, told

from toolspeak.types import Reply, Tool
from toolspeak.wire.dialect import Dialect, JsonCall, Tagged, Tree
from toolspeak.wire.holes import tagged, tree

IN_CODE = ("llama4-pythonic", "pythonic")
"""Dialects that write calls as Python, where a slash divides."""
NAMED = [d for d in TALKING if d.name not in IN_CODE]
FOUND = [("find", {"query": "two words"}, True)]
QUERY: dict[str, Any] = {"type": "object", "properties": {"query": {"type": "string"}}}
FIND: Tool[..., Any] = Tool("find", "", QUERY)


def read(d: Dialect, text: str, *tools: Tool[..., Any]) -> Reply:
    return at_every_cut(text, d.name, list(tools or (FIND,)))


def spaced(d: Dialect, name: str) -> str:
    return wire(d, find("two words")).replace("functions.find", "find").replace("find", name)


@pytest.mark.parametrize("d", NAMED, ids=lambda d: d.name)
def test_a_namespace_before_a_slash(d: Dialect) -> None:
    reply = read(d, spaced(d, "web/find"))
    assert (told(reply), rules(reply).count("meant-name")) == (FOUND, 1)
    for name in ("web.find", "web/find"):
        (call,) = read(d, spaced(d, "web/find"), FIND, Tool(name, "", QUERY)).calls
        assert call.name == name
    assert [call.name for call in read(d, spaced(d, "/find")).calls if call.name == "find"] == []


def unwrapped(d: Dialect) -> str:
    """A call without its section."""
    return wire(d, find("two words")).removeprefix(d.open.lstrip()).removesuffix(d.close)


WRAPPED = [
    d
    for d in TALKING
    if isinstance(d.call[-1], str) and str(d.call[0]).startswith("<") and not (d.guard or d.header or d.items)
]


@pytest.mark.parametrize("word", ["tool_calls", "function_calls"])
@pytest.mark.parametrize("d", WRAPPED, ids=lambda d: d.name)
def test_an_element_around_calls(d: Dialect, word: str) -> None:
    call = unwrapped(d)
    for before, between in (("", ""), ("I look.", "\n")):
        reply = read(d, f"{before}<{word}>{between}{call}{between}</{word}>")
        assert (told(reply), reply.text) == (FOUND, before)
    for talk in (f"Calls go between <{word}> and </{word}>.", f"<{word}></{word}>", f"<{word}>none</{word}>"):
        assert read(d, talk).text == talk
    quoted = f"You write `<{word}>{call}</{word}>` for that."
    assert [c for c in read(d, quoted).calls if c.whole] == []


TODO: Tool[..., Any] = Tool(
    "find", "", {"type": "object", "properties": {"items": {"type": "array", "items": {"type": "string"}}}}
)
ANY: Tool[..., Any] = Tool("find", "", {"type": "object", "properties": {"items": {}, "more": {}}})
BY_KEY = [d for d in TALKING if any(isinstance(part, Tagged | Tree) for part in d.call)]


@pytest.mark.parametrize("d", BY_KEY, ids=lambda d: d.name)
def test_a_list_is_the_only_parameter(d: Dialect) -> None:
    (hole,) = (part for part in d.call if isinstance(part, Tagged | Tree))
    items = {"items": ["a", "b"]}
    own = tagged.write(hole, items) if isinstance(hole, Tagged) else tree.write(hole, items)
    written = wire(d, ("find", items))
    assert own in written
    bare = written.replace(own, json.dumps(items["items"]))
    reply = read(d, bare, TODO)
    assert (told(reply), "plain-argument" in rules(reply)) == ([("find", items, True)], True)
    assert [call for call in read(d, bare, ANY).calls if call.whole] == []


MARKED = [d for d in TALKING if len(d.call) == 3 and isinstance(d.call[1], JsonCall) and not d.open and not d.items]


@pytest.mark.parametrize("junk", ['"junk", ', '7, "", null, '])
@pytest.mark.parametrize("d", MARKED, ids=lambda d: d.name)
def test_words_before_a_call_in_a_list(d: Dialect, junk: str) -> None:
    start, _, end = map(str, d.call)
    body = wire(d, find("two words")).strip().removeprefix(start.strip()).removesuffix(end.strip()).strip()
    reply = read(d, f"{start}[{junk}{body}]{end}")
    assert told(reply) == FOUND
    assert next(note.detail for note in reply.notes if note.rule == "ignored-item") == junk.split(",")[0].strip('"')
    only = f"{start}[{junk}3]{end}"
    assert read(d, only).text.strip() == only.strip()


NAMES = [
    d
    for d in BY_KEY
    if any(isinstance(part, Tagged) and part.open.endswith(' name="') and not part.typed for part in d.call)
]


@pytest.mark.parametrize("d", NAMES, ids=lambda d: d.name)
@pytest.mark.parametrize(
    ("attribute", "meant"),
    [('string="true"', "7"), ('type="string"', "7"), ('type="integer"', 7), ('string="false"', 7)],
)
def test_an_attribute_says_what_a_value_is(d: Dialect, attribute: str, meant: Any) -> None:
    tool: Tool[..., Any] = Tool("find", "", {"type": "object", "properties": {"id": {"type": ["string", "integer"]}}})
    written = wire(d, ("find", {"id": "7"})).replace('"id"', f'"id" {attribute}')
    assert told(read(d, written, tool)) == [("find", {"id": meant}, True)]
