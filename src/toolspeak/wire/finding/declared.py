"""Reads and validates a tokenizer's `response_template`: its fields, with the openers and closers of each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ...errors import TemplateError
from .declared_patterns import GAP, Piece, pattern_pieces

THOUGHTS = ("thinking", "reasoning_content", "reasoning")
FIELD_KEYS = frozenset(
    [
        "open",
        "open_pattern",
        "close",
        "close_pattern",
        "content",
        "content_args",
        "repeats",
        "optional",
        "join",
        "transform",
        "transform_each",
    ]
)
TOP_KEYS = frozenset(("version", "defaults", "fields", "start_anchor", "start_anchor_pattern"))
CONTENT_ARGS = {
    "text": frozenset(["strip"]),
    "json": frozenset(["unquoted_keys", "string_delims"]),
    "xml-inline": frozenset(["tag_pattern", "value_parser", "merge_duplicates"]),
}


@dataclass(frozen=True, slots=True)
class Declared:
    """One declared field: its openers and closers as literals and slots, and its full declaration."""

    where: str
    openers: tuple[tuple[Piece, ...], ...]
    closers: tuple[str, ...]
    declaration: Mapping[str, Any]

    @property
    def opener(self) -> str:
        """The first opener as text; "" for the field that takes all text outside the others."""
        return as_text(self.openers[0], f"{self.where}.open") if self.openers else ""


def cannot(where: str, why: str) -> TemplateError:
    """The error for something that no dialect can express, with its key."""
    return TemplateError(f"no dialect can express this response template: {where}: {why}")


def as_object(value: object, where: str) -> Mapping[str, Any]:
    """The value as an object. Raises TemplateError if it is none."""
    if not isinstance(value, Mapping):
        raise cannot(where, f"expected an object, got {type(value).__name__}")
    return cast("Mapping[str, Any]", value)


def declared_fields(config: Mapping[str, Any]) -> dict[str, Declared]:
    """The fields by name, with every key validated."""
    config = as_object(config, "response_template")
    if unknown := sorted(set(map(str, config)) - TOP_KEYS):
        raise cannot(unknown[0], f"expected one of {', '.join(sorted(TOP_KEYS))}")
    if config.get("version", 1) != 1:
        raise cannot("version", f"expected 1, got {config['version']!r}")
    as_object(config.get("defaults", {}), "defaults")
    fields: dict[str, Declared] = {}
    for name, value in as_object(config.get("fields"), "fields").items():
        where = f"fields.{name}"
        if name not in ("content", "tool_calls", *THOUGHTS):
            raise cannot(where, f"a dialect knows content, tool_calls and {', '.join(THOUGHTS)}")
        field = as_object(value, where)
        if unknown := sorted(set(map(str, field)) - FIELD_KEYS):
            raise cannot(f"{where}.{unknown[0]}", f"expected one of {', '.join(sorted(FIELD_KEYS))}")
        _check(name, field, where)
        closers = tuple(as_text(pieces, f"{where}.close_pattern") for pieces in _anchors(field, "close", where))
        fields[name] = Declared(where, _anchors(field, "open", where), tuple(c for c in closers if c), field)
    return fields


def declared_starts(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The known starts of the assistant's message in a prompt. A pattern that is more than a literal gives none: no
    reply is read by it."""
    pattern = config.get("start_anchor_pattern")
    if pattern is None:
        return _literals(config, "start_anchor", "response_template")
    if "start_anchor" in config:
        raise cannot("start_anchor_pattern", "expected it or start_anchor, not both")
    if not isinstance(pattern, str):
        raise cannot("start_anchor_pattern", f"expected a regular expression, got {type(pattern).__name__}")
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as e:
        raise cannot("start_anchor_pattern", f"expected a regular expression: {e}, in {pattern!r:.200}") from e
    try:
        return (as_text(pattern_pieces(pattern), "start_anchor_pattern"),)
    except (ValueError, TemplateError):
        return ()


def _check_text(field: Mapping[str, Any], kind: object, where: str) -> None:
    if kind != "text":
        raise cannot(f"{where}.content", f"expected text, got {kind!r}")
    if field.get("transform", "{content}") != "{content}" or field.get("transform_each"):
        raise cannot(f"{where}.transform", "a dialect passes a text on as it is")


def _check(name: str, field: Mapping[str, Any], where: str) -> None:
    """Raises TemplateError for a declaration that would be read differently from what it says."""
    for key in ("repeats", "optional"):
        if not isinstance(field.get(key, False), bool):
            raise cannot(f"{where}.{key}", f"expected true or false, got {type(field[key]).__name__}")
    kind = field.get("content", "text")
    if name != "tool_calls":
        _check_text(field, kind, where)
    if field.get("join"):
        raise cannot(f"{where}.join", "a dialect puts nothing between the parts of a text")
    known = CONTENT_ARGS.get(str(kind), frozenset[str]())
    if unknown := sorted(set(map(str, as_object(field.get("content_args") or {}, f"{where}.content_args"))) - known):
        raise cannot(f"{where}.content_args.{unknown[0]}", f"expected one of {', '.join(sorted(known)) or 'none'}")


def _literals(value: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    """The literals under the key. "eos", the end of the text, is no literal."""
    listed = value.get(key)
    if listed is None:
        return ()
    rows: Sequence[object] = cast("list[object]", listed) if isinstance(listed, list) else [listed]
    if not rows or not all(isinstance(row, str) and row for row in rows):
        raise cannot(f"{where}.{key}", "expected a text or a list of texts, none of them empty")
    return tuple(cast("str", row) for row in rows if row != "eos")


def _anchors(field: Mapping[str, Any], key: str, where: str) -> tuple[tuple[Piece, ...], ...]:
    """The openers or closers of a field, each as its pieces."""
    pattern = field.get(f"{key}_pattern")
    if pattern is None:
        return tuple((literal,) for literal in _literals(field, key, where))
    if key in field:
        raise cannot(f"{where}.{key}_pattern", f"expected it or {key}, not both")
    if not isinstance(pattern, str):
        raise cannot(f"{where}.{key}_pattern", f"expected a regular expression, got {type(pattern).__name__}")
    try:
        pieces = pattern_pieces(pattern)
    except ValueError as e:
        raise cannot(f"{where}.{key}_pattern", f"{e}, in {pattern!r}") from e
    return (pieces,) if pieces else ()


def as_text(pieces: Sequence[Piece], where: str) -> str:
    """The pieces as one text without whitespace at its ends. Raises TemplateError if there are groups or gaps."""
    if not all(isinstance(piece, str) and piece != GAP for piece in pieces):
        raise cannot(where, "expected a literal, without groups and without gaps")
    return "".join(cast("Sequence[str]", pieces))


def one_literal(texts: Sequence[str], where: str) -> str:
    """The single literal among these. Raises TemplateError if there is none, or more than one."""
    kinds = dict.fromkeys(text.strip() for text in texts)
    if len(kinds) != 1:
        raise cannot(where, f"expected one literal, got {len(kinds)}")
    return texts[0]
