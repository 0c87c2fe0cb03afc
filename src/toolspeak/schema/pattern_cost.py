"""Counts what it costs to match the patterns and formats of a schema with texts, before they are matched.

A pattern without lookaround and back-references is matched in linear time. One with them needs another engine: it may look
at the rest of the text from each character, so that it takes the square of the length, for each lookaround in it. The usual
ones, such as `^(?=.*[0-9])[a-z0-9]+$`, are tried at the beginning of the text alone, and take linear time too. The
factors were measured with jsonschema-rs 0.60; a unit of work takes about 0.1 microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import prod
from typing import Any, cast

from .walk import nodes

LOOKS = re.compile(r"\(\?<?[=!]|\\[1-9k]")
"""Matches a lookaround or a back-reference in a pattern."""
REPEATED = re.compile(r"\)\s*\{\s*(\d+)\s*(?:,\s*(\d*)\s*)?\}")
"""Matches the number of repetitions of a group, in which a lookaround may be."""
LOOKAHEADS = ("(?=", "(?!")
TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?[=!]|.", re.DOTALL)
"""Matches a part of a pattern: an escape, a class, the beginning of a lookahead, or a character."""
LINEAR, SQUARE = 50, 50
"""Characters that one unit of work matches: of a text, and of the square of its length."""
NEGLIGIBLE = 5_000
"""The square of a text that is matched in no time: a lookaround in it is not counted."""
SLOW_FORMATS = ("idn-email", "idn-hostname")
"""Formats of which each character is looked up in a table. A property may have the name `format`, so nothing is hashed."""


def slow_to_match(node: Mapping[str, Any]) -> bool:
    """Whether a schema matches texts in a time that may be out of proportion to their length."""
    return node.get("format") in SLOW_FORMATS or any(map(_lookarounds, [*_pattern(node), *_name_patterns(node)]))


def slow_patterns(schema: Any) -> list[str]:
    """The patterns in a schema for which a text is searched again from each of its characters."""
    return [pattern for _, node in nodes(schema) for pattern in _pattern(node) if _lookarounds(pattern)]


def match_work(node: Mapping[str, Any], values: Iterable[Any]) -> int:
    """The work of matching the patterns and the format of a schema with those of the values that are texts or have
    names."""
    work = 0
    if "pattern" in node or "format" in node:
        texts = [len(value) for value in values if isinstance(value, str)]
        work += sum(_of(pattern, texts) for pattern in _pattern(node)) + _format_work(node.get("format"), sum(texts))
    if patterns := _name_patterns(node):
        objects = [cast("Mapping[str, Any]", value) for value in values if isinstance(value, Mapping)]
        names = [len(name) for value in objects for name in value]
        work += sum(_of(pattern, names) for pattern in patterns)
    return work


def _pattern(node: Mapping[str, Any]) -> list[str]:
    pattern = node.get("pattern")
    return [pattern] if isinstance(pattern, str) else []


def _name_patterns(node: Mapping[str, Any]) -> list[str]:
    patterns = node.get("patternProperties")
    return list(map(str, cast("Mapping[str, Any]", patterns))) if isinstance(patterns, Mapping) else []


def _format_work(name: Any, length: int) -> int:
    if name is None:
        return 0
    return length if name in SLOW_FORMATS else length // LINEAR


def _of(pattern: str, lengths: list[int]) -> int:
    """The work of matching a pattern with texts of these lengths."""
    first = _tried_once(pattern)
    work = (1 + first) * sum(lengths) // LINEAR
    if around := _lookarounds(pattern):
        squares = (length * length for length in lengths)
        work += around * sum(square for square in squares if square > NEGLIGIBLE) // SQUARE
    return work


@lru_cache(4096)
def _lookarounds(pattern: str) -> int:
    """How often a lookaround or a back-reference of a pattern may be tried from one character of a text."""
    count = len(LOOKS.findall(pattern)) - _tried_once(pattern)
    if not count:
        return 0
    times = [int(most if most.isdigit() else least) for least, most in REPEATED.findall(pattern)]
    return count * prod(max(1, min(1_000, one)) for one in times)


@lru_cache(4096)
def _tried_once(pattern: str) -> int:
    """How many lookaheads are tried at the beginning of a text alone: those right after a `^` that is in front of the whole
    pattern. Those inside them are not."""
    count = depth = 0
    at_start = pattern.startswith("^")
    for part in TOKEN.findall(pattern, 1) if at_start else ():
        if depth == 0:
            if part == "|":  # the next alternative may begin anywhere
                return 0
            if at_start:
                at_start = part in LOOKAHEADS
                count += at_start
        depth += part.startswith("(")
        depth -= part == ")"
    return count
