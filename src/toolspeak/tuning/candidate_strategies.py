"""Lists the strategies that are worth trying with a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from ..dialects import names
from ..errors import UsageError
from ..models.base import Model
from ..models.http import Http
from ..models.servers.capabilities import ServerCapabilities
from ..models.servers.probe import server_capabilities
from ..models.speaker import HOLDS
from ..models.strategy import PLAIN, Known, Preferences, Strategy, known_of, strategy
from ..models.tool_calling import as_tuned
from ..wire.detect import by_template

UNSERVED = ("findings", "template", "models", "at", "context")
"""Capabilities of a server that no strategy depends on."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A strategy to try. `usual` marks the one that the model gets without a profile."""

    strategy: Strategy
    usual: bool = False


async def candidates(model: Model, dialects: Sequence[str] = ()) -> list[Candidate]:
    """The strategies to try with a text model or a server, the usual one first.

    `dialects` replace PLAIN and the model's own dialect. A server is probed first, unless that was done within a day.
    Raises ModelError if a server cannot be asked.
    """
    if isinstance(model, Http):
        return await _of_server(model, dialects)
    if "tools" in model.capabilities:
        raise UsageError(f"{model.name} has tool calling of its own, so there is no other strategy to try")
    known = known_of(model)
    own = [strategy(known, Preferences("prompted"))] if known.template and by_template(known.template) else []
    scored = [strategy(known, Preferences("scored"))] if known.scores else []
    holds = bool(HOLDS & model.capabilities)
    return _with_dialects(strategy(known), [*own, *scored], dialects or PLAIN, holds=holds)


async def _of_server(model: Http, dialects: Sequence[str]) -> list[Candidate]:
    seen = await server_capabilities(model)
    if not seen.can("chat"):
        raise UsageError(f"{model.name} has no chat API, and only strategies for chat are tried")
    known = replace(seen.known, completes=False)
    by_itself = [strategy(known, Preferences("native"))] if seen.can("tools") else []
    scored = [strategy(known, Preferences("scored"))] if seen.score_way else []
    own = strategy(replace(known, tools=None, scores=False)).dialect
    tried = dialects or ([own.name] if own and own.name in names() else []) + [*PLAIN]
    server = {
        each.name: value
        for each in fields(ServerCapabilities)
        if each.name not in UNSERVED and (value := getattr(seen, each.name))
    }
    holds = bool(HOLDS & as_tuned(model, Strategy("prompted", dialect=own, server=server)).capabilities)
    candidates = _with_dialects(strategy(known), [*by_itself, *scored], tried, holds=holds)
    return [replace(one, strategy=replace(one.strategy, server=server)) for one in candidates]


def _with_dialects(
    usual: Strategy, others: Sequence[Strategy], dialects: Sequence[str], *, holds: bool
) -> list[Candidate]:
    """The usual strategy, then `others`, then one strategy for each dialect. Each dialect is tried with constrained
    sampling and without it where the model can constrain (`holds`)."""
    first = [usual.dialect.name] if usual.dialect and usual.dialect.name in names() else []
    every = {one.label: one for one in others}
    every_name = [*([] if usual.label in every else first), *dialects]
    for name in dict.fromkeys(every_name):
        spoken = strategy(Known(), Preferences(dialect=name))
        for one in (spoken, replace(spoken, constrained=False)) if holds else (spoken,):
            every.setdefault(one.label, one)
    usual = every.get(usual.label, next(iter(every.values())))
    return [Candidate(usual, True), *(Candidate(one) for one in every.values() if one is not usual)]
