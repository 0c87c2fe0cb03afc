"""Converts events, calls and replies to the JSON rows that the page gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..errors import ApprovalNeeded
from ..events import CallResult, Event
from ..explain import Remote
from ..models.base import Model
from ..models.wrapper import within
from ..plan.calls import checked
from ..tool_results import jsonable
from ..types import Note, Reply, Request, Tool, ToolCall, ToolResult

Row = dict[str, Any]
MOST_SCORES = 200
"""The most candidates of a decision by likelihood that are shown."""


def event_row(event: Event) -> Row:
    """Return an event as a row."""
    fields: Row = {"result": result_row(event.result)} if isinstance(event, CallResult) else asdict(event)
    return {"row": "event", "event": type(event).__name__, **fields}


def result_row(result: ToolResult) -> Row:
    """Return the result of a call as a row."""
    return {
        "id": result.id,
        "name": result.name,
        "text": result.text,
        "error": None if result.error is None else f"{type(result.error).__name__}: {result.error}",
        "seconds": result.seconds,
        "pending": isinstance(result.error, ApprovalNeeded),
    }


def request_row(model: Model, request: Request, parts: Row) -> Row:
    """Return a model request as a row: `parts` are the parts of its prompt, `body` is the exact body for a server."""
    row: Row = {"row": "ask", "model": model.name, **parts}
    if remote := within(model, Remote):
        row |= {"url": remote.endpoint, "body": remote.body(request).decode("utf-8", "replace")}
    if request.stop:
        row["stop"] = list(request.stop)
    if request.grammar:
        row["grammar"] = request.grammar
    if request.schema is not None:
        row["schema"] = jsonable(request.schema)
    return row


def score_row(prompt: str, continuations: Sequence[str], scores: Sequence[float], parts: Sequence[object]) -> Row:
    """Return log-likelihoods as a row, the most likely first."""
    rows = sorted(zip(continuations, scores, strict=True), key=lambda row: -row[1])[:MOST_SCORES]
    return {"row": "score", "prompt": list(parts), "texts": rows, "size": len(continuations)}


def call_row(call: ToolCall, tools: Sequence[Tool[..., Any]] | None = None) -> Row:
    """Return a call as a row, checked if its tools are known."""
    row: Row = {
        "id": call.id,
        "name": call.name,
        "arguments": call.arguments,
        "json": call.json,
        "whole": call.whole,
        "notes": note_rows(call.notes),
    }
    if tools is not None:
        coerced, problems = checked(call, tools)
        row |= {"arguments": coerced.arguments, "problems": [asdict(problem) for problem in problems]}
    return row


def note_rows(notes: Sequence[Note]) -> list[Row]:
    """Return notes as rows: the rule, what it applied to, and where."""
    return [asdict(note) for note in notes]


def reply_row(reply: Reply, tools: Sequence[Tool[..., Any]] | None = None) -> Row:
    """Return a whole reply as a row."""
    return {
        "row": "reply",
        "text": reply.text,
        "thought": reply.thought,
        "calls": [call_row(call, tools) for call in reply.calls],
        "finish": reply.finish,
        "notes": note_rows(reply.notes),
        "usage": asdict(reply.usage),
        "messages": reply.messages,
        "pending": [asdict(one) for one in reply.pending],
    }
