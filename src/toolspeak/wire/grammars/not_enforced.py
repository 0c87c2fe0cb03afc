"""Finds the keywords of tools' schemas that a grammar does not enforce, so that it can be said: a reply may still break
them, and only a check of the call finds that.

The rules of a grammar enforce the keywords in RULES. Others are enforced where the grammar contains the schema itself
(`%json`, structural tags, JSON Schemas) and the engine knows the keyword; whether it contains it is looked up in its text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ...schema.portable import SAYS_NOTHING, SUPPORTED
from ...schema.text_grammars import KEYWORD
from ...schema.walk import escape, nodes
from ...types import Schema, Tool
from .regexes import chars_of
from .rules import Rules
from .value_grammar import NUMBERED, fitting_text

RULES = SAYS_NOTHING | {
    "type", "properties", "required", "additionalProperties", "unevaluatedProperties", "items", "prefixItems", "enum",
    "const", "anyOf", "oneOf", "allOf", "$ref", "$defs", "definitions", "minItems", "maxItems", "nullable", KEYWORD,
}  # fmt: skip
"""The keywords that rules enforce, or that constrain nothing."""
LLGUIDANCE = frozenset({
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern",
    "format", "patternProperties", "minProperties", "maxProperties",
})  # fmt: skip
ENGINES = {"lark": LLGUIDANCE, "structural_tag": SUPPORTED["xgrammar"], "json_schema": SUPPORTED["xgrammar"]}
"""The keywords that the engines of a form enforce in a schema that is part of the grammar."""


def not_enforced(grammar: str | dict[str, Any], form: str, tools: Sequence[Tool[..., Any]]) -> list[str]:
    """The places of keywords that the grammar of this form does not enforce: `f: /properties/city/pattern`."""
    text = grammar if isinstance(grammar, str) else json.dumps(grammar, ensure_ascii=False)
    engine = ENGINES.get(form, frozenset())
    places: list[str] = []
    for tool in tools:
        for path, node in nodes(tool.parameters):
            lost = (word for word in _beyond_rules(node) if word not in engine or _written(word, node) not in text)
            places += [f"{tool.name}: {path}/{escape(word)}" for word in lost]
    return places


def _beyond_rules(node: Schema) -> Iterator[str]:
    """The keywords of a schema that rules do not enforce."""
    for word, value in node.items():
        match word:
            case "pattern":
                if fitting_text(node, chars_of, Rules(), "any") is None:
                    yield word
            case "minItems" | "maxItems":
                if isinstance(value, int) and value > NUMBERED:
                    yield word
            case _:
                if word not in RULES:
                    yield word


def _written(word: str, node: Schema) -> str:
    """A keyword and its value as they are in the text of a grammar that contains the schema."""
    return json.dumps({word: node[word]}, ensure_ascii=False)[1:-1]
