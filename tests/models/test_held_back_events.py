"""What is held back of a server's events has a limit: nothing else counts it, so an endless server would fill the memory."""

from __future__ import annotations

import pytest

from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, TextDelta, ThoughtDelta
from toolspeak.models.text_behind_calls import MOST_WAITING, TextBehindCalls
from toolspeak.plan.doubled_calls import DoubledCalls
from toolspeak.wire.reading.reply_size_limits import CHARACTERS

PIECE = "x" * 100_000


def test_a_text_in_the_middle_of_a_call_comes_behind_it() -> None:
    order = TextBehindCalls()
    start, text, end = CallStart("f", "1"), TextDelta("Hi"), CallEnd()
    assert [order.feed(event) for event in (start, text, end)] == [[start], [], [end, text]]


def test_a_long_text_in_the_middle_of_a_call_is_passed_on() -> None:
    order = TextBehindCalls()
    order.feed(CallStart("f", "1"))
    came = 0
    for number in range(1, 50):
        piece = TextDelta(PIECE[: MOST_WAITING // 3])
        due = order.due(piece)
        events = order.feed(piece)
        assert due == sum(len(event.text) for event in events if isinstance(event, TextDelta))
        came += due
        assert came >= number * (MOST_WAITING // 3) - MOST_WAITING


@pytest.mark.parametrize("kind", [ArgumentsDelta, ThoughtDelta])
def test_a_call_that_may_be_the_second_of_two_is_held_back_up_to_the_limit_of_a_reply(
    kind: type[ArgumentsDelta] | type[ThoughtDelta],
) -> None:
    calls = DoubledCalls()
    calls.feed([CallStart("f", "1"), ArgumentsDelta("{}"), CallEnd()], in_text=True)
    passed: list[Event] = calls.feed([CallStart("f", "2")], in_text=False)
    pieces = CHARACTERS // len(PIECE) + 2
    for _ in range(pieces):
        passed += calls.feed([kind(PIECE)], in_text=False)
    assert passed == [CallStart("f", "2"), *[kind(PIECE)] * pieces]
    assert calls.feed([CallEnd(whole=False)], in_text=False) == [CallEnd(whole=False)]
