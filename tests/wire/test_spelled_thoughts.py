"""Tags of a thought in capital letters, and as a line of their own in Markdown's emphasis: a draft between them is text."""

from __future__ import annotations

import random
from functools import partial

import pytest
from hard_cases import TOOLS, find
from spoken import wire
from test_foreign_thoughts import DRAFTS, INLINE
from wire_cases import called, read_at_cuts, rules, stream

from cost import LINEAR, growth
from toolspeak.dialects import get
from toolspeak.wire.dialect import Dialect

NAMES = ("think", "Think", "THINK", "scratchpad", "REASONING")
TAGS = [(f"<{name}>", f"</{name}>") for name in ("THINK", "SCRATCHPAD", "INNER_THOUGHTS")]
LINES = [(f"{m}<{name}>{m}", f"{m}</{name}>{m}") for m in ("**", "*", "__", "_") for name in NAMES]
PAIRS = [*TAGS, *LINES, ("<THINK>", "</think>"), ("**<think>**", "</think>")]
CALLED = {
    "after the thought": "{open}\nI look.\n{close}\n\n{call}",
    "after a draft": "{open}\nI could call it:\n{call}\nYes.\n{close}\n\n{call}",
    "at the end of the thought": "{open}\nI look.\n{call}\n{close}",
    "in a thought that nothing closes": "Well.\n{open}\nI look.\n{call}",
    "after a tag in a sentence": "The tag {open} opens it.\n{call}",
    "after a tag behind words": "The tag is {open}\n{call}",
    "after the tags in a list": "- {open} opens it\n- {close} closes it\n{call}",
    "after a tag in a fence": "So:\n```\n{open}\n```\n{call}",
    "after a tag in backticks": "The tag\n`<think>`\nopens it.\n\n{call}\n",
    "before a tag in backticks": "{call}\nThe closer is\n`</think>`\n",
    "before a tag in a sentence": "{call}\nThe tag {close} closes it.",
}
"""One call counts in each."""
LONE = ("{call}\nHmm, no.\n{close}\n\nNo call.", "I could:\n{call}\n{close}\nNo call.")

read = partial(read_at_cuts, tools=TOOLS, every=3)


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_a_draft_does_not_run(d: Dialect) -> None:
    call, choose = wire(d, find("two words")).strip(), random.Random(d.name).choice
    for what, form in DRAFTS.items():
        for opener, closer in (choose(TAGS), choose(LINES)):
            text = form.format(open=opener, close=closer, call=call)
            reply = read(d, text)
            if not (what == "on the line of the tags" and opener[0] != "<"):
                assert (reply.text, reply.thought, reply.calls) == (text, "", ()), (what, opener)


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_other_calls_count(d: Dialect) -> None:
    call, choose = wire(d, find("two words")).strip(), random.Random(d.name).choice
    for what, form in CALLED.items():
        for opener, closer in (choose(TAGS), choose(LINES)):
            if "in a" in what and opener[0] == "<":
                continue  # a tag that begins its line opens a thought, whatever is behind it on the line
            assert called(read(d, form.format(open=opener, close=closer, call=call))) == ["find"], (what, opener)


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_a_lone_closer_shows_that_calls_were_drafts(d: Dialect) -> None:
    call, choose = wire(d, find("two words")).strip(), random.Random(d.name).choice
    for form in LONE:
        for _, closer in (choose(TAGS), choose(LINES)):
            reply = read(d, form.format(close=closer, call=call))
            assert called(reply) == [], closer
            assert "drafted-call" in rules(reply), closer


@pytest.mark.parametrize(("opener", "closer"), PAIRS)
@pytest.mark.parametrize("name", ["hermes", "llama3-json", "kimi-k2", "react"])
def test_every_spelling(name: str, opener: str, closer: str) -> None:
    d = get(name)
    call = wire(d, find("two words")).strip()
    text = DRAFTS["a draft"].format(open=opener, close=closer, call=call)
    assert read_at_cuts(d, text, TOOLS).text == text


@pytest.mark.parametrize("form", ["**<think>**\n{call}\n", "_<think>_\n{call}\n_</think>_\n", "**<b>\n", "_<think>_\n"])
def test_many_tags_take_linear_time(form: str) -> None:
    hermes = get("hermes")
    unit = form.format(call=wire(hermes, find("two words")).strip())
    assert growth(lambda n: lambda: stream(hermes, ["So:\n" + unit * n], TOOLS), 50) <= LINEAR
