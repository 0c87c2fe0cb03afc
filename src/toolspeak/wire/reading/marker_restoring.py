"""Restores control markers in a reply: removes the invisible spaces that broke them in its prompt.

A model that copies a text with a defused marker (see `prompt.control_markers`) copies the zero-width space as well.
Nobody should receive that space, least of all a tool that writes a file. So one such space after a symbol, or before
the colon of a label, is removed from texts, thoughts, names and arguments, independent of how the text is cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable

from ...events import ArgumentsDelta, CallEnd, CallStart, Event, TextDelta, ThoughtDelta
from ..marker_forms import SYMBOL
from ..prompt.control_markers import BEFORE_COLON, INVISIBLE, restore

_SPACE = rf"(?:{INVISIBLE}|\\u200[bB])"
_HEX = "[0-9a-fA-F]"
_HALF = rf"\\u[dD][89aAbB]{_HEX}{{2}}"
_ESCAPE = rf"(?:{_HALF}\\u[dD][c-fC-F]{_HEX}{{2}}|\\u{_HEX}{{4}}|\\[bt])"
_IN_JSON = re.compile(
    rf"({SYMBOL}){_SPACE}|({BEFORE_COLON}){_SPACE}(?={_SPACE}*(?:[:：]|\\u[fF]{{2}}1[aA]))"
    rf"|({_ESCAPE}){_SPACE}(?=({_SPACE}*(?:[:：]|\\u[fF]{{2}}1[aA]))?)|\\(?:u{_HEX}{{4}}|[^u])",
    re.DOTALL,
)
"""A defused symbol or label in JSON text, where either may be escaped; other escapes are skipped."""
_LETTER = rf"(?<!\\)(?:\\\\)*(?<!\\u{_HEX}{{3}}){BEFORE_COLON}"
_LAST = re.compile(rf"(?:{SYMBOL}|(?<!\\)(?:\\\\)*(?:{_HALF}|({_ESCAPE}))|{_LETTER}){_SPACE}*\Z")
"""What a zero-width space may follow, at the end; the last letter of an escape is none."""
_SYMBOL = re.compile(SYMBOL).fullmatch
_BEFORE_SPACE = re.compile(f"{SYMBOL}|{BEFORE_COLON}").fullmatch
_PARTIAL = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_SPACES = re.compile(f"{INVISIBLE}+\\Z")


class Restorer:
    """Converts the events of a reply to events with markers restored."""

    __slots__ = ("_buffer", "_kind", "_last")

    def __init__(self) -> None:
        self._kind: type[Event] | None = None
        self._last = ""  # the last character of the text so far
        self._buffer = ""  # a possible start of a defused marker: spaces, a symbol, an incomplete escape

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """The events with markers restored."""
        out: list[Event] = []
        for event in events:
            if self._kind is not type(event):
                self._flush(out)
                self._kind = type(event)
            match event:
                case TextDelta(text):
                    event = TextDelta(self._text(text))
                case ThoughtDelta(text):
                    event = ThoughtDelta(self._text(text))
                case ArgumentsDelta(text):
                    event = ArgumentsDelta(self._json(text))
                case CallStart(name, id):
                    event = CallStart(restore(name), id)
                case CallEnd():
                    self._kind = None
                case _:
                    pass
            if not isinstance(event, TextDelta | ThoughtDelta | ArgumentsDelta) or _text_of(event):
                out.append(event)
        return out

    def _flush(self, out: list[Event]) -> None:
        """Emits what was held back."""
        pending, last = self._buffer, self._last
        self._buffer = self._last = ""
        if self._kind is ArgumentsDelta and pending:
            out.append(ArgumentsDelta(pending))
        elif self._kind in (TextDelta, ThoughtDelta) and (rest := restore(last + pending)[len(last) :]):
            out.append(TextDelta(rest) if self._kind is TextDelta else ThoughtDelta(rest))

    def _text(self, text: str) -> str:
        text = self._buffer + text
        spaces = _SPACES.search(text) if text.endswith(INVISIBLE) else None
        self._buffer = spaces[0] if spaces else ""
        text = text[: len(text) - len(self._buffer)]
        if not text:
            return text
        last, self._last = self._last, text[-1]
        return restore(last + text)[len(last) :] if INVISIBLE in text else text

    def _json(self, text: str) -> str:
        text = self._buffer + text
        cut = len(text)
        if (partial := _PARTIAL.search(text)) and _escapes(text, partial.start()):
            cut = partial.start()
        if (last := _LAST.search(text[:cut])) and (not last[1] or _is(_BEFORE_SPACE, last[1])):
            cut = last.start()
        self._buffer = text[cut:]
        return _IN_JSON.sub(_restored, text[:cut])


def _restored(match: re.Match[str]) -> str:
    """The match without the space that defused it."""
    before = match[1] or match[2]
    if match[3] and _is(_BEFORE_SPACE if match[4] else _SYMBOL, match[3]):
        before = match[3]
    return before or match[0]


def _is(kind: Callable[[str], re.Match[str] | None], escape: str) -> bool:
    """Whether this character, written as an escape of JSON, is of that kind."""
    return kind(json.loads(f'"{escape}"')) is not None


def _text_of(event: TextDelta | ThoughtDelta | ArgumentsDelta) -> str:
    return event.json if isinstance(event, ArgumentsDelta) else event.text


def _escapes(text: str, at: int) -> bool:
    """Whether the backslash begins an escape, and is not the second one of a pair."""
    before = text[: at + 1]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1
