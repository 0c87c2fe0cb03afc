"""The bodies that the page sends: a JSON Schema for each, and the parsers of tools and of answers to pending calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ...approvals import Answer, Edit
from ...plan.result_pages import LONGEST as LONGEST_RESULT
from ...types import Schema
from ...ui.dialect_view import LONGEST

TEXT: Schema = {"type": "string"}
TOOLS: Schema = {"type": "array", "items": {"type": "object"}, "maxItems": 5000}
TURN: Schema = {
    "type": "object",
    "required": ["model", "messages"],
    "properties": {
        "model": TEXT,
        "dialect": TEXT,
        "messages": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["role"]}},
        "tools": TOOLS,
        "offered": {"type": "array", "items": TEXT},
        "choice": TEXT,
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
        "max_tokens": {"type": "integer", "minimum": 1},
        "seed": {"type": "integer"},
    },
}
ANSWERS: Schema = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {
        "anyOf": [
            {"const": True},
            {"type": "string"},
            *(
                {"type": "object", "required": [name], "additionalProperties": False, "properties": {name: kind}}
                for name, kind in (("edit", {"type": "object"}), ("answer", {}))
            ),
        ]
    },
}
"""By the ids of calls: true runs one, a text is the reason why not, else other arguments or a result."""
PAUSED: Schema = {
    "type": "object",
    "required": ["messages", "pending"],
    "properties": {"messages": TURN["properties"]["messages"], "pending": {"type": "array", "minItems": 1}},
}
RESUME: Schema = {
    "type": "object",
    "required": ["model", "paused", "answers"],
    "properties": {**TURN["properties"], "paused": PAUSED, "answers": ANSWERS},
}
CALL: Schema = {
    "type": "object",
    "required": ["name", "arguments"],
    "properties": {"name": TEXT, "id": TEXT, "arguments": {"type": "object"}},
}
READ: Schema = {
    "type": "object",
    "required": ["text"],
    "properties": {"text": {"type": "string", "maxLength": LONGEST}, "dialect": TEXT, "tools": TOOLS},
}
DRAFT: Schema = {
    "type": "object",
    "required": ["template"],
    "properties": {"template": {"type": "string", "maxLength": LONGEST_RESULT}, "name": TEXT},
}
NAME: Schema = {"type": "object", "required": ["name"], "properties": {"name": TEXT}}


def answer_of(value: Any) -> bool | str | Edit | Answer:
    """Return somebody's answer to a pending call."""
    if not isinstance(value, dict):
        return value
    row = cast("dict[str, Any]", value)
    return Edit(row["edit"]) if "edit" in row else Answer(row["answer"])


def flat(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tools of a body without OpenAI's wrapper."""
    rows = cast("list[dict[str, Any]]", body.get("tools", ()))
    return [row["function"] if isinstance(row.get("function"), dict) else row for row in rows]
