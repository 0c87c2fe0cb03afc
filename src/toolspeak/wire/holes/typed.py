"""The value of one parameter that stands as text between two marks, typed by what its schema allows.

Exactly a string: its text, verbatim, as it comes. A string or another type: it is a string as soon as it
cannot be the other, else its end is waited for. Others wait for their end; what then does not fit stays a string,
with a note. Of an unknown type: JSON if it is valid JSON, else the text, and a text in quotes keeps them, since
strings are written without.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ...events import ArgumentsDelta
from ...schema.kinds import ANY, STRING, Kinds
from ..reading.json_reader import json_value
from ..reading.json_tokens import NUMBER_OR_WORD, PYTHON, SCALAR, Emit, Note, escaped, quoted, whole_value
from ..reading.source import CAP, GAP, SPACE, Delta, Malformed, Scan, Source, following, marks, until
from ..reading.state import State
from . import keywords

Closes = Callable[[str], Scan[str | None]]
"""Told a mark that was found and eaten: None if the value ended, or what of it belongs to the value after all."""

SPECIAL = r'"\\\x00-\x1f'
"""What JSON must escape in a string, as a character class."""
WORD = re.compile(rf"[\w.+-]{{1,{SCALAR + 1}}}").match
OPENS = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": "null"}
WORD_OF = {"T": "boolean", "F": "boolean", "N": "null", "(": "array"}
"""The first characters of what Python writes, and JSON does not."""
DIGITS = frozenset("-0123456789")
FROM_PYTHON = frozenset(["single-quotes", "python-literal"])


def value(s: State, words: tuple[str, ...], closes: Closes, allowed: Kinds) -> Scan[None]:
    """Pass the text up to that of `words` which closes it on as one JSON value; Malformed where that never comes."""
    if "string" in allowed and (allowed == STRING or not (yield from _may_be_other(s, allowed, words))):
        s.args('"')
        yield from text_until(s, words, closes, lambda piece: s.args(escaped(piece)), ArgumentsDelta)
        s.args('"')
        return
    parts: list[str] = []
    try:
        yield from text_until(s, words, closes, parts.append)
    except Malformed:
        s.args(unfinished("".join(parts)))
        raise
    s.args(as_json("".join(parts), allowed, s.note))


def text_until(s: Source, words: tuple[str, ...], closes: Closes, emit: Emit, delta: Delta | None = None) -> Scan[None]:
    """Pass text on up to that of `words` which closes it; the first of them is the one that usually does."""
    wanted = marks(words, SPECIAL)
    hit = _leap(s, words, emit) or (yield from until(s, wanted, emit, delta))
    while hit is not None:
        kept = yield from closes(hit)
        if kept is None:
            return
        emit(kept)
        hit = yield from until(s, wanted, emit, delta)
    raise Malformed("unclosed value")


def _leap(s: Source, words: tuple[str, ...], emit: Emit) -> str:
    """The first mark, if it is here already: found by the quickest search and eaten. "" where a closer look is needed.

    The first of `words` bounds the search for the others, so that values do not search behind each other.
    """
    text, pos = s.text, s.pos
    best, start = words[0], text.find(words[0], pos)
    if start < 0:
        return ""
    for word in words[1:]:
        i = text.find(word, pos, start + len(word))
        if i >= 0 and (i < start or len(word) > len(best)):
            best, start = word, i
    if start + len(best) == len(text) and not s.closed:
        return ""
    if start > pos:
        emit(text[pos:start])
    s.pos = start + len(best)
    return best


def unfinished(text: str) -> str:
    """What of a value that was cut can be passed on as the beginning of JSON."""
    body = text.strip()
    return body if body[:1] in ("{", "[", '"') or NUMBER_OR_WORD(body) else f'"{escaped(text)}' if body else ""


def _may_be_other(s: Source, allowed: Kinds, closers: tuple[str, ...]) -> Scan[bool]:
    """Whether the value that comes may still be other than a string. Eats nothing."""
    while True:
        text = s.text
        i = SPACE(text, s.pos).end()
        if i - s.pos > GAP:
            return False
        if i < len(text):
            if text[i] in "[{(":
                return _kind(text[i], allowed) in allowed
            m = WORD(text, i)
            if m is None or m.end() - i > SCALAR or _kind(text[i], allowed) not in allowed:
                return False
            if m.end() < len(text) or s.closed:
                if _word(m[0], allowed) not in allowed:
                    return False
                c = yield from following(s, m.end() - s.pos)
                return not c or any(word.lstrip().startswith(c) for word in closers)
        elif s.closed:
            return False
        yield


def _kind(c: str, allowed: Kinds) -> str:
    """The type of what begins with `c`; "" for none. Of an unknown type only JSON counts."""
    return "integer" if c in DIGITS else OPENS.get(c) or (WORD_OF.get(c, "") if allowed != ANY else "")


def _word(word: str, allowed: Kinds) -> str:
    """The type of a whole word."""
    if word in PYTHON and allowed != ANY:
        return WORD_OF[word[0]]
    return _json_kind(word) if NUMBER_OR_WORD(word) else ""


def as_json(text: str, allowed: Kinds, note: Note) -> str:
    """The text of a value as JSON text, of a type that is allowed; a string where it is of none, which is noted."""
    if allowed == STRING:
        return quoted(text)
    body = text.strip()
    kind = _json_kind(body) if body else ""
    if kind in allowed and kind != "string":
        return body
    if kind == "string" and "string" not in allowed:
        note("kept-as-text", body[:40])
        return body
    if body and not kind and (made := _repaired(body, allowed, note)):
        return made
    if "string" not in allowed:
        note("kept-as-text", body[:40])
    return quoted(text)


def _json_kind(body: str) -> str:
    """The type of a text that is strict JSON; "" for one that is none."""
    c = body[0]
    if c not in DIGITS and c not in OPENS:
        return ""
    whole = whole_value(body, 0)
    if whole is None or whole[1] != len(body):
        return ""
    if c in OPENS:
        return OPENS[c]
    return "integer" if not set(body).intersection(".eE") or float(body).is_integer() else "number"


def _repaired(body: str, allowed: Kinds, note: Note) -> str | None:
    """A literal of Python's, or what is nearly JSON, as JSON, if it is of a type that is allowed.

    Where a string is allowed too, only what cannot be meant for one counts: what is JSON or Python as it stands.
    """
    kind = _kind(body[0], allowed)
    if kind not in allowed or kind == "string":
        return None
    source, parts, notes = Source(), list[str](), list[tuple[str, str]]()
    source.text, source.closed = body, True
    try:
        for _ in json_value(source, parts.append, lambda rule, detail, _=None: notes.append((rule, detail))):
            pass
    except Malformed:
        return None if allowed == ANY else _transcoded(body, kind, note)
    rules = {rule for rule, _ in notes}
    if source.pos < len(body) or ("string" in allowed and rules - FROM_PYTHON) or (rules and allowed == ANY):
        return None
    for rule, detail in notes:
        note(*(("python-literal", "") if rule in FROM_PYTHON else (rule, detail)))
    return "".join(parts)


def _transcoded(body: str, kind: str, note: Note) -> str | None:
    """A literal of Python's that is far from JSON: a list or a dict, as its beginning says."""
    made = keywords.transcode(body)
    if not made or OPENS.get(made[0]) != kind:
        return None
    note("python-literal", "")
    return made


