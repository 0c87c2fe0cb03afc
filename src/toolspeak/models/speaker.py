"""A text model and a dialect: together, a model that calls tools."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, cast

from ..dialects import get
from ..drive import Done, play, reply_events
from ..events import Event
from ..plan.effects import Ask, Effect, Plan, Score
from ..plan.prompted import Restored, prompted
from ..types import Request
from ..wire.detect import ANY
from ..wire.dialect import Dialect
from .base import Capability, Model, TokenCounter
from .calls_in_text import Listener, with_calls_in_text
from .new_ids import new_id
from .offload import LARGE, offloaded, prompt_size
from .strategy import Known, Preferences, Strategy, known_of, strategy as decide
from .unread_calls import with_hint
from .wrapper import Wrapper

TAUGHT: frozenset[Capability] = frozenset({"tools", "required"})
"""What a dialect adds to what a text model can do."""
HOLDS = {"free", "tags"}
"""What a model can be that holds a reply which may be words or calls; see `base.Capability`."""


class Speaker(Wrapper[Model]):
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
        super().__init__(model)
        # A model's file is read only where something has to be known of it. Tools that a server takes are left aside.
        decided = dialect is not None if strategy is None else not strategy.template
        known = Known() if decided else replace(known_of(model), tools=None)
        if strategy is None:
            strategy = decide(known, Preferences(way, dialect, template or ""))
        self.strategy = strategy
        self.dialect = self.strategy.dialect or get(ANY)
        self.variables = known.variables if variables is None else variables

    @property
    def capabilities(self) -> frozenset[Capability]:
        own: set[Capability] = {"scored"} if self.strategy.way == "scored" else set()
        return (self.model.capabilities - {"scored"}) | TAUGHT | own

    @property
    def template(self) -> str | None:
        """The chat template by which prompts with tools are laid out, if any."""
        return self.strategy.template or None

    def plan(self, request: Request) -> Plan[None]:
        """How the request will be answered, step by step."""
        chosen, can = self.strategy, self.model.capabilities
        can = can if chosen.constrained else can - HOLDS
        plan = prompted(
            request, self.dialect, can, template=self.template, variables=self.variables,
            now=datetime.now().astimezone(), ids=new_id, raw=chosen.exact,
        )  # fmt: skip
        if chosen.way != "scored":
            return plan
        from ..nlu.scored import scored  # a tenth of what a command imports, and few models need it

        return scored(request, self.dialect, can, new_id, plan)

    def stream(self, request: Request) -> AsyncGenerator[Event]:
        """The reply's events; see the protocol. Calls in other dialects than the one in which the model is asked count
        too; if the user named that, there is a note on them instead."""
        if not self.strategy.reads_all_dialects:
            events = self._stream(request, self.plan(request))
            return with_hint(events, request) if self.strategy.explicit else events
        listener = Listener(request, None, self.dialect)
        return with_calls_in_text(self._stream(request, _unrestored(self.plan(request), listener)), listener)

    def _stream(self, request: Request, plan: Plan[None]) -> AsyncGenerator[Event]:
        if prompt_size(request) >= LARGE:
            return self._played(plan, request)
        effect = plan.send(None)
        if isinstance(effect, Ask) and not effect.recorded:  # its only step
            return reply_events(effect, self.model)
        return self._played(plan, request, effect)

    async def _played(self, plan: Plan[None], request: Request, begun: Effect | None = None) -> AsyncGenerator[Event]:
        """The events of a plan. One that is not begun renders the prompt of a long request, in a thread."""
        if begun is None:
            begun = await offloaded(prompt_size(request), plan.send, None)
        async with aclosing(play(plan, self.model, begun=begun)) as events:
            async for event in events:
                if not isinstance(event, Done):
                    yield event

    async def count(self, request: Request) -> int | None:
        """The tokens of what the text model would be asked first."""
        if not isinstance(self.model, TokenCounter):
            return None
        effect = await offloaded(prompt_size(request), self.plan(request).send, None)
        if isinstance(effect, Score):
            return await self.model.count(Request(prompt=effect.pairs[0][0]))
        return await self.model.count(effect.request if isinstance(effect, Ask) else request)


def _unrestored(plan: Plan[None], listener: Listener) -> Plan[None]:
    """The plan, which asks once, without what restores broken markers: the listener does that, after it has looked for
    calls."""
    effect = plan.send(None)
    reads = getattr(effect, "read", None)
    if isinstance(reads, Restored):
        listener.restorer = reads.restorer
        effect = replace(cast("Ask", effect), read=reads.read)
    yield effect
    plan.close()
