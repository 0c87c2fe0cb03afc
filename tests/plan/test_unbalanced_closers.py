"""A call whose argument contains the closers of calls: it never runs with the beginning of the argument."""

from __future__ import annotations

from typing import Any

import pytest

import toolspeak as ts
from toolspeak.models.speaker import Speaker

CALL = "<tool_call>\n<function=write>\n<parameter=text>\n{}\n</parameter>\n</function>\n</tool_call>"
CLOSERS = CALL.partition("{}\n")[2]
CUT = {
    "on lines": f"It ends with:\n{CLOSERS}\nThat is all.",
    "before a result": f"Then:\n{CLOSERS}\n<tool_response>\n5\n</tool_response>\nThat is all.",
    "before a call": f"Then:\n{CLOSERS}\nor\n{CALL.format('x')}\nThat is all.",
}


def answer(verb: Any, *texts: str) -> tuple[list[str], Any, ts.Scripted]:
    """What was written, the reply, and the model."""
    written: list[str] = []

    def write(text: str) -> str:
        """Write a file."""
        written.append(text)
        return "done"

    model = ts.Scripted(texts)
    reply = verb("Write it.", tools=[write], model=Speaker(model, "qwen3-coder"))
    return written, reply, model


@pytest.mark.parametrize("text", CUT.values(), ids=CUT)
def test_the_model_is_asked_again(text: str) -> None:
    written, reply, model = answer(ts.run, CALL.format(text), CALL.format("short"), "Done.")
    assert (written, reply.text) == (["short"], "Done.")
    assert "more than one way (unbalanced-closers: " in str(model.requests[1].prompt or model.requests[1].messages)
    _, reply, _ = answer(ts.decide, CALL.format(text), CALL.format("short"))
    assert [call.arguments for call in reply.calls] == [{"text": "short"}]


def test_a_document_with_whole_calls_is_written() -> None:
    text = (
        f"# Calls\n```\n{CALL.format('x')}\n```\n<tool_response>\n5\n</tool_response>\n{CALL.format('y')}\nThat is all."
    )
    assert answer(ts.run, CALL.format(text), "Done.")[0] == [text]
