"""The opener of a call in place of its closer, as in `<tool_call>{…}<tool_call>`: it opens nothing."""

from __future__ import annotations

from functools import partial

import pytest
from hard_cases import TOOLS, find
from spoken import TALKING, wire
from wire_cases import read_in_pieces, rules, told

from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.lexicon import program, turn_ends

CALL = find("two words")
FOUND = ("find", {"query": "two words"}, True)


def ends(d: Dialect) -> tuple[str, str]:
    """The opener and the closer of a call; "" if there is none."""
    text = wire(d, CALL).strip()
    openers = [word for word in program(d, True).marked if text.startswith(word) and word not in d.stop]
    closers = [word for word in program(d, True).closers_of_calls if text.endswith(word) and word not in d.stop]
    return max(openers, key=len, default=""), max(closers, key=len, default="")


MARKED = [d for d in TALKING if all(ends(d)) and d.name not in ("gemma3", "olmo3")]
"""Dialects with both. In `gemma3` the opener begins like the closer; in `olmo3` it may be in the last string."""

read = partial(read_in_pieces, tools=TOOLS)


@pytest.mark.parametrize("d", MARKED, ids=lambda d: d.name)
def test_an_opener_in_place_of_a_closer_opens_nothing(d: Dialect) -> None:
    opener, closer = ends(d)
    text = wire(d, CALL).strip().removesuffix(closer) + opener
    for end in ("", "\n", *(mark for mark in turn_ends(d) if mark[0] == "<")):
        reply = read(d, text + end)
        assert (told(reply), reply.text, reply.finish) == ([FOUND], "", "tool_calls")
        assert {"missing-closer", "stray-closer"} <= set(rules(reply))


@pytest.mark.parametrize("d", MARKED, ids=lambda d: d.name)
def test_before_another_call_as_well(d: Dialect) -> None:
    opener, closer = ends(d)
    call = wire(d, CALL).strip()
    reply = read(d, f"{call.removesuffix(closer)}{opener}\n{call}")
    assert (told(reply), reply.text.strip()) == ([FOUND, FOUND], "")


@pytest.mark.parametrize("d", [d for d in MARKED if not d.guard and d.name != "inkling"], ids=lambda d: d.name)
def test_an_opener_after_a_closer_is_cut(d: Dialect) -> None:
    reply = read(d, f"{wire(d, CALL).strip()}\n{ends(d)[0]}")
    assert ([call.whole for call in reply.calls], reply.finish) == ([True], "length")
