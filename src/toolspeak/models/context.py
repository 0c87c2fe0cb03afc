"""The context size of a model in tokens, if it is known."""

from __future__ import annotations

from typing import Any


def context_of(model: Any) -> int | None:
    """Return the context size of a model in tokens, as reported by it or a model inside it; of several upstreams the
    smallest."""
    while model is not None:
        if isinstance(tokens := getattr(model, "context", None), int) and tokens > 0:
            return tokens
        if upstreams := getattr(model, "upstreams", None):
            each = [context_of(getattr(one, "model", one)) for one in upstreams]
            return None if None in each else min(tokens for tokens in each if tokens)
        inner = getattr(model, "model", None)
        model = None if inner is model or isinstance(inner, str) else inner
    return None
