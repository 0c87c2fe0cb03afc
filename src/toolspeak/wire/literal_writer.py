"""Writes values as literals of a programming language (`'text'`, `True`, `{k:1}`), for calls that look like code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from .dialect import Keywords
from .reading.json_tokens import quoted

BARE_NAME = re.compile(r"[\w.-]+").fullmatch


def ordered(hole: Keywords, arguments: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The items in the order in which they are written: bare keys are sorted."""
    rows = list(arguments.items())
    return sorted(rows, key=lambda row: row[0].lower()) if hole.bare else rows


def literal_text(hole: Keywords, value: object) -> str:
    """A value in the dialect's syntax."""
    if isinstance(value, str):
        return _string(hole, value)
    if value is None or isinstance(value, bool):
        true, false, null = hole.constants
        return null if value is None else true if value else false
    space = "" if hole.bare else " "
    if isinstance(value, Mapping):
        rows = ordered(hole, cast("Mapping[str, Any]", value))
        members = [f"{literal_key(hole, k)}:{space}{literal_text(hole, v)}" for k, v in rows]
        return "{" + f",{space}".join(members) + "}"
    if isinstance(value, list | tuple):
        return "[" + f",{space}".join(literal_text(hole, v) for v in cast("Iterable[object]", value)) + "]"
    return repr(value)


def literal_key(hole: Keywords, key: str) -> str:
    """The key of an object in the dialect's syntax."""
    return key if hole.bare and BARE_NAME(key) else _string(hole, key)


def _string(hole: Keywords, text: str) -> str:
    quote = hole.quotes[0]
    if not hole.escapes:
        return quote + text + quote
    return repr(text) if quote == "'" else quoted(text)
