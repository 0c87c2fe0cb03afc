"""Shows how each dialect parses a reply, and one of them character by character; drafts a dialect from a chat template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dialects import get, names
from ..errors import UsageError
from ..sources.dialect_writer import source_of
from ..types import Reply, Tool, ToolCall
from ..wire.decode import parse
from ..wire.detect import detect, unrendered
from ..wire.prompt.calls import write_calls
from ..wire.spans import spans
from .event_rows import Row, note_rows, reply_row

LONGEST = 100_000
"""The most characters of a reply that are shown one by one."""
EXAMPLE = ToolCall("call_1", "weather", {"city": "Rome", "days": 2})


def dialect_rows() -> list[Row]:
    """Return the dialects, each with an example call."""
    return [{"name": name, "call": write_calls((EXAMPLE,), get(name)), "models": get(name).models} for name in names()]


def read_reply(text: str, name: str, tools: Sequence[Tool[..., Any]] | None) -> Row:
    """Return how one dialect parses a reply (the best one, if none is named), and how the others do."""
    if len(text) > LONGEST:
        raise UsageError(f"text: expected {LONGEST:,} characters at most, got {len(text):,}")
    readers = sorted(
        (_reader(each, text, parse(text, get(each), tools), place) for place, each in enumerate(names())),
        key=lambda row: row["rank"],
        reverse=True,
    )
    best = get(name or readers[0]["dialect"])
    result, reply = spans(text, best, tools)
    return {
        "dialect": best.name,
        "spans": [[span.start, span.end, span.kind, span.call] for span in result],
        "reply": reply_row(reply, tools),
        "readers": [{key: value for key, value in row.items() if key != "rank"} for row in readers],
    }


def _reader(name: str, text: str, reply: Reply, place: int) -> Row:
    """Return the result of one dialect for a reply, with a rank. More complete calls rank higher, then fewer notes,
    then less text beside them, then calls in the dialect's own notation, then more models."""
    whole = sum(call.whole for call in reply.calls)
    d = get(name)
    own = sum(write_calls((call,), d).strip() in text for call in reply.calls)
    rank = (whole, -len(reply.notes), -len(reply.text), own, len(d.models), -place)
    return {"dialect": name, "calls": len(reply.calls), "whole": whole, "notes": note_rows(reply.notes), "rank": rank}


def draft(template: str, model: str = "") -> Row:
    """Return the dialect that a chat template implies, or a draft: its source, and an example call. Raises UsageError
    if the text is not a template."""
    if not any(mark in template for mark in ("{{", "{%")):
        raise UsageError("template: expected a chat template (Jinja), with {{ or {% in it")
    dialect = detect(template, model or None)
    return {
        "dialect": dialect.name,
        "origin": dialect.origin,
        "call": write_calls((EXAMPLE,), dialect),
        "source": source_of(dialect),
        "problem": unrendered(template, dialect),
    }
