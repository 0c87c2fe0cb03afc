"""A contender of an evaluation: a model, and the dialect that it is prompted in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import UsageError
from ..models.base import Model
from ..models.http.address import USERINFO
from ..models.resolve import model as named_model
from .trace import recorded


@dataclass(frozen=True, slots=True)
class Contender:
    """A model, by name or as an object, and the dialect that it is prompted in (None: the model's default).

    `title` is the name in tables; by default it is made from the two. A further setting that evaluations compare
    belongs here, in `label` and in `build`.
    """

    model: str | Model
    dialect: str | None = None
    title: str = ""

    @property
    def label(self) -> str:
        """The name that identifies the contender in tables and records. User and password are removed from addresses."""
        name = USERINFO.sub("//", self.model) if isinstance(self.model, str) else self.model.name
        return self.title or " · ".join(filter(None, (name, self.dialect)))

    def build(self) -> Model:
        """The model, able to call tools, with its requests recorded. Raises UnknownModel, UnknownDialect."""
        return recorded(named_model(self.model, dialect=self.dialect))


def contenders(models: Sequence[str | Model], dialects: Sequence[str | None] = (None,)) -> list[Contender]:
    """A contender for every model with every dialect."""
    pairs = [Contender(model, dialect) for model in models for dialect in dialects or (None,)]
    distinct(pairs)
    return pairs


def distinct(contenders: Sequence[Contender]) -> None:
    """Raises UsageError if two contenders have the same label."""
    labels = [one.label for one in contenders]
    if twice := sorted({label for label in labels if labels.count(label) > 1}):
        raise UsageError(f"two contenders are called {twice[0]!r}: name each once, or give them titles")
