"""Pieces that came together, as one."""

from __future__ import annotations

from hypothesis import strategies as st

from properties import property_test
from toolspeak.api.coalesce import joined
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Finished, TextDelta, ThoughtDelta

words = st.text(max_size=3)
events = st.lists(
    st.builds(TextDelta, words)
    | st.builds(ThoughtDelta, words)
    | st.builds(ArgumentsDelta, words)
    | st.just(CallStart("f", "1"))
    | st.just(CallEnd())
    | st.just(Finished())
)


def test_neighbours_of_one_kind_are_one() -> None:
    pieces = [TextDelta("a"), TextDelta("b"), ThoughtDelta("c"), ThoughtDelta("d"), TextDelta("e")]
    assert joined(pieces) == [TextDelta("ab"), ThoughtDelta("cd"), TextDelta("e")]


def test_what_stands_between_keeps_them_apart() -> None:
    pieces = [ArgumentsDelta("a"), CallEnd(), CallStart("f", "2"), ArgumentsDelta("b"), ArgumentsDelta("c")]
    assert joined(pieces) == [ArgumentsDelta("a"), CallEnd(), CallStart("f", "2"), ArgumentsDelta("bc")]


@property_test(100, events, st.integers(0, 9))
def test_nothing_is_lost_and_it_is_the_same_twice(pieces: list, cut: int) -> None:
    once = joined(pieces)
    assert joined(once) == list(once)
    assert joined([*joined(pieces[:cut]), *joined(pieces[cut:])]) == list(once)
