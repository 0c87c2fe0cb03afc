"""Keeps the end of a text that is passed on as it arrives."""

from __future__ import annotations

from .missing_quotes import LONG


class TextEnd:
    """The last characters of a text, at least `LONG` of them; all if it is shorter."""

    __slots__ = ("content",)

    def __init__(self) -> None:
        self.content = ""

    def shorten(self) -> None:
        """Keeps no more than is needed."""
        self.content = self.content[-LONG:]
