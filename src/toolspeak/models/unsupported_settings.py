"""Removes from a request the settings that a server or its engine does not support."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..schema.portable import portable
from ..types import Note, Request

OPTIONAL_SETTINGS = ("reasoning_effort", "verbosity")
"""Settings of `Request.sampling` that affect how a reply is generated, but are no requirement on it."""


def without_unsupported(
    request: Request, known: Collection[str] | None, *, thinks: bool, engine: str = ""
) -> tuple[Request, list[Note]]:
    """Return the request without unsupported settings, its schema adapted to the `engine` (see `schema.portable`), and
    a note for each change.

    `known` are the names of supported settings, None for all; `thinks`: reasoning can be switched. Clients send such
    settings by default, whatever the model, and a refusal would end each of their turns.
    """
    unknown = set[str]() if known is None else request.sampling.keys() - known
    left_out = [name for name in OPTIONAL_SETTINGS if name in unknown]
    if left_out:
        rest = {name: value for name, value in request.sampling.items() if name not in left_out}
        request = replace(request, sampling=rest)
    if request.thinking is not None and not thinks:
        request = replace(request, thinking=None)
        left_out.append("thinking")
    notes = [Note("ignored", f"{name}: not supported by this model's server") for name in left_out]
    if engine:
        request, simplified = _with_portable_schema(request, engine)
        notes += simplified
    return request, notes


def _with_portable_schema(request: Request, engine: str) -> tuple[Request, list[Note]]:
    if request.schema is None:
        return request, []
    schema, words = portable(request.schema, engine)
    if schema is not request.schema:
        request = replace(request, schema=schema)
    return request, [Note("schema-simplified", f"{engine} cannot enforce {', '.join(words)}")] if words else []
