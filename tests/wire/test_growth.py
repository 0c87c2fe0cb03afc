"""Time grows with the length of the text, whatever the text: twice as much takes at most 2.5 times as long."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from statistics import median
from time import process_time

import pytest

from toolspeak.dialects import get, names
from toolspeak.types import Tool
from toolspeak.wire.decode import Decoder

TOOLS = (Tool("f"), Tool("weather"))
MOST = 2.5
ENOUGH = 0.003
"""Seconds of CPU that the smaller text takes at least: what is faster is measured on more of it, up to a megabyte."""


def times(unit: str) -> Callable[[int], str]:
    return lambda n: (unit * (n // len(unit) + 1))[:n]


def around(before: str, unit: str, after: str = "") -> Callable[[int], str]:
    return lambda n: before + times(unit)(n) + after


def seconds(name: str, text: str, size: int) -> float:
    chunks = [text[i : i + size] for i in range(0, len(text), size)]
    decoder = Decoder(get(name), TOOLS)
    begin = process_time()
    for chunk in chunks:
        decoder.feed(chunk)
    decoder.close()
    return process_time() - begin


def growth(name: str, make: Callable[[int], str], size: int) -> float:
    """time(2n) / time(n), the median of five, n being as large as the budget allows."""
    n = 1_000
    while n < 500_000 and seconds(name, make(n), size or n * 2) < ENOUGH:
        n *= 2
    small, large = make(n), make(2 * n)
    gc.disable()
    try:
        return median(
            seconds(name, large, size or len(large)) / seconds(name, small, size or len(small)) for _ in range(5)
        )
    finally:
        gc.enable()


HURTING = {
    "plain": times("the quick brown fox jumps over the lazy dog. "),
    "white space": times(" "),
    "new lines": times("\n"),
    "braces": times("{"),
    "brackets": times("["),
    "quotes": times('{"'),
    "fences": times("```json\n"),
    "backticks": times("`"),
    "thoughts": times("<think></think>\n<thinking></thinking>\n"),
    "half thoughts": times("\n<thin"),
    "stray openers": times("<tool_call>\n<f> functools["),
    "half openers": times("<tool_cal functool"),
    "opener and space": around("<tool_call>", " "),
    "a name that never ends": around('<tool_call>{"name": "', "a"),
    "nested arguments first": times('{"arguments": {"args": {"tool_input": '),
    "tagged, nested, unknown keys": times('<tool_call>{"x":["'),
    "data": lambda n: json.dumps([{"a": i, "b": [True, None]} for i in range(n // 30)]),
    "broken data": times('{"a": 1 x '),
    "many objects": times('{"a": 1} '),
    "many calls": times('<tool_call>{"name": "f", "arguments": {}}</tool_call>\n'),
    "many bare calls": times('{"tool": "f", "tool_input": {}}\n{"functionName": "f", "args": {}}\n'),
    "a list of calls": around(' functools[{"name": "f", "arguments": {}}', ', {"name": "f", "arguments": {}}'),
    "a text before the name": around('{"message": "', "x", '", "tool": "zz"}'),
    "arguments before the name": around('{"tool_input": {"a": "', "x", '"}, "tool": "zz"}'),
    "a long string": around('<tool_call>{"name": "f", "arguments": {"s": "', "some words "),
    "escapes": around('<tool_call>{"name": "f", "arguments": {"s": "', '\\n\\"\\q'),
    "raw lines": around('<tool_call>{"name": "f", "arguments": {"s": "', "a\n"),
    "apostrophes": around("<tool_call>{'name': 'f', 'arguments': {'s': '", "' "),
    "apostrophes and space": around("<tool_call>{'name': 'f', 'arguments': {'s': '", "'" + " " * 250),
    "deep": lambda n: '<tool_call>{"name":"f","arguments":{"a":' + "[" * (n // 2) + "]" * (n // 2) + "}}</tool_call>",
    "deep and open": around('<tool_call>{"name":"f","arguments":', '{"a":['),
    "a long number": around('<tool_call>{"name":"f","arguments":{"a":', "1"),
    "space in JSON": around('<tool_call>{"name":"f","arguments":{"a":', " "),
    "space after a comma": around('<tool_call>{"name":"f","arguments":{"a":[1,', " "),
    "encoded": around('<f>[{"name":"f","arguments":"{\\"a\\": \\"', "b\\\\n c"),
    "encoded and deep": around('<f>[{"name":"f","arguments":"{\\"a\\": ', '[{\\"b\\":'),
    "encoded, broken": around('<f>[{"name":"f","arguments":"x', "{"),
    "closers": around('<tool_call>{"name":"f","arguments":{}}', "</tool_call>"),
    "brackets after a call": around('<tool_call>{"name":"f","arguments":{}}', "}"),
    "a text answer": around('{"tool": null, "message": "', "word \\u00e9 "),
    "loose arguments": around('{"type": "f", "a": 1', ', "b": [1]'),
    "unknown keys": around('<tool_call>{"name": "f"', ', "k": 1'),
}


@pytest.mark.parametrize("kind", HURTING)
@pytest.mark.parametrize("size", [0, 4], ids=["whole", "in pieces"])
def test_time_grows_with_the_text(kind: str, size: int) -> None:
    make = HURTING[kind]
    slow = {}
    for name in _speakers(kind):
        ratios = [growth(name, make, size)]
        while ratios[-1] > MOST and len(ratios) < 4:  # another process may have been in the way
            ratios.append(growth(name, make, size))
        if min(ratios) > MOST:
            slow[name] = ratios
    assert not slow


def _speakers(kind: str) -> list[str]:
    """The dialects for which the text is made; for a text of no dialect one of each sort."""
    text = HURTING[kind](100)
    by_opener = {"<tool_call>": "hermes", "<f>": "empower", " functools": "functools", '{"tool': "tool-json"}
    for opener, name in {**by_opener, '{"message"': "tool-json", '{"type"': "tool-call"}.items():
        if text.startswith(opener):
            return [name]
    return ["hermes", "tool-json", "empower"]


def test_every_dialect_takes_a_megabyte() -> None:
    """Once through, plain, so that no dialect is left out."""
    for name in names():
        assert growth(name, HURTING["plain"], 4) < MOST or growth(name, HURTING["plain"], 4) < MOST
