"""What holds for every dialect and any text."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from checks import problems
from hard_cases import HARD, TOOLS as TYPED
from hypothesis import strategies as st
from spoken import TALKING, calls_of, rendered_rules, sayable, tools_of, wire, words
from wire_cases import CODE, DIALECTS, READ, TOOLS, WRITTEN, cuts, merged, stream

from properties import property_test
from toolspeak.dialects import get
from toolspeak.errors import UsageError
from toolspeak.events import TextDelta
from toolspeak.wire.decode import Decoder, parse
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.prompt.calls import write_calls

OFFERED = (*TOOLS, *TYPED)
WIRES = [(case.dialect, case.wire) for case in (*WRITTEN, *READ)]
WIRES += [(d.name, wire(d, ("note", {"text": CODE, "count": 3}), ("ping", {}))) for d in TALKING]
WIRES += [(name, case.wire) for case in HARD for name in case.dialects.split() if name in {d.name for d in DIALECTS}]
MARKS = sorted({word for d in DIALECTS for word in words(d)})
PIECES = [*MARKS, *(text for _, text in WIRES), *"{}[]()<>\"'\\, \n:=|`", "```json\n", "\\u00", "\\ud83d", "null"]


def bare(d: Dialect) -> Dialect | None:
    """The dialect without what stands around a message; None where the name of the tool stands there."""
    try:
        return replace(d, frame=(), header=None)
    except UsageError:
        return None


BARE = [plain for d in DIALECTS if (plain := bare(d))]
EVERY = pytest.mark.parametrize("d", DIALECTS, ids=lambda d: d.name)


@st.composite
def mutated(draw: st.DrawFn, name: str = "") -> tuple[str, str]:
    """A dialect and one of its wires, damaged: pieces cut out, doubled, brought in from elsewhere."""
    name, text = draw(st.sampled_from([row for row in WIRES if not name or row[0] == name]))
    for _ in range(draw(st.integers(0, 4))):
        i, j = sorted(draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
        middle = draw(st.one_of(st.just(""), st.just(text[i:j] * 2), st.sampled_from(PIECES), st.text(max_size=5)))
        text = (text[:i] + middle + text[j:])[:600]
    return name, text


@property_test(
    600, mutated(), st.sampled_from(["split", "keep"]), st.sampled_from(["offered", "any", "none"]), st.integers()
)
def test_damaged_wires_are_read_without_harm(damaged: tuple[str, str], thoughts: str, offer: str, seed: int) -> None:
    name, text = damaged
    tools = {"offered": OFFERED, "any": None, "none": ()}[offer]
    assert not list(problems(get(name), text, tools, thoughts=thoughts, seed=seed))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(MARKS).map(lambda mark: f"a {mark}b"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True)


def told(keys: st.SearchStrategy[str], values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Some calls: names and arguments."""
    tools = st.sampled_from(["weather", "home.light", "ping"])
    call = st.tuples(tools, st.dictionaries(keys, values, max_size=4))
    return st.lists(call, min_size=1, max_size=3, unique_by=lambda row: row[0])


def check(d: Dialect, told: list[tuple[str, dict[str, Any]]], seed: int) -> bool:
    """Reads what is written; does it come back? Whether or not, nothing is lost and no cut changes it."""
    text, tools = wire(d, *told), tools_of(*told)
    reply = parse(text, d, tools)
    assert not list(problems(d, text, tools, seed=seed))
    return [(c.name, c.arguments, c.whole) for c in reply.calls] == [
        (*row, True) for row in told
    ] and not reply.text.strip()


FLAT = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("aé 1\n.,'😀")
)
SAID = FLAT | st.lists(st.integers(), max_size=3) | st.dictionaries(NAMES, FLAT, max_size=3)


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
@property_test(12, told=told(NAMES, SAID), seed=st.integers())
def test_what_is_written_is_read_again(d: Dialect, told: list[tuple[str, dict[str, Any]]], seed: int) -> None:
    assert check(d, told, seed)
    assert sayable(d, told, tools_of(*told))


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
@property_test(12, told=told(NAMES | st.text(min_size=1, max_size=10), VALUES), seed=st.integers())
def test_what_a_wire_has_no_words_for_is_told(d: Dialect, told: list[tuple[str, dict[str, Any]]], seed: int) -> None:
    """Any keys, any values, those that hold the dialect's own marks among them: read again, or noted when rendered."""
    # A marker in a value is broken when it is rendered, so it need not be read as it was.
    noted = rendered_rules(d, told, tools_of(*told)) & {"unsayable", "control-marker"}
    assert check(d, told, seed) or noted


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
def test_a_huge_value_is_read_again(d: Dialect) -> None:
    told = ("note", {"text": CODE * 2_000, "tags": ["a b", ""] * 2_000, "count": 10**60, "box": nested(60)})
    reply = parse(wire(d, told), d, tools_of(told))
    assert [(c.name, c.arguments) for c in reply.calls] == [told]


