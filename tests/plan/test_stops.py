"""The user's stop strings: the same at every cut, nothing lost, nothing after."""

from __future__ import annotations

from hypothesis import strategies as st

from properties import property_test
from toolspeak.events import CallEnd, CallStart, Event, Finished, TextDelta
from toolspeak.plan.stop_strings import Stops

pieces = st.lists(st.text("abc", max_size=4), max_size=8)
wanted = st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=3)


def said(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@property_test(100, pieces, wanted)
def test_the_text_ends_before_the_first_stop(texts: list[str], stops: list[str]) -> None:
    reader = Stops(stops)
    events = reader.feed([*map(TextDelta, texts), Finished("length")])
    whole = "".join(texts)
    found = [at for at in map(whole.find, stops) if at >= 0]
    assert events[-1] == Finished("stop" if found else "length")
    if not found:
        assert said(events) == whole
        return
    # The stop that is whole first: the reader does not wait for one that began earlier.
    ends = min(whole.find(stop) + len(stop) for stop in stops if stop in whole)
    assert whole.startswith(said(events))
    assert len(said(events)) < ends


def test_what_may_be_a_stop_is_held_and_let_go() -> None:
    reader = Stops(["END"])
    assert reader.feed([TextDelta("The EN")]) == [TextDelta("The ")]
    assert reader.feed([TextDelta("GINE")]) == [TextDelta("ENGINE"[:-1])]
    assert reader.feed([CallStart("f", "c"), CallEnd()]) == [TextDelta("E"), CallStart("f", "c"), CallEnd()]
    assert reader.feed([TextDelta(" END of"), TextDelta("it")]) == [TextDelta(" "), Finished("stop")]
    assert reader.feed([TextDelta("more")]) == []
