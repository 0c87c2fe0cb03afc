"""The result of a generation, and its error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ... import errors


class LLMResult(NamedTuple):
    """A model's answer: the `raw` response, the `content` made from it, and the separated thought.

    The repr shows the scratchpad only if there is one, so that results look the same in programs of both versions: the
    field was added years after the other two.
    """

    raw: Any
    content: Any
    scratchpad: str | None = None

    def __repr__(self) -> str:
        thought = "" if self.scratchpad is None else f", scratchpad={self.scratchpad!r}"
        return f"LLMResult(raw={self.raw!r}, content={self.content!r}{thought})"


class TransformError(errors.ToolspeakError):
    """A text that is not as expected: `message` is a short code, `raw` the text."""

    status = 422

    def __init__(self, message: str = "Transformation Error", raw: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.raw = raw


class GenerationError(errors.GenerationError):
    """No attempt succeeded: `raw` is the last text, `attempts` are all of them."""

    def __init__(
        self, message: str = "Generation Error", raw: Any = None, *, attempts: Sequence[errors.Attempt] = ()
    ) -> None:
        super().__init__(message, attempts=attempts)
        self.message = message
        self.raw = raw
