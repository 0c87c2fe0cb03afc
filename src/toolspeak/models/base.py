"""The protocol of every model: one method that turns a request into events.

Remote, local, scripted, retrying and prompted models all implement it. `capabilities` says what a model can do besides
answering with text, so no caller needs to know which model it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Literal, Protocol, runtime_checkable

from ..events import Event
from ..types import Request

Capability = Literal[
    "tools", "required", "prompt", "schema", "grammar", "free", "tags", "score", "scored", "enforced", "strict"
]
"""tools: takes tools natively. required: and enforces `choice`. prompt: continues an exact text. schema: takes a JSON
Schema for its output. enforced: and is known to enforce any. strict: and is known to enforce one of OpenAI's `strict`
mode. grammar: enforces a grammar on its output. free: a grammar may describe text as well as calls. tags: enforces structural tags. score:
returns log-likelihoods. scored: decides on calls by likelihood, so that neither a report of its mistakes nor other
sampling changes a call."""


@runtime_checkable
class Model(Protocol):
    """Answers requests with events."""

    @property
    def name(self) -> str:
        """The name for display, such as `local` or `ollama:gemma3`."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it can do besides answering a conversation with text."""
        ...

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """Yield the reply's events as they arrive, `Finished` last. Closing the iterator stops the model.

        Raises a ModelError if the model cannot be reached or the reply breaks off.
        """
        ...


@runtime_checkable
class Around(Protocol):
    """A wrapper that can be put around another model in the same way."""

    @property
    def model(self) -> Model:
        """The wrapped model."""
        ...

    def around(self, model: Model) -> Model:
        """Return the same wrapper around another model."""
        ...


@runtime_checkable
class Scorer(Protocol):
    """A model that can compute the likelihood of a text."""

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        """Return the natural logarithm of P(continuation | prompt) for each continuation, as a whole, not per token."""
        ...


@runtime_checkable
class TokenCounter(Protocol):
    """A model that can count the tokens of a request."""

    async def count(self, request: Request) -> int | None:
        """Return the tokens of everything that would be sent, tools included; None if unknown. Nothing is generated."""
        ...
