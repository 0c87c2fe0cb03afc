"""How the cost of reading a text grows with its length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cost
from toolspeak.types import Tool
from toolspeak.wire.decode import Decoder
from toolspeak.wire.dialect import Dialect

MOST = cost.LINEAR


def growth(
    d: Dialect, make: Callable[[int], str], size: int, tools: Sequence[Tool[..., Any]] | None, start: int = 400
) -> float:
    """What twice as much text costs, in pieces of `size` characters, 0 for all at once; of `start` characters or more."""

    def reading(length: int) -> Callable[[], None]:
        text = make(length)
        step = size or len(text)
        chunks = [text[i : i + step] for i in range(0, len(text), step)]

        def read() -> None:
            decoder = Decoder(d, tools)
            for chunk in chunks:
                decoder.feed(chunk)
            decoder.close()

        return read

    return cost.growth(reading, start)
