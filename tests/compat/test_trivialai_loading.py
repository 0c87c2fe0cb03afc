"""Values out of model texts: what is read, what is refused, and where the package reads otherwise."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import strategies as st

from peers import peer
from properties import property_test, rotated
from toolspeak.compat.trivialai import TransformError, loadch, loadchmulti
from toolspeak.compat.trivialai.literals import loads

READ: list[tuple[Any, Any]] = [
    ([1], [1]),
    ({"a": 1}, {"a": 1}),
    ((1, 2), (1, 2)),
    (5, 5),
    (1.5, 1.5),
    (True, True),
    ('{"a": [1, 2.5, true, null]}', {"a": [1, 2.5, True, None]}),
    ("  7\n", 7),
    ('```json\n{"a": 1}\n```', {"a": 1}),
    ('```\n{"a": 1}\n```\n', {"a": 1}),
    ("{'a': 'b'}", {"a": "b"}),
    ('{"a": """x\n"y" """}', {"a": 'x\n"y" '}),
    ("{'a': '''x'''}", {"a": "x"}),
    ('"a\nb"', "a\nb"),
    ("[1, 2,]", [1, 2]),
    ('{"a": 1,}', {"a": 1}),
    ("[True, False, None]", [True, False, None]),
    ("{1, 2}", {1, 2}),
    ('{"a"}', {"a"}),
    ("(1, 2)", (1, 2)),
    ("(1,)", (1,)),
    ("(1)", 1),
    ("()", ()),
    ("b'a\\x00\\101'", b"a\x00A"),
    ("B'''a\nb'''", b"a\nb"),
    ("0123", 123),
    ("-1e3", -1000.0),
    ('{"a": 1, "a": 2}', {"a": 2}),
    ("'\\x41\\u0042\\U00000043\\101\\N{BULLET}\\q'", "ABCA•\\q"),
    ("'a\\\nb'", "ab"),
]

REFUSED: list[Any] = [
    "",
    "Sure: {}",
    "{} thanks",
    "{} {}",
    "{foo: 1}",
    "[1] // one",
    "NaN",
    "-Infinity",
    "+1",
    ".5",
    "1.",
    "[1 2]",
    "[,]",
    "(,)",
    "{1: }",
    "{[1]: 2}",
    "{[1]}",
    "'",
    "'\\x4'",
    "'\\N{NO SUCH THING}'",
    "b'é'",
    "nil",
    "text\n```json\n{}\n```",
    "[" * 5000,
    "{" * 5000,
    '{"a":' * 5000,
    "9" * 5000,
    b"{}",
    object(),
]


@pytest.mark.parametrize(("text", "value"), READ)
def test_what_is_read(text: Any, value: Any) -> None:
    found = loadch(text)
    assert found == value
    assert type(found) is type(value)
    assert peer("trivialai", "util").loadch(text) == value


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text)[:20])
def test_what_is_refused(text: Any) -> None:
    with pytest.raises(TransformError, match=r"^parse-failed$") as caught:
        loadch(text)
    assert caught.value.raw == text


def test_nothing_is_no_message() -> None:
    for load in (loadch, loadchmulti):
        with pytest.raises(TransformError, match=r"^no-message-given$") as caught:
            load(None)
        assert caught.value.message == "no-message-given"


@pytest.mark.parametrize(
    ("text", "better", "package"),
    [
        (r"{'a': 'x\/y'}", {"a": "x/y"}, {"a": r"x\/y"}),
        (r'"\ud83d\ude00"', "😀", "\ud83d\ude00"),
        (r"'\ud83d\ude00'", "😀", "\ud83d\ude00"),
        ('```json {"a": 1}```', {"a": 1}, None),
        ("```json {'a': 1}```", {"a": 1}, None),
        ("'''a\\'''b'''", "a'''b", None),
    ],
)
def test_what_is_read_better(text: str, better: Any, package: Any) -> None:
    assert loadch(text) == better
    util = peer("trivialai", "util")
    if package is None:
        with pytest.raises(util.TransformError):
            util.loadch(text)
    else:
        assert util.loadch(text) == package


MULTI: list[tuple[Any, list[Any]]] = [
    ([1, 2], [1, 2]),
    ((1, 2), [1, 2]),
    ({"a": 1}, [{"a": 1}]),
    ('```json\n{"a": 1}\n```\nand\n```\n[2, 3]\n```', [{"a": 1}, 2, 3]),
    ('```\nnot this\n```\n{"a": 1} and {"b": 2}', [{"a": 1}, {"b": 2}]),
    ('First {"a": {"b": 1}}, then {oops}, then {\'c\': 2}.', [{"a": {"b": 1}}, {"c": 2}]),
    ('[{"a": 1}, {"b": 2}]', [{"a": 1}, {"b": 2}]),
]


@pytest.mark.parametrize(("text", "values"), MULTI)
def test_every_value_is_found(text: Any, values: list[Any]) -> None:
    assert loadchmulti(text) == values
    assert peer("trivialai", "util").loadchmulti(text) == values


def test_a_brace_in_a_string_is_no_brace() -> None:
    text = '{"a":"}"} {"b":1}'
    assert loadchmulti(text) == [{"a": "}"}, {"b": 1}]
    assert peer("trivialai", "util").loadchmulti(text) == [{"b": 1}]


@pytest.mark.parametrize("text", ["", "none here", "{", "}", 5, b""])
def test_no_value_at_all(text: Any) -> None:
    with pytest.raises(TransformError, match=r"^parse-failed$"):
        loadchmulti(text)


SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    SCALARS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@property_test(100, VALUES)
def test_what_json_and_python_write_is_read(value: Any) -> None:
    assert loadch(json.dumps(value)) == value
    assert loadch(json.dumps(value, ensure_ascii=False, indent=2)) == value
    assert loads(f"  {value!r}  ") == value
    if isinstance(value, dict):
        assert loadchmulti(f"Here: {value!r}, as you wished.") == [value]


SCRAPS = st.sampled_from(["{", "}", "[", "]", "(", ")", ",", ":", '"', "'", "1", "0", "-", "e", ".", "a", "b", "\\", " ", "\n", "null", "True", '"""', "x", "/", "```", "```json\n"])  # fmt: skip


@property_test(100, st.lists(SCRAPS, max_size=14).map("".join))
def test_any_text_gives_a_value_or_one_error(text: str) -> None:
    for load in (loadch, loadchmulti):
        with contextlib.suppress(TransformError):
            load(text)


@property_test(100, st.lists(SCRAPS, max_size=10).map("".join))
def test_what_the_package_reads_is_read_alike(text: str) -> None:
    util = peer("trivialai", "util")
    try:
        expected = util.loadch(text)
    except util.TransformError:
        return
    if "\\/" not in text:
        assert repr(loadch(text)) == repr(expected)


PIECES = ["{", '{"a":', "{'", '{"', "[", "{1,", "{{1}", '"\\', "b'", "``` ", "```json\n{"]


@pytest.mark.parametrize("piece", rotated(PIECES, 3))
def test_hostile_text_is_read_in_time(piece: str) -> None:
    # Nothing is measured: were the reading quadratic, this would not end before the tests' time limit.
    for load in (loadch, loadchmulti):
        with contextlib.suppress(TransformError):
            load(piece * 10_000)
