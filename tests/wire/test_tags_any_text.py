"""What holds for arguments by tags and as trees whatever the text is: the same at every cut, and linear."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from codec_run import run, same_at_every_cut
from hypothesis import strategies as st
from test_tagged import HOLES, SCHEMA as FLAT
from test_tree import FOLLOW, SCHEMA as DEEP, TREE, M

from cost import growth
from properties import property_test, rotated
from toolspeak.wire.holes import tagged, tree

TAGS = [(tagged, hole, FLAT, follow) for hole, follow in HOLES.values()]
ALL: list[tuple[Any, Any, dict[str, Any], tuple[str, ...]]] = [*TAGS, (tree, TREE, DEEP, FOLLOW)]
ARGUMENTS = [
    {"s": "a\nb", "n": 1, "u": None, "l": ["x", "y"], "so": {"max": 1}},
    {"s": "", "o": {"z": 1}, "any": [1, {"a": []}], "u": "null and"},
]
PIECES = [
    "\n",
    " ",
    " " * 300,
    '"',
    "\\",
    "<",
    ">",
    "null",
    "[1, ",
    "{'a': None}",
    '{"a": 1}',
    "é",
    "1" * 600,
    "]]>",
    "<![CDATA[",
]


@st.composite
def damaged(draw: st.DrawFn) -> tuple[int, str]:
    """Which hole, and arguments in it: pieces cut out, doubled, brought in from elsewhere."""
    which = draw(st.integers(0, len(ALL) - 1))
    codec, hole, _, follow = ALL[which]
    wires = [codec.write(hole, arguments) + "".join(follow) for arguments in ARGUMENTS]
    marks = [*follow, f"{M}</", f"{M}<item>", f"{M}</so>", *(wire[: len(wire) // 3] for wire in wires)]
    if codec is tagged:
        marks += [hole.open, hole.close, "\n" + hole.open, hole.mid, hole.open + "n" + hole.mid]
    text = draw(st.sampled_from(wires))
    for _ in range(draw(st.integers(0, 5))):
        i, j = sorted(draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
        middle = draw(
            st.one_of(st.just(""), st.just(text[i:j] * 2), st.sampled_from([*PIECES, *marks]), st.text(max_size=5))
        )
        text = (text[:i] + middle + text[j:])[:1500]
    return which, text


@property_test(400, damaged())
def test_damaged_arguments_read_the_same_at_every_cut(case: tuple[int, str]) -> None:
    which, text = case
    codec, hole, schema, follow = ALL[which]
    same_at_every_cut(codec.read, hole, text, schema, follow)
    same_at_every_cut(codec.read, hole, text, {}, ())


def times(unit: str) -> Callable[[int], str]:
    return lambda n: (unit * (n // len(unit) + 1))[:n]


def value(key: str, inside: Callable[[int], str]) -> Callable[[int], str]:
    return lambda n: f"<parameter={key}>\n{inside(n)}\n</parameter>\n</function>"


def element(key: str, inside: Callable[[int], str]) -> Callable[[int], str]:
    return lambda n: f"{M}<{key}>{inside(n)}{M}</{key}>{FOLLOW[0]}"


HURTING: dict[str, tuple[str, Callable[[int], str]]] = {
    "plain": ("lines", value("s", times("some words "))),
    "code": ("lines", value("s", times('if a < b:\n\tprint("x\\n")\n'))),
    "closers": ("lines", value("s", times("</parameter> "))),
    "closers and space": ("lines", value("s", times("</parameter>" + " " * 250))),
    "line openers": ("lines", value("s", times("\n<parameter=n"))),
    "line openers, named": ("lines", value("s", times("\n<parameter=zz>"))),
    "closers of the call": ("lines", value("s", times("</function>"))),
    "closers of the call and space": ("lines", value("s", times("\n</function>" + " " * 200))),
    "all closers": ("lines", value("s", times("</function></tool_call>x"))),
    "a long number": ("lines", value("n", times("1"))),
    "white space": ("lines", value("u", times(" "))),
    "a word that might be null": ("lines", value("u", times("n"))),
    "dense": ("lines", value("l", times("1,"))),
    "almost JSON": ("lines", value("o", times("{'a': [None, "))),
    "brackets": ("lines", value("any", times("["))),
    "many parameters": ("lines", times("<parameter=a>\n1\n</parameter>\n")),
    "many openers": ("lines", times("<parameter=")),
    "a key that never ends": ("lines", lambda n: "<parameter=" + "k" * n),
    "quotes": ("quoted", lambda n: '<param name="s"><![CDATA[' + times("]]> ")(n)),
    "types": ("xtml", times('<|open|>argument key="n" type="number"<|sep|>1<|close|>argument<|sep|>')),
    "element, plain": ("", element("s", times("some words "))),
    "element, closers": ("", element("s", times(f"{M}</s> "))),
    "element, other closers": ("", element("s", times(f"{M}</zz>"))),
    "element, closers of the call": ("", element("s", times(FOLLOW[0]))),
    "half marks": ("", element("s", times(M))),
    "elements": ("", element("ll", times(f"{M}<item>{M}<item>1{M}</item>{M}</item>"))),
    "open elements": ("", times(f"{M}<a>")),
    "distinct elements": ("", lambda n: "".join(f"{M}<a{i}>x{M}</a{i}>" for i in range(n // 30))),
    "the same element": ("", times(f"{M}<a>x{M}</a>")),
    "stray closers": ("", lambda n: f"{M}<a>{M}<b>{M}</b>" + times(f"{M}</c>")(n)),
    "deep": ("", lambda n: f"{M}<a>" * (n // 30) + "1" + f"{M}</a>" * (n // 30)),
}
MOST = 3.0
"""Twice as much text costs at most this many times as much; quadratic is four. Lists of a megabyte leave the cache."""


@pytest.mark.parametrize("kind", rotated([*HURTING], 3))
@pytest.mark.parametrize("size", [0, 4], ids=["whole", "in pieces"])
def test_time_grows_with_the_text(kind: str, size: int) -> None:
    name, make = HURTING[kind]
    codec, hole, schema, follow = (tagged, HOLES[name][0], FLAT, HOLES[name][1]) if name else ALL[-1]

    def reading(length: int) -> Callable[[], object]:
        text = make(length)
        chunks = [text[i : i + size] for i in range(0, len(text), size)] if size else [text]
        return lambda: run(codec.read, hole, chunks, schema, follow)

    assert growth(reading, 10_000, 1_000_000, MOST) <= MOST
