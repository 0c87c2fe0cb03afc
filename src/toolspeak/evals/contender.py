"""A contender of an evaluation: a model and the way in which it is asked."""

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
    """A model, by its name or itself, and the dialect that it is asked in (None: the model's own way).

    `title` is what tables call it, by default made of the two. Another factor of deciding belongs here, in `label`,
    and where `build` makes the model.
    """

    model: str | Model
    dialect: str | None = None
    title: str = ""

    @property
    def label(self) -> str:
        """What tells it from others, in records too: an address without the user and password that it may hold."""
        name = USERINFO.sub("//", self.model) if isinstance(self.model, str) else self.model.name
        return self.title or " · ".join(filter(None, (name, self.dialect)))

    def build(self) -> Model:
        """The model, ready to call tools, recorded. Raises UnknownModel, UnknownDialect."""
        return recorded(named_model(self.model, dialect=self.dialect))


def contenders(models: Sequence[str | Model], dialects: Sequence[str | None] = (None,)) -> list[Contender]:
    """Every model in every dialect."""
    made = [Contender(model, dialect) for model in models for dialect in dialects or (None,)]
    distinct(made)
    return made


def distinct(given: Sequence[Contender]) -> None:
    """Raises UsageError where two contenders would be called the same."""
    labels = [one.label for one in given]
    if twice := sorted({label for label in labels if labels.count(label) > 1}):
        raise UsageError(f"two contenders are called {twice[0]!r}: name each once, or give them titles")
