"""Log probabilities over HTTP: finds which method a server supports, and scores with it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Literal, get_args

from ...api.completions.prompt_scoring import Token, read_echo, read_tokens, weigh, write_echo, write_tokens
from ...api.json_stream import Payload
from ...api.upstream_errors import excerpt
from ...errors import ModelError, ServerFailed, UsageError
from ...events import Event
from ...types import Request
from ..base import Capability
from ..http import Http
from ..retries import at_most, retried
from ..wrapper import Wrapper
from .capabilities import Finding

ScoreMethod = Literal["echo", "forced"]
"""echo: the server repeats a prompt with the likelihood of each token (vLLM, SGLang). forced: it is made to write the
text, and tells how likely that was (llama.cpp)."""
SCORE_METHODS: tuple[ScoreMethod, ...] = get_args(ScoreMethod)
BATCH = 16
"""Texts in one request, where a server repeats them: it keeps the likelihoods of all their tokens at once."""
TOGETHER = 4
"""Requests under way at once, where a server repeats prompts: it makes one batch of what comes together."""
LONGEST = 512
"""Tokens of a reply where the request gives no `max_tokens`: a weak model may never stop by itself."""
CACHED = 2048
"""Texts whose tokens are remembered."""

PROMPT = "The capital of France is"
LIKELY, LONGER, ABSURD = " Paris", " Paris, and the capital of Italy is Rome", " xylophone quarrel"
NEAR = 0.5
"""Nats by which sums may differ that should be the same: a server computes a little otherwise in a batch."""


class LogprobScorer(Wrapper[Http]):
    """A model over HTTP that gives likelihoods; `way` is how its server tells them, `abreast` how many requests it
    works on at once."""

    def __init__(self, model: Http, way: ScoreMethod, abreast: int = 1) -> None:
        super().__init__(model)
        self.way: ScoreMethod = way
        self.abreast = max(abreast, TOGETHER if way == "echo" else 1)
        self._tokens: dict[str, tuple[Token, ...]] = {}

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset({"score", *self.model.capabilities})

    def stream(self, request: Request) -> AsyncGenerator[Event]:
        """The reply's events; see the protocol. It is bounded as in process, where the request sets no bound."""
        request = self.model.defaults.fill(request)
        if request.max_tokens is None:
            request = replace(request, max_tokens=LONGEST)
        return self.model.stream(request)

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        """log P(continuation | prompt) of each. Raises ModelError; ServerFailed where the server tells none."""
        try:
            return await self._scores(prompt, continuations)
        except (LookupError, TypeError, ValueError, ArithmeticError) as error:
            raise ServerFailed(f"the server's answer has another form ({type(error).__name__}: {error})") from error

    async def _scores(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        if self.way == "echo":
            batches = [continuations[i : i + BATCH] for i in range(0, len(continuations), BATCH)]
            return [score for batch in batches for score in await self._echoed(prompt, batch)]
        await self._read(prompt)  # once, before all ask for it
        first = [await self._forced(prompt, text) for text in continuations[:1]]  # reads it into the server's memory
        turn = asyncio.Semaphore(self.abreast)

        async def one(text: str) -> float:
            async with turn:
                return await self._forced(prompt, text)

        return first + await asyncio.gather(*(one(text) for text in continuations[1:]))

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
        while len(self._tokens) >= CACHED:
            del self._tokens[next(iter(self._tokens))]
        self._tokens[text] = tokens
        return tokens

    async def _ask(self, path: str, body: Payload, *, root: bool = False) -> Payload:
        """The answer to a body, asked for again where that may help."""
        fetch, first = self.model.fetch, self.model.timeouts.first
        return await retried(lambda: fetch(path, body, seconds=first, root=root), at_most(self.model.retries))


async def find_score_method(model: Http) -> tuple[ScoreMethod | None, Finding]:
    """How a server tells likelihoods that are right, None where it tells none, and what was seen."""
    if model.api not in ("openai", "completions"):
        return None, Finding("no", "it is no part of this API")
    seen: list[str] = []
    for way in SCORE_METHODS:
        try:
            wrong, evidence = await _checked(LogprobScorer(model, way))
        except (ModelError, UsageError) as error:
            seen.append(f"{way}: {excerpt(getattr(error, 'reason', '') or str(error), 80)}")
            continue
        if not wrong:
            return way, Finding("yes", f"by {way}: {evidence}")
        seen.append(f"{way}: {wrong}, {evidence}")
    return None, Finding("no", "; ".join(seen))


async def _checked(model: LogprobScorer) -> tuple[str, str]:
    """What is wrong with the likelihoods that a model gives, "" for nothing, and some of them.

    They are wrong where a text is likelier than its beginning, where all are alike, or where those of the parts do
    not make that of the whole: a server may tell what was left after its sampling was held.
    """
    likely, longer, absurd = await model.score(PROMPT, [LIKELY, LONGER, ABSURD])
    (rest,) = await model.score(PROMPT + LIKELY, [LONGER.removeprefix(LIKELY)])
    evidence = f"{LIKELY.strip()} {likely:.1f}, {ABSURD.strip()} {absurd:.1f}"
    if not all(math.isfinite(value) and value <= 0 for value in (likely, longer, absurd, rest)):
        return "they are no logarithms of likelihoods", evidence
    if likely < absurd + 1 or math.exp(likely) + math.exp(absurd) > 1:
        return "what is absurd is as likely", evidence
    if abs(likely + rest - longer) > NEAR:
        return f"the parts make {likely + rest:.1f} and the whole {longer:.1f}", evidence
    return "", evidence
