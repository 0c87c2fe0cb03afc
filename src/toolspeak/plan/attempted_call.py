"""A text that was meant as a call: it ends with the beginning of one, or has the markers of a call around something else.

Nothing in it can be run, and it is no answer either. So the model is asked again, with the form of a call. If it cannot do
better, the text counts.

A call behind what begins the turn of another role is either a call behind an example, or a part of a dialogue that the
model invents behind its answer. So the model is asked again once, whatever the text is.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..events import Event, Noted
from ..types import Message, Reply, Request
from ..wire.turn_heads import RULES

TRIES = 3
"""The most texts in a row that were meant as calls; the last one counts as the answer."""
CUT = ("length", "content_filter")
"""Finish reasons of a reply that is incomplete."""
UNREAD = "unread-call"
"""The rule of the note on markers of a call around something else."""
LOST = "call-in-turn"
"""The rule of the note on a call that stood behind what begins the turn of another role."""
BEGUN = "cut-opener"
"""The rule of the note on the beginning of a call at the end of the reply."""
HALF = "The reply ended with the beginning of a call"
NOT_A_CALL = "That was no tool call, so nothing was run: the text between its markers does not have the form of a call"
IN_TURN = "The call of {!r} was not run: before it, your text begins the turn of another role ({!r})"
AS_DESCRIBED = "Use exactly the form that the description of the tools shows"
"""What to say of the form of a call that cannot be written in the prompt."""


def attempted(reply: Reply, request: Request) -> str:
    """What is wrong with a text that was meant as a call; "" if it was not, or if no call is allowed."""
    if any((reply.calls, not request.tools, request.choice == "none", reply.finish in CUT)):
        return ""
    return _fault(reply, {note.rule: note.detail for note in reply.notes})


def _fault(reply: Reply, notes: Mapping[str, str]) -> str:
    """What is wrong with a text that was meant as a call, by the notes on it."""
    empty = all(("no-calls" in notes, not reply.text.strip()))
    if any((empty, UNREAD in notes)):
        form = notes.get(UNREAD, "")
        return f"{NOT_A_CALL}. {f'Between the markers, write: {form}' if form else AS_DESCRIBED}"
    if LOST in notes:
        head = next((notes[rule] for rule in RULES if rule in notes), "")
        return IN_TURN.format(notes[LOST], head)
    return HALF if BEGUN in notes else ""


def notes_markers(event: Event) -> bool:
    """Whether this is the note that something else than a call stands between the markers of one, or only its beginning."""
    return isinstance(event, Noted) and event.note.rule in (UNREAD, BEGUN)


def tries_of(reply: Reply, request: Request, tries: int = TRIES) -> int:
    """The most replies in a row until this one counts: `tries`, or 2 if its only calls are in the turn of another role."""
    lost = any(note.rule == LOST for note in reply.notes)
    return min(tries, 2) if all((lost, not reply.calls, request.choice == "auto")) else tries


def in_full(wrong: str) -> list[Message]:
    """The messages that ask for the whole call."""
    return [{"role": "user", "content": f"{wrong}. Write the whole call, or answer in words."}]
