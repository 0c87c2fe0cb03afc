"""How many tokens a server's model reads and writes at once, as far as the server tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..api.payloads import record, records
from ..errors import ModelError, UsageError
from .http import Http

SECONDS = 5.0
"""That a server gets to answer each question."""


async def context_of_server(server: Http) -> int | None:
    """The context of the server's model: `max_model_len` in its list of models (vLLM, SGLang), else `n_ctx` in llama.cpp's
    `/props`, which is that of one request. None where the server tells neither."""
    if server.api != "openai":
        return None
    return _listed(await _fetched(server, "/models"), server.model) or _of_slots(
        await _fetched(server, "/props", root=True)
    )


async def _fetched(server: Http, path: str, *, root: bool = False) -> dict[str, Any]:
    try:
        return await server.fetch(path, seconds=SECONDS, root=root)
    except (ModelError, UsageError):
        return {}


def _listed(told: Mapping[str, Any], name: str | None) -> int | None:
    rows = records(told.get("data"))
    named = [row for row in rows if row.get("id") == name] if name else rows
    return _positive(named[0].get("max_model_len")) if len(named) == 1 else None


def _of_slots(told: Mapping[str, Any]) -> int | None:
    return _positive(record(told.get("default_generation_settings")).get("n_ctx"))


def _positive(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
