"""The models that a gateway serves, by the names that clients use."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import cast
from urllib.parse import quote, unquote

from ..api.field_schemas import cannot
from ..api.incoming import IncomingRequest
from ..drive import Done
from ..errors import Refused, UsageError
from ..events import Event
from ..models.base import Model
from ..models.fallback import Adaptive
from ..models.http import Http
from ..models.offload import LARGE, offloaded, request_size
from ..models.pool import Care, Pool
from ..models.recording import FileTape, Recorder
from ..models.resolve import bare, model as named_model, over_http
from ..models.scripted import Scripted
from ..models.strategy import Preferences, Way
from ..models.tool_calling import adapted, calling
from ..models.wrapper import within
from ..plan.repeats import RepeatedTurn, counted_turns, ended, in_a_row, noticed
from ..plan.result_pages import LONGEST
from ..schema.suggestions import did_you_mean, listed, misspelled, near
from ..search import ToolIndex
from ..search.paged_results import PagedResults
from ..search.router import FEW, ToolRouter
from ..tool_results import LIMIT
from ..types import Note, Reply, Request, copy_with
from .config.settings import GatewayLimits, ModelSettings
from .generation import answer, in_words, narrowed, with_notes

USUAL = GatewayLimits()
NO_TURN = RepeatedTurn(0, 0, 0)
RECORDING = ".jsonl"
ANY = "*"
"""The alias of the default model."""
NO_ALIASES: Mapping[str, str] = {}
WAYS: Mapping[str, tuple[Way | None, bool | None]] = {
    "auto": (None, None), "native": ("native", None), "chat": ("prompted", False), "raw": ("prompted", True),
}  # fmt: skip
"""For each mode of the settings, the arguments of `models.strategy`: the way, and whether prompts are exact."""


@dataclass(frozen=True, slots=True)
class Served:
    """A model, and the settings with which it is served."""

    settings: ModelSettings
    model: Model

    def answer(
        self, request: Request, *, whole: bool = False, eager: Collection[str] = ()
    ) -> AsyncGenerator[Event | Done[Reply]]:
        """Yield the events of a reply; see `generation.answer`. Calls of `eager` tools are streamed as they are
        written."""
        if request_size(request) < LARGE:
            return self._answered(*self._as_read(request), whole, eager)
        return self._later(request, whole, eager)

    async def _later(
        self, request: Request, whole: bool, eager: Collection[str]
    ) -> AsyncGenerator[Event | Done[Reply]]:
        """Yield the events of a reply to a long conversation, which is read in a thread."""
        read = await offloaded(request_size(request), self._as_read, request)
        async with aclosing(self._answered(*read, whole, eager)) as events:
            async for event in events:
                yield event

    def _answered(
        self, request: Request, turn: RepeatedTurn, notes: list[Note], whole: bool, eager: Collection[str]
    ) -> AsyncGenerator[Event | Done[Reply]]:
        """Yield the events of a reply to a request as the model reads it."""
        wanted = self.settings.arguments
        live = eager if wanted == "auto" else wanted == "live"
        if self.settings.repeats_ended > 0 and turn.reaches(self.settings.repeats_ended):
            note = Note("repeats-ended", str(turn.similar))
            return in_words(ended(request.messages, turn), request, note)
        events = answer(request, self._with_selection(request), tries=self.settings.tries, live=live, whole=whole)
        return with_notes(notes, events) if notes else events

    def _as_read(self, request: Request) -> tuple[Request, RepeatedTurn, list[Note]]:
        """Return the request with the conversation as the model reads it; its last turn, which repeats none if the
        model is not free to choose its calls; and notes."""
        rule, messages, notes = self.settings, request.messages, list[Note]()
        turns = counted_turns(messages)
        if not turns:
            return request, NO_TURN, notes
        wanted = request.choice if request.tools else "none"
        turn = in_a_row(messages, turns if wanted == "auto" else ())
        if rule.repeats_noticed:
            messages = noticed(messages, turns, rule.repeats_noticed)
        if 0 < turn.similar == rule.repeats_noticed:
            notes.append(Note("repeats-noticed", str(turn.similar)))
        if messages is not request.messages:
            request = copy_with(request, messages=messages)
        return request, turn, notes

    @property
    def longest_result(self) -> int:
        """Characters of a result of a tool that runs here: all of it where the model can read it page by page."""
        return LONGEST if self._paged().size.tokens < LONGEST else LIMIT

    async def narrowed(self, request: Request) -> Request:
        """Return the request with the tools that the model sees first."""
        request, *_ = await offloaded(request_size(request), self._as_read, request)
        return await narrowed(self._with_selection(request), request)

    def _with_selection(self, request: Request) -> Model:
        """Return the model with a selection of many tools, and with parts of large results."""
        key, paged = self.settings, self._paged()
        model = paged if paged.needed(request) else self.model
        few = 0 if request.deferred else key.max_tools or FEW
        if key.max_tools == 0 or len(request.tools or ()) <= few:
            return model
        return ToolRouter(
            model, max_tools=key.max_tools, tokens=key.tool_tokens, context=key.context, pinned=key.pinned,
            strict=_chooses(key),
        )  # fmt: skip

    def _paged(self) -> PagedResults:
        """Return the model with the operator's rules for results."""
        rule = self.settings
        clear = (rule.clear_results, rule.keep_results) if rule.clear_results else None
        return PagedResults(self.model, tokens=rule.result_tokens, context=rule.context, characters=None, clear=clear)


