"""Half a call with the mark of the end of the turn behind it: noted as without the mark."""

from __future__ import annotations

import random

import pytest
from hard_cases import TOOLS
from test_unread_markers import CLOSED, marks
from wire_cases import cuts, merged, stream

from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect

ENDED = [d for d in CLOSED if d.stop and d.stop[0][0] != "\n" and marks(d)[0][-1] != '"']


def rules(d: Dialect, text: str) -> list[str]:
    """The rules of its notes, the same at every cut."""
    events = stream(d, [text], TOOLS)
    for chunks in list(cuts(text, random.Random(text)))[::3]:
        assert merged(stream(d, chunks, TOOLS)) == merged(events)
    return [note.rule for note in collect(events).notes]


@pytest.mark.parametrize("d", ENDED, ids=lambda d: d.name)
def test_an_opener_before_the_end(d: Dialect) -> None:
    opener = marks(d)[0]
    for text in (opener, f"I look.\n{opener}", f"{opener}\n"):
        assert "cut-opener" in rules(d, text + d.stop[0]), text
    opener = opener.split()[0]
    for text in (f"{opener} is the marker.", f"`{opener}`", f"```\n{opener}\n```", f"Say {opener}", "Done."):
        assert "cut-opener" not in rules(d, text + d.stop[0]), text
