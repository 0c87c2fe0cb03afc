"""Arguments as code writes them: Python's keywords, objects with bare keys. Both directions, at every cut."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from codec_run import run, same_at_every_cut
from hypothesis import strategies as st
from wire_cases import CODE

import toolspeak as ts
from cost import LINEAR, growth
from properties import property_test
from toolspeak.wire.dialect import Keywords
from toolspeak.wire.holes import keywords

PYTHON = Keywords()
JSONIC = Keywords(quotes=('"', "'"), constants=("true", "false", "null"))
BARE = Keywords("{", "}", ":", ('<|"|>',), escapes=False, bare=True, constants=("true", "false", "None"))
ESCAPE = Keywords("{", "}", ":", ("<escape>",), escapes=False, bare=True, constants=("true", "false", "None"))
HOLES = {PYTHON: ("]", ","), JSONIC: ("</calls>",), BARE: ("<tool_call|>",), ESCAPE: ("<end>",)}
SCHEMA = {"properties": {"city": {"type": "string"}, "n": {"type": "integer"}, "o": {"type": "object"}}}


def read(wire: str, hole: Keywords = PYTHON, schema: dict[str, Any] | None = None) -> tuple[str, list[str], str, str]:
    """What every cut of the wire gives: the JSON text, the notes, why it failed, what was left."""
    ran = same_at_every_cut(keywords.read, hole, wire, schema, HOLES[hole])
    return ran.json, ran.rules, ran.error, ran.rest


@pytest.mark.parametrize(
    ("wire", "arguments"),
    [
        ("()", {}),
        ("( )", {}),
        ("(city='Paris', n=3)", {"city": "Paris", "n": 3}),
        ("(\n    city = 'Paris',\n    n = 3,\n)", {"city": "Paris", "n": 3}),
        ("""(a="it's", b='say "x"')""", {"a": "it's", "b": 'say "x"'}),
        ("(a=[1, 2.5, None, True,], b=(), c=(1,), d={})", {"a": [1, 2.5, None, True], "b": [], "c": [1], "d": {}}),
        ("(o={'a': {'b': [False]}, 'c d': 1, 3: 4, None: 5, 1.5: 6,})", {"o": {"a": {"b": [False]}, "c d": 1, "3": 4, "null": 5, "1.5": 6}}),
        ('(o={"enabled": true, "note": null})', {"o": {"enabled": True, "note": None}}),
        ("(a=1_000, b=0x1F, c=.5, d=-1e5, e=+5, f=5., g=0o17, h=0b11, i=-0, j=1_0.5_0)", {"a": 1000, "b": 31, "c": 0.5, "d": -1e5, "e": 5, "f": 5.0, "g": 15, "h": 3, "i": 0, "j": 10.5}),
        ("(a='\\x41\\u00e9\\U0001F600\\ud83d\\ude00\\101\\\nx\\'\\t')", {"a": "Aé\U0001f600\U0001f600Ax'\t"}),
            ("(a='\\d\\N{DASH}\\'')", {"a": "\\d\\N{DASH}'"}),
        ('(a="""x "y"\nz""", b=\'\'\'\'\'\', c="", d=r"\\d+", e=u\'x\')', {"a": 'x "y"\nz', "b": "", "c": "", "d": "\\d+", "e": "x"}),
        ("(a='x' \"y\"\n'z')", {"a": "xyz"}),
        ("(my-key='v', a.b=2)", {"my-key": "v", "a.b": 2}),
        ("(**{'a b': 1, 'c': [True]}, d=2)", {"a b": 1, "c": [True], "d": 2}),
        ("(d=2, **{})", {"d": 2}),
        ("(a='one\ntwo')", {"a": "one\ntwo"}),
    ],
)  # fmt: skip
def test_python(wire: str, arguments: dict[str, Any]) -> None:
    text, notes, why, rest = read(wire + "]")
    assert (json.loads(text), notes, why, rest) == (arguments, [], "", "]")


@pytest.mark.parametrize(
    ("wire", "arguments", "notes"),
    [
        ("('Rome', 3)", {"city": "Rome", "n": 3}, ["positional", "positional"]),
        ("('Rome', n=3)", {"city": "Rome", "n": 3}, ["positional"]),
        ("({'city': 'Rome', 'n': 3})", {"city": "Rome", "n": 3}, ["positional"]),
        ("(1, 2, {}, 4)", {"city": "1", "n": 2, "o": {}, "arg3": 4}, ["positional"] * 2 + ["bare-word"] + ["positional"] * 2),
        ("(city=New York, n=3)", {"city": "New York", "n": 3}, ["bare-word"]),
        ("(city=00123, n=007, o=nan)", {"city": "00123", "n": "007", "o": "nan"}, ["bare-word", "expression"]),
        ("(city=1.50)", {"city": "1.50"}, ["bare-word"]),
        ("(city=None, n=True)", {"city": None, "n": True}, []),
        ("(city: 'Rome', \"n\"=3)", {"city": "Rome", "n": 3}, []),
        ("(o={city='Rome', 'n': 3})", {"o": {"city": "Rome", "n": 3}}, []),
        ("(city=date(2024, 1, 'x'), o=[f()])", {"city": "date(2024, 1, 'x')", "o": ["f()"]}, ["bare-word", "expression"] * 2),
        ("(o={1, 'a', (2,)})", {"o": [1, "a", [2]]}, ["set"]),
        ("(o={'a',})", {"o": ["a"]}, ["set"]),
        ("(city=f'a', n=b'{x}')", {"city": "a", "n": "{x}"}, ["string-prefix"] * 2),
        ("(city=f'a{b}')", {"city": "a{b}"}, ["string-prefix", "expression"]),
        ("(city=rf'a\\d{c}')", {"city": "a\\d{c}"}, ["string-prefix", "expression"]),
        ("(city=f'a' '{b}')", {"city": "a{b}"}, ["string-prefix"]),
        ("(city='\\ud800x')", {"city": "\ufffdx"}, ["lone-surrogate"]),
        ("(city='print('hello')')", {"city": "print('hello')"}, ["quote-in-string"]),
        ('(city="print("hi")", n=1)', {"city": 'print("hi")', "n": 1}, ["quote-in-string"]),
        ('(city="he said "yes", then left", n=1)', {"city": 'he said "yes", then left', "n": 1}, ["quote-in-string"]),
        ('(o=["a "b" c", \'it\'s\'])', {"o": ['a "b" c', "it's"]}, ["quote-in-string"]),
        ('(o={"a": "x "y": z", "b": 2})', {"o": {"a": 'x "y": z', "b": 2}}, ["quote-in-string"]),
    ],
)  # fmt: skip
def test_python_repaired(wire: str, arguments: dict[str, Any], notes: list[str]) -> None:
    text, rules, why, rest = read(wire + ", G()]", schema=SCHEMA)
    assert (json.loads(text), why, rest) == (arguments, "", ", G()]")
    assert sorted(set(rules)) == sorted(set(notes))


@pytest.mark.parametrize(
    ("wire", "arguments", "notes"),
    [
        ('{city:<|"|>Par <b> "q" \\ is<|"|>,n:3}', {"city": 'Par <b> "q" \\ is', "n": 3}, []),
        ('{o:{x:[1,None,true,null],<|"|>a b<|"|>:<|"|><|"|>,my-key:1}}', {"o": {"x": [1, None, True, None], "a b": "", "my-key": 1}}, []),
        ("{}", {}, []),
        ("{ city : 1 , None: 2, }", {"city": "1", "None": 2}, ["bare-word"]),
        ('{city:"Paris",n:\'a\'}', {"city": "Paris", "n": "a"}, ["quotes", "quotes"]),
        ("{city:Paris at night,n:2}", {"city": "Paris at night", "n": 2}, ["bare-word"]),
        ('{city:<|"|>x<|"|>y<|"|>}', {"city": 'x<|"|>y'}, ["quote-in-string"]),
        ('{city:<|"|>a<|"|>,<|"|>n<|"|>:1}', {"city": "a", "n": 1}, []),
    ],
)  # fmt: skip
def test_bare_keys(wire: str, arguments: dict[str, Any], notes: list[str]) -> None:
    text, rules, why, rest = read(wire + "<tool_call|>", BARE, SCHEMA)
    assert (json.loads(text), rules, why, rest) == (arguments, notes, "", "<tool_call|>")


@pytest.mark.parametrize(
    ("wire", "told"),
    [
        ("(city='Par", '{"city": "Par'),
        ("(city=", '{"city": '),
        ("(city='a', n=[1", '{"city": "a", "n": [1'),
        ("(city=, n=1)", '{"city": '),
        ("(city='a'; n=1)]", '{"city": "a\'; n=1)]'),
        ("(n=[1)]", '{"n": [1'),
        ("(*a)", "{"),
        ("(n=" + "1" * 600 + ")", '{"n": '),
    ],
)
def test_a_text_that_leaves_the_format_is_told_up_to_there(wire: str, told: str) -> None:
    text, _, why, _ = read(wire)
    assert why
    assert text == told


def test_a_call_on_a_line_of_its_own_may_follow() -> None:
    text, notes, why, rest = read('(a="x")\nG(b="y")</calls>', JSONIC)
    assert (text, notes, why, rest) == ('{"a": "x"}', [], "", '\nG(b="y")</calls>')


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.sampled_from([CODE, "'", '"', "\\", "\\'", "a'b\"c", "', n=1", "<", '<|"', "True", "1"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYS = st.text(max_size=6) | st.sampled_from(["my-key", "a.b", "class", "1a", "a b", "a=b", "", "None", "é", "'", "*"])


@property_test(150, st.sampled_from([PYTHON, JSONIC, BARE, ESCAPE]), st.dictionaries(KEYS, VALUES, max_size=4))
def test_what_is_written_is_read_again(hole: Keywords, arguments: dict[str, Any]) -> None:
    wire = keywords.write(hole, arguments)
    if any(quote in json.dumps(arguments) for quote in hole.quotes if not hole.escapes):
        return
    text, notes, why, rest = read(wire, hole)
    assert (json.loads(text), notes, why, rest) == (arguments, [], "", "")


def transcoded(text: str) -> tuple[str, list[str]]:
    notes: list[str] = []
    return keywords.transcode(text, lambda rule, _, __=None: notes.append(rule)), notes


@property_test(150, VALUES)
def test_a_repr_is_transcoded(value: Any) -> None:
    text, notes = transcoded(f" {value!r}\n")
    assert (json.loads(text), notes) == (value, [])


@pytest.mark.parametrize(
    "text", ["", "hello", "nan", "[1, 2", "[1] 2", "{1, 2}", "'it's'", "f'x'", "a=1", "[a]", "1 2", "007", "{'a'}", ")"]
)
def test_what_is_no_literal_is_not_transcoded(text: str) -> None:
    json_text, notes = transcoded(text)
    assert notes or not json_text


def test_tuples_and_python_constants_are_transcoded() -> None:
    assert transcoded("(1, (None, True), {'a': \"b'\"})") == ('[1, [null, true], {"a": "b\'"}]', [])


@pytest.mark.parametrize(
    ("hole", "wire"),
    [
        (PYTHON, "(s='Paris', n=3, x=None, l=['a', {'b': True}], o={'k': 1.5}, my-key='\\n', **{'a b': 1})"),
        (JSONIC, '(s="Paris", n=3, x=null, l=["a", {"b": true}], o={"k": 1.5}, my-key="\\n", **{"a b": 1})'),
        (Keywords(json=True), "(s='Paris', n=3, x=None, l=['a', {'b': True}], o={\"k\": 1.5}, my-key='\\n', **{'a b': 1})"),
        (BARE, '{<|"|>a b<|"|>:1,l:[<|"|>a<|"|>,{b:true}],my-key:<|"|>\n<|"|>,n:3,o:{k:1.5},s:<|"|>Paris<|"|>,x:None}'),
    ],
)  # fmt: skip
def test_writing(hole: Keywords, wire: str) -> None:
    arguments = {"s": "Paris", "n": 3, "x": None, "l": ["a", {"b": True}], "o": {"k": 1.5}, "my-key": "\n", "a b": 1}
    assert keywords.write(hole, arguments) == wire


@property_test(
    300,
    st.sampled_from([PYTHON, BARE]),
    st.lists(
        st.sampled_from([*"abn1=:,()[]{}'\"\\ \n*<", "n=", '<|"|>', '"""', "True", "r'", "\\x4", "\\ud83d", "f("])
    ),
)
def test_any_text_reads_the_same_at_every_cut(hole: Keywords, pieces: list[str]) -> None:
    text, _, why, _ = read(hole.open + "".join(pieces), hole)
    if not why:
        json.loads(text)


