"""A reply with what was broken in its prompt whole again.

A model that copies a text in which a marker was broken (see `markers`) copies the zero-width space as well. Nobody who
gets the reply shall see that space, least of all a tool that writes a file: so one such space behind a bracket is taken
out again, in texts, thoughts, names and arguments, at every cut the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..events import ArgumentsDelta, CallEnd, CallStart, Event, TextDelta, ThoughtDelta
from .markers import BRACKETS, INVISIBLE, restore

_BRACKET = r"[<\[\]｜]|\\u(?:003[cC]|005[bBdD]|[fF]{2}5[cC])"
_IN_JSON = re.compile(rf"\\[^u]|({_BRACKET})(?:{INVISIBLE}|\\u200[bB])", re.DOTALL)
"""A broken bracket in JSON text, where either may be escaped; other escapes are passed over."""
_LAST = re.compile(rf"(?:{_BRACKET})\Z")
_PARTIAL = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")


class Restorer:
    """Events of a reply in, the same out with what was broken whole."""

    __slots__ = ("_bracket", "_held", "_kind")

    def __init__(self) -> None:
        self._kind: type | None = None
        self._bracket = False  # whether the text so far ends in a bracket
        self._held = ""  # of arguments: a bracket, or an escape that has just begun

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """What these events are."""
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
            if not isinstance(event, TextDelta | ThoughtDelta | ArgumentsDelta) or _said(event):
                out.append(event)
        return out

    def _flush(self, out: list[Event]) -> None:
        """What was held back of arguments is over."""
        self._bracket = False
        if self._held:
            out.append(ArgumentsDelta(self._held))
            self._held = ""

    def _text(self, text: str) -> str:
        if not text:
            return text
        begun, self._bracket = self._bracket, text[-1] in BRACKETS
        if INVISIBLE not in text:
            return text
        return restore(text[1:] if begun and text[0] == INVISIBLE else text)

    def _json(self, text: str) -> str:
        text = self._held + text
        cut = len(text)
        if (partial := _PARTIAL.search(text)) and _escapes(text, partial.start()):
            cut = partial.start()
        if (last := _LAST.search(text, 0, cut)) and (last[0][0] != "\\" or _escapes(text, last.start())):
            cut = last.start()
        self._held = text[cut:]
        return _IN_JSON.sub(lambda match: match[1] or match[0], text[:cut])


def _said(event: TextDelta | ThoughtDelta | ArgumentsDelta) -> str:
    return event.json if isinstance(event, ArgumentsDelta) else event.text


def _escapes(text: str, at: int) -> bool:
    """Whether the backslash there begins an escape: it is no second one of a pair."""
    before = text[: at + 1]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1
