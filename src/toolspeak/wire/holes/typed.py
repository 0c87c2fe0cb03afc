"""Reads the value of one parameter, which is text between two marks, with a type that its schema allows.

- Only a string is allowed: the text verbatim, as it arrives.
- A string or another type: a string as soon as it cannot be the other type, otherwise its end is awaited.
- Other types: the end is awaited. A text of no allowed type becomes a string, with a note.
- Unknown: JSON if it is valid JSON, otherwise a string. Quotes stay part of it, since strings are written without
  quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ...events import ArgumentsDelta
from ...schema.kinds import ANY, STRING, Kinds
from ..reading.json_tokens import NUMBER_OR_WORD, PYTHON, SCALAR, AddNote, Emit, escaped, quoted, whole_value
from ..reading.json_value import json_value
from ..reading.marks import marks
from ..reading.missing_quotes import LONG
from ..reading.source import GAP, SPACE, Delta, Malformed, Scan, Source, following, until
from ..reading.state import State
from ..reading.text_end import TextEnd
from . import keywords

Convert = Callable[[str, Kinds, AddNote], str]
"""Converts the text of a value to JSON of an allowed type, as `as_json` does."""
Closes = Callable[[str], Scan[str | None]]
"""Called with a mark that was consumed: None if it ends the value, otherwise the part of it that belongs to the value.
"""

SPECIAL = r'"\\\x00-\x1f'
"""Characters that JSON escapes in a string, as a character class."""
WORD = re.compile(rf"[\w.+-]{{1,{SCALAR + 1}}}").match
OPENS = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": "null"}
WORD_OF = {"T": "boolean", "F": "boolean", "N": "null", "(": "array"}
"""First characters of Python literals that are no JSON, with their types."""
DIGITS = frozenset("-0123456789")
FROM_PYTHON = frozenset(["single-quotes", "python-literal"])
DOUBLED = frozenset(["doubled-key"])
"""The note that does not say that a text is no JSON: it is ambiguous, but not a string."""


def value(s: State, words: tuple[str, ...], closes: Closes, allowed: Kinds, convert: Convert) -> Scan[str]:
    """Passes on the text up to the one of `words` that closes it as a JSON value. Returns the end of the text, of at most
    `LONG` characters. Raises Malformed if the closer never comes."""
    if "string" in allowed and (allowed == STRING or not (yield from _may_be_other(s, allowed, words))):
        s.emit_arguments('"')
        delta = ArgumentsDelta if s.deferred_arguments is None else None
        end = TextEnd()

        def emit(piece: str) -> None:
            s.emit_arguments(escaped(piece))
            end.content += piece
            if len(end.content) > LONG:
                end.shorten()

        yield from text_until(s, words, closes, emit, delta, end)
        s.emit_arguments('"')
        return end.content[-LONG:]
    parts: list[str] = []
    try:
        yield from text_until(s, words, closes, parts.append)
    except Malformed:
        s.emit_arguments(unfinished("".join(parts)))
        raise
    text = "".join(parts)
    s.emit_arguments(convert(text, allowed, s.note))
    return text[-LONG:]


def text_until(
    s: Source,
    words: tuple[str, ...],
    closes: Closes,
    emit: Emit,
    delta: Delta | None = None,
    watch: TextEnd | None = None,
) -> Scan[None]:
    """Passes on text up to the one of `words` that closes it; the first of them is the usual one."""
    wanted = marks(words, SPECIAL)
    hit = _fast_search(s, words, emit) or (yield from until(s, wanted, emit, delta, watch))
    while hit is not None:
        text = yield from closes(hit)
        if text is None:
            return
        emit(text)
        hit = yield from until(s, wanted, emit, delta, watch)
    raise Malformed("unclosed value")


def _fast_search(s: Source, words: tuple[str, ...], emit: Emit) -> str:
    """The first mark, if it has arrived: found by the fastest search and consumed. "" if a slower search is needed.

    The first of `words` limits the search for the others, so that a value's search does not extend into later values.
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
    """The part of a cut value that can be emitted as the beginning of JSON."""
    body = text.strip()
    return body if body[:1] in ("{", "[", '"') or NUMBER_OR_WORD(body) else f'"{escaped(text)}' if body else ""


def _may_be_other(s: Source, allowed: Kinds, closers: tuple[str, ...]) -> Scan[bool]:
    """Whether the next value may still be something else than a string. Consumes nothing."""
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
                return any(word.lstrip().startswith(c) for word in closers) if c else True
        elif s.closed:
            return False
        yield


def _kind(c: str, allowed: Kinds) -> str:
    """The type of a value that begins with `c`; "" for none. If the type is unknown, only JSON counts."""
    return "integer" if c in DIGITS else OPENS.get(c) or (WORD_OF.get(c, "") if allowed != ANY else "")


def _word(word: str, allowed: Kinds) -> str:
    """The type of a complete word."""
    if all((word in PYTHON, allowed != ANY)):
        return WORD_OF[word[0]]
    return _json_kind(word) if NUMBER_OR_WORD(word) else ""


def as_json(text: str, allowed: Kinds, note: AddNote) -> str:
    """The text of a value as JSON of an allowed type; a string, with a note, if it is of none."""
    if allowed == STRING:
        return quoted(text)
    body = text.strip()
    kind = _json_kind(body) if body else ""
    if kind in allowed - STRING:
        return body
    if all((kind == "string", "string" not in allowed)):
        note("kept-as-text", body[:40])
        return body
    if body and not kind and (repaired := _repaired(body, allowed, note)):
        return repaired
    if "string" not in allowed:
        if plain := _unescaped(body):
            note("escaped-value", body[:40])
            return plain
        note("kept-as-text", body[:40])
    return quoted(text)


def _json_kind(body: str) -> str:
    """The type of strict JSON text; "" if it is none."""
    c = body[0]
    if c not in DIGITS and c not in OPENS:
        return ""
    whole = whole_value(body, 0)
    if whole is None or whole[1] != len(body):
        return ""
    if c in OPENS:
        return OPENS[c]
    return "integer" if not set(body).intersection(".eE") or float(body).is_integer() else "number"


def _repaired(body: str, allowed: Kinds, note: AddNote) -> str | None:
    """A Python literal or broken JSON as JSON, if its type is allowed.

    If a string is allowed too, only text that cannot be meant as one counts: valid JSON or Python.
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
    rules = {rule for rule, _ in notes} - DOUBLED
    if source.pos < len(body) or ("string" in allowed and rules - FROM_PYTHON) or (rules and allowed == ANY):
        return None
    for rule, detail in notes:
        note(*(("python-literal", "") if rule in FROM_PYTHON else (rule, detail)))
    return "".join(parts)


def _unescaped(body: str) -> str:
    """The object or list in a text that is escaped like the content of a JSON string, `[{\\"id\\": 1}]`; "" if it is none."""
    whole = whole_value(f'"{body}"', 0) if '\\"' in body else None
    if whole is None or whole[1] < len(body) + 2:
        return ""
    text = str(whole[0])
    return text if _json_kind(text) in ("object", "array") else ""


def _transcoded(body: str, kind: str, note: AddNote) -> str | None:
    """A Python literal that is far from JSON as JSON: a list or a dict, judging by its beginning."""
    notes: list[tuple[str, str]] = []
    text = keywords.transcode(body, lambda rule, detail, _=None: notes.append((rule, detail)))
    if {rule for rule, _ in notes} - DOUBLED or OPENS.get(text[:1]) != kind:
        return None
    note("python-literal", "")
    for rule, detail in notes:
        note(rule, detail)
    return text
