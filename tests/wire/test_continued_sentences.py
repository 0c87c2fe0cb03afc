"""A sentence that begins with a call and goes on behind it on the line: for every dialect, what shows it and what does not."""

from __future__ import annotations

from functools import partial

import pytest
from hard_cases import TOOLS, find
from spoken import TALKING, wire
from wire_cases import called, read_at_cuts, stream

from cost import LINEAR, growth
from toolspeak.dialects import get
from toolspeak.events import CallEnd
from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker
from toolspeak.verbs import run
from toolspeak.wire.decode import Decoder
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect
from toolspeak.wire.reading.continued_sentences import WINDOW, continues
from toolspeak.wire.reading.lexicon import program
from toolspeak.wire.reading.open_ended import TEXT_OR_OBJECT

HERMES = get("hermes")
INLINE = [d for d in TALKING if not d.header and d.name != "llama3-builtin" and d.call[-1] != TEXT_OR_OBJECT]
"""Dialects in which a text may follow a call on its line."""
CLOSED = [d for d in INLINE if any((isinstance(d.call[-1], str), d.close, d.items))]
"""Dialects in which something closes a call."""
TALK = (
    " is how I would call it, but I will not do that without your permission.",
    " would be wrong",
    " instead.",
    " isn't what I want",
    " and/or nothing",
    " e.g. deletes everything",
    " (do not run this)",
    "(do not run this)",
    " [not executed]",
    " （不要运行）",
    ", which is wrong.",
    "，但是我不会这样做",
    ": this is how",
    "; that would be wrong",
    " - but I will not",
    " — but I will not",
    " -> the list of all",
    " → the list of all",
    " = the call",
    " // dry run only",
    " /* dry run only */",
    " <!-- dry run only -->",
    " *would* be wrong",
    ' "is how" I would do it',
    "? No, I will not.",
    "... but I will not",
    " ] is how",
)
"""The call is in a sentence that goes on, so it never runs."""
NEW = (
    "",
    ".",
    "!",
    " Let me wait for the result.",
    "Let me wait for the result.",
    "\nis what I call.",
    " \nis what I call.",
    "\n\n(I wait.)",
    "\n- It is called.",
    "我来查询一下。",
    " 我来查询一下。",
    " मैं देखता हूं।",
    "assistant",
    "assistant\nI wait.",
    " assistant\nI wait.",
    " call_1",
    " functions.ping:1",
    " ✅",
    " ✅ It is called.",
    " **Then** I wait.",
    " 1. Then I wait.",
    " ### Then",
    "### Then",
    " ---\nI wait.",
    " [DONE]",
    " [1]",
    " <br>",
    "<b>It is called.</b>",
    ",",
    " -",
    " (",
    " :)",
    " #",
)
"""What models write behind a call that they mean."""
MAY_BELONG = (",", ":)", "[DONE]", "[1]")
"""Such a text may be a further part of a call that nothing closes."""


read = partial(read_at_cuts, tools=TOOLS, every=3)


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_a_call_in_a_sentence_that_goes_on_is_not_whole(d: Dialect) -> None:
    call = wire(d, find("two words")).strip()
    for behind in TALK:
        text = f"I look.\n{call}{behind}"
        reply = read(d, text)
        assert (called(reply), behind.strip(" ]") in reply.text) == ([], True), text
        assert [note.detail for note in reply.notes if note.rule == "trailing-text"], text
        for form in ("{}{}\nI wait.", "{}{}", "So:\n<action>\n{}{}\n</action>", "- {}{}", "```\n{}{}\n```"):
            if "`" not in form or "`" not in call:
                assert called(collect(stream(d, [form.format(call, behind)], TOOLS))) == [], (form, behind)


@pytest.mark.parametrize(
    "d", [d for d in TALKING if d not in INLINE and d.name != "llama3-builtin"], ids=lambda d: d.name
)
def test_a_call_that_any_text_on_its_line_belongs_to(d: Dialect) -> None:
    call = wire(d, find("two words")).strip()
    for behind in TALK:
        assert called(read(d, f"{call}{behind}")) == [], behind


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_a_call_with_something_else_behind_it_is_whole(d: Dialect) -> None:
    call = wire(d, find("two words")).strip()
    stops = {*d.stop}.difference(program(d, True).strays)
    for behind in (*NEW, *map("{} is how.".format, sorted(stops))):
        if d in CLOSED or behind.strip() not in MAY_BELONG:
            assert called(read(d, f"{call}{behind}")) == ["find"], behind
            assert called(collect(stream(d, [f"I look.\n{call}{behind}"], TOOLS))) == ["find"], behind


