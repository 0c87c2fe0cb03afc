"""A text that goes on behind a call, on its line or in its fence: marks of ends and missing openers do not hide it."""

from __future__ import annotations

import random

import pytest
from hard_cases import TOOLS, find
from spoken import TALKING, wire
from wire_cases import cuts, merged, stream

from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect
from toolspeak.wire.reading.lexicon import THINK, program
from toolspeak.wire.reading.open_ended import TEXT_OR_OBJECT

INLINE = [d for d in TALKING if not d.header and "`" not in wire(d, find("two words")) and d.name != "llama3-builtin"]
STOPPED = [(d, stop) for d in INLINE for stop in d.stop if stop.strip() == stop and "]" not in stop]
"""A stop that is a line, or looks like an element of a list, is read otherwise in a fence."""
TALK = {
    "a mark before it": "He wrote Hi{mark}{call} there.",
    "a mark before it in a quotation": 'He wrote "Hi{mark}{call}" there.',
    "a mark on the line above": "He wrote it.{mark}\n{call} there.",
    "a mark before the reply": "{mark}{call} is how I would do it.",
}
"""In each, the text goes on after the call, so it does not run."""
CALLS = {
    "a mark before it": "He wrote it.{mark}{call}\nDone.",
    "a mark on the line above": "He wrote it.{mark}\n{call} I wait.",
    "a mark before the reply": "{mark}{call} I wait.",
}
OPENED_IN_A_QUOTATION = ("Press the ` key: {call} would be wrong.", "He wrote `Hi {call}` there.")
OPENED_IN_A_LINE = ("Press the ` key: {call}", "Press the ` key: {call}\nDone.")
SHOWN = (
    "So:\n```\n{call}{stop}\n```\nThat is it.",
    "So:\n```\n{call}\n{stop}\n```\nThat is it.",
    "So:\n```\n{call}\n```{stop}\nThat is it.",
    "So:\n```\n{call}{stop}\nresult\n{call}{stop}\n```\nThat is it.",
)
MEANT = (
    "So:\n```\n{call}\n```{stop}",
    "So:\n```\n{call}\n```\n{stop}\n",
    "```\n{call}{stop}\n```\nThat is it.",
    "```\n{call}\n```{stop}",
)


def whole(d: Dialect, text: str) -> int:
    """How many calls could run, the same at every cut."""
    events = stream(d, [text], TOOLS)
    for chunks in list(cuts(text, random.Random(text)))[::3]:
        assert merged(stream(d, chunks, TOOLS)) == merged(events)
    return sum(call.whole for call in collect(events).calls)


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_a_mark_before_a_call_hides_no_text_around_it(d: Dialect) -> None:
    call = wire(d, find("two words")).strip()
    closers = [d.thinking.close.strip()] if d.thinking else []
    for mark in filter(None, [*program(d, True).frames, *closers]):
        if mark[0] == "\n" or program(d, True).fresh.get(mark) == THINK:
            continue  # it begins a line, or a thought
        for what, form in TALK.items():
            assert whole(d, form.format(call=call, mark=mark)) == 0, (what, mark)
        for what, form in CALLS.items():
            text = form.format(call=call, mark=mark)
            rest_is_argument = d.call[-1] == TEXT_OR_OBJECT and text.endswith(" I wait.")
            assert whole(d, text) == (0 if rest_is_argument else 1), (what, mark)


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_a_call_whose_opener_is_in_a_quotation(d: Dialect) -> None:
    """It is read without its opener, and its line is that of the opener, too."""
    call = wire(d, find("two words")).strip()
    for form in OPENED_IN_A_QUOTATION:
        assert whole(d, form.format(call=call)) == 0, form
    for form in OPENED_IN_A_LINE:
        reply = collect(stream(d, [form.format(call=call)], TOOLS))
        assert all(one.whole for one in reply.calls), form


@pytest.mark.parametrize(("d", "stop"), STOPPED, ids=lambda v: v if isinstance(v, str) else v.name)
def test_the_mark_of_an_end_in_a_fence(d: Dialect, stop: str) -> None:
    call = wire(d, find("two words")).strip()
    for form in SHOWN:
        text = form.format(call=call, stop=stop)
        assert whole(d, text) == 0, form
        assert collect(stream(d, [text], TOOLS)).text == text
    for form in MEANT:
        assert whole(d, form.format(call=call, stop=stop)) == 1, form
