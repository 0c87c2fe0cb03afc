"""A text model and a dialect: together, a model that calls tools."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from ..dialects import get
from ..drive import Done, heard, play
from ..errors import ModelError
from ..events import Event
from ..plan.effects import Ask, Effect, Plan, Score
from ..plan.speak import speak
from ..types import Request
from ..wire.detect import ANY
from ..wire.syntax import Dialect
from .base import Capability, Counter, Model, Scorer
from .offload import LARGE, offloaded, request_size
from .strategy import Known, Strategy, known_of
from .strategy import strategy as decide

DEFAULT = ANY
TAUGHT: frozenset[Capability] = frozenset({"tools", "required"})
"""What a dialect adds to what a text model can do."""
HOLDS = {"free", "tags"}
"""What a model can be that holds a reply which may be words or calls; see `base.Capability`."""


class Speaker:
    """Makes a text model call tools: prompted in a dialect, or scored.

    `dialect` is a name or a value. `way="scored"` has calls decided by likelihood, `way="prompted"` written in a dialect.
    `template` is the model's own chat template, if prompts shall be laid out by it, and `variables` what it asks for
    (bos_token, …). What is not given is decided by what is known of the model: see `models.strategy`, whose decision may
    be given whole as `strategy`.
    """

    def __init__(
        self,
        model: Model,
        dialect: str | Dialect | None = None,
        *,
        way: Literal["prompted", "scored"] | None = None,
        template: str | None = None,
        variables: Mapping[str, Any] | None = None,
        strategy: Strategy | None = None,
    ) -> None:
        # A model's file is read only where something has to be known of it. Tools that a server takes are left aside.
        given = dialect is not None if strategy is None else not strategy.template
        known = Known() if given else replace(known_of(model), tools=None)
        self.model = model
        self.strategy = strategy or decide(known, way=way, dialect=dialect, template=template or "")
        self.dialect = self.strategy.dialect or get(DEFAULT)
        self.variables = known.variables if variables is None else variables
        self.name = model.name
        own: set[Capability] = {"scored"} if self.strategy.way == "scored" else set()
        self.capabilities: frozenset[Capability] = (model.capabilities - {"scored"}) | TAUGHT | own

    @property
    def template(self) -> str | None:
        """The chat template by which prompts with tools are laid out, if any."""
        return self.strategy.template or None

    def _can(self) -> frozenset[Capability]:
        """What of the model's abilities is made use of."""
        unused = set[str]() if self.strategy.constrained else HOLDS
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
            raw=self.strategy.exact,
            scored=self.strategy.way == "scored",
        )

    def stream(self, request: Request) -> AsyncGenerator[Event]:
        """The reply's events; see the protocol."""
        plan = self.plan(request)
        if request_size(request) >= LARGE:
            return self._begun_beside(plan)
        return self._going_on(plan, plan.send(None))

    async def _begun_beside(self, plan: Plan[None]) -> AsyncGenerator[Event]:
        """The same for a long request, whose prompt is rendered in a thread."""
        async with aclosing(self._going_on(plan, await asyncio.to_thread(plan.send, None))) as events:
            async for event in events:
                yield event

    def _going_on(self, plan: Plan[None], effect: Effect) -> AsyncGenerator[Event]:
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
        effect = await offloaded(request_size(request), self.plan(request).send, None)
        if isinstance(effect, Score):
            return await self.model.count(Request(prompt=effect.pairs[0][0]))
        return await self.model.count(effect.request if isinstance(effect, Ask) else request)


def new_id() -> str:
    """An id for a call, unique beyond any conversation."""
    return f"call_{secrets.token_hex(12)}"
