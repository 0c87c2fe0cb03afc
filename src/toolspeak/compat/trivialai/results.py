"""The result of a generation, and the error that it raises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ... import errors


class LLMResult(NamedTuple):
    """What a model answered: the `raw` response, the `content` made of it, and the thought split off it.

    The scratchpad is printed only where there is one, so that a result reads alike in programs of both
    ages: it came to this tuple years after the other two.
    """

    raw: Any
    content: Any
    scratchpad: str | None = None

    def __repr__(self) -> str:
        thought = "" if self.scratchpad is None else f", scratchpad={self.scratchpad!r}"
        return f"LLMResult(raw={self.raw!r}, content={self.content!r}{thought})"


class TransformError(errors.ToolspeakError):
    """A text that is not what was wanted: `message` is a short code, `raw` the text."""

    status = 422

    def __init__(self, message: str = "Transformation Error", raw: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.raw = raw


class GenerationError(errors.GenerationError):
    """No try gave what was wanted: `raw` is the last text, `attempts` holds every try."""

    def __init__(
        self, message: str = "Generation Error", raw: Any = None, *, attempts: Sequence[errors.Attempt] = ()
    ) -> None:
        super().__init__(message, attempts=attempts)
        self.message = message
        self.raw = raw
