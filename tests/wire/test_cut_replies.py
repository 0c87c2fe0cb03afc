"""A reply that its model's server cut inside a call: nothing of the call's wire is left in the text, and no word before it
is lost."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterable

import pytest
from spoken import TALKING, wire
from test_unread_markers import MARKED, TALKING as TALK, marks
from wire_cases import cuts, merged, rotated

from toolspeak.events import Event
from toolspeak.schema.infer import as_tools
from toolspeak.types import Reply
from toolspeak.wire.decode import Decoder
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect
from toolspeak.wire.reading.lexicon import program

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = as_tools([{"name": "delete_file", "parameters": PATH}])
CALL = ("delete_file", {"path": "/data"})
BEFORE = ("", "I look.\n", "I look: ")
MORE = "I think of this and that. " * 20
"""More words than the head of a message or a name has characters."""
WORDS = (
    "Use functools",
    "Tell me when to call:",
    "The plan.\nAction:",
    "Set to=",
    "The token <|channel|> begins a part of it",
    "A turn.\n<|start|>assistant to= is how it begins",
)
"""Answers that end with an opener which is a word, or with a sentence behind the marker of a message."""
UNMARKED = {"functionary-v3", "glm4"}
"""Dialects whose calls are messages, and whose marks may open an answer in words as well."""
READ_AHEAD = {"functiongemma", "gemma4"}
"""Dialects in which the end of a value is known from the closers behind it: half of these stays text."""


def cut_off(d: Dialect, chunks: Iterable[str]) -> list[Event]:
    """The events of a text that its server cut."""
    decoder = Decoder(d, TOOLS, "")
    return [*(event for chunk in chunks for event in decoder.feed(chunk)), *decoder.close(cut=True)]


def read(d: Dialect, text: str) -> Reply:
    """The reply of a text that its server cut, the same wherever the stream is cut."""
    events = cut_off(d, [text])
    for chunks in list(cuts(text, random.Random(text)))[:1]:
        assert merged(cut_off(d, chunks)) == merged(events), chunks
    return collect(events)


def half_marks(d: Dialect, text: str) -> set[str]:
    """The beginnings of the openers in a text, that of a call in `d`."""
    p = program(d, True)
    openers = [word for word in (*p.entries, *p.heads, *p.bare, text.split("\n")[0]) if word.strip()]
    return {word.strip()[:size] for word in openers for size in range(1, len(word.strip()))}


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
def test_nothing_of_a_cut_call_is_left_in_the_text(d: Dialect) -> None:
    text = wire(d, CALL)
    begun = program(d, True).markers_of_calls
    for before in BEFORE:
        for at in rotated(range(1, len(text)), 5, zlib.crc32(f"{d.name}{before}".encode())):
            reply = read(d, before + text[:at])
            rest = reply.text.strip().removeprefix(before.strip()).strip()
            assert {(call.name, str(call.arguments)) for call in reply.calls if call.whole} <= {(CALL[0], str(CALL[1]))}
            if d.name in UNMARKED or not begun or (reply.calls and d.name in READ_AHEAD):
                continue
            assert not rest or (not reply.calls and rest in half_marks(d, text)), text[:at]
            if not reply.calls and not rest and text[:at].strip():
                assert (reply.finish, [note.rule for note in reply.notes][-1:]) == ("length", ["cut-call"])


@pytest.mark.parametrize("d", MARKED, ids=lambda d: d.name)
def test_talk_about_markers_loses_nothing_when_it_is_cut(d: Dialect) -> None:
    opener, closer = marks(d)
    block = f"{opener}\nls -la\n{closer}"
    for what, form in TALK.items():
        text = form.format(open=opener, close=closer, block=block, quoted=block.replace("\n", "\n> "))
        if d.name == "mirothinker" and what == "the opener alone, explained":
            continue  # any words on a line may be the name of a server
        whole = Decoder(d, TOOLS, "")
        assert read(d, text).text == collect([*whole.feed(text), *whole.close()]).text, what


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
def test_a_thought_that_is_cut_loses_only_the_beginning_of_a_call(d: Dialect) -> None:
    """A text with an opener in a thought is held back, and read only when the reply is over."""
    call, thinking = wire(d, CALL), d.thinking
    opener = call[: call.index(CALL[0])]
    tags = {"<think>", "<thinking>", thinking.open if thinking else "<think>"}
    for tag in sorted(filter(str.strip, tags)):
        for behind in (f" is how a call begins. {MORE}", f"\n{MORE}\n{call[:-1]} {MORE}", f"\n{call}\n{MORE}"):
            text = f"{tag}{MORE}\n{opener}{behind}"
            whole = Decoder(d, TOOLS, "")
            expected = collect([*whole.feed(text), *whole.close()])
            reply = read(d, text)
            assert (reply.text, reply.thought) == (expected.text, expected.thought), text
            assert reply.calls == expected.calls, text


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
def test_an_answer_in_words_loses_nothing_when_it_is_cut(d: Dialect) -> None:
    for text in ("If a <", "Use `x[", "See [", "A table:\n<", "It is {", "1. first\n2.", "f(x", "Wait…\n\n", *WORDS):
        assert read(d, text).text == text
