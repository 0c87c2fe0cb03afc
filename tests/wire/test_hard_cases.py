"""The table of hard texts: each means what it should, the same at every cut, and tells of what was repaired."""

from __future__ import annotations

import json
import random

import pytest
from hard_cases import HARD, TOOLS, Hard
from wire_cases import cuts, merged, one_of, stream

from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect

EACH = [pytest.param(case, name, id=f"{name}: {case.what}") for case in HARD for name in case.dialects.split()]


def before(d: Dialect, wire: str) -> str:
    """What a prompt ends in, where the text goes on from inside a message's head."""
    starts = (d.header.start, *d.header.also) if d.header else ()
    return d.header.start if d.header and not wire.startswith(starts) else ""


@pytest.mark.parametrize(("case", "name"), EACH)
def test_it_means_what_it_should(case: Hard, name: str) -> None:
    d = one_of(name)
    events = stream(d, [case.wire], TOOLS, before(d, case.wire))
    reply = collect(events)
    assert [(c.name, c.arguments) for c in reply.calls] == list(case.calls), reply
    assert (reply.text.strip(), reply.thought.strip()) == (case.text, case.thought), reply
    assert all(json.loads(c.json) == c.arguments for c in reply.calls)
    assert not case.told or reply.notes
    for chunks in cuts(case.wire, random.Random(case.what)):
        assert merged(stream(d, chunks, TOOLS, before(d, case.wire))) == merged(events)


def test_there_are_as_many_as_the_proof_had() -> None:
    assert len(EACH) >= 64
