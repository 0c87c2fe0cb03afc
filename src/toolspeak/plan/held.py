"""What holds a model's sampling to its dialect: a grammar, structural tags or a JSON Schema, as the model can be held."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, cast

from ..errors import UsageError
from ..types import Request, Tool
from ..wire.grammar import grammar
from ..wire.program import program
from ..wire.syntax import Dialect

MANY = 64
"""Tools beyond which a reply that may be words is not held: each request would carry a grammar of them all."""


def held(
    request: Request, tools: Sequence[Tool[..., Any]], dialect: Dialect, can: Collection[str], prompt: str, thinks: bool
) -> Request:
    """The request, whose `choice` is that of `tools`, with what its reply is held to in the dialect.

    A call that must come is held from the first word: by a grammar, by tags, or where the dialect's calls are plain
    JSON by its schema. Where words may come instead, a reply is held from where a call opens, by a model that can
    ("free" under a grammar, "tags"). `thinks`: the model was made to think, and knows when to stop. The request is
    unchanged where something else holds it, or nothing can.
    """
    if not tools or request.grammar is not None or request.schema is not None or program(dialect, True).opened(prompt):
        return request
    if request.choice == "auto":
        return _freely(request, tools, dialect, can, prompt)
    several = request.parallel and request.choice == "required"
    if "grammar" in can:
        text = grammar(dialect, tools, "required", "gbnf", several, prompt, thinking=thinks)
        return replace(request, grammar=str(text))
    if "tags" in can:
        tag = grammar(dialect, tools, "required", "structural_tag", several, prompt, thinking=thinks)
        return replace(request, tag=cast("dict[str, Any]", tag))
    if "schema" in can and not thinks:
        return _as_json(request, tools, dialect, several)
    return request


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
