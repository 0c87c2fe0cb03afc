"""Arguments as nested elements: what is written, what is read, at every cut."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from codec_run import run, same_at_every_cut
from hypothesis import strategies as st

from properties import property_test
from toolspeak.wire.dialect import Tree
from toolspeak.wire.holes.tree import read, write

M = "]<]mark[>["
TREE = Tree(M)
PLAIN = Tree("")
FOLLOW = (f"{M}</invoke>", f"{M}</tool_call>", f'{M}<invoke name="')
END = FOLLOW[0]
S: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "s": S,
        "n": INTEGER,
        "b": {"type": "boolean"},
        "x": {"type": "number"},
        "u": {"type": ["string", "null"]},
        "un": {"anyOf": [INTEGER, {"type": "null"}]},
        "l": {"type": "array", "items": S},
        "ln": {"type": ["array", "null"], "items": INTEGER},
        "lo": {"type": "array", "items": {"type": "object", "properties": {"id": INTEGER, "label": S}}},
        "ll": {"type": "array", "items": {"type": "array", "items": INTEGER}},
        "o": {"type": "object", "properties": {"z": INTEGER, "t": S}, "additionalProperties": INTEGER},
        "r": {"$ref": "#/$defs/Node"},
        "so": {"anyOf": [S, {"type": "object", "properties": {"max": INTEGER}}]},
        "sl": {"anyOf": [S, {"type": "array", "items": S}]},
        "lob": {"anyOf": [{"type": "array", "items": INTEGER}, {"type": "object", "properties": {"item": INTEGER}}]},
        "any": {},
    },
    "$defs": {"Node": {"type": "object", "properties": {"v": INTEGER, "next": {"$ref": "#/$defs/Node"}}}},
}


def el(tag: str, *inside: str) -> str:
    return f"{M}<{tag}>{''.join(inside)}{M}</{tag}>"


def reads(text: str, schema: dict[str, Any] = SCHEMA) -> Any:
    ran = same_at_every_cut(read, TREE, text, schema, FOLLOW)
    assert not ran.error
    return json.loads(ran.json), ran.rules


def test_is_written_exactly() -> None:
    arguments = {"s": "a < b", "l": ["x", ""], "o": {"z": 1, "y": {"b": True}}, "u": None, "e": [], "x": 1.5}
    assert write(TREE, arguments) == (
        f"{M}<s>a < b{M}</s>{M}<l>{M}<item>x{M}</item>{M}<item>{M}</item>{M}</l>"
        f"{M}<o>{M}<z>1{M}</z>{M}<y>{M}<b>true{M}</b>{M}</y>{M}</o>{M}<u>{M}</u>{M}<e>{M}</e>{M}<x>1.5{M}</x>"
    )
    assert write(TREE, {}) == ""
    assert write(Tree("", "li"), {"l": [1]}) == "<l><li>1</li></l>"


UNSAYABLE = re.compile(re.escape(M) + r"</[^<>]*>(\s|\\n)*" + re.escape(M)).search
"""A closer with a mark behind it, in a string."""
TEXT = st.text(st.characters(exclude_categories=["Cs"])) | st.lists(
    st.sampled_from([M, f"{M}</", f"{M}</s>", f"{M}<s>", f"{M}</item>", "</s>", "\n", " ", "]", "null", "1", "é☃"])
).map(lambda parts: "".join(parts) + ".")
INT = st.integers()
NODES = st.recursive(
    st.fixed_dictionaries({"v": INT}), lambda inner: st.fixed_dictionaries({"next": inner}, optional={"v": INT})
)
VALUES = {
    "s": TEXT,
    "n": INT,
    "b": st.booleans(),
    "x": st.floats(allow_nan=False, allow_infinity=False),
    "un": st.none() | INT,
    "l": st.lists(TEXT),
    "ln": st.none() | st.lists(INT, min_size=1),
    "lo": st.lists(st.fixed_dictionaries({"id": INT}, optional={"label": TEXT})),
    "ll": st.lists(st.lists(INT)),
    "o": st.fixed_dictionaries({}, optional={"z": INT, "t": TEXT, "other": INT}),
    "r": NODES,
    "so": st.fixed_dictionaries({"max": INT}),
    "sl": st.lists(TEXT, min_size=1),
}


@property_test(300, st.fixed_dictionaries({}, optional=VALUES))
def test_what_is_written_is_read_at_every_cut(arguments: dict[str, Any]) -> None:
    text = write(TREE, arguments) + END + "\nrest"
    if UNSAYABLE(json.dumps(arguments)):
        return
    ran = same_at_every_cut(read, TREE, text, SCHEMA, FOLLOW)
    assert json.loads(ran.json) == arguments
    assert (ran.rest, ran.rules) == (END + "\nrest", [])


def test_a_mark_may_be_nothing() -> None:
    ran = same_at_every_cut(read, PLAIN, "<s>a <b></s>\n<l>\n  <item>x</item>\n</l></call>", SCHEMA, ("</call>",))
    assert (ran.json, ran.rest, ran.notes) == ('{"s": "a <b>", "l": ["x"]}', "</call>", [])


@pytest.mark.parametrize("text", ["", END, "\n" + END])
def test_no_arguments_are_an_empty_object(text: str) -> None:
    assert reads(text) == ({}, [])


TYPED = [
    # the text of the element, its key, the value, the notes
    ("s", "00123", "00123", []),
    ("s", "null", "null", []),
    ("s", "", "", []),
    ("s", " \n x ", " \n x ", []),
    ("s", el("a", "x"), el("a", "x"), []),
    ("n", "\n 3 ", 3, []),
    ("n", "x", "x", ["kept-as-text"]),
    ("n", "", "", ["kept-as-text"]),
    ("b", "True", True, ["python-literal"]),
    ("u", "", None, []),
    ("u", " ", " ", []),
    ("u", "null", None, []),
    ("un", "", None, []),
    ("un", "4", 4, []),
    ("l", "", [], []),
    ("l", el("item", "1"), ["1"], []),
    ("l", '["a", "b"]', ["a", "b"], []),
    ("l", el("x", "1"), ["1"], ["odd-item"]),
    ("ln", "", None, []),
    ("ll", el("item", el("item", "1")) + el("item"), [[1], []], []),
    ("o", "", {}, []),
    ("o", el("item", "1"), {"item": 1}, []),
    ("o", '{"z": 1}', {"z": 1}, []),
    ("o", el("z", "1") + "\n" + el("t", "1"), {"z": 1, "t": "1"}, []),
    ("r", el("v", "1") + el("next", el("next", el("v", "2"))), {"v": 1, "next": {"next": {"v": 2}}}, []),
    ("so", el("max", "10"), {"max": 10}, []),
    ("so", "text", "text", []),
    ("sl", el("item", "a") + el("item", "b"), ["a", "b"], []),
    ("lob", el("item", "1"), {"item": 1}, []),
    ("lob", "", [], []),
    ("any", "", "", []),
    ("any", "12", 12, []),
    ("any", "x", "x", []),
    ("any", el("a", "1") + el("b", el("item", "x")), {"a": 1, "b": ["x"]}, []),
    ("any", el("item", "1") + el("a", "x"), [1, "x"], ["odd-item"]),
    ("any", "\n " + el("a-b", "1") + "\n", {"a-b": 1}, []),
]


@pytest.mark.parametrize(("key", "inside", "wanted", "rules"), TYPED)
def test_the_schema_types_an_element(key: str, inside: str, wanted: object, rules: list[str]) -> None:
    got, notes = reads(el(key, inside) + END)
    assert got == {key: wanted}
    assert type(got[key]) is type(wanted)
    assert notes == rules


ENDS = [
    (el("s", f"a{M}</s> b"), {"s": f"a{M}</s> b"}, []),
    (el("s", f"a{END}b"), {"s": f"a{END}b"}, []),
    (el("o", el("t", f"a{M}</zz>b{M}</t> c")), {"o": {"t": f"a{M}</zz>b{M}</t> c"}}, []),
    ('{"s": "a"}', {"s": "a"}, ["json-body"]),
    (el("s", "a") + el("s", "b") + el("n", "1"), {"s": "a", "n": 1}, ["doubled-key"]),
    (el("o", el("z", "1"), el("z", "2")), {"o": {"z": 1}}, ["doubled-key"]),
    (f"{M}<o>{M}<z>1{M}</z>", {"o": {"z": 1}}, ["missing-closer"]),
    (f"{M}<s>a", {"s": "a"}, ["missing-closer"]),
    (el("r", f"{M}<next>{M}<v>1{M}</v>"), {"r": {"next": {"v": 1}}}, ["missing-closer"]),
    (el("r", el("next", el("v", "1")), f"{M}</zz>"), {"r": {"next": {"v": 1}}}, ["stray-closer"]),
]


@pytest.mark.parametrize(("text", "wanted", "rules"), ENDS)
def test_where_an_element_ends(text: str, wanted: dict[str, Any], rules: list[str]) -> None:
    assert reads(text + END + f"\n{M}</tool_call>") == (wanted, rules)


CUT = [
    (f"{M}<s>ab", '{"s": "ab'),
    (f"{M}<l>{M}<item>x", '{"l": ["x'),
    (el("l", el("item", "x"))[:-4], '{"l": ["x"'),
    (f"{M}<n>1", '{"n": 1'),
    (f"{M}<r>{M}<next>{M}</next>text", '{"r": {"next": {}'),
    (f"{M}<{'k' * 300}>", "{"),
]


@pytest.mark.parametrize(("text", "json_text"), CUT)
def test_a_cut_call_is_not_closed(text: str, json_text: str) -> None:
    ran = same_at_every_cut(read, TREE, text, SCHEMA, FOLLOW)
    assert ran.error
    assert ran.json == json_text


def test_depth_costs_no_stack() -> None:
    deep: Any = {"v": 1}
    for _ in range(10_000):
        deep = {"next": deep}
    ran = run(read, TREE, [write(TREE, {"r": deep}) + END], SCHEMA, FOLLOW)
    same = ran.json == '{"r": ' + '{"next": ' * 10_000 + '{"v": 1}' + "}" * 10_001
    assert same
    ran = run(read, TREE, [el("zz", f"{M}<item>" * 10_000, "1", f"{M}</item>" * 10_000) + END], {}, FOLLOW)
    same = ran.json == '{"zz": ' + "[" * 10_000 + "1" + "]" * 10_000 + "}"
    assert same
    ran = run(read, TREE, [f"{M}<item>" * 10_000], {}, FOLLOW)
    assert ran.error
