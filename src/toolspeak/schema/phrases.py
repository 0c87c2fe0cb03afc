"""Describes schemas and values in a few words, for messages to models and people."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, cast

from ..types import Note
from .kinds import DECIMAL, NAIVE


def describe(schema: Any) -> str:
    """A short description of what a schema wants: `integer`, `one of "a", "b"`, `array of string`."""
    if not isinstance(schema, Mapping):
        return "nothing" if schema is False else "any JSON value"
    node = cast("Mapping[str, Any]", schema)
    if "const" in node:
        return short(node["const"])
    if isinstance(node.get("enum"), list):
        return "one of " + _short_list(node["enum"])
    for key in ("anyOf", "oneOf"):
        if isinstance(node.get(key), list):
            return " or ".join(dict.fromkeys(describe(part) for part in node[key]))
    return _described_type(node)


def _described_type(node: Mapping[str, Any]) -> str:
    kind = node.get("type")
    if isinstance(kind, list):
        return " or ".join(str(one) for one in cast("list[Any]", kind)) + limits(node)
    if kind == "array" and isinstance(node.get("items"), Mapping):
        return f"array of {describe(node['items'])}{limits(node)}"
    if kind == "string" and "format" in node:
        return _format(node["format"]) + limits(node)
    if kind is None:
        return "object" if "$ref" in node else "any JSON value"
    return f"{kind}{limits(node)}"


def limits(node: Mapping[str, Any]) -> str:
    """The limits of a schema beside its type, in parentheses: ` (at least 3, at most 9)`; "" if there are none."""
    phrases = [
        re.sub("^(a string|a list|an object) ", "", _limit(name, node[name])) for name in _LIMITS if name in node
    ]
    return f" ({', '.join(phrases)})" if phrases else ""


def spoken(wanted: str) -> str:
    """The description with its article, for a sentence: `an integer or null`."""
    parts = wanted.split(" or ")
    return " or ".join(_ARTICLES.get(part.partition(" ")[0], "") + part for part in parts)


_AN = ("integer", "object", "array", "email")
_A = ("number", "string", "boolean", "date", "date-time", "time", "duration", "uuid", "uri", "regex")
_ARTICLES = {**dict.fromkeys(_AN, "an "), **dict.fromkeys(_A, "a ")}


def short(value: Any, at_most: int = 80) -> str:
    """A value as JSON, truncated to `at_most` characters, for a message."""
    try:
        text = _encode(_part(value, at_most, [at_most]))
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return beginning(text, at_most)


_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode
"""An encoder without the check for cycles, which itself keeps the value alive until the next garbage collection."""


def _part(value: Any, at_most: int, left: list[int]) -> Any:
    """The first values inside a value, as many as are `left`, with long texts cut: a million values, or a text of ten
    megabytes, are not written only to be cut off."""
    left[0] -= 1
    if isinstance(value, str):
        return value[: 2 * at_most]
    if isinstance(value, dict):
        items = takewhile(lambda _: left[0] >= 0, cast("dict[Any, Any]", value).items())
        return {
            name[: 2 * at_most] if isinstance(name, str) else name: _part(one, at_most, left) for name, one in items
        }
    if isinstance(value, list | tuple):
        items = takewhile(lambda _: left[0] >= 0, cast("list[Any]", value))
        return [_part(one, at_most, left) for one in items]
    return value


NOTES = 1_000
"""Notes about one call. A list of 100,000 texts that are read as numbers has as many."""


def limited_notes(notes: Sequence[Note]) -> tuple[Note, ...]:
    """The notes about a call; of too many, the first and how many there are more."""
    if len(notes) <= NOTES:
        return tuple(notes)
    return (*notes[:NOTES], Note(notes[NOTES].rule, f"{len(notes) - NOTES:,} more values like these"))


def beginning(text: str, at_most: int) -> str:
    """A text as it is, or the beginning of one that is too long, with an ellipsis."""
    return text if len(text) <= at_most else text[: at_most - 1] + "…"


def clipped(text: str, at_most: int) -> str:
    """The text; if it is too long, without its middle, since the ends of a value's text tell most."""
    return text if len(text) <= at_most else f"{text[: at_most // 2]} … {text[-at_most // 2 :]}"


def _short_list(values: list[Any]) -> str:
    text = ", ".join(short(value, 40) for value in values[:20])
    return text + (f", … ({len(values)} in all)" if len(values) > 20 else "")


def _format(name: str) -> str:
    example = {
        "date": "2026-01-31",
        "date-time": "2026-01-31T09:30:00Z",
        "time": "09:30:00Z",
        "duration": "PT1H30M",
        "uuid": "123e4567-e89b-12d3-a456-426614174000",
        "email": "name@example.org",
        "uri": "https://example.org/",
    }.get(name)
    return f"{name} string" + (f" such as {example}" if example else "")


_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "greater than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters long",
    "maxLength": "at most {} characters long",
    "minItems": "a list of at least {} items",
    "maxItems": "a list of at most {} items",
    "minProperties": "an object of at least {} fields",
    "maxProperties": "an object of at most {} fields",
    "pattern": "a string that matches {}",
}
PATTERN = 200
"""Characters of a pattern in a message."""

NOT_BLANK = r"\S"
PATTERNS = {
    DECIMAL: "a decimal number such as 1.10",
    NAIVE: "a date and time without a zone such as 2026-01-31T09:30:00",
    NOT_BLANK: "a string that is not blank",
}
"""What the patterns that toolspeak itself writes into schemas mean."""


def expected(error: Any) -> str:
    """What should have come, according to one of the validator's errors."""
    kind = error.kind
    name = kind.name
    if name == "type":
        return " or ".join(kind.types)
    if name == "enum":
        return "one of " + _short_list(kind.options)
    if name == "const":
        return short(kind.value)
    if name == "format":
        return _format(kind.value)
    if name in _LIMITS:
        return _limit(name, kind.value)
    if name == "uniqueItems":
        return "a list without repetitions"
    if name == "not":
        return f"anything but {describe(kind.value)}"
    if name == "falseSchema":
        return "left out"
    if name in ("required", "additionalProperties"):
        return "an object with other fields"
    return f"what the schema says ({beginning(error.message, 200)})"


def _limit(name: str, value: Any) -> str:
    if name == "pattern":
        return PATTERNS.get(value) or _LIMITS[name].format(beginning(str(value), PATTERN))
    limit = _LIMITS[name].format(value)
    return re.sub(r"\b1 (character|item|field)s\b", r"1 \1", limit) if value == 1 else limit


def schema_of(tool: str) -> str:
    """The name of a schema in errors: that of a tool's arguments, or of a schema on its own."""
    return f"the schema of the tool {tool!r}" if tool else "the schema"


def number_of(count: int, noun: str) -> str:
    """A count with its noun: `1 error`, `2 errors`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
