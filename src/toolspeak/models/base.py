"""The protocol that every model meets: one method that turns a request into events.

Remote, local, scripted, retried, spoken for: all are that. What a model can do beyond answering text
is told by `capabilities`, so that nothing above asks which model it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Literal, Protocol, runtime_checkable

from ..events import Event
from ..types import Request

Capability = Literal["tools", "required", "prompt", "schema", "grammar", "free", "tags", "score", "scored"]
"""tools: takes tools natively. required: and is held to `choice`. prompt: continues an exact text.
schema, grammar: holds its sampling to them. free: a grammar may say words as well as calls. tags: holds its sampling to
structural tags. score: gives log-likelihoods. scored: decides on calls by them, so that neither what it is told of its
mistakes nor other sampling changes a call."""


@runtime_checkable
class Model(Protocol):
    """Something that answers requests with events."""

    @property
    def name(self) -> str:
        """The name to show, such as `local` or `ollama:gemma3`."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it can do beyond answering a conversation with text."""
        ...

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """The reply's events as they arrive, `Finished` last. Closing the iterator stops the model.

        Raises a ModelError where the model cannot be asked or the reply breaks off.
        """
        ...


@runtime_checkable
class Around(Protocol):
    """What is put around models alike: one that it asks, and the same around another."""

    @property
    def model(self) -> Model:
        """The model that is asked."""
        ...

    def around(self, model: Model) -> Model:
        """The same around another model."""
        ...


@runtime_checkable
class Scorer(Protocol):
    """A model that tells how likely it finds a text."""

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        """The natural logarithm of P(continuation | prompt) of each continuation, whole, not per token."""
        ...


@runtime_checkable
class Counter(Protocol):
    """A model that tells how many tokens a request has."""

    async def count(self, request: Request) -> int | None:
        """The tokens of all that would be sent, tools included; None where they cannot be told. Nothing is
        generated."""
        ...
