"""A text model and a dialect: together, a model that calls tools."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from ..dialects import get
from ..drive import Done, heard, play
from ..errors import ModelError
from ..events import Event
from ..plan.effects import Ask, Effect, Plan, Score
from ..plan.speak import speak, weighs
from ..types import Request
from ..wire.detect import by_template
from ..wire.syntax import Dialect
from .base import Capability, Counter, Model, Scorer

DEFAULT = "tool-json"
"""The dialect for a model that was taught none: asked for in words, one JSON object."""
TAUGHT: frozenset[Capability] = frozenset({"tools", "required"})
"""What a dialect adds to what a text model can do."""


HOLDS = {"free", "tags"}
"""What a model can be that holds a reply which may be words or calls; see `base.Capability`."""


class Speaker:
    """Makes a text model call tools. `dialect` is a name or a value; `template` the model's own chat template, if
    that knows tools, and `variables` what it asks for (bos_token, …). `raw` is for a model that continues prompts and
    answers no conversation.

    Without a dialect a model that gives likelihoods decides by them, and any other is asked in DEFAULT. A reply that may
    be words or calls is held to the dialect by a model that can be, unless it shall not be `held`."""

    def __init__(
        self,
        model: Model,
        dialect: str | Dialect | None = None,
        *,
        template: str | None = None,
        variables: Mapping[str, Any] | None = None,
        raw: bool = False,
        held: bool = True,
    ) -> None:
        self.model = model
        self.raw = raw
        self.held = held
        self.profile = ""  # the file that says so, where one does: see `models.profiles`
        self.dialect = dialect if isinstance(dialect, Dialect) else get(dialect or DEFAULT)
        self.chosen = dialect is not None
        self.template = template
        self.variables = variables
        self.name = model.name
        own: set[Capability] = {"weighs"} if weighs(self._can(), template) else set()
        self.capabilities: frozenset[Capability] = (model.capabilities - {"weighs"}) | TAUGHT | own

    def _can(self) -> frozenset[Capability]:
        """What of the model's abilities is made use of."""
        unused = ({"score"} if self.chosen else set[str]()) | (set[str]() if self.held else HOLDS)
        return self.model.capabilities - unused

    def plan(self, request: Request) -> Plan[None]:
        """How the request will be answered, step by step."""
        now = datetime.now().astimezone()
        return speak(
            request,
            self.dialect,
            self._can(),
            template=self.template,
            variables=self.variables,
            now=now,
            ids=new_id,
            raw=self.raw,
        )

    def stream(self, request: Request) -> AsyncGenerator[Event]:
        """The reply's events; see the protocol."""
        plan = self.plan(request)
        effect = plan.send(None)
        if isinstance(effect, Ask) and not effect.kept:  # its only step
            return heard(effect, self.model)
        return self._played(plan, effect)

    async def _played(self, plan: Plan[None], begun: Effect) -> AsyncGenerator[Event]:
        async with aclosing(play(plan, self.model, begun=begun)) as events:
            async for event in events:
                if not isinstance(event, Done):
                    yield event

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        """Passed on to the text model."""
        if not isinstance(self.model, Scorer):
            raise ModelError(f"{self.name} gives no likelihoods")
        return await self.model.score(prompt, continuations)

    async def count(self, request: Request) -> int | None:
        """The tokens of what the text model would be asked first."""
        if not isinstance(self.model, Counter):
            return None
        effect = self.plan(request).send(None)
        if isinstance(effect, Score):
            return await self.model.count(Request(prompt=effect.pairs[0][0]))
        return await self.model.count(effect.request if isinstance(effect, Ask) else request)


def new_id() -> str:
    """An id for a call, unique beyond any conversation."""
    return f"call_{secrets.token_hex(12)}"


@runtime_checkable
class Templated(Protocol):
    """A text model that knows its own chat template."""

    @property
    def template(self) -> tuple[str, dict[str, str]]:
        """The template, "" for none, and the variables that it asks for."""
        ...


def speaking(model: Model) -> Model:
    """The model itself if it takes tools natively, otherwise spoken for: in the dialect of its own chat template where
    that knows tools, else in the one for any model."""
    if "tools" in model.capabilities:
        return model
    text, variables = model.template if isinstance(model, Templated) else ("", {})
    spoken = by_template(text) if text else None
    return Speaker(model, spoken, template=text, variables=variables) if spoken else Speaker(model)
