"""What a request asks for: the noun that tells it."""

from __future__ import annotations

from functools import partial

import pytest

from cost import LINEAR, growth
from toolspeak.nlu.requested_nouns import sought


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("What is the volume of a cube with an edge of 4 cm?", [{"volum"}]),
        ("What's the current exchange rate of the dollar?", [{"rate"}]),
        ("Calculate the surface area of a sphere", [{"area"}]),
        ("Find me restaurants in London", [{"resta"}]),
        ("Tell me the names of proteins found in plants", [{"prote"}]),
        ("What type of soil is in the Sahara?", [{"soil"}]),
        ("How many goals did he score in 2012?", [{"goal"}]),
        ("Which team won the cup?", [{"team", "won"}]),
        ("Who is the author of 'The Trial'?", [{"autho"}]),
        ("List the lawsuits filed against Google, and show their judges", [{"lawsu"}, {"judge"}]),
        ("Who discovered electricity?", [{"elect", "disco"}]),
        # what asks for nothing by a noun, or by one that any tool may answer
        ("Good morning!", []),
        ("How long does it take?", []),
        ("What is 3 plus 4?", []),
        ("How many days are left?", []),
        ("What is the best way to Lima?", []),
        ("What's NVDA trading at?", []),
        ("Show me Paris", []),
        ("明天巴黎天气怎么样？", []),
        ("", []),
    ],
)
def test_the_noun_is_found(text: str, found: list[set[str]]) -> None:
    assert sought(text) == found


def test_long_texts_take_no_longer_a_word() -> None:
    for unit in ("what is the ", "find me out ", "what ", "word ", "how much of the "):
        assert growth(lambda count, unit=unit: partial(sought, unit * count)) <= LINEAR, unit
