"""What is read fast is what is read with care: the short ways taken away, everything comes out the same."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import example, strategies as st
from wire_cases import merged, stream

from properties import property_test
from toolspeak.dialects import get
from toolspeak.events import ArgumentsDelta
from toolspeak.types import Tool
from toolspeak.wire.decode import Decoder
from toolspeak.wire.holes import json_args
from toolspeak.wire.reading import brackets, json_reader, literals

TOOLS = (Tool("f", "", {"type": "object", "properties": {"a": {}, "s": {"type": "string"}}}),)
NEVER = re.compile("(?!)").match
NOTHING = re.compile("").match
PIECES = [
    *"{}[],:\"' \n\\ax1",
    '", "',
    '"k": ',
    "true",
    "tru",
    "None",
    "-1",
    "01",
    "1.5e3",
    '\\"',
    "\\n",
    "\\\\",
    "\\u00e9",
    "\\ud83d",
    "], ",
    "}, {",
    " , ]",
]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
    | st.sampled_from(['say "hi", you', "a\\b\n", '", "b": ', "x" * 40]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3) | st.just("k" * 40), inner, max_size=3)
    ),
    max_leaves=10,
)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """An object as JSON or as a Python literal, in part written anew."""
    value = {"a": draw(VALUES), "s": draw(VALUES)}
    text = draw(st.sampled_from([json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1), repr(value)]))
    for _ in range(draw(st.integers(0, 3))):
        i = draw(st.integers(0, len(text)))
        text = text[:i] + draw(st.sampled_from(PIECES) | st.text(max_size=3)) + text[i + draw(st.integers(0, 3)) :]
    return text


def wires(text: str) -> list[tuple[str, str]]:
    """The text where each reader of arguments meets it."""
    return [
        ("hermes", f'<tool_call>\n{{"name": "f", "arguments": {text}}}\n</tool_call>'),
        ("empower", f'<f>{{"name": "f", "arguments": {json.dumps(text)}}}'),
        ("empower", f'<f>{{"name": "f", "arguments": "{text}"}}'),
        ("lfm2", f"<|tool_call_start|>[f(a={text})]<|tool_call_end|> and"),
        ("generic-json", text),
    ]


def careful(name: str, wire: str) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_reader, "SURE", dict.fromkeys(json_reader.SURE, NEVER))
        patch.setattr(json_reader, "whole_value", lambda *_: None)
        patch.setattr(json_args, "whole_value", lambda *_, **__: None)
        patch.setattr(json_args, "CLEAN_TWICE", NOTHING)
        patch.setattr(json_args, "HALF_TWICE", ())
        patch.setattr(literals, "SURE", NEVER)
        patch.setattr(literals, "SAME", NEVER)
        patch.setattr(brackets, "ITEM_FOLLOWS", NEVER)
        return merged(stream(get(name), [wire], TOOLS))


@property_test(250, damaged(), st.integers(1, 9), st.integers(0, 9))
@example('{"a": [1, "ab", {"k": true}], "s": "x \\"y\\" \\\\"}', 4, 1)
@example('{"a": [1, ], "s": "a "b", c",}', 3, 0)
@example("""{'a': '", "b": ', 's': None}""", 1, 0)
def test_the_short_way_leads_to_the_same(text: str, size: int, first: int) -> None:
    for name, wire in wires(text):
        wanted = careful(name, wire)
        cut = [wire[:first], *(wire[i : i + size] for i in range(first, len(wire), size))]
        for chunks in ([wire], list(wire), cut):
            assert merged(stream(get(name), chunks, TOOLS)) == wanted, (name, chunks)


@pytest.mark.parametrize(
    ("name", "begin"), [("pythonic", "[f(s='a"), ("hermes", '<tool_call>\n{"name": "f", "arguments": {"s": "a')]
)
def test_pieces_with_simple_escapes_pass_without_a_look(name: str, begin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    read = Decoder._read
    monkeypatch.setattr(Decoder, "_read", lambda self, piece: (looks.append(piece), read(self, piece))[1])
    decoder = Decoder(get(name), TOOLS, "")
    decoder.feed(begin)
    looks.clear()
    for piece in ("x\\ny", "\\t", 'b\\"c', "a word"):
        assert decoder.feed(piece) == [ArgumentsDelta(piece)]
    assert not looks
    for piece in ("\\\\", "a\\", "n"):
        decoder.feed(piece)
    assert looks == ["\\\\", "a\\", "n"]
