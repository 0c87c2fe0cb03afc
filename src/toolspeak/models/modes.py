"""How a served model is asked: with tools as its API has them, in a dialect inside messages, or by exact prompts."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator
from typing import Literal, cast

from ..dialects import get
from ..errors import ModelError, ToolspeakError, UsageError
from ..events import Event
from ..types import Request
from ..wire.detect import detect
from ..wire.syntax import Dialect
from .abilities import Abilities, Mode, recall, remember
from .base import Capability, Counter, Model
from .http import Http
from .likelihood import Way, Weighing
from .probe import probe, told_template
from .raw import Raw
from .speaker import DEFAULT, Speaker
from .text_calls import TextCalls
from .wrap import Demanding, NativeOrSpoken

log = logging.getLogger(__name__)

AGAIN, LONGEST = 5.0, 300.0
"""Seconds until a server that could not be probed is probed again, which doubles, and at most."""


def in_mode(
    mode: Mode, model: Http, *, dialect: str | Dialect | None = None, template: str = "", known: Abilities | None = None
) -> Model:
    """The model, asked in that way; what is `known` of its server is made use of. Raises UsageError."""
    fields = known.fields if known else {}
    more: set[Capability] = set(known.capabilities & {"grammar", "free", "tags"}) if known else set()
    if known.can("completions") if known else model.api == "openai":
        more.add("prompt")  # where nothing is known, the server may say no
    template = template or (known.template if known else "")
    name = model.model or (known.model if known else None)
    match mode:
        case "native":
            held: frozenset[Capability] = known.capabilities & {"required"} if known else frozenset()
            native = TextCalls(model.able(model.capabilities | held | more, **fields), dialect)
            spoken = _holding(model, known, more, dialect) if known and not held else None
            return Demanding(native, spoken) if spoken else native
        case "chat":
            asked = model.able((model.capabilities - {"tools"}) | more, **fields)
            if known and known.weighs and dialect is None:
                return Speaker(Weighing(asked, cast("Way", known.score_way), known.slots))
            spoken = get(dialect) if dialect else detect(template or None, name) if template or name else get(DEFAULT)
            return Speaker(asked, spoken)
        case "raw":
            return Raw(model.able(model.capabilities, **fields), template, dialect)


def _holding(model: Http, known: Abilities, more: set[Capability], dialect: str | Dialect | None) -> Speaker | None:
    """The model asked in a dialect that its server holds it to, where that is in its power."""
    asked = model.able((model.capabilities - {"tools"}) | more, **known.fields)
    if known.grammar_field or known.tag_field:
        return Speaker(asked, get(dialect) if dialect else detect(known.template or None, known.model))
    return Speaker(asked, DEFAULT) if known.can("schema") else None  # calls that are plain JSON


class Auto:
    """A model behind a server that is asked in the way that a probe finds best; `mode` says in a word which.

    Until the probe is done tools are offered natively, and in the prompt once they were refused. `load` probes, unless
    that was done within a day; a server that is down is probed again later, with growing pauses. In the mode `raw`
    what is asked for is its chat template alone.
    """

    def __init__(
        self,
        model: Http,
        mode: Literal["auto", "raw"] = "auto",
        *,
        dialect: str | Dialect | None = None,
        template: str = "",
    ) -> None:
        self.http = model
        self.name = model.name
        self.mode = mode
        self.why = "not probed yet"
        first = NativeOrSpoken(model, dialect or DEFAULT, look=False)
        self.model: Model = first if mode == "auto" else Raw(model, "", dialect)
        self._dialect = dialect
        self._template = template
        self._loaded = asyncio.Lock()
        self._known = False
        self._later: asyncio.Task[None] | None = None

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Of the way that is in use."""
        return self.model.capabilities

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        if self.mode == "raw" and not self._known and request.prompt is None:
            await self._learn()  # without its template it would be asked in a layout that is none of its own
        events = self.model.stream(request)
        try:
            async for event in events:
                yield event
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()  # pyright: ignore[reportUnknownMemberType]

    async def count(self, request: Request) -> int | None:
        """The tokens of the request as it would be sent now; None where they cannot be told."""
        return await self.model.count(request) if isinstance(self.model, Counter) else None

    async def load(self) -> None:
        """Probes the server once; where it is down, that is done again in the background. Raises nothing of it."""
        if not await self._tried():
            self._later = asyncio.create_task(self._keep_trying())

    async def aclose(self) -> None:
        """Ends what goes on in the background, and closes connections."""
        if self._later:
            self._later.cancel()
        await self.http.aclose()

    async def _keep_trying(self) -> None:
        wait = AGAIN
        while True:
            await asyncio.sleep(wait * random.uniform(0.5, 1))
            if await self._tried():
                return
            wait = min(LONGEST, 2 * wait)

    async def _tried(self) -> bool:
        try:
            await self._learn()
        except ModelError as error:
            self.why = f"it could not be probed: {error.reason or error}"
        except ToolspeakError as error:
            self.why = f"it cannot be probed: {error}"
            log.warning("%s: %s", self.name, self.why)
            return True  # what is wrong is the name or the settings, and stays so
        else:
            return True
        log.info("%s: %s", self.name, self.why)
        return False

    async def _learn(self) -> None:
        async with self._loaded:
            if self._known:
                return
            if self.mode == "raw":
                self.http.model = self.http.model or await self.http.only_model()
                template = await told_template(self.http)
                if not template:
                    raise UsageError(
                        f"{self.http.address.shown} does not tell its chat template: give it as `template`"
                    )
                self.model, self.why = Raw(self.http, template, self._dialect), "as it is set"
            else:
                known = await abilities(self.http)
                self.http.model = known.model
                mode, self.why = known.choice
                made = in_mode(mode, self.http, dialect=self._dialect, template=self._template, known=known)
                self.model = made
                log.info("%s is asked in the mode %s: %s", self.name, mode, self.why)
            self._known = True


async def abilities(model: Http, *, anew: bool = False) -> Abilities:
    """What the server can do, as it was found within a day, else by a probe, which is remembered."""
    name = model.model or await model.only_model()
    if not anew and (known := recall(model.address.shown, name)):
        return known
    known = await probe(model)
    await asyncio.to_thread(remember, known)
    return known
