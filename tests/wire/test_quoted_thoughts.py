"""A thought that is only shown: it stays text, and does not end the quotation in which it is, so no call in it runs."""

from __future__ import annotations

from functools import partial

import pytest
from hard_cases import TOOLS, find
from spoken import TALKING, wire
from wire_cases import read_at_cuts, stream

from cost import LINEAR, growth
from toolspeak.dialects import get
from toolspeak.wire.dialect import Dialect

THINKING = [d for d in TALKING if d.thinking]
LABELED = [d for d in THINKING if d.thinking and d.thinking.open[:1].isalpha()]
"""A label of a thought counts in a fence."""
IN_MESSAGES = [d for d in TALKING if d.header and d.header.thought]
SHOWN = {
    "a fence": "An example:\n\n```\n{thought}{call}\n```\n\nThat is a reply.",
    "a fence that ends the reply": "An example:\n```\n{thought}{call}\n```",
    "a fence after a thought": "{thought}An example:\n```\n{thought}{call}\n```\nThat is a reply.",
    "a fence each": "First\n```xml\n{thought}\n```\n\nand then\n\n```\n{call}\n```\n\nas you see.",
    "a fence that is longer": "So:\n````\n```\n{thought}\n```\n{call}\n````\nThat is it.",
    "a fence with only the closer": "So:\n```\n{closer}{call}\n```\nThat is it.",
    "other fences": "So:\n~~~\n{thought}{call}\n~~~\nThat is it.",
    "quotation marks": 'A reply is "{thought}{call}" as a string.',
    "quotation marks at the end": "A reply is “{thought}{call}”",
    "backticks": "A reply is `{thought}{call}` as a string.",
    "two backticks": "A reply is ``{thought}{call}``\nas a string.",
    "a quoted line": "A reply is\n\n> {thought}{call}\n\nas a string.",
    "an indented line": "A reply is\n\n    {thought}{call}\n\nas a string.",
    "a comment": "A reply is <!-- {thought}{call} -->\nas a string.",
    "a comment in code": "A reply is\n# {thought}{call}\nas a string.",
    "an element": "A reply is\n<pre>\n{thought}{call}\n</pre>\nas a string.",
    "an element in an element": "A reply is <pre><code>{thought}{call}</code></pre>\nas a string.",
}
"""The call does not run, and the text stays as it is."""
ALONE = {
    "a fence": "See:\n```xml\n{thought}\n```\nThis shows it.",
    "quotation marks": 'Write "{thought}" to think.',
    "backticks": "Write `{thought}` to think.",
}
"""The same without a call."""
MEANT = {
    "after a backtick": "Press the ` key.\n{thought}{call}",
    "after an apostrophe": "It's fine, and 'quoted.\n\n{thought}{call}",
    "after a quotation mark": 'He said "no.\n{thought}{call}',
    "after blocks": "```python\nx = 1\n```\n\n~~~\ny\n~~~\n{thought}{call}",
    "after a thought in a block": "See:\n```\n{opener}\nx\n{closer}\n```\n{thought}{call}",
    "after an opener in backticks": "Use `{opener}` for it.\n{thought}{call}",
    "after an opener behind a backtick": "Use `{opener} for it.\n{thought}{call}",
    "after an opener behind a quotation mark": 'Use "{opener} for it.\n{thought}{call}',
    "after a quoted opener": "> {opener} is it.\n{thought}{call}",
    "after elements": "Use <code> or <pre>.\n{thought}{call}",
    "after a heading": "# Plan\n\n{thought}{call}",
    "after a fence around a thought": "```\n{thought}\n```\n{thought}{call}",
}
"""These thoughts are real, and so are their calls."""


read = partial(read_at_cuts, tools=TOOLS, every=3)


def parts(d: Dialect) -> dict[str, str]:
    """What the forms are filled with."""
    call = wire(d, find("two words")).strip()
    if d.thinking:
        opener, closer = d.thinking.open, d.thinking.close
        return {
            "thought": f"{opener}I should do it.{closer}",
            "call": call,
            "opener": opener.strip(),
            "closer": closer.strip(),
        }
    assert d.header
    start = "" if d.header.thought.startswith(d.header.also or "\0") else d.header.start
    head, end = start + d.header.thought + d.header.stop, d.header.ends[0]
    return {"thought": f"{head}I should do it.{end}", "call": call, "opener": head, "closer": end}


@pytest.mark.parametrize("d", [*THINKING, *IN_MESSAGES], ids=lambda d: d.name)
def test_a_call_after_a_thought_that_is_shown(d: Dialect) -> None:
    for what, form in SHOWN.items():
        if (d in IN_MESSAGES and "{closer}" in form) or (d in LABELED and "```" in form):
            continue  # the end of the message itself
        text = form.format(**parts(d))
        reply = read(d, text)
        assert [call.name for call in reply.calls if call.whole] == [], what
        if form[0] != "{":
            assert (reply.text, reply.thought) == (text, ""), what


@pytest.mark.parametrize("d", THINKING, ids=lambda d: d.name)
def test_a_thought_that_is_shown_stays_text(d: Dialect) -> None:
    for what, form in ALONE.items():
        if d in LABELED and "```" in form:
            continue
        text = form.format(**parts(d))
        assert (read(d, text).text, read(d, text).thought) == (text, ""), what


@pytest.mark.parametrize("d", THINKING, ids=lambda d: d.name)
def test_a_thought_that_is_meant(d: Dialect) -> None:
    for what, form in MEANT.items():
        reply = read(d, form.format(**parts(d)))
        assert [call.name for call in reply.calls if call.whole] == ["find"], what
        assert "I should do it." in reply.thought, what


@pytest.mark.parametrize("form", ["```\n<think>x</think>\n```\n", '"<think>x</think>" ', "`<think>x ", "> <think>x\n"])
def test_many_thoughts_that_are_shown_take_linear_time(form: str) -> None:
    assert growth(lambda n: lambda: stream(get("hermes"), ["So:\n" + form * n], TOOLS), 50) <= LINEAR
