"""Likelihoods over HTTP: the ways in which servers tell them, which of them a server has, and a model that uses it."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Literal, get_args

from ..api.completions.likelihood import Token, read_echo, read_tokens, weigh, write_echo, write_tokens
from ..api.failure import excerpt
from ..api.payloads import Payload
from ..errors import ModelError, UsageError
from ..events import Event
from ..types import Request
from .base import Capability
from .http import Http
from .retry import pause

log = logging.getLogger(__name__)

Telling = Literal["echo", "forced"]
"""echo: the server repeats a prompt with the likelihood of each token (vLLM, SGLang). forced: it is made to write the
text, and tells how likely that was (llama.cpp)."""
TELLINGS: tuple[Telling, ...] = get_args(Telling)
BATCH = 16
"""Texts in one request, where a server repeats them: it keeps the likelihoods of all their tokens at once."""
TOGETHER = 4
"""Requests under way at once, where a server repeats prompts: it makes one batch of what comes together."""
LONGEST = 512
"""Tokens of a reply where the request gives no `max_tokens`: a weak model may never stop by itself."""
KEPT = 2048
"""Texts whose tokens are remembered."""

PROMPT = "The capital of France is"
LIKELY, LONGER, ABSURD = " Paris", " Paris, and the capital of Italy is Rome", " xylophone quarrel"
NEAR = 0.5
"""Nats by which sums may differ that should be the same: a server computes a little otherwise in a batch."""


class Weighing:
    """A model over HTTP that gives likelihoods; `way` is how its server tells them, `abreast` how many requests it
    works on at once."""

    def __init__(self, model: Http, way: Telling, abreast: int = 1) -> None:
        self.model = model
        self.way: Telling = way
        self.abreast = max(abreast, TOGETHER if way == "echo" else 1)
        self.name = model.name
        self.capabilities: frozenset[Capability] = frozenset({"score", *model.capabilities})
        self._tokens: dict[str, tuple[Token, ...]] = {}

    @property
    def endpoint(self) -> str:
        """The URL that a request goes to."""
        return self.model.endpoint

    def body(self, request: Request) -> bytes:
        """The exact body of a request."""
        return self.model.body(request)

    def stream(self, request: Request) -> AsyncGenerator[Event]:
        """The reply's events; see the protocol. It is bounded as in process, where the request sets no bound."""
        request = self.model.defaults.fill(request)
        if request.max_tokens is None:
            request = replace(request, max_tokens=LONGEST)
        return self.model.stream(request)

    async def count(self, request: Request) -> int | None:
        """The tokens of the request."""
        return await self.model.count(request)

    async def aclose(self) -> None:
        """Closes the connections of the running event loop; see Http."""
        await self.model.aclose()

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        """log P(continuation | prompt) of each. Raises ModelError; ServerFailed where the server tells none."""
        if self.way == "echo":
            batches = [continuations[i : i + BATCH] for i in range(0, len(continuations), BATCH)]
            return [score for batch in batches for score in await self._echoed(prompt, batch)]
        await self._read(prompt)  # once, before all ask for it
        if self.abreast == 1 or len(continuations) < 2:
            return [await self._forced(prompt, text) for text in continuations]
        # The first one reads the prompt into the server's memory.
        first = await self._forced(prompt, continuations[0])
        turn = asyncio.Semaphore(self.abreast)

        async def one(text: str) -> float:
            async with turn:
                return await self._forced(prompt, text)

        return [first, *await asyncio.gather(*(one(text) for text in continuations[1:]))]

    async def _echoed(self, prompt: str, texts: Sequence[str]) -> list[float]:
        body = write_echo(prompt, texts, self.model.model or await self.model.only_model())
        return read_echo(await self._ask("/completions", body), len(texts))

    async def _forced(self, prompt: str, text: str) -> float:
        whole = await self._read(prompt + text)
        steps = weigh(await self._read(prompt), whole, (await self._read("."))[-1][0])
        try:
            body = next(steps)
            while True:
                body = steps.send(await self._ask("/completions", {"model": self.model.model or "", **body}))
        except StopIteration as end:
            return end.value

    async def _read(self, text: str) -> tuple[Token, ...]:
        """The tokens of a text."""
        if (known := self._tokens.get(text)) is not None:
            return known
        tokens = read_tokens(await self._ask("/tokenize", write_tokens(text), root=True))
        while len(self._tokens) >= KEPT:
            del self._tokens[next(iter(self._tokens))]
        self._tokens[text] = tokens
        return tokens

    async def _ask(self, path: str, body: Payload, *, root: bool = False) -> Payload:
        """The answer to a body, asked for again where that may help."""
        tried = 0
        while True:
            tried += 1
            try:
                return await self.model.fetch(path, body, seconds=self.model.timeouts.first, root=root)
            except ModelError as error:
                wait = pause(error, tried) if tried <= self.model.retries else None
                if wait is None:
                    raise
            await asyncio.sleep(wait)


async def find_way(model: Http) -> tuple[Telling | None, str]:
    """How a server tells likelihoods that are right, None where it tells none, and what was seen."""
    if model.api not in ("openai", "completions"):
        return None, "it is no part of this API"
    seen: list[str] = []
    for way in TELLINGS:
        try:
            wrong, shown = await _checked(Weighing(model, way))
        except (ModelError, UsageError) as error:
            seen.append(f"{way}: {excerpt(getattr(error, 'reason', '') or str(error), 80)}")
            continue
        if not wrong:
            return way, f"by {way}: {shown}"
        seen.append(f"{way}: {wrong}, {shown}")
    return None, "; ".join(seen)


async def _checked(model: Weighing) -> tuple[str, str]:
    """What is wrong with the likelihoods that a model gives, "" for nothing, and some of them.

    They are wrong where a text is likelier than its beginning, where all are alike, or where those of the parts do
    not make that of the whole: a server may tell what was left after its sampling was held.
    """
    likely, longer, absurd = await model.score(PROMPT, [LIKELY, LONGER, ABSURD])
    (rest,) = await model.score(PROMPT + LIKELY, [LONGER.removeprefix(LIKELY)])
    shown = f"{LIKELY.strip()} {likely:.1f}, {ABSURD.strip()} {absurd:.1f}"
    if not all(math.isfinite(value) and value <= 0 for value in (likely, longer, absurd, rest)):
        return "they are no logarithms of likelihoods", shown
    if likely < absurd + 1 or math.exp(likely) + math.exp(absurd) > 1:
        return "what is absurd is as likely", shown
    if abs(likely + rest - longer) > NEAR:
        return f"the parts make {likely + rest:.1f} and the whole {longer:.1f}", shown
    return "", shown
