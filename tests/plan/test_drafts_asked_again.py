"""A call that the model only drafted in its thought: the model is asked again once, is never made to call, and its text counts."""

from __future__ import annotations

import pytest

import toolspeak as ts
from toolspeak.models.base import Capability

CALL = '<tool_call>\n{"name": "delete_note", "arguments": {"number": 7}}\n</tool_call>'
DRAFT = f"Should I call\n{CALL}\nNo, nobody asked for that.</think>\nI left your notes alone."
ANSWER = "I left your notes alone."


@pytest.mark.parametrize("capabilities", [(), ("required",)])
@pytest.mark.parametrize(
    ("replies", "text", "ran"),
    [
        ((DRAFT, DRAFT, CALL), ANSWER, []),
        ((DRAFT, DRAFT.replace("nobody", "he never")), ANSWER, []),
        ((DRAFT, "Fine."), "Fine.", []),
        ((DRAFT, CALL, "Gone."), "Gone.", [7]),
    ],
)
def test_a_run(replies: tuple[str, ...], text: str, ran: list[int], capabilities: tuple[Capability, ...]) -> None:
    deleted: list[int] = []

    def delete_note(number: int) -> str:
        """Deletes a note."""
        deleted.append(number)
        return "gone"

    reply = ts.run("Tidy up", tools=[delete_note], model=ts.Scripted(list(replies), capabilities=capabilities))
    assert (reply.text, reply.finish, deleted) == (text, "stop", ran)


@pytest.mark.parametrize("capabilities", [(), ("required",)])
def test_a_decision(capabilities: tuple[Capability, ...]) -> None:
    def delete_note(number: int) -> None:
        """Deletes a note."""

    model = ts.Scripted([DRAFT, DRAFT, CALL], capabilities=capabilities)
    reply = ts.decide("Tidy up", tools=[delete_note], model=model)
    assert (reply.calls, reply.text, reply.finish) == ((), ANSWER, "stop")
    assert "nobody asked" in reply.thought
    with pytest.raises(ts.GenerationError, match="it was a draft"):
        ts.decide("Tidy up", tools=[delete_note], choice="required", model=ts.Scripted([DRAFT] * 3))
