"""Decides which text of a reply is passed on while the model writes it.

A text without a schema always is. A text that must match a schema can no longer be mended or asked for again once it is
passed on. So it is passed on only if the model is known to enforce the schema: a probe saw that, a hosted API promises
it, or the engine runs in this process. A server that only accepts the field may ignore it.

Text that was passed on cannot be taken back if the model is asked again. The text of the next attempt follows it after
a blank line.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ..api.openai_chat import is_strict
from ..events import ArgumentsDelta, CallEnd, CallStart, Event, Logprobs, TextDelta, ThoughtDelta
from ..types import Note, Request, Schema

OPENINGS = {"object": "{", "array": "["}
"""How the JSON text of a type begins."""
ANY_OPENING = '{["-0123456789tfn'


class TextGate:
    """Passes on the text of a reply, or holds it back; `passed` says whether that of the last attempt was passed on.

    Text that does not begin like a value of the schema is not constrained, whatever is known of the model, and is held
    back too. So is text for which a part of the schema was left out, because the engine cannot enforce it. With `whole`
    no text with a schema is passed on.
    """

    def __init__(self, request: Request, can: Collection[str], *, whole: bool = False) -> None:
        self._last: dict[type[Event], TextDelta | ThoughtDelta] = {}
        self._gaps: dict[type[Event], str] = {}
        self._free = request.schema is None
        self._enforced = False if whole else _enforced(request, can)
        self._openings = _openings(request.schema)
        self._begin()

    def _begin(self) -> None:
        self.passed = self._free
        self._open = self._enforced
        self._waiting: list[Event] = []
        self._rest: list[TextDelta | Logprobs] | None = None

    def after(self, event: CallStart | ArgumentsDelta | CallEnd) -> None:
        """Take notice of a piece of a call. The text after a broken call is held back until the end: it is the rest of
        that call if the model is asked again, and is dropped then."""
        match event:
            case CallEnd(whole=False) if self._rest is None:
                self._rest = []
            case _:
                pass

    def rest(self) -> list[Event]:
        """Return what may be passed on at the end of what `after` held back."""
        if self._rest is None:
            return []
        rest, self._rest = self._rest, None
        return [piece for event in rest for piece in self.take(event)]

    def note(self, note: Note) -> None:
        """Take notice of a note: a new attempt begins, or a part of the schema is not enforced."""
        if note.rule == "re-asked":
            self._gaps = {kind: blank_line(event.text) for kind, event in self._last.items()}
            self._begin()
        elif note.rule == "schema-simplified":
            self._open = False

    def apart(self, event: TextDelta | ThoughtDelta) -> Event:
        """Return a piece that is passed on, after a blank line if its attempt follows another one with text."""
        self._last[type(event)] = event
        gap = self._gaps.pop(type(event), "") if self._gaps else ""
        return replace(event, text=gap + event.text) if gap else event

    def take(self, event: TextDelta | Logprobs) -> Sequence[Event]:
        """Return what may be passed on now."""
        if self._rest is not None:
            self._rest.append(event)
            return ()
        if self.passed:
            return (self.apart(event) if isinstance(event, TextDelta) else event,)
        if not self._open:
            return ()
        self._waiting.append(event)
        first = event.text.lstrip()[:1] if isinstance(event, TextDelta) else ""
        if not first:
            return ()
        self.passed = self._open = first in self._openings
        return self._waiting if self.passed else ()


def blank_line(text: str) -> str:
    """Return the line breaks that make a blank line after a text; none after no text."""
    return "\n" * (2 - len(text[-2:]) + len(text[-2:].rstrip("\n"))) if text else ""


def _openings(schema: Schema | None) -> str:
    """Return the characters with which a value of the schema may begin."""
    return ANY_OPENING if schema is None else OPENINGS.get(str(schema.get("type")), ANY_OPENING)


def _enforced(request: Request, can: Collection[str]) -> bool:
    """Whether the model is known to enforce the schema of the request. With tools, a reply may also be a call."""
    if request.tools or not {"enforced", "strict"} & {*can}:
        return False
    return "enforced" in can or is_strict(request.schema, root=True)
