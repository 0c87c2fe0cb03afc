"""Decides whether the arguments of an unclosed call at the end of a text are complete or truncated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ..reading.source import SPACE, Malformed, Scan, at
from ..reading.state import State


def closed(
    s: State, opener: str, schema: Mapping[str, Any], keys: set[str] | None, words: tuple[str, ...]
) -> Scan[None]:
    """Handles a text that ends after a parameter and before the end of the call. More parameters might have followed,
    unless the tool has no others than these `keys`. Without words that close the arguments, only those that have none at all are incomplete."""
    complete = keys is None or holds_all(schema, keys)
    if (yield from at(s, *words, eat=False)) or (complete and ended(s)):
        return
    if ended(s, opener) and (words or not keys or not ended(s)):
        raise Malformed("unclosed arguments")


def end_by(s: State, words: tuple[str, ...]) -> None:
    """Raises Malformed if the text ends before the words that close the arguments."""
    if words and ended(s):
        raise Malformed("unclosed arguments")


def holds_all(schema: Mapping[str, Any], keys: set[str]) -> bool:
    """Whether a known tool can have no other parameters than these. A tool that lists none may take any."""
    properties, others = schema.get("properties"), schema.get("additionalProperties", not schema.get("properties"))
    if others is not False or "patternProperties" in schema:
        return False
    return isinstance(properties, Mapping) and keys.issuperset(cast("Mapping[str, Any]", properties))


def ended(s: State, half: str = "") -> bool:
    """Whether there is nothing more than whitespace and the beginning of this word."""
    i = SPACE(s.text, s.pos).end()
    return s.closed and len(s.text) - i <= len(half) and half.startswith(s.text[i:])
