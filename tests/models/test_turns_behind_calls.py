"""A model of unknown dialect goes on behind its call with the user's next turn: that is no part of its reply."""

from __future__ import annotations

import pytest

import toolspeak as ts
from toolspeak.events import Finished, TextDelta
from toolspeak.models.calls_in_text import Listener
from toolspeak.wire.prompt.calls import write_calls

TURNS = {
    "a label": "\nUser: thanks",
    "labels": "\n\nUser: thanks\n\nAssistant: You are welcome.",
    "ChatML": "\n<|im_start|>user\nthanks<|im_end|>\n<|im_start|>assistant\nYou are welcome.",
    "Mistral": "\n[INST] thanks [/INST] You are welcome.",
}
UNCLOSED = {"functionary-v2", "functionary-v3", "glm4", "llama3-builtin", "beam", "harmony", "muse"}
"""Dialects in which nothing closes the arguments, so what follows may belong to them, or in which a call is a message: a text
behind it shows a draft."""


def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


REQUEST = ts.Request([{"role": "user", "content": "Weather?"}], (ts.tool(weather),))


def heard(text: str, size: int) -> ts.Reply:
    listener = Listener(REQUEST, None)
    pieces = [TextDelta(text[at : at + size]) for at in range(0, len(text), size)]
    return ts.collect([event for one in (*pieces, Finished("stop")) for event in listener.hear(one)])


def call_in(name: str) -> str:
    return write_calls([ts.ToolCall("c1", "weather", {"city": "Rome"})], ts.dialect(name)).strip()


CALLS = {call_in(name): name for name in sorted({*ts.dialects()} - UNCLOSED, reverse=True) if call_in(name)[0] in "`<"}
"""The calls, each once, with one of the dialects that write it so: which one it is, the reader does not know."""


@pytest.mark.parametrize("call", CALLS, ids=CALLS.values())
def test_the_call_counts_and_the_turn_is_left_out(call: str) -> None:
    for turn in TURNS.values():
        for before in ("",) if call[0] == "`" else ("", "I look.\n"):  # a fence behind words is an example
            text = f"{before}{call}{turn}"
            for size in (2, len(text)):
                reply = heard(text, size)
                assert [(call.arguments, call.whole) for call in reply.calls] == [({"city": "Rome"}, True)], text
                assert reply.text.strip() == before.strip()
                assert "invented-turn" in [note.rule for note in reply.notes]


def test_an_example_before_a_result_or_words_stays_text() -> None:
    call = call_in("hermes")
    for behind in ("\n<tool_response>\n42\n</tool_response>\nSo it is.", "\nThe user: thanks", "\nSee?\nUser: thanks"):
        text = f"So:\n{call}{behind}"
        for size in (1, 9, len(text)):
            assert (heard(text, size).text, heard(text, size).calls) == (text, ())


def test_a_fenced_example_stays_text() -> None:
    text = f"For example:\n```xml\n{call_in('hermes')}\n```\nUser: the person who asks.\nAssistant: the model."
    for size in (1, 9, len(text)):
        assert (heard(text, size).text, heard(text, size).calls) == (text, ())


def test_an_indented_call_behind_words_is_an_example() -> None:
    """It counts with up to three spaces, as in Markdown, wherever the text is cut."""
    for spaces in range(6):
        text = f"So I would write:\n\n{' ' * spaces}{call_in('hermes')}"
        for size in (1, 2, 7, len(text)):
            assert len(heard(text, size).calls) == (spaces < 4), (spaces, size)
