r"""Parses the common subset of engines' regular expressions to grammar nodes.

Sets are ranges of code points. Anything that depends on the position (`^`, `\b`, lookaround, references) raises
ValueError, and the caller does without the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from .rules import Chars, Lit, Node, Repeat, alt, seq

Ranges = tuple[tuple[int, int], ...]
LAST = 0x10FFFF
ANY: Ranges = ((0, LAST),)
MANY = 256
"""Larger repetition bounds are not enforced."""
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a", "0": "\0"}
TIMES = re.compile(r"\{(\d+)(,?)(\d*)\}")
CODE = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|[xu]\{([0-9a-fA-F]{1,6})\}")
SPACE: Ranges = ((9, 13), (32, 32))
DIGITS: Ranges = ((48, 57),)
WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))


def union(*sets: Iterable[tuple[int, int]]) -> Ranges:
    """The union of several sets."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(pair for one in sets for pair in one):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(ranges: Ranges) -> Ranges:
    """All characters that are not in a set."""
    edges = [(-1, -1), *ranges, (LAST + 1, LAST + 1)]
    return tuple((a[1] + 1, b[0] - 1) for a, b in pairwise(edges) if a[1] + 1 < b[0])


def without(ranges: Ranges, others: Ranges) -> Ranges:
    """The characters of one set that are not in the other."""
    return complement(union(complement(ranges), others))


CLASSES = {"s": SPACE, "d": DIGITS, "w": WORD, "S": complement(SPACE), "D": complement(DIGITS), "W": complement(WORD)}


def chars_of(ranges: Ranges) -> Node:
    """One character of a set, expressed by the complement if that is shorter."""
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return Lit(chr(ranges[0][0]))
    others = complement(ranges)
    few = others if len(others) < len(ranges) else ranges
    pairs = tuple((chr(low), chr(high)) for low, high in few)
    return Chars(pairs, but=few is not ranges)


def ranges_of(chars: Chars) -> Ranges:
    """The set of a node."""
    ranges = union((ord(low), ord(high)) for low, high in chars.ranges)
    return complement(ranges) if chars.but else ranges


def regex(pattern: str, flags: str = "") -> Node:
    """The texts that an expression matches in full. Raises ValueError if it is not supported."""
    if set(flags) - {"s", "u"}:
        raise ValueError(f"the flags {flags}")
    reading = _Regex(pattern, "s" in flags)
    node = reading.options()
    if reading.at < len(pattern):
        raise ValueError(f"{pattern[reading.at :]!r}")
    return node


class _Regex:
    def __init__(self, pattern: str, dotall: bool) -> None:
        self.pattern = pattern
        self.at = 0
        self.dot = ANY if dotall else complement(((10, 10),))

    def peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def take(self) -> str:
        c = self.peek()
        if not c:
            raise ValueError("it ends too early")
        self.at += 1
        return c

    def options(self) -> Node:
        nodes = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            nodes.append(self.sequence())
        return alt(*nodes)

    def sequence(self) -> Node:
        parts: list[Node] = []
        while self.peek() not in ("", "|", ")"):
            parts.append(self.repeated(self.one()))
        return seq(*parts)

    def repeated(self, node: Node) -> Node:
        bounds = {"?": (0, 1), "*": (0, None), "+": (1, None)}.get(self.peek())
        if bounds:
            self.at += 1
        elif match := TIMES.match(self.pattern, self.at):
            self.at = match.end()
            least = int(match[1])
            bounds = least, (int(match[3]) if match[3] else None) if match[2] else least
        else:
            return node
        if self.peek() in ("?", "+"):  # lazy or possessive matching does not change which texts match
            self.at += 1
        least, most = bounds
        return Repeat(node, min(least, MANY), most if most is None or most <= MANY else None)

    def one(self) -> Node:
        c = self.take()
        if c == "(":
            return self.group()
        if c == "[":
            return chars_of(self.among())
        if c == ".":
            return chars_of(self.dot)
        if c in "^$*+?{":
            raise ValueError(f"{c} at {self.at}")
        return chars_of(self.escape() if c == "\\" else ((ord(c), ord(c)),))

    def group(self) -> Node:
        if self.peek() == "?":
            if self.pattern[self.at : self.at + 2] != "?:":
                raise ValueError(f"({self.pattern[self.at : self.at + 3]}")
            self.at += 2
        node = self.options()
        if self.take() != ")":
            raise ValueError("a group without an end")
        return node

    def escape(self) -> Ranges:
        if code := CODE.match(self.pattern, self.at):
            self.at = code.end()
            number = int(next(filter(None, code.groups())), 16)
            return ((number, number),)
        c = self.take()
        if c in CLASSES:
            return CLASSES[c]
        if c.isalnum() and c not in ESCAPES:
            raise ValueError(f"\\{c}")
        return ((ord(ESCAPES.get(c, c)), ord(ESCAPES.get(c, c))),)

    def among(self) -> Ranges:
        """A set in brackets."""
        negated = self.peek() == "^"
        self.at += negated
        parts: list[Ranges] = []
        while self.peek() != "]" or not parts:
            low = self.member()
            if self.peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                low = ((low[0][0], self.member()[0][1]),)
            parts.append(low)
        self.at += 1
        ranges = union(*parts)
        return complement(ranges) if negated else ranges

    def member(self) -> Ranges:
        c = self.take()
        if c == "[":
            raise ValueError("a set in a set")
        return self.escape() if c == "\\" else ((ord(c), ord(c)),)
