"""Thoughts in tags that are none of the dialect: they stay text, and only a call at the very end of one counts."""

from __future__ import annotations

import random
from functools import partial

import pytest
from hard_cases import TOOLS, find
from spoken import TALKING, wire
from wire_cases import called, read_at_cuts, stream

import toolspeak as ts
from cost import LINEAR, growth
from toolspeak.dialects import get
from toolspeak.models.speaker import Speaker
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect
from toolspeak.wire.reading.lexicon import MARK, program
from toolspeak.wire.thought_tags import THOUGHT_TAGS, thought_tags

HERMES = get("hermes")
DRAFTS = {
    "a draft": "{open}\nI could call it:\n{call}\nbut I should ask first.\n{close}\n\nShall I delete it?",
    "a draft after words": "Well.\n\n{open}\nI could call it:\n{call}\nOr not.\n{close}\nShall I?",
    "nothing but the draft": "{open}\n{call}\n{close}\n\nShall I?",
    "on the line of the tags": "{open}I could call it: {call}{close}\nShall I?",
    "two drafts": "{open}\nEither:\n{call}\nor:\n{call}\nHm.\n{close}\n\nShall I?",
    "after a long thought": "{open}\n" + "Many words.\n" * 99 + "{call}\nNo.\n{close}\n\nShall I?",
    "a thought that was cut": "{open}\nI could call it:\n{call}\nbut I should",
    "a fence": "{open}\nI could write:\n```\n{call}\n```\nbut no.\n{close}\nShall I?",
}
"""None of these calls is one."""
CALLED = {
    "after the thought": "{open}\nI look.\n{close}\n\n{call}",
    "after a thought in a line": "{open}I look.{close}\n{call}",
    "after a thought and words": "{open}\nI look.\n{close}\nI look.\n{call}\nI wait.",
    "after a draft": "{open}\nI could call it:\n{call}\nYes.\n{close}\n\n{call}",
    "after a tag in a sentence": "The tag {open} opens it.\n{call}",
    "after a tag in a fence": "So:\n```\n{open}\n```\n{call}",
}
"""One call is read here."""
AT_THE_END = {
    "in the thought": "{open}\nI look.\n{call}\n{close}",
    "in a thought after words": "I say.\n{open}\nI look.\n{call}\n{close}\n",
    "in a thought that nothing closes": "{open}\nI look.\n{call}",
}
"""The same, with a note."""
INLINE = [d for d in TALKING if not d.header and d.name != "llama3-builtin"]
"""Without dialects whose calls are messages, and one in which all that stands behind a mark is code."""
MESSAGES = [d for d in TALKING if d.header]


read = partial(read_at_cuts, tools=TOOLS)


def foreign(d: Dialect) -> tuple[str, str]:
    """A pair of tags that the dialect does not have, always the same."""
    tags = [pair for pair in THOUGHT_TAGS.items() if pair[0] in program(d, True).foreign and pair[0][0] == "<"]
    return random.Random(d.name).choice(tags)


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_a_draft_in_tags_of_a_thought_is_text(d: Dialect) -> None:
    call = wire(d, find("two words")).strip()
    for what, form in DRAFTS.items():
        opener, closer = foreign(d)
        text = form.format(open=opener, close=closer, call=call)
        reply = read(d, text)
        assert (reply.text, reply.thought, reply.calls) == (text, "", ()), (what, opener)


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_a_call_after_a_thought_is_one(d: Dialect) -> None:
    call = wire(d, find("two words")).strip()
    for what, form in CALLED.items():
        opener, closer = foreign(d)
        assert called(read(d, form.format(open=opener, close=closer, call=call))) == ["find"], (what, opener)


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_a_call_at_the_very_end_of_a_thought_is_one(d: Dialect) -> None:
    call = wire(d, find("two words")).strip()
    for what, form in AT_THE_END.items():
        opener, closer = foreign(d)
        reply = read(d, form.format(open=opener, close=closer, call=call))
        assert called(reply) == ["find"], (what, opener)
        assert {"call-in-thought", "unclosed-thought"} & {note.rule for note in reply.notes}, what


@pytest.mark.parametrize("d", MESSAGES, ids=lambda d: d.name)
def test_a_draft_in_dialects_whose_calls_are_messages(d: Dialect) -> None:
    call = wire(d, find("two words")).strip()
    for tag in ("think", "thinking"):
        for what, form in DRAFTS.items():
            text = form.format(open=f"<{tag}>", close=f"</{tag}>", call=call)
            assert what in ("two drafts", "a fence") or called(read(d, text)) == [], what


@pytest.mark.parametrize("opener", THOUGHT_TAGS)
def test_every_pair_of_tags(opener: str) -> None:
    call = wire(HERMES, find("two words")).strip()
    text = DRAFTS["a draft"].format(open=opener, close=THOUGHT_TAGS[opener], call=call)
    assert called(read(get("llama3-json"), text.replace(call, wire(get("llama3-json"), find("x"))))) == []
    assert called(read(HERMES, text)) == []


def test_the_tags_of_every_dialect_are_known() -> None:
    """Those that are tags, not tokens of one tokenizer."""
    for d in TALKING:
        for opener, closer in (thought_tags(d.thinking) if d.thinking else {}).items():
            if closer == f"</{opener[1:]}" and MARK.fullmatch(opener) and not set(opener) & set("|0123456789"):
                assert THOUGHT_TAGS[opener] == closer


def test_a_thought_that_the_prompt_opened() -> None:
    """A model of a dialect without thoughts that was taught to think: its template opens the thought."""
    d = get("llama3-json")
    call = wire(d, find("two words"))
    for text, calls in ((f"I could:\n{call}\nNo.\n</think>\nShall I?", []), (f"Hm.\n</think>\n\n{call}", ["find"])):
        reply = collect(stream(d, [text], TOOLS, "<|start_header_id|>assistant<|end_header_id|>\n\n<think>\n"))
        assert (called(reply), reply.thought) == (calls, "")


def test_the_mark_of_an_end_is_none_of_the_text() -> None:
    for text in ("<thinking>\nI wait.", "<thinking>\nI wait.\n</thinking>\nDone."):
        assert read(get("kimi-k2"), text + "<|im_end|>").text == text


@pytest.mark.parametrize("form", ["<thinking>\n{call}\n", "<thinking>\n{call}\n</thinking>\n", "<thinking>\n"])
def test_many_thoughts_take_linear_time(form: str) -> None:
    unit = form.format(call=wire(HERMES, find("two words")).strip())
    assert growth(lambda n: lambda: stream(HERMES, ["So:\n" + unit * n], TOOLS), 50) <= LINEAR


def test_a_draft_does_not_run() -> None:
    ran: list[str] = []

    def delete(path: str) -> str:
        """Delete a file."""
        ran.append(path)
        return "done"

    call = '<tool_call>\n{"name": "delete", "arguments": {"path": "/data"}}\n</tool_call>'
    text = f"<thinking>\nI could call it:\n{call}\nbut I should ask first.\n</thinking>\n\nShall I delete it?"
    reply = ts.run("go", tools=[delete], model=Speaker(ts.Scripted([text, "DONE"]), "hermes"))
    assert (ran, reply.text) == ([], text)