@pytest.mark.parametrize(
    "unit",
    [
        "a=[",
        "a={'b': ",
        "a='x\", ",
        "'",
        "\"'",
        "a=(1, ",
        "a=1, ",
        "{",
        "a" * 50 + " ",
        "\\",
        "' ' ",
        "'" + " " * 200,
        "',",
        '","b',
    ],
)
def test_linear(unit: str) -> None:
    def reading(n: int) -> Callable[[], object]:
        wire = "(a='" + unit * n if unit[0] in "'\"\\" else "(" + unit * n
        chunks = [wire[i : i + 64] for i in range(0, len(wire), 64)]
        return lambda: run(keywords.read, PYTHON, chunks)

    assert growth(reading) <= LINEAR


def test_nesting_is_no_recursion() -> None:
    deep = 10_000
    wire = "(a=" + "[" * deep + "{'k': " * deep + "1" + "}" * deep + "]" * deep + ")"
    ran = run(keywords.read, PYTHON, [wire])
    assert (len(ran.json), ran.notes, ran.error, ran.rest) == (
        len('{"a": }') + deep * 2 + len('{"k": }') * deep + 1,
        [],
        "",
        "",
    )


@pytest.mark.parametrize("name", ts.dialects())
def test_code_in_a_call_is_not_run(name: str, tmp_path: Path) -> None:
    """Whatever stands where a value does is data or a fault, in every dialect."""
    planted = tmp_path / "planted"
    tool = ts.Tool("f", "", {"type": "object", "properties": {"x": {}}})
    call = {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": '{"x": "VALUE"}'}}
    said = [{"role": "user", "content": "Go"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    wire = ts.render(said, [tool], name).prompt.rpartition("Go")[2]
    code = f"__import__('pathlib').Path({str(planted)!r}).touch()"
    for value in ('"VALUE"', "'VALUE'", "VALUE"):
        if value in wire:
            for text in (code, f"[{code}]", f"{{1: {code}}}", f'f"{{{code}}}"', f"`{code}`"):
                ts.parse(wire.replace(value, text), name, [tool])
    assert "VALUE" in wire
    assert not planted.exists()
