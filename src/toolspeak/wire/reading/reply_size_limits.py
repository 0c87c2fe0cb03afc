"""Limits the size of one reply. A larger one ends as if it was cut at its length.

A deadline does not limit how much a model can send until then. Each kind of content is counted separately, since each
is stored until the reply is over: texts, thoughts and the arguments of all calls in characters; calls and notes in
number; likelihoods in bytes of memory, since a server may send any number of alternatives, and anything beside them.
What came before the limit stays; a call that is open then is cut, and so never run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Logprobs, Noted, TextDelta, ThoughtDelta
from ...types import Note

CHARACTERS = 12_000_000
"""Characters of the text, of the thought, and of the arguments of all calls: about three million tokens each."""
CALLS = 128
CALL_VALUES = 100_000
"""The values in the arguments of one call, as `schema.value_count` counts them. A model takes at least two tokens for
each. Every look at an object takes time for each of its names, and a check looks several times."""
NOTES = 10_000
LIKELIHOODS = 20_000_000
"""The most bytes of memory, as an estimate, of likelihoods: of the tokens, of the alternatives to them, and of all that a
server sends with them. About 2,500 tokens have room with 20 alternatives each."""
OBJECT, LIST = 200, 80
"""The bytes that a JSON object with a few fields, and a list, take besides their characters."""


class ReplyBounds:
    """Counts the events of one reply. When `takes` returns False the reply is over, and `ending` gives its last
    events."""

    def __init__(self) -> None:
        self._text = self._thought = self._arguments = CHARACTERS
        self._likelihoods = LIKELIHOODS
        self._calls, self._notes = CALLS, NOTES
        self._open = False

    def takes(self, event: Event) -> bool:
        """Whether an event is within the limits."""
        kind = type(event)
        if kind is TextDelta:
            self._text -= len(event.text)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]
            return self._text >= 0
        match event:
            case ThoughtDelta(text):
                self._thought -= len(text)
            case ArgumentsDelta(json):
                self._arguments -= len(json)
            case CallStart(name, id_):
                self._arguments -= len(name) + len(id_)
                self._calls -= 1
                self._open = self._calls >= 0 and self._arguments >= 0
            case CallEnd():
                self._open = False
            case Noted(note):
                self._arguments -= len(note.detail)
                self._notes -= 1
            case Logprobs(tokens):
                self._likelihoods -= _size(tokens)
            case _:
                pass
        return min(self._thought, self._arguments, self._calls, self._notes, self._likelihoods) >= 0

    def ending(self) -> list[Event]:
        """The last events of a reply that exceeds the limits."""
        counts = {
            f"{CHARACTERS:,} characters of text": self._text,
            f"{CHARACTERS:,} characters of thought": self._thought,
            f"{CHARACTERS:,} characters of arguments": self._arguments,
            f"{CALLS} calls": self._calls,
            f"{NOTES:,} notes": self._notes,
            f"{LIKELIHOODS:,} bytes of likelihoods": self._likelihoods,
        }
        bound = next(name for name, left in counts.items() if left < 0)
        note = Note("reply-bound", f"the reply was ended here: it holds more than {bound}")
        cut: list[Event] = [CallEnd(whole=False)] if self._open else []
        return [*cut, Noted(note), Finished("length")]


def _size(tokens: Sequence[Mapping[str, Any]]) -> int:
    """Estimate the bytes of memory of likelihoods; one that nests too deep to be written is too large."""
    try:
        text = repr(tokens)
    except RecursionError:
        return LIKELIHOODS + 1
    return len(text) + OBJECT * text.count("{") + LIST * text.count("[")
