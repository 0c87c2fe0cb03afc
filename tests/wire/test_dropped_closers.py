"""Closers of thoughts that are dropped from a text: the words on both sides of them stay apart."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hard_cases import TOOLS, find
from spoken import TALKING, wire
from wire_cases import called, read_at_cuts

from toolspeak.wire.decode import parse
from toolspeak.wire.dialect import NAME, TEXT, Dialect, JsonCall

THINKING = [d for d in TALKING if d.thinking and d.thinking.close.strip() and not d.header]
APART = (
    "I could{close}{close}The answer",
    "I could{close}\n{close}The answer",
    "I could{close}{open}Hm.{close}The answer",
    "{open}Hm.{close}I could{close}{close}The answer",
)
AS_THEY_ARE = ("I could{close}{close}", "I could{close}{close}\n", "I could{close}\n{call}", "I could{close}{call}")
"""No line break is needed here."""


def keys(d: Dialect) -> dict[Any, Any]:
    """The keys of a call's object, by what they mean."""
    return {slot: key for part in d.call if isinstance(part, JsonCall) for key, slot in (*part.also, *part.keys)}


read = partial(read_at_cuts, tools=TOOLS, every=2)


@pytest.mark.parametrize("d", THINKING, ids=lambda d: d.name)
def test_words_stay_apart(d: Dialect) -> None:
    assert d.thinking
    parts = {"open": d.thinking.open.strip(), "close": d.thinking.close.strip()}
    for form in APART:
        text = read(d, form.format(**parts)).text
        assert text.partition("could")[2].partition("The answer")[0].isspace(), form


@pytest.mark.parametrize("d", THINKING, ids=lambda d: d.name)
def test_no_line_break_without_words(d: Dialect) -> None:
    assert d.thinking
    call = wire(d, find("two words")).strip()
    for form in AS_THEY_ARE:
        reply = read(d, form.format(close=d.thinking.close.strip(), call=call))
        breaks = "\n" if "\n" in form or call[0] in "{[" else ""  # an object may also be a text
        text = reply.text.replace(d.thinking.close.strip(), "")  # it stays before what may be a list in the text
        assert text.removesuffix(breaks) == "I could", form
        assert called(reply) == (["find"] if "{call}" in form else []), form


@pytest.mark.parametrize("d", THINKING, ids=lambda d: d.name)
def test_a_thought_that_is_kept_gets_no_line_break(d: Dialect) -> None:
    assert d.thinking
    for text in (f"Sum.{d.thinking.close.strip()}3", f"{d.thinking.open.strip()}Sum.{d.thinking.close.strip()}3"):
        prompt = f"…{d.thinking.open}" if text[0] == "S" else ""
        assert parse(text, d, TOOLS, prompt=prompt, thoughts="keep").text == text


@pytest.mark.parametrize("d", [d for d in TALKING if {NAME, TEXT} <= keys(d).keys()], ids=lambda d: d.name)
def test_words_behind_the_text_of_an_object_stay_apart(d: Dialect) -> None:
    """Also if the text arrived letter by letter: such pieces were passed on without the readers, which knew of no text then."""
    said = f'{{"{keys(d)[NAME]}": null, "{keys(d)[TEXT]}": "nine"</think>}}'
    assert read(d, said, every=1).text == "nine\n}"
