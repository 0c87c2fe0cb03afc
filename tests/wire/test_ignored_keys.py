"""An object that has a text, or calls of its own, may have parts of a further call: each of them leaves a note."""

from __future__ import annotations

import random
from itertools import product

import pytest
from checks import lost
from spoken import wire
from wire_cases import DIALECTS, cuts, merged, one_of, stream

from toolspeak.types import Tool
from toolspeak.wire.decode import parse
from toolspeak.wire.dialect import ARGS, CALL, ID, NAME, TEXT, THOUGHT, Dialect, JsonCall, Kind
from toolspeak.wire.reading.collect import collect

OFFERED = [Tool("ping", "", {"type": "object", "properties": {}}), Tool("g", "", {"type": "object"})]


def hole_of(d: Dialect) -> JsonCall | None:
    return next((part for form in (d.call, *d.forms) for part in form if isinstance(part, JsonCall)), None)


OBJECTS = [d for d in DIALECTS if hole_of(d)]


def members(hole: JsonCall, place: int) -> list[str]:
    """The members that may stand at this place of an object, each with its own words."""
    keys = dict[object, str]()
    for key, slot in (*hole.keys, *hole.also):
        keys.setdefault(Kind if isinstance(slot, Kind) else slot, "ping" if key is NAME else str(key))
    inner = f'{{"{keys.get(NAME, "g")}": "g", "{keys.get(ARGS, "g")}": {{"c{place}": 1}}}}'
    values = {
        NAME: ["null", '""', f'"g{place}"', '"g"'],
        ARGS: ["{}", f'{{"a{place}": 1}}'],
        ID: [f'"i{place}"'],
        TEXT: ['""', f'"t{place}"'],
        THOUGHT: [f'"h{place}"'],
        CALL: ["[]", f"[{inner}]"],
        Kind: [
            f'"{word}"'
            for kind in dict(hole.keys).values()
            if isinstance(kind, Kind)
            for word in (kind.call, kind.text)
        ],
    }
    known = [f'"{key}": {value}' for slot, key in keys.items() for value in values.get(slot, ())]
    return [*known, f'"id": {70 + place}', f'"g": {{"n{place}": 1}}']


@pytest.mark.parametrize("d", OBJECTS, ids=lambda d: d.name)
def test_nothing_of_an_object_is_lost_without_a_note(d: Dialect) -> None:
    hole = hole_of(d)
    assert hole is not None
    whole = wire(d, ("ping", {}))
    before, after = (whole.partition("{")[0], whole.rpartition("}")[2]) if "{" in whole else ("", "")
    rng = random.Random(d.name)
    several = list(product(*(members(hole, place) for place in range(3))))
    for rows in (*product(members(hole, 0), members(hole, 1)), *rng.sample(several, min(len(several), 200))):
        text = f"{before}{{{', '.join(rows)}}}{after}"
        for tools in (None, OFFERED):
            assert list(lost(d, collect(stream(d, [text], tools)), text, tools, "split")) == [], text


@pytest.mark.parametrize(
    ("name", "text", "ignored"),
    [
        ("tool-json", '{"message": "", "tool": "", "tool": "g"}', ["name: g"]),
        ("tool-json", '{"message": "hi", "tool": null, "tool": "g"}', ["name: g"]),
        ("tool-json", '{"tool_input": {"a": 1}, "tool": null, "tool": "g", "message": "hi"}', ["name: g", 'arguments: {"a": 1}']),
        ("generic-json", '{"id": "a", "message": "hi"}', ["id: a"]),
        ("generic-json", '{"tool_calls": [{"message": "hi"}], "args": {"a": 1}}', ['arguments: {"a": 1}']),
        ("tool-call", '{"content": "hi", "args": {"a": 1}, "type": "final"}', ['arguments: {"a": 1}']),
        ("apertus", '<|tools_prefix|>[{"g": {}, "id": 71, "ping": {}}]<|tools_suffix|>', ["id: 71"]),
    ],
)  # fmt: skip
def test_what_is_in_the_note(name: str, text: str, ignored: list[str]) -> None:
    d = one_of(name)
    for tools in (None, OFFERED):
        reply = parse(text, d, tools)
        assert [note.detail for note in reply.notes if note.rule == "ignored-key"] == ignored
        for chunks in (list(text), *cuts(text, random.Random(text))):
            assert merged(stream(d, chunks, tools)) == merged(stream(d, [text], tools))