def nested(depth: int) -> dict[str, Any]:
    return {"k": nested(depth - 1)} if depth else {"k": [1, 2]}


@property_test(
    200,
    st.lists(st.sampled_from([*"abc {}[]<>\"'`,:\n\\/|0", "tool", "name", "think", "functools", "null"])).map("".join),
)
def test_a_text_without_a_call_comes_back_byte_for_byte(text: str) -> None:
    for d in BARE:
        reply = parse(text, d, TOOLS, thoughts="keep")
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


@EVERY
def test_a_mark_alone_or_half_comes_back_byte_for_byte(d: Dialect) -> None:
    plain = bare(d)
    if plain is None:
        pytest.skip("the head of a message is what names the tool")
    plain = replace(plain, stop=())
    for word in words(d):
        for text in [word, f"a {word} b", word[: len(word) // 2 + 1], word * 3, f"{word} {word}\n"]:
            reply = parse(text, plain, TOOLS, thoughts="keep")
            assert reply.text == text or reply.calls


@property_test(200, mutated())
def test_what_was_told_is_never_taken_back(damaged: tuple[str, str]) -> None:
    """What a beginning tells before it is known to be one is the beginning of what all of it tells."""
    name, text = damaged
    everything = merged(stream(get(name), [text], OFFERED))
    decoder, told = Decoder(get(name), OFFERED), []
    for c in text:
        told += decoder.feed(c)
        early = merged(told)
        last = early.pop() if early else None
        assert everything[: len(early)] == early
        if isinstance(last, tuple):
            kind, piece = everything[len(early)]  # type: ignore[misc]
            assert kind is last[0]
            assert piece.startswith(last[1])  # type: ignore[union-attr]


PLAIN = "the quick <brown> fox jumps, (over) [the] {lazy} dog | 5 < 6 @ x. " * 6


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
def test_no_more_than_two_markers_are_held_back(d: Dialect) -> None:
    """Fed by characters: of a text or an argument no character waits, but for half a marker; a call's head waits."""
    text = wire(d, ("find", {"query": PLAIN}))
    head = text.index(PLAIN[:10])
    longest = sorted((len(word) for word in words(d)), reverse=True)[:2]
    prompt = d.header.start + d.header.text + d.header.stop if d.header else ""
    for said, before, start in ((PLAIN, prompt, 0), (text[: head + len(PLAIN)], "", head)):
        decoder, gone = Decoder(d, TYPED, before), 0
        for i, c in enumerate(said):
            for event in decoder.feed(c):
                gone += len(getattr(event, "text", getattr(event, "json", "")))
            assert i - gone <= start + sum(longest) + 16


def test_a_plain_json_answer_is_not_held_back() -> None:
    text = json.dumps({"title": "A long answer", "body": "x" * 1000, "tags": ["a"] * 50})
    for d in DIALECTS:
        if d.header:
            continue
        decoder, said, most = Decoder(d, TOOLS), "", 0
        for i, c in enumerate(text):
            said += "".join(e.text for e in decoder.feed(c) if isinstance(e, TextDelta))
            most = max(most, i + 1 - len(said))
        assert most < 16, d.name
        assert said + "".join(e.text for e in decoder.close() if isinstance(e, TextDelta)) == text


@pytest.mark.parametrize("d", [d for d in TALKING if d.items and d.open], ids=lambda d: d.name)
@pytest.mark.parametrize("space", ["\n    ", " ", "\n\t", "\n" + " " * 300])
def test_a_list_whose_opener_is_damaged_reads_the_same_at_every_cut(d: Dialect, space: str) -> None:
    """Its elements begin on a line of their own: indentation means no quotation, wherever the text is cut."""
    wire = write_calls(calls_of(("note", {"text": "a", "tags": [], "count": 1})), d)
    text = d.open.split()[0] + (d.items or ("",))[0].strip() + space + wire[max(0, wire.find("{")) :]
    whole = merged(stream(d, [text], OFFERED))
    for chunks in ([*text], *cuts(text, random.Random(5))):
        assert merged(stream(d, chunks, OFFERED)) == whole


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
def test_every_cut_of_a_wire_reads_the_same(d: Dialect) -> None:
    text = write_calls(calls_of(("note", {"text": "a\n</x> {b}", "tags": ["1", ""], "count": -1}), ("ping", {})), d)
    whole = merged(stream(d, [text], OFFERED))
    for chunks in cuts(text, random.Random(5)):
        assert merged(stream(d, chunks, OFFERED)) == whole
