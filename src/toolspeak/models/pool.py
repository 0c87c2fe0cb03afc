"""Several upstreams that are one model: least busy first, failing over, none asked while it is down.

The pool is the one owner of retries: what it holds must not retry by itself (`Http(retries=0)`). All that it knows
is per process: each of several workers finds out for itself which upstream is down.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic
from typing import Literal, TypeVar, cast

from ..api.embeddings import Vectors
from ..api.field_schemas import cannot
from ..errors import ModelError, ModelUnreachable, RateLimited, ServerFailed, StreamCut, UsageError
from ..events import Event
from ..types import Request
from .base import Capability, Model
from .embed import embedder
from .retries import PATIENCE, pause, retrying
from .wrapper import close, count, load, score

T = TypeVar("T")
log = logging.getLogger(__name__)

RESERVE = 10.0
"""Retries that may come in a row before the share of the traffic counts: a quiet gateway may retry as well."""


@dataclass(frozen=True, slots=True)
class Care:
    """How a pool treats upstreams that fail.

    `attempts` bounds how often one request is sent in all. `failures` in a row open the breaker of an upstream:
    for `rest` seconds it is asked nothing, then one request is its trial. `budget` is the share of the requests that
    may be sent once more to the same upstream.
    """

    attempts: int = 3
    failures: int = 5
    rest: float = 10.0
    budget: float = 0.2


on_retry: ContextVar[Callable[[], None] | None] = ContextVar("on_retry", default=None)
"""Called for each time that a request of this context is sent once more."""

State = Literal["closed", "open", "half-open"]


class Upstream:
    """One of a pool's models, and how it fares: requests `in_flight`, `failures` in a row, the `last` of these, and
    what metrics count.

    `model` may be replaced while requests are under way: those that run keep theirs.
    """

    def __init__(self, model: Model, care: Care, clock: Callable[[], float] = monotonic) -> None:
        self.model = model
        self.care = care
        self.in_flight = 0
        self.failures = 0
        self.last: ModelError | None = None
        self.requests = 0
        self.failed = 0
        self.opened = 0
        self.limited_until = 0.0
        self._clock = clock
        self._open_until: float | None = None
        self._on_trial = False

    @property
    def name(self) -> str:
        """The name to show."""
        return self.model.name

    @property
    def state(self) -> State:
        """Of its breaker: closed (requests pass), open (none does), half-open (one may, to find out)."""
        if self._open_until is None:
            return "closed"
        return "open" if self._clock() < self._open_until else "half-open"

    @property
    def available(self) -> bool:
        """Whether it may be asked now."""
        return self._open_until is None or (not self._on_trial and self._clock() >= self._open_until)

    @property
    def back_in(self) -> float:
        """Seconds until its breaker lets a request through again; 0 where it does now."""
        return 0.0 if self._open_until is None else max(0.0, self._open_until - self._clock())

    @property
    def limited(self) -> bool:
        """Whether it has asked not to be asked yet."""
        return self._clock() < self.limited_until

    def begin(self) -> bool:
        """A request goes to it; whether that is the trial of an upstream that was down."""
        self.in_flight += 1
        self.requests += 1
        trial = self._open_until is not None
        self._on_trial = self._on_trial or trial
        return trial

    def answers(self) -> None:
        """It has begun to answer: of a trial that is enough to let others through, until it fails once more."""
        if self._open_until is not None:
            self._open_until = None
            self.failures = self.care.failures - 1
            log.info("%s answers again", self.name)

    def end(self, error: BaseException | None, trial: bool) -> None:
        """The request is over; `error` is what ended it, a cancelled one tells nothing."""
        self.in_flight -= 1
        self._on_trial = self._on_trial and not trial
        if error is None or (isinstance(error, ModelError) and not _down(error)):
            self.answers()
            self.failures = 0
        if isinstance(error, RateLimited) and error.retry_after:
            self.limited_until = self._clock() + min(error.retry_after, PATIENCE)
        if isinstance(error, ModelError) and _down(error):
            self.failed += 1
            self.failures += 1
            self.last = copy.copy(error)  # without the places in the code, which hold the request
            if self.failures >= self.care.failures:
                self._open()

    def _open(self) -> None:
        if self._open_until is None:
            log.warning("%s failed %d times in a row: not asked for %g s", self.name, self.failures, self.care.rest)
            self.opened += 1
        self._open_until = self._clock() + self.care.rest


class Pool:
    """A model made of others that are as good as each other; see the module, and `Care`.

    A request goes to the least busy of those that are up. One that fails before anything of its reply was passed on
    goes to another, or after a pause to the same, `Care.attempts` times in all; a refusal of the request itself is
    passed on at once. `retries` counts the requests that were sent once more.
    """

    def __init__(
        self,
        models: Sequence[Model],
        *,
        name: str = "",
        care: Care = Care(),
        clock: Callable[[], float] = monotonic,
    ) -> None:
        if not models:
            raise UsageError("a pool needs at least one model")
        self.upstreams = [Upstream(model, care, clock) for model in models]
        self.name = name or models[0].name
        self.care = care
        self.retries = 0
        self._budget = RESERVE
        self._turn = 0

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What all of them can do."""
        first, *others = (one.model.capabilities for one in self.upstreams)
        return first.intersection(*others)

    @property
    def available(self) -> bool:
        """Whether any may be asked now."""
        return any(one.available for one in self.upstreams)

    @property
    def in_flight(self) -> int:
        """Requests that are under way."""
        return sum(one.in_flight for one in self.upstreams)

    def stream(self, request: Request) -> AsyncGenerator[Event]:
        """The reply's events; see the protocol."""
        return self._asked(lambda model: cast("AsyncGenerator[Event]", model.stream(request)))

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        """Passed on to the least busy."""
        return await self._one(lambda model: score(model, prompt, continuations))

    async def count(self, request: Request) -> int | None:
        """Passed on to the least busy."""
        return await self._one(lambda model: count(model, request))

    async def embed(self, texts: Sequence[str], *, dimensions: int | None = None) -> Vectors:
        """A vector for each text; see `models.embed.Embedder`. Raises Refused where the models give none."""

        async def work(model: Model) -> Vectors:
            embeds = embedder(model)
            if embeds is None:
                raise cannot("model", f"{self.name!r} has no embeddings: use a model whose server has them")
            return await embeds.embed(texts, dimensions=dimensions)

        return await self._one(work)

    async def _one(self, work: Callable[[Model], Awaitable[T]]) -> T:
        """What comes of work that is no stream, under the same care."""

        async def only(model: Model) -> AsyncGenerator[T]:
            yield await work(model)

        (outcome,) = [item async for item in self._asked(only)]
        return outcome

    def _asked(self, work: Callable[[Model], AsyncGenerator[T]]) -> AsyncGenerator[T]:
        """The items that come of one upstream, of another or of the same again where that fails before the first."""
        self._budget = min(RESERVE, self._budget + self.care.budget)
        tried: list[Upstream] = []
        return retrying(lambda: self._attempt(work, tried), lambda error, _: self._again(error, tried))

    async def _attempt(self, work: Callable[[Model], AsyncGenerator[T]], tried: list[Upstream]) -> AsyncGenerator[T]:
        upstream = self._choose(tried)
        tried.append(upstream)
        begun = False
        outcome: BaseException | None = None
        trial = upstream.begin()
        try:
            async with aclosing(work(upstream.model)) as items:
                async for item in items:
                    if not begun:
                        begun = True
                        upstream.answers()
                    yield item
        except BaseException as error:
            outcome = error
            raise
        finally:
            upstream.end(outcome, trial)

    async def load(self) -> None:
        """Does what the first request would have to wait for: finds out how to ask, loads what is in this process."""
        await asyncio.gather(*(load(one.model) for one in self.upstreams))

    async def aclose(self) -> None:
        """Closes the connections that its models keep."""
        for one in self.upstreams:
            await close(one.model)

    def _choose(self, tried: Sequence[Upstream]) -> Upstream:
        """The least busy of those that may be asked, one that was not tried yet before one that was."""
        up = [one for one in self.upstreams if one.available]
        if not up:
            first = min(self.upstreams, key=lambda one: one.back_in)
            soonest = max(1.0, first.back_in)
            said = (
                f"{self.name} is down: it failed {first.failures} times in a row, and is asked again in {soonest:.0f} s"
            )
            down = ServerFailed(f"{said}. The last failure: {first.last}", code=503, retry_after=soonest)
            down.reason = "the model's server is down"
            raise down from first.last
        self._turn += 1
        count = len(self.upstreams)

        def rank(one: Upstream) -> tuple[int, bool, int, int]:
            turn = (self.upstreams.index(one) - self._turn) % count
            return tried.count(one), one.limited, one.in_flight, turn

        return min(up, key=rank)

    def _again(self, error: ModelError, tried: Sequence[Upstream]) -> float | None:
        """Seconds to wait before the next try, None where there is to be none."""
        if len(tried) >= self.care.attempts:
            return None
        wait = pause(error, len(tried))
        if any(one.available and not one.limited and one not in tried for one in self.upstreams):
            if wait is None and not isinstance(error, RateLimited):
                return None
            wait = 0.0  # another upstream has not been asked yet, and owes nobody a pause
        elif wait is None or self._budget < 1 or not self.available:
            return None
        else:
            self._budget -= 1
        log.info("%s failed; asking again in %.1f s", tried[-1].name, wait)
        self.retries += 1
        if note := on_retry.get():
            note()
        return wait


def _down(error: ModelError) -> bool:
    """Whether an error speaks against the upstream, rather than against the request, the key or the hurry."""
    return isinstance(error, ModelUnreachable | StreamCut | ServerFailed)
