"""A closing bracket too many behind the arguments: it is dropped with a note, in all dialects."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest
from hard_cases import TOOLS, find
from spoken import TALKING, wire
from wire_cases import read_in_pieces, rules, told

from toolspeak.dialects import get
from toolspeak.wire.dialect import Dialect

CALL = find("two words")
FOUND = ("find", {"query": "two words"}, True)
CLOSERS = re.compile(r"two words[^<\w]*?(?:<escape>|<\|\"\|>|['\"])[^}\])<\w]*([})](?:\s*[})])*)")
"""Matches the end of the last value, and the brackets behind it."""


def extra(d: Dialect, *others: tuple[str, dict[str, Any]]) -> str:
    """A call with one of its last brackets doubled, and others behind it; "" if it has none."""
    text = wire(d, CALL, *others)
    end = CLOSERS.search(text)
    return text[: end.end()] + end[1][-1] + text[end.end() :] if end else ""


BRACKETS = [d for d in TALKING if extra(d) and d.name != "empower"]
"""Dialects whose arguments end with brackets. In `empower` they are in a string."""
MORE_KEYS = ("apriel", "apriel1.5", "mistral-v3", "mistral-nemo", "tool-json")
"""Dialects in which a key of the call comes behind the arguments. It would be outside of the call."""

read = partial(read_in_pieces, tools=TOOLS)


@pytest.mark.parametrize("d", BRACKETS, ids=lambda d: d.name)
def test_a_bracket_too_many_is_dropped(d: Dialect) -> None:
    for end in ("", "\n"):
        reply = read(d, extra(d) + end)
        if d.name in MORE_KEYS:
            assert [call.whole for call in reply.calls] == [False]
        else:
            assert (told(reply), reply.text.strip(), reply.finish) == ([FOUND], "", "tool_calls")
            assert rules(reply) == ["stray-closer"]


@pytest.mark.parametrize("d", [d for d in BRACKETS if d.between or d.items or d.close], ids=lambda d: d.name)
def test_the_next_call_is_read(d: Dialect) -> None:
    if d.name not in MORE_KEYS:
        assert told(read(d, extra(d, find("more")))) == [FOUND, ("find", {"query": "more"}, True)]


OPEN_ENDED = [d for d in BRACKETS if not d.close and not d.items and not isinstance(d.call[-1], str)]
"""Dialects in which nothing closes a call but its brackets."""


@pytest.mark.parametrize("d", OPEN_ENDED, ids=lambda d: d.name)
def test_what_follows_the_bracket_may_belong_to_the_call(d: Dialect) -> None:
    for more in (', "limit": 3}', '"limit": 3}', '\n"limit": 3', ", limit=3)"):
        assert [call.whole for call in read(d, extra(d) + more).calls if call.whole] == [], more


def test_a_string_that_may_go_on_with_the_bracket_is_not_whole() -> None:
    for text in ('[find(query="print("two"))]', '[find(query="a", "b"))]'):
        assert [call for call in read(get("pythonic"), text).calls if call.whole] == [], text
