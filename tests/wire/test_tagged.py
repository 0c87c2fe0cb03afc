"""Arguments by tags: what is written, what is read, at every cut."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import pytest
from codec_run import run, same_at_every_cut
from hypothesis import strategies as st

from properties import property_test
from toolspeak.wire.dialect import Tagged, Typed
from toolspeak.wire.holes.tagged import read, write

LINES = Tagged("<parameter=", ">\n", "\n</parameter>\n")
COMPACT = Tagged("<parameter=", ">", "</parameter>")
ATTRIBUTE = Tagged('<parameter name="', '">', "</parameter>\n")
PAIRS = Tagged("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n")
FLAGGED = Tagged('<｜DSML｜parameter name="', '">', "</｜DSML｜parameter>\n", Typed('" string="', "true", "false"))
XTML = Tagged('<|open|>argument key="', '"<|sep|>', "<|close|>argument<|sep|>", Typed('" type="'))
KEYED = Tagged("<arg_key>", "</arg_type><arg_value>", "</arg_value>", Typed("</arg_key><arg_type>"))
QUOTED = Tagged('<param name="', '">', "</param>", quote=("<![CDATA[", "]]>"))
HOLES = {
    "lines": (LINES, ("</function>", "</tool_call>", "<tool_call>")),
    "compact": (COMPACT, ("</function>", "</tool_call>", "<tool_call>")),
    "attribute": (ATTRIBUTE, ("</invoke>", "</calls>", '<invoke name="')),
    "pairs": (PAIRS, ("</tool_call>", "<tool_call>")),
    "flagged": (FLAGGED, ("</｜DSML｜invoke>", "</｜DSML｜function_calls>")),
    "xtml": (XTML, ("<|close|>call<|sep|>", "<|close|>tools<|sep|>")),
    "keyed": (KEYED, ("</call>",)),
    "quoted": (QUOTED, ("</function>",)),
}
FUNCTION = HOLES["lines"][1]
S: dict[str, Any] = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "s": S,
        "n": {"type": "integer"},
        "x": {"type": "number"},
        "b": {"type": "boolean"},
        "u": {"anyOf": [S, {"type": "null"}]},
        "o": {"type": "object"},
        "l": {"type": "array", "items": S},
        "r": {"$ref": "#/$defs/R~1%25"},
        "so": {"oneOf": [S, {"type": "object"}]},
        "sn": {"type": ["string", "number"]},
        "un": {"type": "integer", "nullable": True},
        "e": {"enum": ["a", "1"]},
        "loop": {"$ref": "#/$defs/loop"},
        "any": {},
    },
    "$defs": {"R/%": {"type": "integer"}, "loop": {"anyOf": [{"$ref": "#/$defs/loop"}, S]}},
}


def lines(*pairs: tuple[str, str]) -> str:
    return "".join(f"<parameter={key}>\n{text}\n</parameter>\n" for key, text in pairs) + "</function>"


def reads(text: str, hole: Tagged = LINES, follow: tuple[str, ...] = FUNCTION) -> Any:
    ran = same_at_every_cut(read, hole, text, SCHEMA, follow)
    assert not ran.error
    return json.loads(ran.json), ran.rules


WRITTEN = {
    "lines": '<parameter=s>\na b\n</parameter>\n<parameter=l>\n["é", true, null]\n</parameter>\n',
    "compact": '<parameter=s>a b</parameter><parameter=l>["é", true, null]</parameter>',
    "attribute": '<parameter name="s">a b</parameter>\n<parameter name="l">["é", true, null]</parameter>\n',
    "pairs": "<arg_key>s</arg_key>\n<arg_value>a b</arg_value>\n"
    '<arg_key>l</arg_key>\n<arg_value>["é", true, null]</arg_value>\n',
    "flagged": '<｜DSML｜parameter name="s" string="true">a b</｜DSML｜parameter>\n'
    '<｜DSML｜parameter name="l" string="false">["é", true, null]</｜DSML｜parameter>\n',
    "xtml": '<|open|>argument key="s" type="string"<|sep|>a b<|close|>argument<|sep|>'
    '<|open|>argument key="l" type="array"<|sep|>["é", true, null]<|close|>argument<|sep|>',
    "keyed": "<arg_key>s</arg_key><arg_type>string</arg_type><arg_value>a b</arg_value>"
    '<arg_key>l</arg_key><arg_type>array</arg_type><arg_value>["é", true, null]</arg_value>',
    "quoted": '<param name="s">a b</param><param name="l">["é", true, null]</param>',
}


@pytest.mark.parametrize("name", HOLES)
def test_is_written_exactly(name: str) -> None:
    assert write(HOLES[name][0], {"s": "a b", "l": ["é", True, None]}) == WRITTEN[name]
    assert write(HOLES[name][0], {}) == ""


def test_a_quote_is_written_where_the_text_needs_it() -> None:
    assert write(QUOTED, {"s": "a\nb"}) == '<param name="s"><![CDATA[a\nb]]></param>'


VALUES = {
    "s": st.text(st.characters(exclude_categories=["Cs"])),
    "n": st.integers(),
    "x": st.floats(allow_nan=False, allow_infinity=False),
    "b": st.booleans(),
    "u": st.none()
    | st.text(st.characters(exclude_categories=["Cs"])).filter(lambda t: t.strip() not in ("null", "None")),
    "o": st.dictionaries(st.text(max_size=5), st.recursive(st.none() | st.text() | st.integers(), st.lists)),
    "l": st.lists(st.text(max_size=9)),
}
MARKERS = [
    "</parameter>",
    "\n</parameter>",
    "<parameter=s>",
    "</arg_value>",
    "</function>",
    "]]>",
    "<![CDATA[",
    '">',
    "<|sep|>",
]


@property_test(
    300,
    st.sampled_from(list(HOLES)),
    st.fixed_dictionaries({}, optional=VALUES),
    st.lists(st.sampled_from([*MARKERS, "x", " ", "\n", "é☃"]), max_size=6),
)
def test_what_is_written_is_read_at_every_cut(name: str, arguments: dict[str, Any], code: list[str]) -> None:
    hole, follow = HOLES[name]
    arguments["code"] = "".join(code) + "."
    text = write(hole, arguments) + follow[0] + " rest"
    schema = {"properties": {**SCHEMA["properties"], "code": S}}
    if not sayable(arguments["code"], hole, follow, arguments.keys()):
        return
    ran = same_at_every_cut(read, hole, text, schema, follow)
    assert (json.loads(ran.json), ran.rest.lstrip(), ran.notes) == (arguments, follow[0] + " rest", [])


def sayable(code: str, hole: Tagged, follow: tuple[str, ...], given: Collection[str]) -> bool:
    """Whether no closer in the value has something legal or a tag behind it, nothing looks like a closer that is missing,
    and no parameter seems to be swallowed that was not given."""
    closers = [hole.close.strip(), hole.quote[1]] if hole.quote else [hole.close.strip()]
    legal = (hole.open.strip(), *closers[:-1], *follow)
    behind = [part.lstrip() for closer in closers for part in code.split(closer)[1:]]
    return (
        not any(part.startswith(legal) for part in behind)
        and not any(closer + "<" in "".join(code.split()) for closer in closers)
        and "\n" + hole.open.strip() not in code
        and (follow[0] * 2 not in "".join(code.split()))
        and not any(closer in code and "<parameter=s>" in code for closer in ("</parameter>", *closers))
        and ("s" in given or f"{hole.open.strip()}s" not in code)
        and not (hole.quote and hole.quote[0] in code)
    )


@pytest.mark.parametrize("name", HOLES)
def test_no_arguments_are_an_empty_object(name: str) -> None:
    hole, follow = HOLES[name]
    for text in ("", "\n" + follow[0]):
        ran = same_at_every_cut(read, hole, text, SCHEMA, follow)
        assert (ran.json, ran.error, ran.notes) == ("{}", "", [])


TYPES = [
    # key, text, value, notes
    ("s", "00123", "00123", []),
    ("s", "null", "null", []),
    ("s", "True", "True", []),
    ("s", '"foo"', '"foo"', []),
    ("s", " &lt;a&gt; ", " &lt;a&gt; ", []),
    ("s", '{"a": 1}', '{"a": 1}', []),
    ("s", "", "", []),
    ("s", "\n two\n\nlines \n", "\n two\n\nlines \n", []),
    ("loop", "12", "12", []),
    ("n", " 12 ", 12, []),
    ("n", "2026-01-15", "2026-01-15", ["kept-as-text"]),
    ("n", "00123", "00123", ["kept-as-text"]),
    ("n", "1.5", "1.5", ["kept-as-text"]),
    ("n", "3.0", 3.0, []),
    ("n", "", "", ["kept-as-text"]),
    ("n", '"5"', "5", ["kept-as-text"]),
    ("r", "7", 7, []),
    ("x", "7", 7, []),
    ("x", "-1e3", -1000.0, []),
    ("x", "NaN", "NaN", ["kept-as-text"]),
    ("b", "true", True, []),
    ("b", "True", True, ["python-literal"]),
    ("b", "yes", "yes", ["kept-as-text"]),
    ("u", "null", None, []),
    ("u", "None", None, ["python-literal"]),
    ("u", "nul", "nul", []),
    ("u", "null and void", "null and void", []),
    ("u", "none of it", "none of it", []),
    ("u", "12", "12", []),
    ("u", "", "", []),
    ("un", "null", None, []),
    ("un", "3", 3, []),
    ("e", "1", "1", []),
    ("so", '{"a": 1}', {"a": 1}, []),
    ("so", "{'a': None}", {"a": None}, ["python-literal"]),
    ("so", "{not json", "{not json", []),
    ("so", "{a: 1}", "{a: 1}", []),
    ("so", "[1]", "[1]", []),
    ("sn", "2 dollars", "2 dollars", []),
    ("sn", " 42", 42, []),
    ("sn", "007", "007", []),
    ("o", "{'x': [1, None, True], 'y': \"it's\"}", {"x": [1, None, True], "y": "it's"}, ["python-literal"]),
    ("o", "{'p': (1, 2), 'q': 'it\\'s'}", {"p": [1, 2], "q": "it's"}, ["python-literal"]),
    ("l", "('a', 'b')", ["a", "b"], ["python-literal"]),
    ("l", "('a',)", ["a"], ["python-literal"]),
    ("l", "('a')", "('a')", ["kept-as-text"]),  # Python's is no tuple
    ("so", "(a note)", "(a note)", []),
    ("o", '{"a": [1, 2,],}', {"a": [1, 2]}, ["trailing-comma"]),
    ("o", '{"a": 1', '{"a": 1', ["kept-as-text"]),
    ("o", "[1]", "[1]", ["kept-as-text"]),
    ("l", '["a",\n "b"]', ["a", "b"], []),
    ("l", "a, b", "a, b", ["kept-as-text"]),
    ("any", "12", 12, []),
    ("any", "00123", "00123", []),
    ("any", "True", "True", []),
    ("any", "null", None, []),
    ("any", '"foo"', '"foo"', []),
    ("any", '{"a": [1]}', {"a": [1]}, []),
    ("any", "{'a': 1}", "{'a': 1}", []),
    ("zz", "[1, 2]", [1, 2], []),
    ("zz", "hello", "hello", []),
]


@pytest.mark.parametrize(("key", "text", "wanted", "rules"), TYPES)
def test_the_schema_types_a_value(key: str, text: str, wanted: object, rules: list[str]) -> None:
    for hole in (LINES, COMPACT):
        wire = f"<parameter={key}>{hole.mid[1:]}{text}{hole.close}</function>"
        got, notes = reads(wire, hole)
        assert got == {key: wanted}
        assert type(got[key]) is type(wanted)
        assert notes == rules


@pytest.mark.parametrize(
    ("wire", "wanted", "rules"),
    [
        ('" string="true">1', "1", []),
        ('" string="false">1', 1, []),
        ('" string="false">{"a": 1}', {"a": 1}, []),
        ('" string="false">x y', "x y", ["kept-as-text"]),
        ('" string="false">"x"', "x", ["kept-as-text"]),
        ('">1', "1", []),
        ('" string="maybe">1', "1", ["odd-type"]),
    ],
)
def test_a_parameter_tells_its_own_type(wire: str, wanted: object, rules: list[str]) -> None:
    text = f'<｜DSML｜parameter name="s{wire}</｜DSML｜parameter>\n</｜DSML｜invoke>'
    assert reads(text, FLAGGED, HOLES["flagged"][1]) == ({"s": wanted}, rules)


def test_a_type_left_out_between_tags() -> None:
    text = "<arg_key>n</arg_key>\n<arg_value>1</arg_value>\n<arg_key>s</arg_key> <arg_type>number</arg_type> <arg_value>1</arg_value></call>"
    assert reads(text, KEYED, HOLES["keyed"][1]) == ({"n": 1, "s": 1}, [])


CLOSERS = [
    # a closer counts only where something legal follows
    (lines(("s", "a </parameter> b"), ("n", "1")), {"s": "a </parameter> b", "n": 1}, []),
    (lines(("s", "print('</function></tool_call>')")), {"s": "print('</function></tool_call>')"}, []),
    (lines(("s", "\n</function>\n</tool_call>\n'''")), {"s": "\n</function>\n</tool_call>\n'''"}, []),
    (lines(("s", "x\n<parameter=q>\ny")), {"s": "x\n<parameter=q>\ny"}, []),
    (lines(("n", "1"), ("s", "x\n<parameter=n>\ny")), {"n": 1, "s": "x\n<parameter=n>\ny"}, []),
    (lines(("s", "x <parameter=n>")), {"s": "x <parameter=n>"}, []),
    # a closer is missing
    ("<parameter=s>\nx\n<parameter=n>\n1\n</parameter>\n</function>", {"s": "x", "n": 1}, ["missing-closer"]),
    ("<parameter=n>1<parameter=s>x</parameter></function>", {"n": 1, "s": "x"}, ["missing-closer"]),
    ("<parameter=s>\nx\n</function>\n</tool_call>", {"s": "x"}, ["missing-closer"]),
    ("<parameter=s>\nx</function></tool_call>\n", {"s": "x"}, ["missing-closer"]),
    ("<parameter=s>\nx\n</function>", {"s": "x"}, ["missing-closer"]),
    ("<parameter=n>\n1\n</function>\n</tool_call>", {"n": 1}, ["missing-closer"]),
    ("<parameter=s>\nx\n</function>\n</tool_call>\n<tool_call>\n<function=g>", {"s": "x"}, ["missing-closer"]),
    # no tags, or a key twice
    ('{"s": "a", "n": 1}\n</function>', {"s": "a", "n": 1}, ["json-body"]),
    (lines(("s", "a"), ("s", "b"), ("n", "1")), {"s": "a", "n": 1}, ["doubled-key"]),
    # white space around the marks is free
    ("\n  <parameter=s>\nx\n</parameter>   \n\n </function>", {"s": "x"}, []),
    ("<parameter=s>x</parameter></function>", {"s": "x"}, []),
]


@pytest.mark.parametrize(("text", "wanted", "rules"), CLOSERS)
def test_where_a_value_ends(text: str, wanted: dict[str, Any], rules: list[str]) -> None:
    assert reads(text) == (wanted, rules)


def test_what_is_left_of_the_text_is_not_touched() -> None:
    ran = same_at_every_cut(read, LINES, "<parameter=s>\nx\n</function>\n</tool_call>\n", SCHEMA, FUNCTION)
    assert ran.rest.strip() == "</function>\n</tool_call>"


def test_the_value_that_was_dropped_is_told() -> None:
    ran = run(read, LINES, [lines(("s", "a"), ("s", "b"))], SCHEMA, FUNCTION)
    assert [note.detail for note in ran.notes] == ["s: b"]


def test_pairs_stand_with_or_without_lines() -> None:
    text = "<arg_key>s</arg_key><arg_value>x</arg_value>y</arg_value><arg_key>n</arg_key>\n<arg_value>1</arg_value></tool_call>"
    assert reads(text, PAIRS, HOLES["pairs"][1]) == ({"s": "x</arg_value>y", "n": 1}, [])


def test_a_quoted_value_may_hold_its_closer() -> None:
    text = '<param name="s"><![CDATA[<a>]]></b> </param>]]></param><param name="n"><![CDATA[1]]></param></function>'
    assert reads(text, QUOTED, HOLES["quoted"][1]) == ({"s": "<a>]]></b> </param>", "n": 1}, [])


CUT = [
    ("<parameter=s>\nab", '{"s": "ab'),
    ("<parameter=s>\nab\n</para", '{"s": "ab\\n</para'),
    ("<parameter=l>\n[1, 2", '{"l": [1, 2'),
    ("<parameter=n>\nab", '{"n": "ab'),
    ("<parameter=s", "{"),
    ("<parameter=" + "k" * 300 + ">\n1\n</parameter>\n</function>", "{"),
]


@pytest.mark.parametrize(("text", "json_text"), CUT)
def test_a_cut_call_is_not_closed(text: str, json_text: str) -> None:
    ran = same_at_every_cut(read, LINES, text, SCHEMA, FUNCTION)
    assert ran.error
    assert ran.json == json_text


def test_a_string_streams() -> None:
    for key in ("s", "u", "so", "any"):
        ran = run(read, LINES, [f"<parameter={key}>\n", *["word "] * 50], SCHEMA, FUNCTION)
        assert len(ran.events) >= 50
        assert ran.json.endswith("word " * 40 + "word ")


def test_a_key_waits_for_no_more_than_its_end() -> None:
    head = '<｜DSML｜parameter name="s" string="true">'
    for hole, text in ((FLAGGED, head), (LINES, "<parameter=s>\n")):
        ran = run(read, hole, list(text + "abcd"), SCHEMA, FUNCTION)
        assert ran.json == '{"s": "abcd'
        assert len(ran.events) >= 5
