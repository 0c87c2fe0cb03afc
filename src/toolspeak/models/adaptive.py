"""A model behind a server, asked as `strategy` decides from what is known so far.

What a server can do is not known at first. Its API offers tools, so the strategy begins native; three things can change
it, each at most once, and `strategy` says in words what holds now:

- Before the first request with tools, what a probe found within a day is used; else a server of one's own is looked at
  (see `glance`), unless `look` is False. A hosted provider is never looked at.
- `load` probes the server, for the gateway, and asks for its context; one that is down is probed again later, with growing
  pauses.
- A server that refuses tools is prompted from then on.

Where a call must come, and the server is not known to hold its model to one but can be held to a grammar or a schema,
that request alone is prompted.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import fields, replace
from typing import Any, cast

from ..dialects import get
from ..errors import BadRequest, ModelError, ModelUnreachable, ToolspeakError, UnknownModel, UsageError
from ..events import Event
from ..plan.effects import Ask
from ..types import Request
from ..wire.syntax import Dialect
from .abilities import Abilities, recall
from .base import Capability, Counter, Model
from .context import context_of_server
from .http import Http
from .likelihood import Telling, Weighing
from .probe import abilities
from .profiles import recall as recall_profile
from .profiles import warn
from .providers import hosted
from .servers import glance, template_of
from .speaker import Speaker
from .strategy import Known, Strategy, Way, known_of, strategy
from .text_calls import TextCalls

log = logging.getLogger(__name__)

AGAIN, LONGEST = 5.0, 300.0
"""Seconds until a server that could not be probed is probed again, which doubles, and at most."""


class Adaptive:
    """A server's model that calls tools; `http` is the server as it is, `model` how it is asked now.

    `way` and `exact` are what the user wants, as for `strategy`; `dialect` and `template` what the model speaks, and with a
    `way` how it is asked. `constrained` is whether replies that may hold calls are held to a grammar, `abilities` what is
    known of the server, `profile` the file that says all this. Raises UsageError and UnknownDialect for what cannot be.
    """

    def __init__(
        self,
        http: Http,
        *,
        way: Way | None = None,
        dialect: str | Dialect | None = None,
        template: str = "",
        exact: bool | None = None,
        constrained: bool = True,
        abilities: Abilities | None = None,
        look: bool = True,
        profile: str = "",
    ) -> None:
        self.http = http
        self.name = http.name
        self.refused = ""
        self.context: int | None = None
        """Tokens that the model reads and writes at once, where its server told."""
        self.dialect = get(dialect) if isinstance(dialect, str) else dialect
        self._template = template
        self._wanted: dict[str, Any] = {"way": way, "exact": exact, "dialect": self.dialect if way else None}
        self._constrained = constrained
        self._profile = profile
        self._wrap: Callable[[Any], Any] = lambda model: model
        self._looking = asyncio.Lock()
        self._looked = abilities is not None or not look or way is not None
        self._learned = abilities is not None
        self._later: asyncio.Task[None] | None = None
        self._settle(abilities)

    # -------------------------------------------------------------- how it is asked now

    def _settle(self, seen: Abilities | None) -> None:
        """Decides anew, by what was seen."""
        self.abilities = seen
        known = seen.known if seen else self.http.known
        known = replace(known, name=self.http.model or known.name, dialect=self.dialect)
        if self._template and not self._wanted["exact"]:
            known = replace(known, template=self._template)
        if self.refused:
            known = replace(known, tools=False, seen=self.refused)
        decided = strategy(known, **self._wanted, template=self._template if self._wanted["exact"] else "")
        why = f"as it was tuned: {self._profile}" if self._profile else decided.why
        self.strategy = replace(decided, why=why, constrained=self._constrained, profile=self._profile)
        self.model = self._asked(self.strategy)
        self.demanding = self._demanding(known)

    def _asked(self, chosen: Strategy) -> Model:
        fields = self.abilities.fields if self.abilities else {}
        if chosen.way == "native":
            held: set[Capability] = set(self.abilities.capabilities & {"required"}) if self.abilities else set()
            server = self.http.able(self.http.capabilities | held | self._more(), **fields)
            return TextCalls(server, self.dialect, model=self._wrap(server))
        if chosen.way == "scored" and self.abilities:
            told = cast("Telling", self.abilities.score_way)
            return Speaker(self._wrap(Weighing(self._plain(), told, self.abilities.slots)), strategy=chosen)
        server = self.http.able(self.http.capabilities, **fields).completing() if chosen.exact else self._plain()
        return Speaker(self._wrap(server), strategy=chosen)

    def _plain(self) -> Http:
        """The server for requests without tools of its own."""
        fields = self.abilities.fields if self.abilities else {}
        return self.http.able((self.http.capabilities - {"tools"}) | self._more(), **fields)

    def _more(self) -> set[Capability]:
        """What the server can do beyond its API's own."""
        seen = self.abilities
        more: set[Capability] = set(seen.capabilities & {"grammar", "free", "tags"}) if seen else set()
        if seen.can("completions") if seen and "completions" in seen.found else self.http.api == "openai":
            more.add("prompt")  # where nothing is known, the server may say no
        return more

    def _demanding(self, known: Known) -> Speaker | None:
        """What asks where a call must come, if that is not the model itself."""
        if self.strategy.way != "native" or self._wanted["way"] is not None:
            return None
        can = self.abilities.capabilities if self.abilities else frozenset[Capability]()
        by_field = bool(can & {"grammar", "tags", "schema"})
        # Ollama has no word for a choice, but its `format` holds to a call.
        if "required" in can or not (by_field or self.http.api == "ollama"):
            return None
        plain = replace(known, tools=None, scores=False, completes=False)
        asked = strategy(plain if can & {"grammar", "tags"} else Known())
        return Speaker(self._wrap(self._plain()), strategy=replace(asked, why="a call must come"))

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Of the way that is in use."""
        held: set[Capability] = {"required"} if self.demanding and self.abilities else set()
        return self.model.capabilities | held

    def wrapped(self, wrap: Callable[[Any], Any]) -> Adaptive:
        """The same with something around each model that is asked in the end."""
        other = copy.copy(self)
        other._wrap = wrap
        other._looking = asyncio.Lock()
        other._settle(self.abilities)
        return other

    # -------------------------------------------------------------- being asked

    @property
    def endpoint(self) -> str:
        """The URL that a request goes to."""
        return self.http.endpoint

    def body(self, request: Request) -> bytes:
        """The body of the first request; empty where that asks for likelihoods."""
        model: Any = self.now(request)
        if isinstance(model, Speaker):
            effect = model.plan(request).send(None)
            return self._plain().body(effect.request) if isinstance(effect, Ask) else b""
        return model.body(request)

    def now(self, request: Request) -> Model:
        """What would be asked, by what is known now."""
        demanded = bool(request.tools) and request.choice not in ("auto", "none")
        return self.demanding if demanded and self.demanding else self.model

    def _lays_out(self, request: Request) -> bool:
        """Whether a template is needed: for messages that become an exact prompt, not for a prompt as it is."""
        return bool(self._wanted["exact"]) and request.prompt is None

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        if request.tools or self._lays_out(request):
            await self.look()
        begun = False
        try:
            async with aclosing(cast("AsyncGenerator[Event]", self.now(request).stream(request))) as events:
                async for event in events:
                    begun = True
                    yield event
            return
        except BadRequest as error:
            again = error.tools_refused and request.tools and self._wanted["way"] is None
            if begun or not again or self.strategy.way != "native":
                raise
            self.refused = f"it refused them: {error.reason or error}"
        self._settle(self.abilities)
        log.info("%s: %s", self.name, self.strategy.line)
        async with aclosing(cast("AsyncGenerator[Event]", self.model.stream(request))) as events:
            async for event in events:
                yield event

    async def count(self, request: Request) -> int | None:
        """The tokens of the request as it would be sent now; None where they cannot be told."""
        return await self.model.count(request) if isinstance(self.model, Counter) else None

    async def aclose(self) -> None:
        """Ends what goes on in the background, and closes connections."""
        if self._later:
            self._later.cancel()
        await self.http.aclose()

    # -------------------------------------------------------------- finding out

    async def look(self) -> None:
        """Uses what is known of the server, or looks at it, once; see the head of this file. Raises UsageError where it
        shall continue exact prompts and does not tell its template."""
        if self._wanted["exact"] and not self._template:
            await self._find_template()
        if self._looked:
            return
        async with self._looking:
            if self._looked:
                return
            seen = recall(self.http.address.shown, self.http.model) if self.http.model else None
            try:
                seen = seen or (None if hosted(self.http.address.shown) else await glance(self.http))
            except ModelUnreachable as error:
                self._looked = error.timed_out  # one that is down is looked at again
                return
            self._looked = True
            if seen:
                self._settle(seen)
                log.info("%s: %s", self.name, self.strategy.line)

    async def _find_template(self) -> None:
        async with self._looking:
            if self._template:
                return
            self.http.model = self.http.model or await self.http.only_model()
            template = await template_of(self.http)
            if not template:
                raise UsageError(f"{self.http.address.shown} does not tell its chat template: give it as `template`")
            self._template = template
            self._settle(self.abilities)

    async def load(self) -> None:
        """Probes the server once; where it is down, that is done again in the background. Raises nothing of it."""
        if not self._learned and not await self._tried():
            self._later = asyncio.create_task(self._keep_trying())

    async def _keep_trying(self) -> None:
        wait = AGAIN
        while True:
            await asyncio.sleep(wait * random.uniform(0.5, 1))
            if await self._tried():
                return
            wait = min(LONGEST, 2 * wait)

    async def _tried(self) -> bool:
        why = ""
        try:
            if self._wanted["exact"]:
                await self.look()
            elif self._wanted["way"] is None:
                seen = await abilities(self.http)
                self.http.model = seen.model
                self._settle(seen)
            if not hosted(self.http.address.shown):
                self.context = await context_of_server(self.http)
        except (UnknownModel, UsageError) as error:
            why = f"it cannot be probed: {error}"  # what is wrong is the name or the settings, and stays so
            log.warning("%s: %s", self.name, why)
        except ModelError as error:
            why = f"it could not be probed: {error.reason or error}"
            log.info("%s: %s", self.name, why)
            self.strategy = replace(self.strategy, why=why)
            return False
        self._looked = self._learned = True
        if why:
            self.strategy = replace(self.strategy, why=why)
        log.info("%s: %s", self.name, self.strategy.line)
        return True


async def look(model: Model) -> None:
    """Finds out what the server behind a model can do, if there is one and that is not known."""
    inner: Any = model
    while inner is not None and not isinstance(inner, Adaptive):
        inner = getattr(inner, "model", None)
    if inner is not None:
        await inner.look()


# ------------------------------------------------------------------ any model


def adapted(model: Model, dialect: str | Dialect | None = None, *, look: bool = True, follow: bool = True) -> Model:
    """What a name or a model stands for: the model asked in `dialect`; else as its profile says, unless `follow` is False;
    else, behind a server, as `strategy` decides. Another is itself."""
    if dialect is not None:
        return Speaker(model.able(model.plain) if isinstance(model, Http) else model, dialect)
    if isinstance(model, Http) and "tools" not in model.capabilities:
        return model
    if follow and (profile := recall_profile(model)):
        try:
            made = as_tuned(model, profile.strategy)
        except ToolspeakError as error:
            warn(str(profile.path), str(error))
        else:
            log.info("%s is asked as it was tuned: %s (%s)", model.name, profile.strategy.label, profile.path)
            return made
    return Adaptive(model, look=look) if isinstance(model, Http) else model


def calling(model: Model) -> Model:
    """The model as one that calls tools: natively, prompted or scored, as `strategy` decides from what is known of it."""
    made = adapted(model)
    return made if "tools" in made.capabilities else Speaker(made)


def as_tuned(model: Model, chosen: Strategy) -> Model:
    """A text model or a server, asked as `toolspeak tune` chose. Raises UsageError where it cannot be."""
    if isinstance(model, Http):
        names = {each.name for each in fields(Abilities)}
        known = {name: value for name, value in chosen.server.items() if name in names}
        usual: dict[str, Any] = {"address": model.address.shown, "model": model.model or "", "api": model.api}
        if chosen.way == "native":
            return Adaptive(model, look=False, profile=chosen.profile)
        exact = None if chosen.way == "scored" else False
        return Adaptive(
            model, way=chosen.way, exact=exact, dialect=chosen.dialect, constrained=chosen.constrained,
            abilities=Abilities(**{**usual, **known}), profile=chosen.profile,
        )  # fmt: skip
    if chosen.way == "native":
        raise UsageError(f"{model.name} cannot be asked in the form 'native'")
    named = None if chosen.template else chosen.dialect
    known = Known() if named else replace(known_of(model), tools=None)
    made = strategy(known, way=chosen.way, dialect=named)
    why = chosen.why if chosen.profile else made.why
    return Speaker(model, strategy=replace(made, why=why, constrained=chosen.constrained, profile=chosen.profile))
