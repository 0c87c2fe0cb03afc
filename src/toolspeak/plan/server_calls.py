"""Adds the calls that a server read itself to those in the text of a model whose tools are in the prompt.

Such a server gets no tools, and may read calls all the same. Its calls come among the pieces of the text, while a call in the
text is open or held back. So they wait until the text is over. One that the text has as well counts once (`doubled_calls`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Noted
from ..types import Note, Tool
from .doubled_calls import DoubledCalls, ended_with_calls


class ServerCalls:
    """`hold` takes the server's events other than its text, `join` those that were made of the text in the dialect."""

    def __init__(self, dialect: str, tools: Sequence[Tool[..., Any]]) -> None:
        self._dialect = dialect
        self._waiting: list[Event] = []
        self._in_text = 0
        self._doubled = DoubledCalls(tools)

    def hold(self, event: Event) -> list[Event]:
        """The event, unless it is of a call."""
        kinds = (ArgumentsDelta, CallEnd, CallStart, Noted) if self._waiting else CallStart
        if not isinstance(event, kinds):
            return [event]
        self._waiting.append(event)
        return []

    def join(self, events: Iterable[Event]) -> list[Event]:
        """The events; at the end of the reply, also the server's calls."""
        out = list(events)
        calls = sum(isinstance(event, CallStart) for event in out)
        self._in_text += calls
        if self._in_text:
            out = self._doubled.feed(out, in_text=True)
        end = out[-1] if out else None
        if not isinstance(end, Finished) or not self._waiting:
            return out
        return [*out[:-1], *self._own_calls(), ended_with_calls(end)]

    def _own_calls(self) -> list[Event]:
        """The server's calls without those that the text has, and what is to say of both."""
        own = [*self._doubled.feed(self._waiting, in_text=False), *self._doubled.settled()]
        self._waiting = []
        if self._doubled.count:
            left = "a call" if self._in_text == 1 else f"{self._in_text} calls"
            detail = f"the server left {left} in the text{self._doubled.twice}; read as {self._dialect}"
            own.append(Noted(Note("call-in-text", detail)))
        return own
