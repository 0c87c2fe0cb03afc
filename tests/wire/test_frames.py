"""The marks around answers, and at the end of a reply, are no text, whatever the tools."""

from __future__ import annotations

import random

import pytest
from hard_cases import TOOLS
from wire_cases import DIALECTS, cuts, merged, one_of, stream

from cost import LINEAR, growth
from toolspeak.types import Tool
from toolspeak.wire.decode import parse
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect
from toolspeak.wire.reading.lexicon import program


def text_of(d: Dialect, written: str) -> str:
    """The text of a reply, the same at every cut."""
    events = stream(d, [written], TOOLS)
    for chunks in cuts(written, random.Random(written)):
        assert merged(stream(d, chunks, TOOLS)) == merged(events), chunks
    return collect(events).text


@pytest.mark.parametrize("d", DIALECTS, ids=lambda d: d.name)
def test_what_ends_a_reply_is_dropped_whatever_the_tools(d: Dialect) -> None:
    tools = (Tool("ping", "", {"type": "object", "properties": {}}),)
    close = d.thinking.close.strip() if d.thinking else ""
    ends = (*map(str.strip, d.frame), *d.stop, close, *(d.header.ends if d.header else ()))
    for end in filter(None, ends):
        for text in (f"Hi\n{end}", f"Hi \n\n{end}\n", f"Hi\n{end}\n{''.join(d.stop[:1])}", f"Hi\n{end} is it."):
            plain, *others = (parse(text, d, offered) for offered in ((), tools, None))
            assert all((r.text, r.thought) == (plain.text, plain.thought) for r in others), text


@pytest.mark.parametrize("name", ["apriel", "apriel1.5"])
def test_a_frame_may_begin_like_a_list_of_calls(name: str) -> None:
    frame = "[END FINAL RESPONSE]"
    for ending in ("", "\n<|end|>", "<|end|>"):
        assert text_of(one_of(name), f"Hi\n{frame}{ending}").strip() == "Hi"
    assert text_of(one_of(name), f"Hi\n{frame} is it.") == f"Hi\n{frame} is it."


FRAMED = [d for d in DIALECTS if any(mark != mark.strip() for mark in d.frame)]


@pytest.mark.parametrize("d", FRAMED, ids=lambda d: d.name)
def test_a_frame_takes_the_whitespace_of_its_dialect_along(d: Dialect) -> None:
    """In all dialects that have some; what is beyond it is text, and so is a frame in the middle of a text."""
    before = "".join(mark for mark in d.frame if mark.endswith("\n") and not mark.startswith("\n"))
    behind = "".join(mark for mark in d.frame if mark.startswith("\n"))
    thought = d.thinking.open + "Hm." + d.thinking.close if d.thinking else ""
    for opening in (before, thought + before):
        for stop in ("", *d.stop):
            assert text_of(d, f"{opening}Hello.{behind}{stop}") == "Hello."
        assert text_of(d, f"{opening}\n Hello.\n{behind}") == "\n Hello.\n"
    talk = f"The text is between {before} and {behind} here."
    assert text_of(d, talk) == talk


def test_frames_with_whitespace() -> None:
    assert {d.name for d in FRAMED} >= {"apriel", "apriel1.5", "ernie45", "hunyuan-a13b"}


ENDED = [d for d in DIALECTS if d.header and d.header.ends]


@pytest.mark.parametrize("d", ENDED, ids=lambda d: d.name)
def test_the_mark_of_a_messages_end_inside_its_text_is_shown(d: Dialect) -> None:
    assert d.header
    for end in d.header.ends:
        for shown in (f"The `{end}` token ends a message.", f"Code:\n```\nx = '{end}'\n```\nOK.", f"A {end} and more."):
            assert text_of(d, f"{shown}{end}") == shown
            assert parse(shown, d, ()).text == shown


@pytest.mark.parametrize("d", DIALECTS, ids=lambda d: d.name)
def test_marks_of_ends_in_a_row_inside_a_text_are_shown(d: Dialect) -> None:
    """Like one alone. At the end of the reply, and before something that starts anew, all of them are dropped."""
    ends = [end for end in dict.fromkeys((*d.stop, *(d.header.ends if d.header else ()))) if end == end.strip()]
    for first in ends:
        for second in ends:
            for form in ("A {}{} two.", "A {} {} two.", "A\n{}\n{}\ntwo.", "A {0}{1}{0} two."):
                text = form.format(first, second)
                assert parse(text, d, ()).text == text
                if not {first, second} & {*program(d, True).turns}:  # else the turn of another role
                    assert text_of(d, text) == text
                assert text_of(d, form.format(first, second).removesuffix("two.")).strip() == "A"


def test_many_marks_of_ends_in_a_row() -> None:
    """What is behind all of them decides, of up to a hundred; of more, those before the last hundred are text."""
    for d, mark in ((one_of("hermes"), "<|im_end|>"), (one_of("llama4-pythonic"), "<|eot|>")):
        for count in (8, 9, 10, 25, 99):
            assert text_of(d, "A" + mark * count) == "A"
            assert text_of(d, f"A{mark * count} two.") == f"A{mark * count} two."
        assert text_of(d, "A" + mark * 250).startswith("A" + mark * 150)
        assert text_of(d, f"A{mark * 250} two.") == f"A{mark * 250} two."
    assert growth(lambda n: lambda: stream(d, ["A" + "<|im_end|>" * n], TOOLS), 500) <= LINEAR
