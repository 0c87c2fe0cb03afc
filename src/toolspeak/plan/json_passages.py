"""Finds JSON values in a text: alone, in code fences, or in sentences."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple, cast

from ..types import Note
from ..wire.reading.doubtful import DOUBTFUL
from ..wire.reading.json_value import json_value
from ..wire.reading.source import Malformed, Source
from ..wire.turn_ends import TURN_ENDS
from ..wire.turn_heads import MARKS, ROLES, STARTS, USER_LABELS
from .code_fences import fenced, unfenced

OPENER = re.compile(r"[{\[]")
BROKEN = re.compile(r"[{\[]\s*+[\"'{\[]")
"""The beginning of an object or list that is no word in brackets."""
MOST = 32
"""The most places in a sentence that are tried; each may take time proportional to the text."""
BLANKS = 40
"""The most blanks before the head of a turn."""


def _any_of(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, words))


_HEAD = rf"(?:(?:{_any_of(STARTS)})(?:{_any_of(ROLES)})|{_any_of(MARKS)})"
_TURN = re.compile(
    rf"\n[^\S\n]{{0,{BLANKS}}}(?:{_HEAD}|{_any_of(USER_LABELS)})"
    rf"|(?:(?<=[}}\]`])|(?:{_any_of(TURN_ENDS)}))\s{{0,{BLANKS}}}{_HEAD}"
)
"""Matches the head of another role's turn: at the beginning of a line, behind a value, or behind the mark of an end."""


class JsonText(NamedTuple):
    """A value, its JSON text with the digits as they were written, and notes of what was repaired in it."""

    value: Any
    text: str
    notes: tuple[Note, ...] = ()


def own_texts(text: str) -> Iterator[str]:
    """The part of a text before the turn of another role, if one begins behind a line or a value; then the text. A model that
    does not stop behind its value writes the next request too, and another value for that."""
    if turn := _TURN.search(text):
        yield text[: turn.start()]
    yield text


def whole_values(text: str) -> Iterator[JsonText]:
    """The value that is the whole text, or the content of the one code fence around it, repaired as a call's arguments
    are."""
    text = unfenced(text).strip()
    if (match := _value_at(text, 0)) and not text[match[1] :].strip():
        yield match[0]


def json_values(text: str) -> Iterator[JsonText]:
    """The values in a text: the whole text, or the contents of code fences, or else objects and lists in sentences."""
    values = list(whole_values(text))
    if not values:
        values = [value for part in fenced(text) for value in whole_values(part)]
    yield from values or _among_words(text)


def unwrapped(passage: JsonText, keys: set[str], names: Collection[str]) -> JsonText:
    """The object that is alone in a list, or alone under one of `names`. An object with one of `keys` needs none."""
    value, text, notes = passage
    if isinstance(value, list):
        rows = cast("list[Any]", value)
        if len(rows) == 1 and isinstance(rows[0], dict):
            return JsonText(rows[0], text[text.index("[") + 1 : -1].strip(), (*notes, Note("unwrapped-value", "list")))
    elif isinstance(value, dict):
        record = cast("dict[str, Any]", value)
        name = next(iter(record.keys() - keys), "") if len(record) == 1 else ""
        if name.lower() in names:
            inner = text[text.index(":") + 1 : -1].strip()
            return JsonText(record[name], inner, (*notes, Note("unwrapped-value", name)))
    return passage


def fault(text: str) -> str:
    """What is wrong with a text that was meant as a JSON object or list, alone or in a code fence; "" if nothing is or
    if it was not."""
    for part in map(str.strip, (unfenced(text), *fenced(text))):
        if OPENER.match(part):
            try:
                json.loads(part)
            except RecursionError:
                return "it nests too deep"
            except ValueError as error:
                return str(error)
    return ""


def _among_words(text: str) -> Iterator[JsonText]:
    """The objects and lists in sentences. A broken one ends the search: what is inside it is only a part of a value."""
    place = 0
    for _ in range(MOST):
        if (opener := OPENER.search(text, place)) is None:
            return
        match = _value_at(text, opener.start())
        place = match[1] if match else opener.end()
        if match:
            yield match[0]
        elif BROKEN.match(text, opener.start()):
            return


def _value_at(text: str, start: int) -> tuple[JsonText, int] | None:
    """The value at a place of a text, and its end. Objects and lists are repaired unless a repair is a guess."""
    try:
        value, end = json.JSONDecoder().raw_decode(text, start)
        return JsonText(value, text[start:end]), end
    except (ValueError, RecursionError):
        return _repaired(text, start) if OPENER.match(text, start) else None


def _repaired(text: str, start: int) -> tuple[JsonText, int] | None:
    source, parts = Source(), list[str]()
    notes: dict[str, Note] = {}

    def note(rule: str, detail: str = "", _place: int | None = None) -> None:
        notes.setdefault(rule, Note(rule, detail))

    source.add(text[start:])
    source.closed = True
    try:
        for _ in json_value(source, parts.append, note):
            pass
        written = "".join(parts)
        value = json.loads(written)
    except (Malformed, ValueError, RecursionError):
        return None
    if DOUBTFUL & notes.keys():
        return None
    return JsonText(value, written, tuple(notes.values())), start + source.pos
