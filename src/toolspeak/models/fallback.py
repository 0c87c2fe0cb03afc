"""A model behind a server, asked as `strategy` decides from what is known so far.

What a server can do is not known at first. Its API offers tools, so the strategy begins native; four things can change
it, each at most once, and `strategy` says in words what holds now:

- Before the first request with tools, what a probe found within a day is used; else a server of one's own is looked at
  (see `quick_look`), unless `look` is False; before a request that may be too large for a small context, it is asked for that.
  A hosted provider is never looked at.
  Where its user wants it prompted, the look tells only what the engine can be held to and which template it has.
- `load` probes the server, for the gateway, and asks for its context; one that is down is probed again later, with growing
  pauses. Until the first probe shows whether tools reach the model, or has failed, requests with tools wait.
- A server that refuses tools is prompted from then on; so is one whose count of tokens in a reply shows that it may have dropped
  them, if a comparison of counts (`token_counts`) shows that too. The plan asks again (`plan.effects.ask`).
- A server that refuses a conversation with system turns after its beginning gets their text as the user's from then on.

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
from dataclasses import replace
from typing import Any, cast

from ..errors import BadRequest, ModelError, ModelUnreachable, PromptTooLong, UsageError
from ..events import CallStart, Event, Noted
from ..plan.effects import IN_PROMPT, Ask
from ..plan.late_system import with_one_system_turn
from ..types import Note, Request
from .base import Capability, Model
from .dropped_tools import DROPPED
from .http import Http
from .http.providers import hosted
from .native import Native
from .servers.capabilities import ServerCapabilities, recall
from .servers.logprob_scorer import LogprobScorer, ScoreMethod
from .servers.probe import server_capabilities
from .servers.self_description import described, quick_look, server_context
from .servers.token_counts import drops_tools
from .speaker import Speaker
from .strategy import NO_PREFERENCES, SMALL, Known, Preferences, Strategy, strategy
from .wrapper import Wrapper, within

log = logging.getLogger(__name__)

AGAIN, LONGEST = 5.0, 300.0
"""Seconds until a server that could not be probed is probed again, which doubles, and at most."""
BESIDE: frozenset[Capability] = frozenset({"required", "grammar", "free", "tags"})
"""What servers may be able to do beyond what their API says."""


class Adaptive(Wrapper[Model]):
    """A server's model that calls tools; `http` is the server as it is, `model` how it is asked now.

    `preferred` is what its user wants; a `dialect` alone has it prompted. `server_capabilities` are what is known of the server.
    Raises UsageError and UnknownDialect for what cannot be.
    """

    def __init__(
        self,
        http: Http,
        preferred: Preferences = NO_PREFERENCES,
        *,
        server_capabilities: ServerCapabilities | None = None,
        look: bool = True,
    ) -> None:
        self.http = http
        self.refused = ""
        self.one_system_turn = False
        """Whether the server refused a system turn in the middle of a conversation, and took its text from the user."""
        self.problem = ""
        """Why the server could not be probed when it was loaded, "" where it could."""
        self.failure: ModelError | UsageError | None = None
        """The error that is the problem."""
        self.decided = asyncio.Event()
        """Set unless the first probe is still to show how the model is asked."""
        self.decided.set()
        self.context = http.context
        """Tokens that the model reads and writes at once, as its user or its server told; 0 where neither did."""
        self.asks_context = look if self._may_ask_context else False
        """Whether its server is still to be asked for that."""
        # A dialect says how it is asked, too, unless the way is chosen beside it.
        way = preferred.way or ("prompted" if preferred.dialect is not None else None)
        self._preferred = replace(preferred, way=way, template="")
        self._template = preferred.template
        self._wrap: Callable[[Any], Any] = lambda model: model
        self._looking = asyncio.Lock()
        self._looked = not look or server_capabilities is not None or way not in (None, "prompted")
        if not self._looked and (server_capabilities := recall(http.address.public, http.model)):
            self._looked = bool(http.model)  # without a name, the server may have another model by now
        self._compared = False
        """Whether its counts of tokens were compared, or a call came."""
        self._later: asyncio.Task[None] | None = None
        self._settle(server_capabilities)

    # -------------------------------------------------------------- how it is asked now

    def _settle(self, seen: ServerCapabilities | None) -> None:
        """Decides anew, by what was seen."""
        self.server_capabilities = seen
        self._use_context(seen.context if seen else 0)
        known = seen.known if seen else self.http.known
        known = replace(known, name=self.http.model or known.name)
        if self._template:
            known = replace(known, template=self._template)
        if self.refused:
            known = replace(known, tools=False, seen=self.refused)
        self.strategy = strategy(known, self._preferred)
        super().__init__(self._as_chosen(self.strategy))
        self.demanding = self._demanding(known)

    def _as_chosen(self, chosen: Strategy) -> Model:
        if chosen.way == "native":
            server = self._server(tools=True)
            return Native(server, chosen.dialect, model=self._wrap(server))
        server = self._server(tools=False)
        if chosen.way == "scored" and self.server_capabilities:
            method = cast("ScoreMethod", self.server_capabilities.score_way)
            return Speaker(self._wrap(LogprobScorer(server, method, self.server_capabilities.slots)), strategy=chosen)
        return Speaker(self._wrap(server.completing() if chosen.exact else server), strategy=chosen)

    def _server(self, *, tools: bool) -> Http:
        """The server with all that it is known to be able to do, with or without tools of its own."""
        seen = self.server_capabilities
        can = set(self.http.capabilities) if tools else self.http.capabilities - {"tools"}
        if seen:
            can |= seen.capabilities & BESIDE
            if seen.can("schema"):
                can |= {"strict" if hosted(self.http.address.public) else "enforced"}
        # Where nothing is known, a server of this API may say no to a prompt.
        if seen.can("completions") if seen and "completions" in seen.findings else self.http.api == "openai":
            can |= {"prompt"}
        return self.http.able(can, **(seen.fields if seen else {}))

    def _demanding(self, known: Known) -> Speaker | None:
        """What asks where a call must come, if that is not the model itself."""
        if self.strategy.way != "native" or self._preferred.way is not None:
            return None
        can = self.server_capabilities.capabilities if self.server_capabilities else frozenset[Capability]()
        # Ollama has no word for a choice, but its `format` holds to a call.
        constraints = can & {"grammar", "tags", "schema"} or self.http.api == "ollama"
        if "required" in can or not constraints:
            return None
        by_grammar = can & {"grammar", "tags"}
        chosen = strategy(replace(known, tools=None, scores=False, completes=False) if by_grammar else Known())
        return Speaker(self._wrap(self._server(tools=False)), strategy=replace(chosen, why="a call must come"))

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Of the way that is in use."""
        required: set[Capability] = {"required"} if self.demanding and self.server_capabilities else set()
        return self.model.capabilities | required

    def wrapped(self, wrap: Callable[[Any], Any]) -> Adaptive:
        """The same with something around each model that is asked in the end."""
        other = copy.copy(self)
        other._wrap = wrap
        other._looking = asyncio.Lock()
        other._settle(self.server_capabilities)
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
            return self._server(tools=False).body(effect.request) if isinstance(effect, Ask) else b""
        return model.body(request)

    def now(self, request: Request) -> Model:
        """What would be asked, by what is known now."""
        demanded = bool(request.tools) and request.choice not in ("auto", "none")
        return self.demanding if demanded and self.demanding else self.model

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """The reply's events; see the protocol. A server that refuses tools, or system turns in the middle, is asked once more,
        without them."""
        # A template is needed for messages that become an exact prompt, not for a prompt as it is.
        if request.tools or (self._preferred.exact and request.prompt is None):
            await self.decided.wait()
            await self.look()
        sent = with_one_system_turn(request) if self.one_system_turn else request
        while True:
            model, begun = self.now(sent), False
            try:
                async with aclosing(self._events(model, sent)) as events:
                    async for event in events:
                        if not begun:
                            begun, self.one_system_turn = True, self.one_system_turn or sent is not request
                        yield event
                return
            except BadRequest as error:
                if begun or (other := self._instead(error, model, request, sent)) is None:
                    raise
                sent = other

    def _events(self, model: Model, request: Request) -> AsyncGenerator[Event]:
        """The events of a reply, watched for whether tools reach the model while that is not known."""
        events = cast("AsyncGenerator[Event]", model.stream(request))
        unknown = all((request.tools, self._preferred.way is None, not self._compared, isinstance(model, Native)))
        return self._watched(events) if unknown else events

    async def _watched(self, events: AsyncGenerator[Event]) -> AsyncGenerator[Event]:
        async with aclosing(events) as source:
            async for event in source:
                if isinstance(event, CallStart):
                    self._compared = True  # the model got the tools: its server's counts do not matter
                is_doubt = event.note.rule == DROPPED if isinstance(event, Noted) else False
                yield await self._compare(event) if is_doubt else event

    async def _compare(self, doubt: Event) -> Event:
        """The note that tools may have been dropped; another one if a comparison of counts shows it, once."""
        async with self._looking:
            if not self._compared:
                self._compared = True
                if await drops_tools(self._server(tools=True)):
                    self._use_prompt("its counts of tokens show that it drops them")
        return doubt if self.strategy.way == "native" else Noted(Note(IN_PROMPT, self.strategy.why))

    def _use_prompt(self, why: str) -> None:
        """Puts tools into the prompt from now on."""
        self.refused = why
        self._settle(self.server_capabilities)
        log.info("%s: %s", self.name, self.strategy.line)

    def _instead(self, error: BadRequest, model: Model, request: Request, sent: Request) -> Request | None:
        """What to ask after a refusal: without tools, or with one system turn; None for nothing else."""
        if error.tools_refused and isinstance(model, Native) and self._preferred.way is None:
            self._use_prompt(f"it refused them: {error.reason or error}")
            return sent
        if sent is not request or isinstance(error, PromptTooLong):
            return None
        moved = with_one_system_turn(request)
        return None if moved is request else moved

    async def aclose(self) -> None:
        """Ends what goes on in the background, and closes connections."""
        self.stop()
        await self.http.aclose()

    def stop(self) -> None:
        """Probes a server that was down no more."""
        if self._later:
            self._later.cancel()

    # -------------------------------------------------------------- finding out

    async def look(self) -> None:
        """Uses what is known of the server, or looks at it, once; see the head of this file. Raises UsageError where it
        shall continue exact prompts and does not tell its template."""
        if self._looked and not self._lacks_template:
            return
        async with self._looking:
            if self._lacks_template:
                await self._find_template()
            if self._looked:
                return
            try:
                await self._name()
                scoring = self._preferred.way is None
                seen = recall(self.http.address.public, self.http.model) if self.http.model else None
                if seen is None and not hosted(self.http.address.public):
                    seen = await quick_look(self.http, scoring=scoring)
            except ModelUnreachable as error:
                self._looked = error.timed_out  # one that is down is looked at again
                self.problem = f"it could not be probed: {error.reason or error}"
                return
            self.problem = ""
            self._looked = True
            if seen != self.server_capabilities:
                self._settle(seen)
                log.info("%s: %s", self.name, self.strategy.line)

    async def _name(self) -> None:
        """Finds the name of the only model: what is remembered of it is kept by its name. A server that does not tell
        is heard when the model is asked. Raises ModelUnreachable."""
        if self.http.model or hosted(self.http.address.public):
            return
        try:
            self.http.model = await self.http.only_model()
        except ModelUnreachable:
            raise
        except (ModelError, UsageError):
            return
        self._settle(self.server_capabilities)

    @property
    def _lacks_template(self) -> bool:
        """Whether exact prompts are wanted, and by a template that is still to be found."""
        return bool(self._preferred.exact) and not self._template

    async def _find_template(self) -> None:
        self.http.model = self.http.model or await self.http.only_model()
        seen = await described(self.http)
        if not seen.template:
            raise UsageError(f"{self.http.address.public} does not tell its chat template: give it as `template`")
        self._template = seen.template
        self._use_context(seen.context)
        self._settle(self.server_capabilities)

    async def find_context(self) -> None:
        """Asks the server for its context, once. One that is down is asked again by the next call."""
        await self.look()
        async with self._looking:
            if self.asks_context and not self.problem:
                self.asks_context = False
                self._use_context(await server_context(self.http))

    @property
    def _may_ask_context(self) -> bool:
        return not any((self.http.context, hosted(self.http.address.public)))

    def _use_context(self, reported: int) -> None:
        """Uses the context that a server reports, unless the user gave it."""
        if not self.http.context:
            self.context = max(self.context, reported)

    def expect_load(self) -> None:
        """Has requests with tools wait until `load` shows how the model is asked."""
        if self.server_capabilities is None:
            self.decided.clear()

    async def load(self) -> None:
        """Probes the server once; where it is down, that is done again in the background. Raises nothing of it."""
        if self.server_capabilities is not None:
            return
        self.expect_load()
        self.asks_context = self._may_ask_context
        try:
            known = await self._tried()
        finally:
            self.decided.set()
        if not known:
            log.warning("%s: %s", self.name, self.problem)
            self._later = asyncio.create_task(self._keep_trying())

    async def _keep_trying(self) -> None:
        wait = AGAIN
        while True:
            await asyncio.sleep(wait * random.uniform(0.5, 1))
            if await self._tried():
                return
            wait = min(LONGEST, 2 * wait)

    async def _tried(self) -> bool:
        """Whether it is known now how the server is asked, or that it cannot be known."""
        try:
            if self._preferred.way == "prompted":
                await self.look()
                if not self._looked:
                    return False
            elif self._preferred.way is None:
                self._looked = True
                self._use(await server_capabilities(self.http, decided=self._use_tools))
            self.problem, self.failure = "", None
            await self.find_context()
        except (ModelError, UsageError) as error:
            # What is wrong with the name or the settings stays so; any other server is probed again.
            for_good = isinstance(error, UsageError)
            why = f"it {'cannot' if for_good else 'could not'} be probed: {getattr(error, 'reason', '') or error}"
            self.strategy = replace(self.strategy, why=why)
            self.problem, self.failure = why, error
            log.log(logging.WARNING if for_good else logging.INFO, "%s: %s", self.name, why)
            if not for_good:
                return False
        log.info("%s: %s", self.name, self.strategy.line)
        return True

    def _use(self, seen: ServerCapabilities) -> None:
        self.http.model = seen.model
        self._settle(seen)

    async def _use_tools(self, seen: ServerCapabilities) -> None:
        """Uses what a probe has found so far. A small model may be scored, which the end of the probe shows."""
        if not 0 < seen.parameters < SMALL:
            self._use(seen)
            await self.find_context()
            self.decided.set()


async def look(model: Model) -> None:
    """Finds out what the server behind a model can do, if there is one and that is not known."""
    if adaptive := within(model, Adaptive):
        await adaptive.look()
