"""What real models wrote, and what it meant; the data stands beside the checkout, or the test is skipped."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from wire_cases import cuts, merged, stream

from toolspeak.errors import UnknownDialect
from toolspeak.types import Tool
from toolspeak.wire.collect import collect
from toolspeak.wire.detect import detect
from toolspeak.wire.render import render

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
CASES = SHARED / "cases" / "dialects.jsonl"
pytestmark = pytest.mark.skipif(not CASES.is_file(), reason="the folder shared/cases is not beside the checkout")


def rows() -> list[dict[str, Any]]:
    """The rows that ask for a whole reply of a dialect that there is."""
    lines = CASES.read_text("utf-8").splitlines() if CASES.is_file() else []
    return [
        row
        for line in lines
        for row in [json.loads(line)]
        if not (row["is_partial"] or row["json_schema"] or row["continue_final_message"])
    ]


def value(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def test_they_are_read_as_they_were_meant_at_every_cut() -> None:
    seen, wrong = 0, []
    for row in rows():
        template = (SHARED / "templates" / f"{row['template']}.jinja").read_text("utf-8")
        try:
            d = detect(template)
        except UnknownDialect:
            continue
        seen += 1
        functions = [tool["function"] for tool in row["tools"] or []]
        tools = [Tool(f["name"], f.get("description", ""), f.get("parameters") or {}) for f in functions]
        thinking = True if row["enable_thinking"] is None else row["enable_thinking"]
        messages = row["messages"] or [{"role": "user", "content": "Hey there!"}]
        prompt = render(
            messages, tools, d, template=template, thinking=thinking, now=datetime(2026, 1, 1, tzinfo=UTC)
        ).prompt
        thoughts = "keep" if row["reasoning_format"] in (None, "none") else "split"
        events = stream(d, [row["input"]], tools, prompt, thoughts)
        for chunks in cuts(row["input"], random.Random(1)):
            assert merged(stream(d, chunks, tools, prompt, thoughts)) == merged(events)
        reply, expect = collect(events), row["expect"]
        got = (reply.text.strip(), reply.thought.strip(), [(c.name, c.arguments) for c in reply.calls])
        calls = [(c["name"], value(c["arguments"])) for c in expect.get("tool_calls") or []]
        if got != ((expect.get("content") or "").strip(), (expect.get("reasoning_content") or "").strip(), calls):
            wrong.append((row["id"], d.name, row["input"], got, expect))
    assert seen > 10
    assert not wrong
