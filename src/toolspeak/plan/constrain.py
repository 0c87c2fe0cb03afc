"""Chooses a constraint for a model's output: a grammar, structural tags or a JSON Schema, as the engine supports it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, cast

from ..errors import UsageError
from ..types import Request, Tool
from ..wire.dialect import Dialect
from ..wire.grammar import grammar
from ..wire.grammars.values import has_format_beyond
from ..wire.reading.lexicon import program

MANY = 64
"""Tools beyond which a reply that may be words is not held: each request would carry a grammar of them all."""


def constrain(
    request: Request,
    choice: str,
    tools: Sequence[Tool[..., Any]],
    dialect: Dialect,
    can: Collection[str],
    prompt: str,
    thinks: bool,
) -> Request:
    """The request with what its reply is held to in the dialect, where `choice` is that of `tools`.

    A call that must come is held from the first word: by a grammar, by tags, or where the dialect's calls are plain
    JSON by its schema. Where words may come instead, a reply is held from where a call opens, by a model that can
    ("free" under a grammar, "tags"). `thinks`: the model was made to think, and knows when to stop. The request is
    unchanged where something else holds it, or nothing can.
    """
    if not tools or request.grammar is not None or request.schema is not None or program(dialect, True).opened(prompt):
        return request
    if choice == "auto":
        return _freely(request, tools, dialect, can, prompt)
    several = request.parallel and choice == "required"
    if "grammar" in can:
        text = grammar(dialect, tools, "required", "gbnf", several, prompt, thinking=thinks)
        return replace(request, grammar=str(text))
    if "tags" in can:
        tag = grammar(dialect, tools, "required", "structural_tag", several, prompt, thinking=thinks)
        return replace(request, tag=cast("dict[str, Any]", tag))
    if "schema" in can and not thinks:
        return _as_json(request, tools, dialect, several)
    return request


def unheld(request: Request, tools: Sequence[Tool[..., Any]]) -> frozenset[str]:
    """The names of the tools that have a text with a format which the request is not held to, though it is held to
    calls: no rules can say the format. Calls are held against it afterwards all the same."""
    if (request.grammar, request.tag) == (None, None):
        return frozenset()
    return frozenset(tool.name for tool in tools if has_format_beyond(tool.parameters))


def _freely(
    request: Request, tools: Sequence[Tool[..., Any]], dialect: Dialect, can: Collection[str], prompt: str
) -> Request:
    """Held once a call has begun. A thought may come first: whether the model thinks is its own affair here."""
    if len(tools) > MANY:
        return request
    if "tags" in can:
        tag = grammar(dialect, tools, "auto", "structural_tag", request.parallel, prompt)
        return replace(request, tag=cast("dict[str, Any]", tag))
    if "free" in can:
        return replace(request, grammar=str(grammar(dialect, tools, "auto", "gbnf", request.parallel, prompt)))
    return request


def _as_json(request: Request, tools: Sequence[Tool[..., Any]], dialect: Dialect, several: bool) -> Request:
    try:
        schema = grammar(dialect, tools, "required", "json_schema", several)
    except UsageError:  # its calls stand between marks, which no schema can say
        return request
    return replace(request, schema=cast("dict[str, Any]", schema))
