"""The models that a gateway serves, by the names that clients use."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass

from ..api.asked import Asked
from ..api.body import cannot
from ..drive import Done
from ..errors import Refused
from ..events import Event
from ..models.base import Model
from ..models.names import model as named_model
from ..models.speaker import speaking
from ..schema.near import did_you_mean, near
from ..types import Reply, Request
from .answer import answer
from .settings import ModelSettings


@dataclass(frozen=True, slots=True)
class Served:
    """A model, and how it is served."""

    settings: ModelSettings
    model: Model

    def answer(self, request: Request) -> AsyncGenerator[Event | Done[Reply]]:
        """The events of a reply; see `answer.answer`."""
        return answer(request, self.model, tries=self.settings.tries, live=self.settings.arguments == "live")


def made(settings: ModelSettings) -> Served:
    """The model that settings describe; nothing is asked or loaded yet. Raises UsageError."""
    return Served(settings, speaking(named_model(settings.upstreams[0], dialect=settings.dialect, key=settings.key)))


def check_able(asked: Asked, served: Served) -> None:
    """Raises Refused where the model cannot do what is asked, whatever is done for it."""
    if asked.request.prompt is not None and "prompt" not in served.model.capabilities:
        raise cannot("prompt", f"{asked.model!r} takes messages, no raw prompt: ask it at /v1/chat/completions")


class Models:
    """Finds a model by name."""

    def __init__(self, settings: Mapping[str, ModelSettings]) -> None:
        self.served = {name: made(one) for name, one in settings.items()}

    def names(self, visible: Callable[[str], bool]) -> list[str]:
        """The names that may be seen, in the order of the settings."""
        return [name for name in self.served if visible(name)]

    def find(self, name: str, visible: Callable[[str], bool] = lambda _: True) -> Served:
        """Raises Refused (404), which names the near ones; one that may not be seen is not there."""
        if (found := self.served.get(name)) and visible(name):
            return found
        said = f"there is no model {name[:100]!r} here.{did_you_mean(near(name[:100], self.names(visible)))}"
        raise Refused(said, status=404, code="model_not_found", param="model")
