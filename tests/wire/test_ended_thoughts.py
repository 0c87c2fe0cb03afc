"""A call at the very end of a thought, with marks of the end of the reply visible behind it, for every dialect with thoughts."""

from __future__ import annotations

from functools import partial

import pytest
from hard_cases import TOOLS, find
from spoken import TALKING, wire
from wire_cases import read_at_cuts

from toolspeak.wire.dialect import Dialect
from toolspeak.wire.turn_ends import TURN_ENDS

WITH_TAGS = [d for d in TALKING if d.thinking and d.thinking.close.strip() and not d.header]
THINKING = [d for d in WITH_TAGS if d.thinking and d.thinking.close.strip() not in wire(d, find("x"))]
"""Without one whose calls end as its thoughts do."""
ENDED = {
    "a thought": "{open}I call it:\n{call}\n{close}",
    "a thought with blanks": "{open}I call it:\n\n{call}\n\n{close}\n",
    "tags of no dialect": "<scratchpad>\nI call it:\n{call}\n</scratchpad>",
}
DRAFTS = {
    "a text": "{open}I could:\n{call}\n{close}{end}\nShall I?",
    "a mark in it": "{open}{call}\n{end} is it.\n{close}{end}",
}


read = partial(read_at_cuts, tools=TOOLS, every=3)


@pytest.mark.parametrize("d", THINKING, ids=lambda d: d.name)
def test_marks_of_an_end_hide_no_call(d: Dialect) -> None:
    assert d.thinking
    call = wire(d, find("two words")).strip()
    parts = {"open": d.thinking.open, "close": d.thinking.close.strip(), "call": call}
    for what, form in ENDED.items():
        bare = read(d, form.format(**parts))
        assert [one.name for one in bare.calls if one.whole] == ["find"], what
        for end in (*d.stop, *TURN_ENDS[:2], "</s>\n<|im_end|>"):
            reply = read(d, form.format(**parts) + end)
            assert (reply.calls, reply.thought, reply.finish) == (bare.calls, bare.thought, bare.finish), (what, end)
            assert "call-in-thought" in [note.rule for note in reply.notes], (what, end)
    for what, form in DRAFTS.items():
        for end in (*d.stop[:1], TURN_ENDS[1]):
            reply = read(d, form.format(end=end, **parts))
            assert [one for one in reply.calls if one.whole] == [], (what, end)
