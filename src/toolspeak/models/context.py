"""The context size of a model in tokens, if it is known.

A server may report it. The gateway asks when it starts. The library asks when a request may be too large for a small
context, so that other requests do not pay for it; see `fallback.Adaptive.find_context`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, cast

from ..errors import UsageError
from ..events import Event

SMALL = 4_096
"""A small context in tokens: a request that fits is sent without asking the server for its context."""


def checked_context(value: Any) -> int:
    """Return the context size that the user of a model gives, 0 for none. Raises UsageError."""
    if value is None:
        return 0
    if any((not isinstance(value, int), isinstance(value, bool))) or value < 1:
        raise UsageError(f"context: expected a number of tokens above 0, received {value!r:.80}")
    return value


def context_of(model: Any) -> int | None:
    """Return the context size of a model in tokens, as reported by it or a model inside it; of several upstreams the
    smallest."""
    while model is not None:
        if isinstance(tokens := getattr(model, "context", None), int) and tokens > 0:
            return tokens
        if upstreams := getattr(model, "upstreams", None):
            each = [context_of(getattr(one, "model", one)) for one in upstreams]
            return None if None in each else min(tokens for tokens in each if tokens)
        model = _inner(model)
    return None


def asks_context(model: Any, known: int | None = None) -> Any:
    """Return the model inside this one whose server is still to be asked for its context; None if there is none, or if
    the context is `known`."""
    if known:
        return None
    while not getattr(model, "asks_context", model is None):
        model = _inner(model)
    return model


async def find_context(model: Any) -> None:
    """Ask the server of a model for its context, once. What it does not report stays unknown."""
    if server := asks_context(model):
        await server.find_context()


async def after_context(model: Any, stream: Callable[[], AsyncIterator[Event]]) -> AsyncGenerator[Event]:
    """Yield the events of a stream that begins when the server was asked for its context."""
    await find_context(model)
    async with aclosing(cast("AsyncGenerator[Event]", stream())) as events:
        async for event in events:
            yield event


def _inner(model: Any) -> Any:
    inner = getattr(model, "model", None)
    if inner is model:
        return None
    return None if isinstance(inner, str) else inner
