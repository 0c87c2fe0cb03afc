"""A text model and a dialect: together, a model that calls tools."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from datetime import datetime

from ..dialects import get
from ..drive import Done, play
from ..errors import ModelError
from ..events import Event
from ..plan.effects import Plan
from ..plan.speak import speak
from ..types import Request
from ..wire.syntax import Dialect
from .base import Capability, Model, Scorer

DEFAULT = "tool-json"
"""The dialect for a model that was taught none: asked for in words, one JSON object."""
TAUGHT: frozenset[Capability] = frozenset({"tools", "required"})
"""What a dialect adds to what a text model can do."""


class Speaker:
    """Makes a text model call tools. `dialect` is a name or a value; `template` the model's own chat template, if
    that knows tools."""

    def __init__(self, model: Model, dialect: str | Dialect = DEFAULT, *, template: str | None = None) -> None:
        self.model = model
        self.dialect = get(dialect) if isinstance(dialect, str) else dialect
        self.template = template
        self.name = model.name
        self.capabilities: frozenset[Capability] = model.capabilities | TAUGHT

    def plan(self, request: Request) -> Plan[None]:
        """How the request will be answered, step by step."""
        now = datetime.now().astimezone()
        return speak(request, self.dialect, self.model.capabilities, template=self.template, now=now, ids=new_id)

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        async with aclosing(play(self.plan(request), self.model)) as events:
            async for event in events:
                if not isinstance(event, Done):
                    yield event

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        """Passed on to the text model."""
        if not isinstance(self.model, Scorer):
            raise ModelError(f"{self.name} gives no likelihoods")
        return await self.model.score(prompt, continuations)


def new_id() -> str:
    """An id for a call, unique beyond any conversation."""
    return f"call_{secrets.token_hex(6)}"


def speaking(model: Model) -> Model:
    """The model itself if it takes tools natively, otherwise spoken for."""
    return model if "tools" in model.capabilities else Speaker(model)
