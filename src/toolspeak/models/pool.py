"""Several upstreams as one model: requests go to the least busy one, fail over, and avoid one that is down.

Only the pool retries: the models in it must not (`Http(retries=0)`). All state is per process: each of several workers
finds out by itself which upstream is down.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
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
    """How a pool handles failing upstreams.

    `attempts` is how often one request is sent in total. `failures` in a row open the circuit breaker of an upstream;
    a request and its retries count once. It gets no requests for `rest` seconds, then a single trial request. `budget` is the share of requests that may be
    sent again to the same upstream.
    """

    attempts: int = 3
    failures: int = 5
    rest: float = 10.0
    budget: float = 0.2


on_retry: ContextVar[Callable[[], None] | None] = ContextVar("on_retry", default=None)
"""Called each time that a request of this context is sent again."""

returned: ContextVar[Collection[int]] = ContextVar("returned", default=())
"""Statuses after which the caller in this context sends a request again itself, to servers that have too many requests."""

State = Literal["closed", "open", "half-open"]


class Upstream:
    """One of a pool's models and its health: requests `in_flight`, `failures` in a row, the `last` of these, and
    counters for metrics.

    `model` may be replaced while requests are running; those keep the old one.
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
        """The name for display."""
        return self.model.name

    @property
    def state(self) -> State:
        """The state of its breaker: closed (requests pass), open (none do), half-open (one trial request may pass)."""
        if self._open_until is None:
            return "closed"
        return "open" if self._clock() < self._open_until else "half-open"

    @property
    def available(self) -> bool:
        """Whether it may get a request now."""
        return self._open_until is None or (not self._on_trial and self._clock() >= self._open_until)

    @property
    def back_in(self) -> float:
        """Seconds until its breaker lets a request pass; 0 if it does now."""
        return 0.0 if self._open_until is None else max(0.0, self._open_until - self._clock())

    @property
    def limited(self) -> bool:
        """Whether its Retry-After has not passed yet."""
        return self._clock() < self.limited_until

    def begin(self) -> bool:
        """Note the start of a request. Return whether it is the trial of an upstream that was down."""
        self.in_flight += 1
        self.requests += 1
        trial = self._open_until is not None
        self._on_trial = self._on_trial or trial
        return trial

    def answers(self) -> None:
        """Note the start of a reply. For a trial this is enough to let others pass, until it fails again."""
        if self._open_until is not None:
            self._open_until = None
            self.failures = self.care.failures - 1
            log.info("%s answers again", self.name)

    def end(self, error: BaseException | None, trial: bool, *, retry: bool = False) -> None:
        """Note the end of a request, or of its `retry` here; `error` is what ended it. A cancellation says nothing about
        the upstream."""
        self.in_flight -= 1
        self._on_trial = self._on_trial and not trial
        if error is None or (isinstance(error, ModelError) and not _down(error)):
            self.answers()
            self.failures = 0
        if isinstance(error, RateLimited) and error.retry_after:
            self.limited_until = self._clock() + min(error.retry_after, PATIENCE)
        if isinstance(error, ModelError) and _down(error):
            self.failed += 1
            self.failures += not retry
            self.last = copy.copy(error)  # without its traceback, whose frames hold the request
            if self.failures >= self.care.failures:
                self._open()

    def _open(self) -> None:
        if self._open_until is None:
            log.warning(
                "%s failed %d requests in a row: it gets no requests for %g s", self.name, self.failures, self.care.rest
            )
            self.opened += 1
        self._open_until = self._clock() + self.care.rest


class Pool:
    """A model made of equivalent models; see the module, and `Care`.

    A request goes to the least busy upstream that is up. If it fails before any part of its reply was passed on, it
    goes to another one, or after a pause to the same one, `Care.attempts` times in total. An error of the request
    itself is passed on at once. `retries` counts the requests that were sent again.
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
        """Whether any upstream may get a request now."""
        return any(one.available for one in self.upstreams)

    @property
    def in_flight(self) -> int:
        """The number of running requests."""
        return sum(one.in_flight for one in self.upstreams)

    def stream(self, request: Request) -> AsyncGenerator[Event]:
        """Yield the reply's events; see the protocol."""
        return self._attempts(lambda model: cast("AsyncGenerator[Event]", model.stream(request)))

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        """Score with the least busy upstream."""
        return await self._one(lambda model: score(model, prompt, continuations))

    async def count(self, request: Request) -> int | None:
        """Count with the least busy upstream."""
        return await self._one(lambda model: count(model, request))

    async def embed(self, texts: Sequence[str], *, dimensions: int | None = None) -> Vectors:
        """Return a vector for each text; see `models.embed.Embedder`. Raises Refused if the models have none."""

        async def work(model: Model) -> Vectors:
            embeds = embedder(model)
            if embeds is None:
                raise cannot("model", f"{self.name!r} has no embeddings: use a model whose server has them")
            return await embeds.embed(texts, dimensions=dimensions)

        return await self._one(work)

    async def _one(self, work: Callable[[Model], Awaitable[T]]) -> T:
        """Return the result of work that is not a stream, with the same retries."""

        async def only(model: Model) -> AsyncGenerator[T]:
            yield await work(model)

        (outcome,) = [item async for item in self._attempts(only)]
        return outcome

    def _attempts(self, work: Callable[[Model], AsyncGenerator[T]]) -> AsyncGenerator[T]:
        """Yield the items from one upstream, from another or the same again if it fails before the first item."""
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
            upstream.end(outcome, trial, retry=tried.count(upstream) > 1)
            outcome = None  # the error's traceback holds this frame, and with it the request

    async def load(self) -> None:
        """Do what the first request would wait for: probe servers, load models of this process."""
        await asyncio.gather(*(load(one.model) for one in self.upstreams))

    async def aclose(self) -> None:
        """Close the connections of its models."""
        for one in self.upstreams:
            await close(one.model)

    def _choose(self, tried: Sequence[Upstream]) -> Upstream:
        """Return the least busy upstream that may get a request, preferring one that was not tried yet."""
        up = [one for one in self.upstreams if one.available]
        if not up:
            first = min(self.upstreams, key=lambda one: one.back_in)
            soonest = max(1.0, first.back_in)
            message = f"{self.name} is down: it failed {first.failures} requests in a row, and is tried again in {soonest:.0f} s"
            down = ServerFailed(f"{message}. The last failure: {first.last}", code=503, retry_after=soonest)
            down.reason = "the model's server is down"
            raise down from first.last
        self._turn += 1
        count = len(self.upstreams)

        def rank(one: Upstream) -> tuple[int, bool, int, int]:
            turn = (self.upstreams.index(one) - self._turn) % count
            return tried.count(one), one.limited, one.in_flight, turn

        return min(up, key=rank)

    def _most_attempts(self, error: ModelError) -> int:
        """Return how often a request that failed like this is sent in total."""
        most = self.care.attempts
        once = getattr(error, "code", error.status) in returned.get()
        return min(most, len(self.upstreams)) if once else most

    def _again(self, error: ModelError, tried: Sequence[Upstream]) -> float | None:
        """Return the seconds before the next attempt, None for no further one."""
        if len(tried) >= self._most_attempts(error):
            return None
        wait = pause(error, len(tried))
        if any(one.available and not one.limited and one not in tried for one in self.upstreams):
            if wait is None and not isinstance(error, RateLimited):
                return None
            wait = 0.0  # another upstream was not tried yet, so no pause is needed
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
    """Whether an error counts against the upstream, rather than the request, the key or the rate."""
    return isinstance(error, ModelUnreachable | StreamCut | ServerFailed)
