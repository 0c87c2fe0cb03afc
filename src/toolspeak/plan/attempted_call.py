"""A text that was meant as a call: it ends with the beginning of one, or has the markers of a call around something else.

Nothing in it can be run, and it is no answer either. So the model is asked again, with the form of a call. If it cannot do
better, the text counts.
"""

from __future__ import annotations

from ..types import Message, Reply, Request

CUT = ("length", "content_filter")
"""Finish reasons of a reply that is incomplete."""
HALF = "The reply ended with the beginning of a call"
NOT_A_CALL = "That was no tool call, so nothing was run: the text between its markers does not have the form of a call"
AS_DESCRIBED = "Use exactly the form that the description of the tools shows"
"""What to say of the form of a call that cannot be written in the prompt."""


def attempted(reply: Reply, request: Request) -> str:
    """What is wrong with a text that was meant as a call; "" if it was not, or if no call is allowed."""
    if reply.calls or not request.tools or request.choice == "none" or reply.finish in CUT:
        return ""
    notes = {note.rule: note.detail for note in reply.notes}
    empty = "no-calls" in notes and not reply.text.strip()
    if empty or "unread-call" in notes:
        form = notes.get("unread-call", "")
        return f"{NOT_A_CALL}. {f'Between the markers, write: {form}' if form else AS_DESCRIBED}"
    return HALF if "cut-opener" in notes else ""


def in_full(wrong: str) -> list[Message]:
    """The messages that ask for the whole call."""
    return [{"role": "user", "content": f"{wrong}. Write the whole call, or answer in words."}]