@pytest.mark.parametrize("d", [d for d in INLINE if d.thinking], ids=lambda d: d.name)
def test_a_call_that_ends_a_thought_and_one_behind_it(d: Dialect) -> None:
    assert d.thinking
    call, close = wire(d, find("two words")).strip(), d.thinking.close.strip()
    if d.thinking.open.strip() and close:
        opened = f"{d.thinking.open}I look.{d.thinking.close}"
        assert called(read(d, f"{opened}{call}")) == ["find"]
        assert called(read(d, f"{opened}{call} is how I would do it.")) == []


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_each_call_of_a_reply_is_looked_at(d: Dialect) -> None:
    """Its own line decides about a call. Another call behind it, with a comma or without, does not continue it."""
    call = wire(d, find("two words")).strip()
    behind = " is how I would do it."
    assert called(read(d, f"{call}{behind}\n{call}")) == ["find"]
    assert called(read(d, f"{call}\nI wait.\n{call}{behind}")) == ["find"]
    if d in CLOSED:
        assert called(read(d, f"{call} {call}")) == ["find", "find"]
        assert called(read(d, f"{call}, {call}")) == ["find", "find"]


@pytest.mark.parametrize("d", [d for d in INLINE if program(d, True).closers_of_calls], ids=lambda d: d.name)
def test_closers_too_many_hide_no_sentence(d: Dialect) -> None:
    call = wire(d, find("two words")).strip()
    for stray in program(d, True).strays:
        assert called(read(d, f"{call}{stray}\nI wait.")) == ["find"], stray
        assert called(read(d, f"{call}{stray} is how I would do it.")) == [], stray


def test_a_comment_behind_a_call_that_ends_a_line_is_a_text() -> None:
    """Like any other text on its line, and unlike a control marker."""
    call = wire(HERMES, find("two words")).strip()
    assert called(read(HERMES, f"I look: {call} <!-- dry run only -->")) == []
    assert called(read(HERMES, f"I look: {call} <end>")) == ["find"]


@pytest.mark.parametrize(
    ("behind", "waits", "whole"),
    [
        ("\n", "", True),
        (" L", " ", True),
        ("L", "", True),
        ("<|im_end|>", "<|im_end|", True),
        ("<tool_call>", "<tool_call", True),
        (". ", ".", True),
        ("我", "", True),
        (" assistant\n", " assistant", True),
        (" call_1 ", " call_1", True),
        (" is how I would do it.\n", " is how I would do", False),
        (" // dry run\n", " // dry run", False),
    ],
)
def test_a_call_is_released_as_soon_as_its_line_is_known(behind: str, waits: str, whole: bool) -> None:
    call = wire(HERMES, find("two words")).strip()
    decoder = Decoder(HERMES, TOOLS)
    first = [event for c in call + waits for event in decoder.feed(c)]
    assert not [event for event in first if isinstance(event, CallEnd)]
    rest = decoder.feed(behind[len(waits) :])
    assert [event.whole for event in rest if isinstance(event, CallEnd)] == [whole]


def test_no_more_than_a_word_is_waited_for() -> None:
    """Nor for a long one, nor beyond many blanks."""
    for behind, whole in ((" " + "a" * 99, True), (" " * 300 + "is how", True), (" " + "-" * 99 + " no", True)):
        call = wire(HERMES, find("two words")).strip()
        assert called(read(HERMES, call + behind)) == ["find"] * whole
        decoder = Decoder(HERMES, TOOLS)
        events = [*decoder.feed(call), *decoder.feed(behind)]
        assert [event for event in events if isinstance(event, CallEnd)]


def test_no_more_of_a_line_changes_what_is_known_of_it() -> None:
    for behind in (*TALK, *NEW):
        line = behind.partition("\n")[0][:WINDOW]
        verdict = continues(line, True)
        for size in range(len(line)):
            assert continues(line[:size], False) in (None, verdict), line[:size]


def test_the_model_is_asked_again() -> None:
    ran: list[str] = []

    def find(query: str) -> str:
        ran.append(query)
        return "found"

    call = '<tool_call>\n{"name": "find", "arguments": {"query": "%s"}}\n</tool_call>'
    model = Scripted([call % "a" + " is how I would do it.", call % "b" + " Let me wait.", "Done."])
    reply = run("Find it.", tools=[find], model=Speaker(model, HERMES))
    assert (reply.text, ran, len(model.requests)) == ("Done.", ["b"], 3)


@pytest.mark.parametrize("behind", [" is how.\n", " -", " [a.", " ", "</tool_call>"])
def test_many_sentences_take_linear_time(behind: str) -> None:
    unit = wire(HERMES, find("two words")).strip() + behind
    assert growth(lambda n: lambda: stream(HERMES, [unit * n], TOOLS), 50) <= LINEAR
