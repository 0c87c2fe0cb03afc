"""The user's stop strings: the same at every cut, nothing lost, nothing after."""

from __future__ import annotations

from itertools import product
from typing import Any, cast

from hypothesis import strategies as st

import toolspeak as ts
from properties import property_test
from toolspeak.events import CallEnd, CallStart, Event, Finished, TextDelta
from toolspeak.plan.effects import Ask
from toolspeak.plan.prompted import prompted
from toolspeak.plan.stop_strings import Stops
from toolspeak.wire.prompt.calls import write_calls

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


LABELED = {
    "It rains.\n\nUser:\nAnd in Rome?\n\nAssistant:\nSun.": ("It rains.\n", []),
    "It rains.\nUser: And in Rome?": ("It rains.", []),
    "{}\n\nUser:\nThanks.": ("", ["weather"]),
    "It rains.\nHuman: no label of this prompt": ("It rains.\nHuman: no label of this prompt", []),
    "The User: label is a word here.": ("The User: label is a word here.", []),
}


def test_a_turn_that_the_model_invents_behind_a_label_of_the_prompt_is_left_out() -> None:
    """A server may ignore stop strings. In messages, nobody knows how the prompt marks turns, so all is text."""
    tool: ts.Tool[..., Any] = ts.Tool("weather", "", {"type": "object", "properties": {"city": {"type": "string"}}})
    call = ts.ToolCall("c1", "weather", {"city": "Rome"})
    for dialect in (name for name in ts.dialects() if ts.dialect(name).layout is None):
        for form, (answer, calls) in LABELED.items():
            text = form.replace("{}", write_calls([call], ts.dialect(dialect)))
            for size, tools in product((1, 5, len(text)), ((tool,), ())[: 2 - len(calls)]):
                request = ts.Request([{"role": "user", "content": "Weather?"}], tools)
                reply = asked(request, dialect, text, size, raw=True)
                read = (reply.text.rstrip("\n"), [call.name for call in reply.calls])
                assert read == (answer.rstrip("\n"), calls), (dialect, text, size)
                turn = "invented-turn" in [note.rule for note in reply.notes]
                assert turn == (answer != text), (dialect, text)
            if not calls:
                request = ts.Request([{"role": "user", "content": "Weather?"}], (tool,))
                assert asked(request, dialect, text, 5, raw=False).text == text, (dialect, text)


def asked(request: ts.Request, dialect: str, text: str, size: int, *, raw: bool) -> ts.Reply:
    """What comes of a text from a model that continues prompts, or is sent messages."""
    plan = prompted(request, ts.dialect(dialect), (), raw=raw)
    read = cast("Ask", plan.send(None)).read
    plan.close()
    assert read is not None
    events = [TextDelta(text[at : at + size]) for at in range(0, len(text), size)]
    out: list[Event] = []
    for event in (*events, Finished(), None):
        out += read(event)
        if any(isinstance(one, Finished) for one in out):
            break
    return ts.collect(out)
