"""Recognizes what stands at a position in a text of literals. Pure functions, and the patterns of one syntax.

Where an answer may be None, it is not known before more text is here; with `closed` it always is. No
answer depends on text farther away than its limits, so that none depends on how the text is cut.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ..dialect import Keywords
from .source import CAP, GAP

CONSTANTS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
SIMPLE_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}

_S = rf"\s{{0,{GAP}}}"
_KEY = rf"""[^\s,:=()\[\]{{}}'"*][^,:=()\[\]{{}}'"\n]{{0,{CAP - 1}}}"""
_QUOTED_KEY = r"""[\w. -]{0,64}"""
_SHORT = rf"""(?:"[^"\\]{{0,{CAP}}}"|'[^'\\]{{0,{CAP}}}')"""
_HALF_SHORT = rf"""(?:"[^"\\]{{0,{CAP}}}"?|'[^'\\]{{0,{CAP}}}'?)"""
_WORD = rf"""[^\s,:=()\[\]{{}}'"]{{1,{CAP}}}"""

SPACES = re.compile(rf"\s{{0,{GAP + 1}}}").match
NAME = re.compile(rf"""({_KEY}?){_S}[=:]|(['"])({_QUOTED_KEY})\2{_S}[=:]""").match
"""A name and what assigns to it; group 1 or 3 is the name."""
HALF_NAME = re.compile(rf"""(?:{_KEY}{_S}|(['"]){_QUOTED_KEY}(?:\1{_S})?)\Z""").match
KEY = re.compile(rf"({_KEY}?){_S}(?=[:=])").match
HALF_KEY = re.compile(rf"{_KEY}{_S}\Z").match
STARS = re.compile(rf"\*\*{_S}\{{").match
HALF_STARS = re.compile(rf"\*(?:\*{_S})?\Z").match
SURE = re.compile(
    r"\s*+(?:(-?(?:0|[1-9][0-9]{0,30})|True|False|None|true|false|null)(?:(,)|(?=[)\]}]))|[\w-]{1,30}\Z)"
).match
"""The commonest values, group 1, where they are certain, and a comma behind them; or, without the group, a word that
may grow."""
EXPRESSION = re.compile(r"[^\W\d][\w.]{0,99}\([^()\n]{0,400}\)").match
HALF_EXPRESSION = re.compile(r"[^\W\d][\w.]{0,99}(?:\([^()\n]{0,400})?\Z").match
SUM = re.compile(rf"{_S}[+*%]").match
"""Behind a quote, the sign that two strings are to be made one: what is meant is no literal."""
DOUBTED = re.compile(rf"{_S}(?:[+*%]|\){_S}[+*%,;])").match
"""The same, or the end of the call with more behind it, such as another call: the string may have ended here."""
WORKED_OUT = re.compile(r"[\"'()]|\w\s*[+*%]\s*\w").search
"""What a value without quotes holds that is to be worked out."""
BARE = re.compile(r"[^\s,()\[\]{}][^,()\[\]{}\n]*").match
"""A value that is no string, and all that may belong to it."""

_A_WORD = re.compile(_WORD).match
_A_VALUE = re.compile(r"""["'\[{(]|[-+]?\.?\d|(?:True|False|None|true|false|null)(?!\w)|[rbfuRBFU]{1,2}["']""").match
_HALF_VALUE = re.compile(r"(?:[-+]?\.?|[A-Za-z]{1,5})\Z").match
_A_SET = re.compile(rf"\{{{_S}(?:[\[({{]|(?:{_SHORT}|{_WORD}){_S}[,}}])").match
_HALF_SET = re.compile(rf"\{{{_S}(?:{_HALF_SHORT}{_S}|{_WORD}{_S})?\Z").match
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U(00[01][0-9a-fA-F]{5})|([0-7]{1,3})|\r?\n)").match
_HALF_ESCAPE = re.compile(
    r"\\(?:x[0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U(?:0(?:0(?:[01][0-9a-fA-F]{0,4})?)?)?|[0-7]{0,2}|\r)?\Z"
).match
_LOW = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})").match
_HALF_LOW = re.compile(r"(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?\Z").match

_JSON_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII).fullmatch
_INTEGER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|[1-9][\d_]*|0+)", re.ASCII).fullmatch
_FLOAT = re.compile(r"([+-]?)(\d[\d_]*)?(?:\.([\d_]*))?([eE][+-]?\d+)?", re.ASCII).fullmatch


def next_visible(text: str, i: int, closed: bool) -> int | None:
    """Where the first visible character from `i` on is, -1 if the text ends first or it is far away."""
    m = SPACES(text, i)
    j = m.end() if m else i
    if j - i > GAP:
        return -1
    if j < len(text):
        return j
    return -1 if closed else None


def comes(text: str, i: int, words: tuple[str, ...], closed: bool) -> bool | None:
    """Does one of `words` stand at `i`?"""
    if text.startswith(words, i):
        return True
    if closed or len(text) - i >= max(map(len, words), default=0):
        return False
    rest = text[i:]
    return None if any(w.startswith(rest) for w in words) else False


def begins_value(text: str, i: int, closed: bool) -> bool | None:
    """Does a value begin at `i` that is no bare word?"""
    if not closed and _HALF_VALUE(text, i):
        return None
    return _A_VALUE(text, i) is not None