def _chooses(settings: ModelSettings) -> bool:
    """Whether the settings say how tools are selected. Otherwise they are selected if that is possible."""
    return any((settings.max_tools, settings.tool_tokens, settings.pinned))


def build(settings: ModelSettings, limits: GatewayLimits = USUAL, record: str | None = None) -> Served:
    """Return the model that the settings describe, recorded in the folder `record`. Nothing is requested or loaded yet.

    Raises UsageError, and MissingExtra if the settings select tools and the library for it is not installed.
    """
    if _chooses(settings):
        ToolIndex()
    care = Care(limits.attempts, limits.failures, limits.rest)
    upstreams = [_upstream(name, settings) for name in settings.upstreams]
    if record is not None:
        tape = FileTape(Path(record) / f"{quote(settings.name, safe='')}{RECORDING}")
        upstreams = [Recorder(one, tape) for one in upstreams]
    return Served(settings, Pool(upstreams, name=settings.name, care=care))


def _upstream(name: str, settings: ModelSettings) -> Model:
    """Return one of a model's upstreams in the mode of the settings. The pool around it retries."""
    if not over_http(name):
        if settings.mode == "native":
            raise UsageError(f"the model {settings.name}: {name} has no tools of its own, so its mode cannot be native")
        model = named_model(name, dialect=settings.dialect, key=settings.key)
        if script := within(model, Scripted):
            script.cycle = True  # a server answers every request
        return calling(model)
    way, exact = WAYS[settings.mode]
    wanted = Preferences(way, settings.dialect, settings.template or "", exact)
    # With neither mode nor dialect set, the server is probed when the gateway starts, so no choice is needed now.
    look = (way, settings.dialect) != (None, None)
    http = cast("Http", bare(name, key=settings.key, retries=0))
    if settings.key:
        http.key_source = f"`key` of models.{settings.name}, from {settings.key_source}"
    return adapted(http, wanted, look=look)


def servers_of(model: Model) -> list[Adaptive]:
    """Return the upstreams of a model of which it is found out how to ask them."""
    models = [one.model for one in model.upstreams] if isinstance(model, Pool) else [model]
    return [server for one in models if (server := within(one, Adaptive))]


def recordings(path: str) -> dict[str, Path]:
    """Return the recordings in a folder, or a single file, by the names of their models. Raises UsageError for none."""
    files = sorted(Path(path).glob(f"*{RECORDING}")) if Path(path).is_dir() else [Path(path)]
    if not files:
        raise UsageError(f"{path} contains no recording: expected files NAME{RECORDING} of `toolspeak serve --record`")
    return {unquote(file.name.removesuffix(RECORDING)): file for file in files}


def check_able(incoming: IncomingRequest, served: Served) -> None:
    """Raises Refused if the model cannot do what the request asks for at all."""
    if incoming.request.prompt is not None and "prompt" not in served.model.capabilities:
        raise cannot("prompt", f"{incoming.model!r} accepts messages, but no raw prompt: use /v1/chat/completions")


SERVE_IT = "serve one under that name: --alias or --default of `toolspeak serve`, [aliases] or `default_model` in its configuration"
ASK_OPERATOR = "ask the gateway's operator"


