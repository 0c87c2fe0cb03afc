"""What holds for every dialect and any text."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wire_cases import CODE, DIALECTS, READ, TOOLS, WRITTEN, call, cuts, merged, stream

from toolspeak.dialects import get
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, TextDelta, ThoughtDelta
from toolspeak.types import ToolCall
from toolspeak.wire.collect import collect
from toolspeak.wire.decode import Decoder, parse
from toolspeak.wire.syntax import Dialect
from toolspeak.wire.write import write_calls

WIRES = [(case.dialect, case.wire) for case in (*WRITTEN, *READ)]
WIRES += [(d.name, write_calls([call("weather", code=CODE), call("ping")], d)) for d in DIALECTS]
PIECES = (
    [wire for _, wire in WIRES]
    + list("{}[]()<>\"'\\, \n:=|`")
    + ["<think>", "</think>", "```json\n", "\\u00", "\\ud83d", "null"]
)


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, str]:
    """A dialect and one of its wires, damaged: pieces cut out, doubled, brought in from elsewhere."""
    name, text = draw(st.sampled_from(WIRES))
    for _ in range(draw(st.integers(0, 4))):
        i, j = sorted(draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
        middle = draw(st.one_of(st.just(""), st.just(text[i:j] * 2), st.sampled_from(PIECES), st.text(max_size=5)))
        text = (text[:i] + middle + text[j:])[:600]
    return name, text


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutated(), st.sampled_from(["split", "keep"]), st.sampled_from(["offered", "any", "none"]), st.integers())
def test_damaged_wires_never_raise_and_read_the_same_at_every_cut(
    damaged: tuple[str, str], thoughts: str, offer: str, seed: int
) -> None:
    name, text = damaged
    tools = {"offered": TOOLS, "any": None, "none": ()}[offer]
    whole = stream(get(name), [text], tools, thoughts=thoughts)
    check_order(whole)
    if offer == "none" and thoughts == "keep":
        assert collect(whole).text == text
    for chunks in cuts(text, random.Random(seed)):
        assert merged(stream(get(name), chunks, tools, thoughts=thoughts)) == merged(whole)


def check_order(events: list[Event]) -> None:
    """One call open at a time, its pieces inside it, one `Finished` and it is last."""
    live = False
    for event in events:
        if isinstance(event, CallStart):
            assert not live
            live = True
        elif isinstance(event, CallEnd):
            assert live
            live = False
        elif isinstance(event, ArgumentsDelta):
            assert live
            assert event.json
        elif isinstance(event, TextDelta | ThoughtDelta):
            assert event.text
    assert not live
    assert [type(e) for e in events].index(Finished) == len(events) - 1


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
CALLS = st.lists(
    st.builds(
        lambda name, arguments: ToolCall("", name, arguments),
        st.sampled_from([tool.name for tool in TOOLS]),
        st.dictionaries(st.text(max_size=10), VALUES, max_size=4),
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=60, deadline=None)
@given(CALLS, st.integers())
def test_what_is_written_is_read_again(calls: list[ToolCall], seed: int) -> None:
    for d in DIALECTS:
        wire = write_calls(calls, d)
        reply = parse(wire, d, TOOLS)
        assert [(c.name, c.arguments, c.whole) for c in reply.calls] == [(c.name, c.arguments, True) for c in calls]
        assert not reply.text
        assert not reply.notes
        chunks = list(cuts(wire, random.Random(seed)))[-1]
        assert merged(stream(d, chunks)) == merged(stream(d, [wire]))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from([*"abc {}[]<>\"'`,:\n\\/|0", "tool", "name", "think", "functools", "null"])).map("".join)
)
def test_a_text_without_a_call_comes_back_byte_for_byte(text: str) -> None:
    for d in DIALECTS:
        reply = parse(text, replace(d, frame=()), TOOLS, thoughts="keep")
        if not reply.calls:
            assert reply.text == text


@pytest.mark.parametrize(
    "text", ["", " ", "\n\n", "  a  ", "{", "[", "```", "<", "a\n", "{}", '{"a": 1}', "\ufeff", "\x00"]
)
def test_small_texts_come_back_byte_for_byte(text: str) -> None:
    for d in DIALECTS:
        assert parse(text, d, TOOLS).text == text
        assert parse(text, d, None).text == text
        assert parse(text, d, ()).text == text


@settings(max_examples=100, deadline=None)
@given(mutated())
def test_what_was_told_is_never_taken_back(damaged: tuple[str, str]) -> None:
    """The events of a beginning are a beginning of the events, but for what the end of the text decides."""
    name, text = damaged
    decoder, told = Decoder(get(name), TOOLS), []
    for c in text:
        told += decoder.feed(c)
    everything = told + decoder.close()
    assert everything[: len(told)] == told


WORDS = "the quick <brown> fox\njumps, (over) [the] lazy \"dog\" 'ok' < 5. " * 6


@pytest.mark.parametrize("d", DIALECTS, ids=lambda d: d.name)
def test_no_more_than_two_markers_are_held_back(d: Dialect) -> None:
    """Fed by characters: of a text or an argument no character waits, but for a half marker; a call's head waits."""
    wire = write_calls([ToolCall("", "weather", {"s": WORDS})], d)
    head = wire.index(WORDS[:10])
    for text, slack in ((WORDS, 12), (wire[: head + len(WORDS)], head)):
        decoder, gone = Decoder(d, TOOLS), 0
        for i, c in enumerate(text):
            for event in decoder.feed(c):
                gone += len(getattr(event, "text", getattr(event, "json", "")))
            assert i - gone <= slack + sum(text[: i + 1].count(x) for x in "\\")


def test_a_plain_json_answer_is_not_held_back() -> None:
    text = json.dumps({"title": "A long answer", "body": "x" * 1000, "tags": ["a"] * 50})
    for d in DIALECTS:
        decoder, said, most = Decoder(d, TOOLS), "", 0
        for i, c in enumerate(text):
            said += "".join(e.text for e in decoder.feed(c) if isinstance(e, TextDelta))
            most = max(most, i + 1 - len(said))
        assert most < 16, d.name
        assert said + "".join(e.text for e in decoder.close() if isinstance(e, TextDelta)) == text
