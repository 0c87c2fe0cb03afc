"""The searchable text of a tool, and the weight of each of its terms.

A term counts by the field it is in: the name, the description, the names and possible values of parameters, their
descriptions, the example questions. The weighted counts of all fields are added before they saturate (BM25F:
Robertson, Zaragoza and Taylor, 2004), so that a word in every field does not count several times. The usual length of
a field is a constant, not the mean over the index, so that a tool's weights depend only on the tool.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ..types import Schema, Tool
from .terms import MAX_TEXT, spoken, terms, visible

MAX_NODES = 500
"""The most nodes of a parameters' schema that are read."""


@dataclass(frozen=True, slots=True)
class FieldWeight:
    """The influence of a field: its `weight`, its `usual` length in words, and how much length matters (0 to 1)."""

    weight: float
    usual: float
    by_length: float


NAME, DESCRIPTION, EXAMPLES = FieldWeight(4.0, 5, 0.3), FieldWeight(1.0, 12, 0.6), FieldWeight(1.0, 40, 0.6)
VALUES, PARAMETERS = FieldWeight(1.0, 8, 0.6), FieldWeight(0.5, 20, 0.6)
"""The names and possible values of parameters; and their descriptions."""
LEVEL = 1.0
"""BM25's k1: the weighted count at which a term reaches half of its maximal weight."""


def weights(tool: Tool[..., Any], examples: Sequence[str] = ()) -> dict[str, float]:
    """Each term of a tool with its weight, at least 0 and below 1."""
    values, texts = parameters(tool.parameters)
    counted: dict[str, float] = {}
    for field, field_terms in (
        (NAME, terms(tool.name, joined=True)),
        (DESCRIPTION, terms(tool.description)),
        (VALUES, terms(values)),
        (PARAMETERS, terms(texts)),
        (EXAMPLES, terms("\n".join(examples))),
    ):
        once = field.weight / (1 - field.by_length + field.by_length * len(field_terms) / field.usual)
        for term in field_terms:
            counted[term] = counted.get(term, 0.0) + once
    return {term: count / (LEVEL + count) for term, count in counted.items()}


def text(tool: Tool[..., Any], examples: Sequence[str] = ()) -> str:
    """A tool as one text for embedding: its name in words, then everything else, the most specific first."""
    values, texts = parameters(tool.parameters)
    questions = "\n".join(examples)[:MAX_TEXT]
    parts = (spoken(tool.name), visible(tool.description), visible(questions), spoken(values), visible(texts))
    return "\n".join(part for part in parts if part)


def brief(tool: Tool[..., Any]) -> str:
    """The name and the description only: what a tool is for, without how it is called."""
    return "\n".join(part for part in (spoken(tool.name), visible(tool.description)) if part)


def parameters(schema: Schema) -> tuple[str, str]:
    """The names of parameters with their enum values, and their descriptions, within a limit.

    Nested parameters are included level by level, so that outer ones come first.
    """
    values, texts = _BoundedText(), _BoundedText()
    level: list[Any] = [schema]
    seen = 0
    while level and seen < MAX_NODES and not (values.full and texts.full):
        below: list[Any] = []
        for node in level[: MAX_NODES - seen]:
            seen += 1
            if node and isinstance(node, Mapping):
                _read(cast("Schema", node), values, texts, below)
        level = below
    return values.text, texts.text


class _BoundedText:
    """A text that grows up to a limit."""

    def __init__(self) -> None:
        self.text = ""

    @property
    def full(self) -> bool:
        return len(self.text) >= MAX_TEXT

    def add(self, more: Any) -> None:
        if isinstance(more, str) and not self.full:
            self.text += more[:MAX_TEXT] + "\n"


def _read(node: Schema, values: _BoundedText, texts: _BoundedText, below: list[Any]) -> None:
    texts.add(node.get("description"))
    values.add(node.get("const"))
    if isinstance(listed := node.get("enum"), (list, tuple)):
        for value in cast("Sequence[Any]", listed)[:MAX_NODES]:
            values.add(value)
    for key in ("properties", "$defs", "definitions"):
        # Most keys are missing, and isinstance(None, Mapping) is slow.
        if (inner := node.get(key)) and isinstance(inner, Mapping):
            for name, schema in itertools.islice(cast("Schema", inner).items(), MAX_NODES):
                if key == "properties":
                    values.add(name)
                below.append(schema)
    below += (node.get("items"), node.get("additionalProperties"))
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        if isinstance(several := node.get(key), (list, tuple)):
            below += cast("Sequence[Any]", several)[:MAX_NODES]
