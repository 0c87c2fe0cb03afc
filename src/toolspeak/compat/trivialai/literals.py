"""Parses values as people and models write them: JSON, and most Python literals.

Beyond JSON: single and triple quotes, line breaks inside strings, trailing commas, None, True, False,
sets, tuples, bytes, leading zeros. Not read: comments, bare keys, NaN and Infinity, a leading `+` or `.`.
A string in which a backslash stands before an unknown letter keeps the backslash, as in Python; `\\/` is
a slash and a surrogate pair one character, as in JSON.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

MAX_DEPTH = 64
"""The most levels of nesting; more is refused, before it causes a RecursionError."""

_BLANKS = re.compile(r"\s*")
_NUMBER = re.compile(r"-?[0-9]+(?P<fraction>(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)")
_WORD = re.compile(r"[^\W\d]\w*")
_WORDS = {"null": None, "None": None, "true": True, "True": True, "false": False, "False": False}
_QUOTED = re.compile(
    r"""(?P<bytes>[bB]?)(?:
        '''(?P<a>[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+)''' | \"\"\"(?P<b>[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+)\"\"\"
      | '(?P<c>[^'\\]*+(?:\\.[^'\\]*+)*+)' | "(?P<d>[^"\\]*+(?:\\.[^"\\]*+)*+)"
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:(?P<line>\r\n|\n|\r)|x(?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})|U(?P<w>[0-9a-fA-F]{8})"
    r"|N\{(?P<name>[^}]*)\}|(?P<octal>[0-7]{1,3})|(?P<one>.))",
    re.DOTALL,
)
_SIMPLE = {c: c for c in "\\'\"/"} | {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def loads(text: str) -> Any:
    """Return the one value in `text`. Raises ValueError for none, or more than one."""
    try:
        return json.loads(text, strict=False, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        value, end = read(text, 0)
    end = _skip(text, end)
    if end < len(text):
        raise ValueError(f"something follows the value at {end}")
    return value


def read(text: str, at: int, depth: int = 0) -> tuple[Any, int]:
    """Return the value that starts at `at`, and where it ends. Raises ValueError if there is none."""
    at = _skip(text, at)
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} at {at}")
    opener = text[at : at + 1]
    if opener == "{":
        return _braces(text, at + 1, depth + 1)
    if opener == "[":
        values, _, at = _items(text, at + 1, "]", depth + 1)
        return values, at
    if opener == "(":
        values, commas, at = _items(text, at + 1, ")", depth + 1)
        return (values[0] if len(values) == 1 and not commas else tuple(values)), at
    if quoted := _QUOTED.match(text, at):
        return _unquote(quoted), quoted.end()
    if number := _NUMBER.match(text, at):
        return (float if number["fraction"] else int)(number[0]), number.end()
    word = _WORD.match(text, at)
    if word is None or word[0] not in _WORDS:
        raise ValueError(f"no value at {at}")
    return _WORDS[word[0]], word.end()


def _items(text: str, at: int, closer: str, depth: int, already: tuple[Any, ...] = ()) -> tuple[list[Any], int, int]:
    """Return the values up to `closer`, after those in `already`; the number of commas; and the end."""
    values = list(already)
    commas = 0
    at = _skip(text, at)
    while not text.startswith(closer, at):
        if len(values) > commas:
            at = _skip(text, _expect(text, at, ","))
            commas += 1
        if not (commas and text.startswith(closer, at)):
            value, at = read(text, at, depth)
            values.append(value)
            at = _skip(text, at)
    return values, commas, at + 1


def _braces(text: str, at: int, depth: int) -> tuple[Any, int]:
    """Return a dict, or a set if no colon follows the first value."""
    at = _skip(text, at)
    if text.startswith("}", at):
        return {}, at + 1
    first, after = read(text, at, depth)
    try:
        if not text.startswith(":", _skip(text, after)):
            values, _, end = _items(text, after, "}", depth, (first,))
            return set(values), end
        mapping: dict[Any, Any] = {}
        key, at = first, _skip(text, after)
        while True:
            value, at = read(text, at + 1, depth)
            mapping[key] = value
            at = _skip(text, at)
            if not text.startswith("}", at):
                at = _skip(text, _expect(text, at, ","))
            if text.startswith("}", at):
                return mapping, at + 1
            key, at = read(text, at, depth)
            at = _expect(text, _skip(text, at), ":") - 1
    except TypeError as error:
        raise ValueError(f"{error} (in the braces that end or break off near {at})") from error


def _skip(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def _expect(text: str, at: int, mark: str) -> int:
    if not text.startswith(mark, at):
        raise ValueError(f"expected {mark!r} at {at}")
    return at + 1


def _unquote(quoted: re.Match[str]) -> str | bytes:
    inner = next(quoted[name] for name in "abcd" if quoted[name] is not None)
    if quoted["bytes"]:
        if not inner.isascii():
            raise ValueError("bytes hold ASCII alone")
        return _ESCAPE.sub(_unescape_byte, inner).encode("latin-1")
    if "\\" not in inner:
        return inner
    value = _ESCAPE.sub(_unescape, inner)
    # A surrogate pair is two escapes and one character.
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _unescape(escape: re.Match[str]) -> str:
    if escape["line"]:
        return ""
    if code := escape["x"] or escape["u"] or escape["w"]:
        return chr(int(code, 16))
    if escape["octal"]:
        return chr(int(escape["octal"], 8))
    if escape["name"] is not None:
        return _named(escape["name"])
    letter = escape["one"]
    if letter in "xuU":
        raise ValueError(f"\\{letter} wants more digits")
    return _SIMPLE.get(letter, "\\" + letter)


def _unescape_byte(escape: re.Match[str]) -> str:
    """As in a bytes literal: \\u, \\U and \\N mean nothing there."""
    if escape["u"] or escape["w"] or escape["name"] is not None:
        return escape[0]
    if escape["octal"]:
        return chr(int(escape["octal"], 8) & 0xFF)
    return escape[0] if escape["one"] in ("u", "U") else _unescape(escape)


def _named(name: str) -> str:
    try:
        return unicodedata.lookup(name)
    except KeyError as error:
        raise ValueError(f"no character is called {name!r}") from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a value")
