"""What of a tool is searched, and what each of its words weighs.

A word counts by the field it stands in: the name, the description, the parameters (names, descriptions and the values
of enums), the example questions. The fields' counts are put together before they level off (BM25F: Robertson,
Zaragoza and Taylor, 2004), so that a word in every field does not count thrice. A field's usual length is a
constant here and not the mean of the index: what a tool weighs then depends on the tool alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ..types import Tool
from .words import MAX_TEXT, terms

MAX_NODES = 500
"""Parts of a parameters' schema that are read."""


@dataclass(frozen=True, slots=True)
class Field:
    """How much a field counts: its `weight`, its `usual` length in words, and how far length matters (0 to 1)."""

    weight: float
    usual: float
    by_length: float


NAME, DESCRIPTION = Field(3.0, 3, 0.3), Field(1.0, 15, 0.6)
PARAMETERS, EXAMPLES = Field(1.0, 35, 0.6), Field(1.0, 40, 0.6)
LEVEL = 1.5
"""BM25's k1: the weighted count at which a word has half of the most that it can have."""


def weights(tool: Tool[..., Any], examples: Sequence[str] = ()) -> dict[str, float]:
    """Each term of a tool with its weight, from 0 to below 1."""
    counted: dict[str, float] = {}
    for field, text in (
        (NAME, tool.name),
        (DESCRIPTION, tool.description),
        (PARAMETERS, parameters_text(tool.parameters)),
        (EXAMPLES, "\n".join(examples)),
    ):
        if found := terms(text):
            length = 1 - field.by_length + field.by_length * len(found) / field.usual
            for term in found:
                counted[term] = counted.get(term, 0.0) + field.weight / length
    return {term: count / (LEVEL + count) for term, count in counted.items()}


def parameters_text(schema: Mapping[str, Any]) -> str:
    """The names, descriptions and enums of parameters, those inside others too, within a bound."""
    said: list[str] = []
    left = MAX_TEXT
    for text in _said(schema):
        said.append(text[:left])
        left -= len(text) + 1
        if left <= 0:
            break
    return "\n".join(said)


def _said(schema: Mapping[str, Any]) -> Iterator[str]:
    """Breadth first, so that what is outside comes first."""
    level: list[Any] = [schema]
    seen = 0
    while level and seen < MAX_NODES:
        below: list[Any] = []
        for node in level[: MAX_NODES - seen]:
            seen += 1
            if isinstance(node, Mapping):
                yield from _told(cast("Mapping[str, Any]", node), below)
        level = below


def _told(node: Mapping[str, Any], below: list[Any]) -> Iterator[str]:
    if isinstance(told := node.get("description"), str):
        yield told
    if isinstance(values := node.get("enum"), (list, tuple)):
        yield " ".join(str(value) for value in cast("Sequence[Any]", values)[:MAX_NODES] if isinstance(value, str))
    for key in ("properties", "$defs", "definitions"):
        if isinstance(inner := node.get(key), Mapping):
            properties = cast("Mapping[str, Any]", inner)
            if key == "properties":
                yield " ".join(map(str, properties))
            below += properties.values()
    for key in ("items", "additionalProperties"):
        below.append(node.get(key))
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        if isinstance(several := node.get(key), (list, tuple)):
            below += cast("Sequence[Any]", several)
