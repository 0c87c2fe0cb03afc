"""Calls between marks on lines of their own, and in items of lists: which ones only show a call, for every dialect."""

from __future__ import annotations

from functools import partial

import pytest
from hard_cases import TOOLS, find
from spoken import TALKING, wire
from wire_cases import called, merged, read_at_cuts, stream

from cost import LINEAR, growth
from toolspeak.dialects import get
from toolspeak.types import Tool
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect

HERMES = get("hermes")
INLINE = [d for d in TALKING if not d.header and d.name != "llama3-builtin"]
"""Without dialects whose calls are messages, and one in which all that stands behind a mark is code."""
SHOWN = {
    "a tag": "For example:\n<example>\n{call}\n</example>\nThis is how a call looks.",
    "a tag with attributes": 'So:\n\n<example lang="x">\n\n{call}\n\n</example>\n\nThis is it.',
    "a tag on the line of the call": "So:\n<example>{call}</example>\nThis is it.",
    "a tag in a tag": "So:\n<a>\n<b>\n{call}\n</b>\n</a>\nThis is it.",
    "two calls in a tag": "So:\n<example>\n{call}\n{call}\n</example>\nThis is it.",
    "a tag after many lines": "Many words.\n" * 99 + "<example>\n{call}\n</example>\nThis is it.",
    "an environment of TeX": "So:\n\\begin{{verbatim}}\n{call}\n\\end{{verbatim}}\nshows it.",
    "a tag in brackets": "So:\n[code]\n{call}\n[/code]\nshows it.",
    "the same mark twice": "So:\n{{code}}\n{call}\n{{code}}\nshows it.",
    "marks of a template": "So:\n{{% raw %}}\n{call}\n{{% endraw %}}\nshows it.",
    "quotes of a docstring": "So:\n'''\n{call}\n'''\nis the docstring.",
    "other quotes of a docstring": 'So:\n"""\n{call}\n"""\nis the docstring.',
    "an item of a list": "* {call}\n* or nothing\n\nPick one.",
    "another item": "Either:\n- {call}\n- or nothing",
    "a numbered item": "1. {call}\n2. then the rest",
}
"""A text only shows the call here: it stays text, byte for byte."""
CALLED = {
    "a tag that is the reply": "<action>\n{call}\n</action>",
    "a tag that begins the reply": "<action>\n{call}\n</action>\nI wait.",
    "a tag that ends it": "I look.\n<answer>\n{call}\n</answer>",
    "tags that end it": "I look.\n<response>\n<action>\n{call}\n</action>\n</response>\n",
    "another marker of calls": "I look.\n<tool_call>\n{call}\n</tool_call>",
    "a section of another dialect": "I look.\n<function_calls>\n{call}\n</function_calls>\nI wait.",
    "tokens of another dialect": "I look.\n<|tool|>\n{call}\n<|/tool|>\nI wait.",
    "a tag without its closer": "I look.\n<action>\n{call}\nI wait.",
    "an item": "- {call}",
    "an item with a text below": "1. {call}\nI wait.",
    "the last item": "I look:\n- I think.\n- {call}\n\nThen I go on.",
    "a heading": "<b>Step 1</b>\n{call}\nI wait.",
    "another heading": "**Search**\n\n{call}\n\n**Then**\n\nI go on.",
    "between rules": "I look.\n\n---\n\n{call}\n\n---\n\nI wait.",
}
"""A call is read here."""


read = partial(read_at_cuts, tools=TOOLS)


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_what_only_shows_a_call_stays_text(d: Dialect) -> None:
    call = wire(d, find("two words")).strip()
    for what, form in SHOWN.items():
        text = form.format(call=call)
        reply = read(d, text)
        assert (reply.text, reply.calls) == (text, ()), what
        if form.count("{call}") == 1:
            text = form.format(call=f"<|tool|>\n{call}\n<|/tool|>")  # tokens of another family
            reply = read(d, text)
            assert (reply.text, reply.calls) == (text, ()), what


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_models_put_real_calls_between_marks(d: Dialect) -> None:
    call = wire(d, find("two words")).strip()
    for what, form in CALLED.items():
        if not ("tool_call>" in form and "tool_call>" in call):
            assert called(read(d, form.format(call=call))) == ["find"], what


def test_what_is_above_a_call_is_known_however_its_text_came() -> None:
    """A string that is text was passed on without it."""
    text = '{"":"\n<t\\\\"{"name":"ping","arguments":>{"name":"ping","arguments":l'
    tools = [Tool("ping", "", {"type": "object", "properties": {}})]
    d = get("granite3")
    for size in (1, 2, 3):
        chunks = [text[at : at + size] for at in range(0, len(text), size)]
        assert merged(stream(d, chunks, tools)) == merged(stream(d, [text], tools))


def test_several_pairs_and_items_of_calls_are_calls() -> None:
    call = wire(HERMES, find("two words")).strip()
    for form in ("I look:\n- {0}\n- {0}\n", "I look:\n1. {0}\n2. {0}", "So:\n<step>\n{0}\n</step>\n{0}"):
        assert called(read(HERMES, form.format(call))) == ["find", "find"]


def test_a_long_call_between_marks_is_held_back_up_to_a_limit() -> None:
    """Up to the limit an example is text; above it, its call has left already and is not whole."""
    for size, calls in ((60_000, []), (70_000, [False])):
        call = wire(HERMES, find("x" * size)).strip()
        text = f"So:\n<example>\n{call}\n</example>\nThat is it."
        events = stream(HERMES, [text], TOOLS)
        assert [c.whole for c in collect(events).calls] == calls
        chunks = [text[i : i + 7] for i in range(0, len(text), 7)]
        assert merged(stream(HERMES, chunks, TOOLS)) == merged(events)


@pytest.mark.parametrize(
    "form", ["<x>\n{call}\n</x>\n", "<x>\n{call}\n</x>\nSo.\n", "- {call}\n- Hm.\n", "<x>\n", "- {call}\n"]
)
def test_many_surroundings_take_linear_time(form: str) -> None:
    unit = form.format(call=wire(HERMES, find("two words")).strip())
    assert growth(lambda n: lambda: stream(HERMES, ["So:\n" + unit * n], TOOLS), 50) <= LINEAR