def begins_key(text: str, i: int, assign: str, closed: bool) -> bool | None:
    """Does a bare key with what assigns to it stand at `i`?"""
    m = _A_WORD(text, i)
    if m is None:
        return False
    if m.end() == len(text) and m.end() - i < CAP and not closed:
        return None
    j = next_visible(text, m.end(), closed)
    return None if j is None else j >= 0 and text[j] == assign


def begins_name(text: str, i: int, closed: bool) -> bool | None:
    """Does a name with its `=` stand at `i`, or one in quotes, or `**`?"""
    if text[i] not in "\"'":
        return text[i] == "*" or begins_key(text, i, "=", closed)
    if NAME(text, i):
        return True
    return None if not closed and HALF_NAME(text, i) else False


def opens_set(text: str, i: int, closed: bool) -> bool | None:
    """Is the `{` at `i` that of a set and not of a dict?"""
    if _A_SET(text, i):
        return True
    return None if not closed and _HALF_SET(text, i) else False


def _code(m: re.Match[str]) -> int:
    """The code that an escape writes, -1 where it writes none."""
    if digits := m[1] or m[2] or m[3]:
        return int(digits, 16)
    return int(m[4], 8) if m[4] else -1


def escape(text: str, i: int, closed: bool) -> tuple[str, int, bool] | None:
    """What the escape at `i` stands for, how long it is, and whether it is half of a surrogate pair, which no text can
    hold.

    An unknown one is its backslash.
    """
    m = _ESCAPE(text, i)
    if not closed and _HALF_ESCAPE(text, i):
        return None
    if m is None:
        return "\\", 1, False
    code = _code(m)
    size = m.end() - i
    if code < 0 or code > 0x10FFFF:
        return ("", size, False) if code < 0 else ("\\", 1, False)
    if not 0xD800 <= code < 0xE000:
        return chr(code), size, False
    if code < 0xDC00:
        if low := _LOW(text, m.end()):
            return chr(0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00), size + 6, False
        if not closed and _HALF_LOW(text, m.end()):
            return None
    return "\ufffd", size, True


def simple(m: re.Match[str]) -> str:
    """What a backslash and one character stand for."""
    return SIMPLE_ESCAPES.get(m[1], m[1])


def number(word: str) -> str | None:
    """A number as JSON writes it, its digits as they are; None if the word is none."""
    if _JSON_NUMBER(word):
        return word
    if "__" in word or word.endswith("_"):
        return None
    if _INTEGER(word):
        return str(int(word, 0))
    m = _FLOAT(word)
    if m is None or (m[3] is None and m[4] is None):
        return None  # no number, or digits alone, such as 007
    sign, whole, fraction, exponent = m[1] or "", m[2] or "", m[3] or "", m[4] or ""
    if not (whole or fraction) or fraction.startswith("_"):
        return None
    whole = whole.replace("_", "").lstrip("0") or "0"
    return sign.strip("+") + whole + "." + (fraction.replace("_", "") or "0") + exponent


SAME = re.compile(r'(?:[^"\\\x00-\x1f]++|\\["\\bfnrt])*+').fullmatch
"""What stands for the same within a string of JSON."""


class Quote:
    """Quotes of one kind: what of a string in them can be told without looking further, and what keeps a piece off the
    lane.

    `slash` is what a backslash means there: "escape", "raw" (it guards a quote, and stays), or nothing.
    """

    __slots__ = ("lane", "run", "slash", "text", "whole")

    def __init__(self, text: str, slash: str) -> None:
        c = re.escape(text[0])
        runs = {"escape": rf"(?:[^{c}\\]++|\\[abfnrtv\\'\"])*+", "raw": rf"(?s:[^{c}\\]++|\\.)*+", "": rf"[^{c}]*+"}
        self.text, self.slash = text, slash
        self.run = re.compile(runs[slash]).match
        self.whole = re.compile(rf'([^{c}"\\\x00-\x1f]*){re.escape(text)}').match
        self.lane = re.compile(rf'[{c}"\\\x00-\x1f]').search


class Syntax:
    """The quotes, the words and the patterns of one way of writing literals."""

    __slots__ = ("constants", "opener", "own", "quotes")

    def __init__(self, hole: Keywords) -> None:
        python = ('"""', "'''", '"', "'")
        self.own = (*hole.quotes, *(python if hole.escapes else ()))
        slash = "escape" if hole.escapes else ""
        self.quotes = {q: Quote(q, "escape") for q in python} | {q: Quote(q, slash) for q in hole.quotes}
        self.quotes |= {"r" + q: Quote(q, "raw") for q in python}
        words = "|".join(re.escape(q) for q in sorted(self.quotes, key=len, reverse=True) if q[0] != "r")
        self.opener = re.compile(("([rRbBfFuU]{0,2})" if hole.escapes else "()") + f"({words})").match
        self.constants = CONSTANTS | dict(zip(hole.constants, ("true", "false", "null"), strict=True))


@lru_cache(64)
def syntax(hole: Keywords) -> Syntax:
    """The syntax of a hole, made once."""
    return Syntax(hole)
