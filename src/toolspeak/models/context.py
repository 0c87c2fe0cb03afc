"""The context of a model, in tokens, as far as it is known."""

from __future__ import annotations

from typing import Any


def context_of(model: Any) -> int | None:
    """How many tokens a model can read and write at once, as far as it or what it is put around tells; of several
    upstreams the least."""
    while model is not None:
        if isinstance(tokens := getattr(model, "context", None), int) and tokens > 0:
            return tokens
        if upstreams := getattr(model, "upstreams", None):
            each = [context_of(getattr(one, "model", one)) for one in upstreams]
            return None if None in each else min(tokens for tokens in each if tokens)
        inner = getattr(model, "model", None)
        model = None if inner is model or isinstance(inner, str) else inner
    return None
