# pyright: reportPrivateUsage=false
"""Words are found in a text with and without a compiled pattern, in the same places."""

from __future__ import annotations

import random
import re
import sys

import pytest

from toolspeak.wire.finding.model_names import known
from toolspeak.wire.reading import marks
from toolspeak.wire.reading.lexicon import program
from toolspeak.wire.reading.marks import WORTH, Marks

BETWEEN = ["a b", "\n", " ", "x", "<", "é", "中", ""]


def words_of_dialects() -> list[tuple[tuple[str, ...], str]]:
    """Words at which readers of dialects stop, in texts and in code blocks."""
    programs = [program(dialect, calls=True) for dialect in known()]
    sets = [one for p in programs for one in (p.marks, p.block) if one]
    return sorted({(tuple(one._words), one._special) for one in sets})[::6]  # to compile all takes ten seconds


def place(match: re.Match[str] | None) -> tuple[int, str, bool] | None:
    return match and (match.start(), match[0], bool(match.lastindex))


def test_a_pattern_finds_what_a_comparison_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole and half words, one behind another, at any place and up to any end."""
    rnd = random.Random(7)
    for words, special in words_of_dialects():
        compared, compiled = Marks(words, special), Marks(words, special)
        monkeypatch.setattr(marks, "WORTH", 0)
        for search in (compiled.search, compiled.full, compiled.fast_search):
            search("")
        monkeypatch.setattr(marks, "WORTH", sys.maxsize)
        for _ in range(12):
            parts = [rnd.choice(words) for _ in range(rnd.randrange(1, 6))]
            text = "".join(
                rnd.choice([part, part[: rnd.randrange(len(part) + 1)], rnd.choice(BETWEEN)]) for part in parts
            )
            begin, end = rnd.randrange(len(text) + 2), rnd.randrange(len(text) + 2)
            for span in ((0, sys.maxsize), (begin, sys.maxsize), (begin, end)):
                assert place(compared.search(text, *span)) == place(compiled.search(text, *span)), (text, span)
                assert place(compared.full(text, *span)) == place(compiled.full(text, *span)), (text, span)
            assert (compared.fast_search(text) is None) == (compiled.fast_search(text) is None), text
        assert "search" not in vars(compared)
        assert "search" in vars(compiled)


@pytest.mark.parametrize("way", ["search", "full"])
@pytest.mark.parametrize("piece", ["no word\n", "word after word, "])
def test_a_pattern_is_compiled_when_enough_was_searched(way: str, piece: str) -> None:
    """Not for the few characters of a short reply, and soon for a long one: comparing takes longer for each of them."""
    words = Marks(("\n\n", "<tool_call>", "word"))
    getattr(words, way)(piece)
    assert way not in vars(words)
    for _ in range(WORTH * len("\n\n<tool_call>word")):
        getattr(words, way)(piece)
    assert way in vars(words)
