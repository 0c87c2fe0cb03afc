"""Grammars of custom tools as part of the grammar of a call, in every dialect and notation that can say them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from gbnf import Gbnf
from hypothesis import given, strategies as st

import toolspeak as ts
from toolspeak.dialects import get
from toolspeak.types import Tool, ToolCall
from toolspeak.wire.dialect import Raw
from toolspeak.wire.grammars.gbnf import gbnf
from toolspeak.wire.grammars.lark_source import text_node
from toolspeak.wire.grammars.regexes import chars_of, regex
from toolspeak.wire.grammars.rules import Grammar, Rules
from toolspeak.wire.prompt.calls import write_calls

PATCH = r"""
// a patch of files
start: begin hunk+ end
begin: "*** Begin" LF
end: "*** End" LF?

hunk: add | remove | update
add: "*** Add: " name LF line+
remove: "*** Delete: " name LF
update: "*** Update: " name LF change?

name: /(.+)/
line: "+" /(.*)/ LF -> line
change: (context | edit)+ last?
context: ("@@" | "@@ " /(.+)/) LF
edit: ("+" | "-" | " ") /(.*)/ LF
last: "*** End of File" LF

%import common.LF
"""
RIGHT = '*** Begin\n*** Add: a "b".py\n+x = {1: "<a>"}\t\n*** Update: c.py\n@@ def f():\n-y = \\\\n\n+é\n*** End'
WRONG = RIGHT.replace("*** Delete", "*** Remove").replace("@@ ", "## ")
DIALECTS = [name for name in ts.dialects() if not any(isinstance(part, Raw) for part in get(name).call)]


def tool(**form: Any) -> Tool[..., Any]:
    taken = {"type": "string", **form}
    schema = {"type": "object", "properties": {"input": taken}, "required": ["input"], "additionalProperties": False}
    return Tool("patch", "Changes files.", schema)


def wrote(name: str, text: str) -> str:
    return write_calls([ToolCall("call00001", "patch", {"input": text})], get(name))


@pytest.mark.parametrize("name", DIALECTS)
def test_a_call_is_sampled_under_the_grammar_of_its_text(name: str) -> None:
    made = Gbnf(str(ts.grammar(get(name), [tool(**{"x-lark": PATCH})], "required", "gbnf", thinking=False)))
    if not made.accepts(wrote(name, "any text")):
        assert made.accepts(wrote(name, RIGHT))
        assert not made.accepts(wrote(name, WRONG))
        return
    pytest.fail(f"{name} is held to nothing")


@pytest.mark.parametrize("closer", ["", "</run>"])
def test_a_call_that_is_all_text_too(closer: str) -> None:
    parts = ("<run>", Raw("input", "patch"), closer) if closer else ("<run>", Raw("input", "patch"))
    d = ts.Dialect("own", parts)
    free, held = ([tool(**form)] for form in ({}, {"x-lark": PATCH}))
    for tools, good in ((free, [True, True]), (held, [True, False])):
        made = Gbnf(str(ts.grammar(d, tools, "required", "gbnf")))
        calls = [write_calls([ToolCall("", "patch", {"input": text})], d) for text in (RIGHT, WRONG)]
        assert [made.accepts(call) for call in calls] == good


def test_a_regular_expression_too() -> None:
    made = Gbnf(str(ts.grammar(get("hermes"), [tool(pattern=r"^([a-z]{2,3}-\d+)$")], "required", "gbnf")))
    assert [made.accepts(wrote("hermes", text)) for text in ("ab-1", "a-1", "abc-12", "ab-")] == [
        True,
        False,
        True,
        False,
    ]


def test_other_notations_say_it_in_rules() -> None:
    one = tool(**{"x-lark": PATCH})
    assert "*** Begin" in str(ts.grammar(get("hermes"), [one], "required", "lark"))
    assert "*** Begin" in json.dumps(ts.grammar(get("hermes"), [one], "required", "structural_tag"))


def test_engines_read_it() -> None:
    llguidance = pytest.importorskip("llguidance")
    made = llguidance.LLMatcher(
        llguidance.LLTokenizer("byte"),
        str(ts.grammar(get("hermes"), [tool(**{"x-lark": PATCH})], "required", "lark")),
    )
    assert not made.is_error(), made.get_error()
    text = wrote("hermes", RIGHT).encode()
    assert made.try_consume_tokens([*text]) == len(text)


@pytest.mark.parametrize(
    "grammar",
    [
        'start: start "a" | "b"',
        'start: a "x"\na: b?  start',
        'start: ("a"?)*',
        "start: missing",
        'start: "a"\n%ignore " "',
        "start: /(?=a)b/",
        "start: /^a$/",
        'begin: "a"',
        'start: "a',
        "start: %json {}",
        'start: "a" & "b"',
        "",
        "start: /" + "[a]" * 60,  # each bracket could be read in two ways
        "start: " + "/[" * 10_000 + "\\",
    ],
    ids=lambda grammar: grammar[:20],
)
def test_what_cannot_be_said_is_left_to_the_check(grammar: str) -> None:
    assert text_node(grammar, chars_of, Rules(), "test") is None
    made = Gbnf(str(ts.grammar(get("hermes"), [tool(**{"x-lark": grammar})], "required", "gbnf")))
    assert made.accepts(wrote("hermes", "any text"))


@pytest.mark.parametrize(
    ("grammar", "right", "wrong"),
    [
        ('start: "a".."f" ~ 2..3', ["ab", "fff"], ["a", "gg", "aaaa"]),
        (
            'start: "select"i [WS] name\nname: CNAME\n%import common (CNAME, WS)',
            ["SeLect x_1", "selectx"],
            ["select 1"],
        ),
        ('?start: a | b // two\na.2: "x"+\n!b: "y"~3', ["xxx", "yyy"], ["xy", "yy"]),
        (r'start: "\"" /[^"\\]*/ "\""', ['"a/b"', '""'], ['"\\"']),
        ("start: /a\\/b/ /[\\s\\S]/ /[^\\S\\n]/", ["a/b\n ", "a/bx\t"], ["a/bx\n"]),
        ('start: "(" start ")" | ', ["", "(())"], ["(", "())"]),
    ],
)
def test_what_larks_notation_says(grammar: str, right: list[str], wrong: list[str]) -> None:
    rules = Rules()
    node = text_node(grammar, chars_of, rules, "test")
    assert node is not None
    made = Gbnf(gbnf(Grammar(node, rules)))
    assert [text for text in [*right, *wrong] if made.accepts(text)] == right


PIECES = st.sampled_from(["a", "[a-c]", "[^b]", ".", r"\d", r"\w", "[\\w.-]", r"\x41", r"\s"])
REGEX = st.recursive(
    PIECES,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["?", "{1,2}", "{2}"])).map(lambda two: f"(?:{two[0]}){two[1]}"),
    ),
    max_leaves=5,
)


@given(REGEX, st.text("abc1A .-\n_é", max_size=5))
def test_regular_expressions_are_read_as_python_reads_them(pattern: str, text: str) -> None:
    made = Gbnf(gbnf(Grammar(regex(pattern), Rules())))
    assert made.accepts(text) == bool(re.fullmatch(pattern, text, re.ASCII))
