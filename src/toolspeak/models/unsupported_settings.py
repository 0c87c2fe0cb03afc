"""Removes from a request the settings that a server or its engine does not support."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..schema.portable import portable
from ..types import Note, Request

OPTIONAL_SETTINGS = ("reasoning_effort", "verbosity")
"""Settings of `Request.sampling` that change how an answer is come by, and nothing that it must be."""


def without_unsupported(
    request: Request, known: Collection[str] | None, *, thinks: bool, engine: str = ""
) -> tuple[Request, list[Note]]:
    """The request without the wishes that cannot be passed on, its schema as the `engine` takes it (see
    `schema.portable`), and a note of each.

    `known` are the names of settings that there is a place for, None for all of them; `thinks`: reasoning can be asked
    for, or not. Clients send such wishes unasked, whatever the model, and a refusal would end every turn of theirs.
    """
    unknown = set[str]() if known is None else request.sampling.keys() - set(known)
    left_out = [name for name in OPTIONAL_SETTINGS if name in unknown]
    if left_out:
        rest = {name: value for name, value in request.sampling.items() if name not in left_out}
        request = replace(request, sampling=rest)
    if request.thinking is not None and not thinks:
        request = replace(request, thinking=None)
        left_out.append("thinking")
    notes = [Note("ignored", f"{name}: this model's server has no word for it") for name in left_out]
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
    return request, [Note("schema-simplified", f"{engine} cannot be held to {', '.join(words)}")] if words else []
