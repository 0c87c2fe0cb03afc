"""Estimates the bytes of a compiled schema before it is compiled, from its size and its patterns.

The factors were measured with jsonschema-rs 0.60 (resident bytes of validators of many shapes); each is about the
largest value seen. A validator takes 25 to 45 bytes for each character of its schema, and more for small objects, above
all those in an `enum`, which it has three times; referenced schemas are shared. A
regular expression takes far more than its length suggests: 200 bytes for each ASCII letter, set or operator, a few
thousand for a set of most of Unicode, some 60,000 for a Unicode class such as `\\p{L}`, and all of that once for each
repetition in `{1,50}`. So the schema is searched once for patterns, and each pattern is scanned for these factors, without
compiling. A repetition may have blanks in its braces. With the flag `x`, blanks and comments may stand anywhere, also a
parenthesis in a comment, so that such a pattern is not scanned, and counts as too large.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from ..types import Schema
from .pattern_cost import LOOKS
from .walk import escape

EACH = 4_096
"""Bytes of the smallest validator."""
BY_CHARACTER = 55
"""Bytes per character of a schema as JSON: for its validator, and for the schema itself, which is stored with it."""
OBJECT = 1_700
"""Bytes of an object that has entries, besides its characters."""
PATTERN, LOOKING = 20_000, 22_000
"""Bytes of the smallest pattern; of one in a schema with lookaround or back-references, which needs another engine."""
LETTER, MOST_OF_ALL, CLASS = 210, 2_500, 60_000
"""Bytes of an ASCII atom or an operator, of an atom that matches nearly every character, and of a Unicode class."""
WORD, DIGIT = 95_000, 15_000
"""Bytes of `\\w` and `\\b`, and of `\\d` and `\\s`, in the engine with lookaround."""
UNREADABLE = 1_000_000_000
"""What a pattern with the flag `x` counts."""
EITHER_CASE = 8
"""The factor for a pattern that ignores case."""

CASELESS = re.compile(r"\(\?[a-zA-Z]*i")
FLAG_X = re.compile(r"\(\?[a-zA-Z]*x")
ATOM = re.compile(
    r"""(?P<open>\((?:\?(?:<?[=!]|<[^>]*>|P<[^>]*>|[a-zA-Z-]*:?))?)|(?P<close>\))
    |(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\]?)|(?P<class>\\[pP](?:\{[^}]*\}|.))|(?P<word>\\[wWdDsSbB])
    |(?P<times>\{\s*(?P<least>\d+)\s*(?P<comma>,)?\s*(?P<most>\d*)\s*\})|(?P<operator>[*+?|])|(?P<edge>[\^$])
    |(?P<any>\.)|(?P<letter>\\.|.)""",
    re.DOTALL | re.VERBOSE,
)


def weight(schema: Schema) -> tuple[int, int]:
    """(bytes of the compiled schema in all, bytes of its patterns among them), both estimated."""
    try:
        text = json.dumps(schema, default=str)
    except (ValueError, RecursionError):  # compiling it will report the error
        return EACH, 0
    patterns = {pattern for _, pattern in _patterns(schema)} if "attern" in text else set[str]()
    looks = any(LOOKS.search(pattern) for pattern in patterns)
    of_patterns = sum(pattern_weight(pattern, looks) for pattern in patterns)
    return EACH + BY_CHARACTER * len(text) + OBJECT * text.count('{"') + of_patterns, of_patterns


def largest_pattern(schema: Schema) -> tuple[str, str, int]:
    """(place, pattern, estimated bytes) of the pattern that takes the most."""
    weights = ((path, pattern, pattern_weight(pattern)) for path, pattern in _patterns(schema))
    return max(weights, key=lambda one: one[2])


def pattern_weight(pattern: str, looks: bool = False) -> int:
    """The estimated bytes of a compiled pattern. `looks`: the engine with lookaround compiles it."""
    groups, last = [0], 0
    for match in ATOM.finditer(pattern):
        match match.lastgroup:
            case "open" if FLAG_X.match(match[0]):
                return UNREADABLE
            case "open":
                groups.append(0)
                last = 0
            case "close":
                last = groups.pop() if len(groups) > 1 else 0
            case "times":
                last *= max(0, _times(match) - 1)
            case "operator":
                groups[-1] += LETTER
                last = 0 if match[0] == "|" else last + LETTER
                continue
            case "edge":
                last = 0
                continue
            case kind:
                last = _of_atom(str(kind), match[0], looks)
        groups[-1] += last
    times = EITHER_CASE if CASELESS.search(pattern) else 1
    return (LOOKING if looks else PATTERN) + times * sum(groups)


def _times(match: re.Match[str]) -> int:
    """How often an atom is repeated in the compiled form of `{least,most}`."""
    most = int(match["most"] or 0) or int(match["least"]) + bool(match["comma"])
    return min(most, 1_000_000)


def _of_atom(kind: str, text: str, looks: bool) -> int:
    match kind:
        case "set":
            return _of_set(text, looks)
        case "class":
            return CLASS
        case "word":
            return (WORD if text[1] in "wWbB" else DIGIT) if looks else MOST_OF_ALL
        case "any":
            return MOST_OF_ALL
        case _:
            return LETTER if text.isascii() else 4 * LETTER


def _of_set(text: str, looks: bool) -> int:
    classes = text.count("\\p") + text.count("\\P") + (len(re.findall(r"\\[wWdDsS]", text)) if looks else 0)
    if classes:
        return classes * (WORD if looks else CLASS)
    return MOST_OF_ALL if text.startswith("[^") or not text.isascii() or "\\" in text else LETTER


def _patterns(schema: Schema) -> Iterator[tuple[str, str]]:
    """Every text that may be a pattern, with its place: the value of each pattern keyword, at any place."""
    rest: list[tuple[str, Any]] = [("", schema)]
    while rest:
        path, node = rest.pop()
        if isinstance(node, Mapping):
            here = cast("Mapping[str, Any]", node)
            if isinstance(one := here.get("pattern"), str):
                yield f"{path}/pattern", one
            if isinstance(named := here.get("patternProperties"), Mapping):
                yield from ((f"{path}/patternProperties", str(name)) for name in cast("Mapping[str, Any]", named))
            rest += [(f"{path}/{escape(str(key))}", part) for key, part in here.items()]
        elif isinstance(node, list):
            rest += [(f"{path}/{place}", part) for place, part in enumerate(cast("list[Any]", node))]