def ahead(s: Source, offset: int, words: tuple[str, ...]) -> Scan[int]:
    """How far from here the word ends that stands `offset` from here after white space: the longest of `words`.

    0 where none does, -1 where the text ends before or within one. Eats nothing.
    """
    while True:
        text, start = s.text, s.pos + offset
        i = SPACE(text, start).end()
        left = len(text) - i
        if i - start > GAP:
            return 0
        half = not left or any(left < len(word) and word.startswith(text[i:]) for word in words)
        if s.closed or not half:
            best = max((len(word) for word in words if text.startswith(word, i)), default=0)
            return i + best - s.pos if best else -half
        yield


def token_ahead(s: Source, offset: int, ends: tuple[str, ...], most: int = CAP) -> Scan[tuple[str, str] | None]:
    """The text `offset` from here, at most `most` characters, and the mark behind it; None if none comes. Eats
    nothing."""
    search, longest = marks(ends).full, max(map(len, ends))
    while True:
        text, start = s.text, s.pos + offset
        m = search(text, start, start + most + longest)
        whole = s.closed or len(text) - start >= most + longest
        if m and m.start() - start > most:
            return None
        if m and (s.closed or not _may_grow(text, m.start(), ends)):
            return text[start : m.start()], m[1]
        if whole and not m:
            return None
        yield


def _may_grow(text: str, i: int, words: tuple[str, ...]) -> bool:
    """Whether the text from `i` on is the beginning of a word that is not all there."""
    left = len(text) - i
    return any(left < len(word) and word.startswith(text[i:]) for word in words)
