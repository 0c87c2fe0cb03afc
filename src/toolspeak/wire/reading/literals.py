"""Recognizes what is at a position in a text of literals. Pure functions, and the patterns of one syntax.

If an answer may be None, more text may be needed; with `closed` it never is. Every answer depends only on text within
a fixed distance, so that none depends on how the text is cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Literal, cast

from ..dialect import Keywords
from .json_tokens import quoted
from .source import CAP, GAP

CONSTANTS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
SIMPLE_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}

_S = rf"\s{{0,{GAP}}}"
_KEY = rf"""[^\s,:=()\[\]{{}}'"*][^,:=()\[\]{{}}'"\n]{{0,{CAP - 1}}}"""
_QUOTED_KEY = r"""[\w. -]{0,64}"""
_SHORT = rf"""(?:"[^"\\]{{0,{CAP}}}"|'[^'\\]{{0,{CAP}}}')"""
_HALF_SHORT = rf"""(?:"[^"\\]{{0,{CAP}}}"?|'[^'\\]{{0,{CAP}}}'?)"""
_WORD = rf"""[^\s,:=()\[\]{{}}'"]{{1,{CAP}}}"""

_RUN = cast("Callable[[str], re.Match[str]]", re.compile(r"""[^\s{}\[\],:"']*""").match)
SPACES = re.compile(rf"\s{{0,{GAP + 1}}}").match
NAME = re.compile(rf"""({_KEY}?){_S}[=:]|(['"])({_QUOTED_KEY})\2{_S}[=:]""").match
"""A name with its assignment; group 1 or 3 is the name."""
HALF_NAME = re.compile(rf"""(?:{_KEY}{_S}|(['"]){_QUOTED_KEY}(?:\1{_S})?)\Z""").match
KEY = re.compile(rf"({_KEY}?){_S}(?=[:=])").match
HALF_KEY = re.compile(rf"{_KEY}{_S}\Z").match
STARS = re.compile(rf"\*\*{_S}\{{").match
HALF_STARS = re.compile(rf"\*(?:\*{_S})?\Z").match
SURE = re.compile(
    r"\s*+(?:(-?(?:0|[1-9][0-9]{0,30})|True|False|None|true|false|null)(?:(,)|(?=[)\]}]))|[\w-]{1,30}\Z)"
).match
"""The most common values (group 1) where they are certain, with a comma after them; or, without the group, an
incomplete word."""
EXPRESSION = re.compile(r"[^\W\d][\w.]{0,99}\([^()\n]{0,400}\)").match
HALF_EXPRESSION = re.compile(r"[^\W\d][\w.]{0,99}(?:\([^()\n]{0,400})?\Z").match
SUM = re.compile(rf"{_S}[+*%]").match
"""After a quote, an operator on strings: the value is an expression and no literal."""
DOUBTED = re.compile(rf"{_S}(?:[+*%]|\){_S}[+*%,;])").match
"""The same, or the end of the call with more after it, such as another call: the string may have ended here."""
CONDITION = re.compile(rf"{_S}if\s.{{1,{CAP}}}\selse\s+[rbfuRBFU]{{0,2}}").fullmatch
"""Matches what stands between two quotes if the value is one of two strings, by a condition."""
WORKED_OUT = re.compile(r"[\"'()]|\w\s*(?:[+*%]|\*\*|//)\s*\w|\w if .+ else ").search
"""Matches in an unquoted value that is an expression."""
VARIABLE = re.compile(
    r"\.{3}|<.*>|(?:[^\W\d]\w*\.)*+[^\W\d]\w*|[^\W\d]\w* (?:if|or|and|in|is|not) .*|(?:not|await) .*"
).fullmatch
"""Matches an unquoted value that Python would look up, or a placeholder."""
BARE = re.compile(r"[^\s,()\[\]{}][^,()\[\]{}\n]*").match
"""A value that is no string, with everything that may belong to it."""

_A_STRING = re.compile(r"[rbfuRBFU]{0,2}[\"']").match
_HALF_PREFIX = re.compile(r"[rbfuRBFU]{1,2}\Z").match
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
    """The position of the first visible character from `i` on; -1 if the text ends first or if it is far away."""
    m = SPACES(text, i)
    j = m.end() if m else i
    if j - i > GAP:
        return -1
    if j < len(text):
        return j
    return -1 if closed else None


def comes(text: str, i: int, words: tuple[str, ...], closed: bool) -> bool | None:
    """Whether one of `words` is at `i`."""
    if text.startswith(words, i):
        return True
    if closed or len(text) - i >= max(map(len, words), default=0):
        return False
    rest = text[i:]
    return None if any(w.startswith(rest) for w in words) else False


def before_word(text: str, words: tuple[str, ...]) -> str:
    """The part of a run of letters before the beginning of one of `words` in it; "" if there is none."""
    if not words:
        return ""
    places = [place for run in _runs(words) if (place := text.find(run)) > 0]
    return text[: min(places)] if places else ""


@lru_cache(1024)
def _runs(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words up to where a JSON token ends."""
    return tuple(run for run in (_RUN(word)[0] for word in words) if len(run) > 1)


def begins_value(text: str, i: int, closed: bool) -> bool | None:
    """Whether a value begins at `i` that is no unquoted word."""
    if not closed and _HALF_VALUE(text, i):
        return None
    return _A_VALUE(text, i) is not None


def begins_key(text: str, i: int, assign: str, closed: bool) -> bool | None:
    """Whether an unquoted key with its assignment is at `i`."""
    m = _A_WORD(text, i)
    if m is None:
        return False
    if m.end() == len(text) and m.end() - i < CAP and not closed:
        return None
    j = next_visible(text, m.end(), closed)
    return None if j is None else j >= 0 and text[j] == assign


def begins_name(text: str, i: int, closed: bool) -> bool | None:
    """Whether a name with its `=` is at `i`, or a quoted one, or `**`."""
    if text[i] not in "\"'":
        return text[i] == "*" or begins_key(text, i, "=", closed)
    if NAME(text, i):
        return True
    return None if not closed and HALF_NAME(text, i) else False


def joins(text: str, i: int, closed: bool) -> str | bool | None:
    """ "join" if a string begins at `i`, which continues the one before it in Python."""
    if _A_STRING(text, i):
        return "join"
    return None if _HALF_PREFIX(text, i) and not closed else False


def opens_set(text: str, i: int, closed: bool) -> bool | None:
    """Whether the `{` at `i` begins a set and not a dict."""
    if _A_SET(text, i):
        return True
    return None if not closed and _HALF_SET(text, i) else False


def _code(m: re.Match[str]) -> int:
    """The code point of an escape, -1 if it has none."""
    if digits := m[1] or m[2] or m[3]:
        return int(digits, 16)
    return int(m[4], 8) if m[4] else -1


def escape(text: str, i: int, closed: bool) -> tuple[str, int, bool] | None:
    """The text of the escape at `i`, its length, and whether it is a lone surrogate, which no text may contain.

    An unknown escape is its backslash.
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
    """The text of a backslash with one character."""
    return SIMPLE_ESCAPES.get(m[1], m[1])


def is_variable(word: str) -> bool:
    """Whether an unquoted word may be a variable. Nobody begins the name of one with a capital and goes on in small
    letters, nor writes it in letters that have no cases: `Rome`, `東京`."""
    return VARIABLE(word) is not None if any((word[0].islower(), word[0] in "_.<", word.isupper())) else False


def number(word: str) -> str | None:
    """A number in JSON notation, with its digits unchanged; None if the word is no number."""
    if _JSON_NUMBER(word):
        return word
    if "__" in word or word.endswith("_"):
        return None
    if _INTEGER(word):
        return str(int(word, 0))
    m = _FLOAT(word)
    if m is None or (m[3] is None and m[4] is None):
        return None  # no number, or an integer that Python rejects, such as 007
    sign, whole, fraction, exponent = m[1] or "", m[2] or "", m[3] or "", m[4] or ""
    if not (whole or fraction) or fraction.startswith("_"):
        return None
    whole = whole.replace("_", "").lstrip("0") or "0"
    return sign.strip("+") + whole + "." + (fraction.replace("_", "") or "0") + exponent


SIMPLE = re.compile(r"\\(.)").sub
SAME = re.compile(r'(?:[^"\\\x00-\x1f]++|\\["\\bfnrt])*+').fullmatch
"""String content that means the same in a JSON string."""


class Quote:
    """Quotes of one kind: the content that needs no further look, and the characters for which a piece needs one.

    `slash` is the meaning of a backslash: "escape", "raw" (it protects a quote, and stays), or none. `same` matches
    content with escapes that means the same in a JSON string.
    """

    __slots__ = ("lane", "run", "same", "slash", "text", "whole")

    def __init__(self, text: str, slash: str) -> None:
        c = re.escape(text[0])
        runs = {"escape": rf"(?:[^{c}\\]++|\\[abfnrtv\\'\"])*+", "raw": rf"(?s:[^{c}\\]++|\\.)*+", "": rf"[^{c}]*+"}
        self.text, self.slash = text, slash
        self.same = SAME if slash == "escape" else None
        self.run = cast("Callable[[str, int], re.Match[str]]", re.compile(runs[slash]).match)
        self.whole = re.compile(rf'([^{c}"\\\x00-\x1f]*){re.escape(text)}').match
        hard = r'(?:(?<=\\)(?!["bfnrt])|(?<!\\)(?<!\\"))' if self.same else ""
        self.lane = re.compile(rf'[{c}"\\\x00-\x1f]{hard}').search

    def json(self, content: str) -> str:
        """Content that `run` matches, as it is written in a JSON string."""
        if self.same and "\\" in content:
            if self.same(content):
                return content
            content = SIMPLE(simple, content)
        return quoted(content)[1:-1]


class Syntax:
    """The quotes, words and patterns of one syntax of literals."""

    __slots__ = ("_opener", "_words", "constants", "own", "quotes")

    def __init__(self, hole: Keywords) -> None:
        python = ('"""', "'''", '"', "'")
        self.own = (*hole.quotes, *(python if hole.escapes else ()))
        slash = "escape" if hole.escapes else ""
        self.quotes = {q: Quote(q, "escape") for q in python} | {q: Quote(q, slash) for q in hole.quotes}
        self.quotes |= {"r" + q: Quote(q, "raw") for q in python}
        words = "|".join(re.escape(q) for q in sorted(self.quotes, key=len, reverse=True) if q[0] != "r")
        self._words = hole.quotes
        self._opener = re.compile(("([rRbBfFuU]{0,2})" if hole.escapes else "()") + f"({words})").match
        self.constants = CONSTANTS | dict(zip(hole.constants, ("true", "false", "null"), strict=True))

    def opener(self, text: str, i: int, closed: bool) -> re.Match[str] | Literal[False] | None:
        """The prefix and the quotes of a string that begins at `i`. False if there is none, None if it is not known
        yet."""
        m = self._opener(text, i)
        if m is None:
            return False if comes(text, i, self._words, closed) is False else None
        if len(m[2]) == 1 and not closed and text[m.end() : m.end() + 2] in ("", m[2]):
            return None  # it may be a triple quote
        return m


@lru_cache(64)
def syntax(hole: Keywords) -> Syntax:
    """The syntax of a hole, computed once."""
    return Syntax(hole)