class Models:
    """Finds a model by name, then by alias (a name or pattern), else the default. Raises UsageError for an unknown
    model. `keyed`: clients have keys, so they cannot change what is served."""

    def __init__(
        self,
        settings: Mapping[str, ModelSettings],
        limits: GatewayLimits = USUAL,
        *,
        aliases: Mapping[str, str] = NO_ALIASES,
        default: str | None = None,
        record: str | None = None,
        keyed: bool = False,
    ) -> None:
        self._missing = ASK_OPERATOR if keyed else SERVE_IT
        self.built = {name: build(one, limits, record) for name, one in settings.items()}
        """The models of these settings."""
        self.served = dict(self.built)
        """The models that answer: those of earlier settings until the ones of these settings are loaded."""
        self.aliases = {**aliases, **({ANY: default} if default else {})}
        for alias, name in self.aliases.items():
            if name not in self.served:
                what = "the default model" if alias == ANY else f"the alias {alias[:100]!r}"
                raise UsageError(
                    f"{what}: expected a model that is served, got {name[:100]!r}.{did_you_mean(near(name, self.served))}"
                )

    def answer_by(self, earlier: Models) -> None:
        """Let the models of earlier settings answer by their names until the ones of these settings are loaded."""
        self.served |= {name: one for name, one in earlier.served.items() if name in self.built}

    def loaded(self, name: str) -> None:
        """Let the model of these settings answer from now on."""
        self.served[name] = self.built[name]

    def stop(self) -> None:
        """End the models' background work. Connections are shared with other models, and stay open."""
        for one in self.built.values():
            for server in servers_of(one.model):
                server.stop()

    def broken(self) -> list[str]:
        """Return the names of the models without a working upstream."""
        return [name for name, one in self.served.items() if isinstance(one.model, Pool) and not one.model.available]

    def breakers(self) -> list[tuple[str, str, bool]]:
        """Return whether each upstream's circuit breaker is open: (model, upstream, open)."""
        pools = ((name, one.model) for name, one in self.served.items() if isinstance(one.model, Pool))
        return [(name, up.name, up.state == "open") for name, pool in pools for up in pool.upstreams]

    def names(self, visible: Callable[[str], bool]) -> list[str]:
        """Return the visible names in the order of the settings, then the aliases that are not patterns."""
        plain = {alias: name for alias, name in self.aliases.items() if not set("*?[") & set(alias)}
        named = {**{name: name for name in self.served}, **plain}
        return [name for name, model in named.items() if visible(model)]

    def only(self, visible: Callable[[str], bool]) -> str:
        """Return the name of the only visible model. Raises Refused, listing them, if there are several."""
        names = self.names(visible)
        if len(names) != 1:
            there = f"there are {listed(names)}" if names else "there is none for this key"
            raise Refused(f"name a model: {there}", status=404, code="model_not_found", param="model")
        return names[0]

    def find(self, name: str, visible: Callable[[str], bool] = lambda _: True) -> Served:
        """Return the model of that name. Raises Refused (404), with similar names; a model that the key may not see
        counts as missing. Ollama's clients add `:latest` to a name without a tag."""
        if known := self._meaning(name, visible):
            return self.served[known]
        if (default := self.aliases.get(ANY)) and visible(default):
            return self.served[default]
        names = self.names(visible)
        problem = f"there is no model {name[:100]!r} here.{did_you_mean(near(name[:100], names))}"
        if names:
            problem += f" Set the client's model to one that is served: {listed(names)}; or {self._missing}."
        raise Refused(problem, status=404, code="model_not_found", param="model")

    def by_default(self, name: str, visible: Callable[[str], bool] = lambda _: True) -> tuple[str, str] | None:
        """Return the name, and the one that it probably misspells ("" for none), if only the default model answers to
        it; otherwise None."""
        if self._meaning(name, visible):
            return None
        return name, misspelled(name[:100], tuple(self.names(visible)))

    def _meaning(self, name: str, visible: Callable[[str], bool]) -> str:
        """Return the name of the visible model that a client's name means, "" for none but the default model."""
        meant = (to for alias, to in self.aliases.items() if alias != ANY and fnmatchcase(name, alias))
        for known in (name, name.removesuffix(":latest"), *meant):
            if known in self.served and visible(known):
                return known
        return ""
