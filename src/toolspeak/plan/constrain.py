"""Chooses a constraint for a model's output: a grammar, structural tags or a JSON Schema, as the engine supports it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, cast

from ..errors import UsageError
from ..types import Request, Tool
from ..wire.dialect import Dialect
from ..wire.grammar import grammar
from ..wire.grammars.value_grammar import has_format_beyond
from ..wire.reading.lexicon import program

MANY = 64
"""With more tools than this, a reply that may be text is not constrained: every request would carry a grammar of all
tools."""


def constrain(
    request: Request,
    choice: str,
    tools: Sequence[Tool[..., Any]],
    dialect: Dialect,
    can: Collection[str],
    prompt: str,
    thinks: bool,
) -> Request:
    """The request with a constraint on its reply in the dialect. `choice` is auto, required or the name of one of
    `tools`.

    A required call is constrained from the first token: by a grammar, by structural tags, or by a schema if the
    dialect's calls are plain JSON. If text is allowed, the reply is constrained from the start of a call, for a model
    that supports this ("free" with a grammar, or "tags"). `thinks`: the prompt makes the model think, and it knows
    when to stop. The request is unchanged if something else constrains it, or if nothing can.
    """
    if not tools or request.grammar is not None or request.schema is not None or program(dialect, True).opened(prompt):
        return request
    if choice == "auto":
        return _constrain_from_call(request, tools, dialect, can, prompt)
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
    """The names of the tools with a text format that the request's constraint does not enforce, because no grammar can
    express it. Their calls are validated afterwards in any case."""
    if (request.grammar, request.tag) == (None, None):
        return frozenset()
    return frozenset(tool.name for tool in tools if has_format_beyond(tool.parameters))


def _constrain_from_call(
    request: Request, tools: Sequence[Tool[..., Any]], dialect: Dialect, can: Collection[str], prompt: str
) -> Request:
    """The request constrained from the start of a call. A thought may come first, whether or not thinking was
    requested."""
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
    except UsageError:  # its calls are between markers, which no schema can express
        return request
    return replace(request, schema=cast("dict[str, Any]", schema))
