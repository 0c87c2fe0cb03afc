"""Names of tools that models spell otherwise than their dialect does, and messages whose marks a server took out."""

from __future__ import annotations

import re

import pytest
from hard_cases import TOOLS, find, function
from spoken import TALKING, wire
from wire_cases import read_in_pieces, rules, told

from toolspeak.dialects import get
from toolspeak.types import Reply, Tool
from toolspeak.wire.dialect import NAME, Dialect, Tagged
from toolspeak.wire.reading.lexicon import program

FOUND = [("find", {"query": "two words"}, True)]
IN_TAGS = [d for d in TALKING if program(d, calls=True).spelled]
TAG = re.compile(r"""( name=|=)"?find"?(?=>)""")


def read(d: Dialect, text: str, tools: tuple[Tool, ...] | None = TOOLS, prompt: str | None = "") -> Reply:
    return read_in_pieces(d, text, tools, prompt)


def tagged(d: Dialect, tag: str) -> str:
    """A call of the dialect with its name in this tag; of one whose calls have names in tags besides, that call."""
    call = wire(d, find("two words"))
    if TAG.search(call) is None:
        call = function(("query", "two words"), tool="find")
    return TAG.sub(tag, call)


@pytest.mark.parametrize("tag", [' name="find"', " name='find'", " name=find", "=find", '="find"', "='find'"])
@pytest.mark.parametrize("d", IN_TAGS, ids=lambda d: d.name)
def test_the_tag_of_a_name_in_another_spelling(d: Dialect, tag: str) -> None:
    call = tagged(d, tag)
    reply = read(d, call)
    assert told(reply) == FOUND
    own = call in (wire(d, find("two words")), function(("query", "two words"), tool="find"))
    assert ("other-tags" in rules(reply)) is not own
    assert [c.name for c in read(d, f"You write `{call}` for that.").calls if c.whole] == []
    assert [c.name for c in read(d, call.replace("find", "seek")).calls if c.name in ("find", "note")] == []


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
def test_the_namespace_of_all_functions(d: Dialect) -> None:
    written = wire(d, find("two words"))
    named = written.replace("functions.find", "find").replace("find", "functions.find")
    assert told(read(d, named)) == FOUND
    both = (*TOOLS, Tool("functions.find", "", TOOLS[1].parameters))
    prefixed = "functions.find" in written or (d.header and "to=functions." in dict(d.header.routes))
    if not prefixed:
        assert [call.name for call in read(d, named, both).calls] == ["functions.find"]  # which is a tool then


STRIPPED = [
    "commentary to=functions.find json{}",
    "commentary to=functions.findjson{}",
    "commentary to=functions.find{}",
    "analysis to=functions.find code{}",
    " to=functions.findcommentary json{}",
    "assistantcommentary to=functions.find json{}",
    "analysisWe look.assistantcommentary to=functions.find json{}",
    "analysisWe look.assistantanalysis to=functions.find code{}",
    "analysisWe look.assistantcommentaryI look.assistantcommentary to=functions.findjson{}",
]


@pytest.mark.parametrize("prompt", ["", None, "<|start|>assistant"])
@pytest.mark.parametrize("text", STRIPPED)
def test_messages_whose_marks_were_taken_out(text: str, prompt: str | None) -> None:
    d = get("harmony")
    reply = read(
        d,
        text.replace("{}", '{"query": "two words"}'),
        TOOLS,
        prompt,
    )
    assert told(reply) == FOUND
    assert "missing-opener" in rules(reply)
    begun = re.match(r"analysisWe.*(?=assistant\w+ to=)", text)
    assert reply.text == (begun[0] if begun else "")


@pytest.mark.parametrize(
    "text",
    [
        "commentary to=functions.nothing json{}",
        "commentary to=functions.find json",
        "commentary to=functions.find is how it is written",
        'analysis of {"query": "x"} and of what is to=functions.find',
        'analysis to=functions.find is {"query": "x"}',
        'One writes to=functions.find json{"query": "x"}',
        "analysisWe look.assistantcommentary to=functions.nothing json{}",
        "analysisWe look.assistantfinalHello",
        "The commentary to=functions.find json{} is one.",
    ],
)
def test_what_may_be_no_such_message_is_text(text: str) -> None:
    reply = read(get("harmony"), text)
    assert (reply.text, reply.calls) == (text, ())


def test_what_may_be_two_names_is_text() -> None:
    tools = (Tool("note"), Tool("notejson"), Tool("find"), Tool("findjson"))
    assert [c.name for c in read(get("harmony"), "commentary to=functions.notejson{}", tools).calls] == []
    assert [c.name for c in read(get("harmony"), "commentary to=functions.note json{}", tools).calls] == ["note"]
    assert read(get("harmony"), "commentary to=functions.find json{}", None).calls == ()


def hole(d: Dialect) -> Tagged | None:
    return next((part for part in d.call if isinstance(part, Tagged)), None)


IN_SECTION = [d for d in TALKING if d.open.strip() and not d.header and isinstance(d.call[0], str) and not d.items]


@pytest.mark.parametrize("d", IN_SECTION, ids=lambda d: d.name)
def test_a_call_without_its_section(d: Dialect) -> None:
    call = wire(d, find("two words")).strip().removeprefix(d.open.strip()).removesuffix(d.close.strip()).strip()
    reply = read(d, call)
    assert told(reply) == FOUND
    assert (rules(reply), reply.text.strip()) == (["missing-opener"], "")
    assert read(d, call.replace("find", "seek")).calls == ()


@pytest.mark.parametrize(
    "d", [d for d in TALKING if (own := hole(d)) and own.open[-1] == '"' and not own.typed], ids=lambda d: d.name
)
def test_a_parameter_with_a_further_attribute(d: Dialect) -> None:
    call = wire(d, find("two words"))
    assert told(read(d, call.replace('"query"', '"query" string="true"'))) == FOUND
    [other] = read(d, call.replace('"query"', '"quest" string="true"')).calls
    assert other.arguments == {"quest": "two words"}  # which is no argument of the tool
    [other] = read(d, call.replace('"query"', '"query" "string')).calls
    assert (other.arguments, other.whole) == ({}, False)


@pytest.mark.parametrize(
    "d",
    [d for d in TALKING if d.call[:2] == ("<tool_call>", NAME) and hole(d) and d.call[2] in (hole(d), "\n")],
    ids=lambda d: d.name,
)
def test_an_object_after_the_rest_of_a_tag(d: Dialect) -> None:
    """GLM writes this."""
    call = 'Look:\n<tool_call>find>{"query": "two words"}'
    for text in (call, f"{call}</tool_call>"):
        assert told(read(d, text)) == FOUND
    assert told(read(d, call + call.partition("\n")[2])) == FOUND * 2
    assert read(d, call.replace("find", "seek")).calls == ()
