"""Finds out what a model's chat template can render, and which form it needs, by rendering small conversations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from ...errors import TemplateError
from ...types import Tool, ToolCall
from ..decode import parse
from ..dialect import Dialect, JsonCall
from .jinja import render_template
from .thinking_switch import thinking_variables

TOOL = {
    "type": "function",
    "function": {
        "name": "probe_tool",
        "description": "probe",
        "parameters": {
            "type": "object",
            "properties": {"probe_key": {"type": "string", "description": "probe"}},
            "required": ["probe_key"],
        },
    },
}
CALL = ToolCall("call00001", "probe_tool", {"probe_key": "probe_value"})
OTHER = ToolCall("call00002", "probe_tool", {"probe_key": "other_value"})
USER = {"role": "user", "content": "probe_question"}
NOW = datetime(2024, 7, 26)
THOUGHTS = ("reasoning_content", "reasoning", "thinking", "thought")
"""The keys of a thought that templates read."""
SHORT = 9
"""The length of ids in templates that require one."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a template can render, and which form of input it needs.

    It renders tools, calls, results, a system turn, several calls in one turn (`parallel`), calls `beside` a text,
    consecutive user turns (`rows`). It needs arguments as `objects` or as text, `short` ids, an empty text or none for
    a call without text (`blank`), and thoughts under the key `thought`. `sample` is a rendered conversation with a
    call.
    """

    tools: bool
    calls: bool
    objects: bool
    results: bool
    system: bool
    parallel: bool
    beside: bool
    rows: bool
    short: bool
    blank: str | None
    thought: str
    sample: str


@lru_cache(64)
def abilities(template: str) -> Abilities:
    """The capabilities of the template, found by rendering small conversations in several ways."""
    samples = {(a, blank): _attempt(template, _conversation(a, blank)) for a in (True, False) for blank in ("", None)}
    right = [key for key, sample in samples.items() if "probe_value" in sample and '\\"probe_value' not in sample]
    right.sort(
        key=lambda key: "'probe_key'" in samples[key]
    )  # a dict printed by Python is no JSON, so prefer another form
    objects, blank = right[0] if right else (True, "")
    sample = samples[objects, blank] if right else ""
    two = _attempt(template, _conversation(objects, blank, (CALL, OTHER)))
    long = _attempt(template, _conversation(objects, blank, (replace(CALL, id="call_1"),)))
    beside = _attempt(template, _conversation(objects, "probe_text"))
    thoughts = (
        _attempt(template, _conversation(objects, blank, more={key: "probe_thought"}), think=True) for key in THOUGHTS
    )
    system = _attempt(template, [{"role": "system", "content": "probe_system"}, USER], tools=False)
    return Abilities(
        tools=CALL.name in _attempt(template, [USER]),
        calls=bool(right),
        objects=objects,
        results="probe_result" in sample,
        system="probe_system" in system,
        parallel=not right or ("probe_value" in two and "other_value" in two),
        beside=not right or "probe_value" in beside,
        rows=bool(_attempt(template, [USER, USER], tools=False)) or not _attempt(template, [USER], tools=False),
        short=bool(right) and not long,
        blank=blank,
        thought=next(
            (key for key, text in zip(THOUGHTS, thoughts, strict=True) if "probe_thought" in text), THOUGHTS[0]
        ),
        sample=sample,
    )


def _attempt(template: str, messages: list[dict[str, Any]], tools: bool = True, think: bool = False) -> str:
    variables = thinking_variables(template, True) if think else None
    try:
        return render_template(template, messages, [TOOL] if tools else None, variables=variables, now=NOW)
    except TemplateError:
        return ""


def _conversation(
    objects: bool, blank: str | None, calls: tuple[ToolCall, ...] = (CALL,), more: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    def row(call: ToolCall) -> dict[str, Any]:
        arguments = call.arguments if objects else json.dumps(call.arguments)
        return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}

    turn = {"role": "assistant", "content": blank, "tool_calls": [row(call) for call in calls], **(more or {})}
    results = [{"role": "tool", "tool_call_id": c.id, "name": c.name, "content": "probe_result"} for c in calls]
    return [USER, turn, *results]


def speaks(template: str, d: Dialect) -> bool:
    """Whether the template renders tools, calls and results, with its calls in the dialect."""
    known = abilities(template)
    if not (known.calls and known.results and all(w in known.sample for w in literals(d))):
        return False
    answer = known.sample.rpartition(str(USER["content"]))[
        2
    ]  # only after the question: the declaration of tools may have example calls
    calls = parse(answer, replace(d, forms=()), (Tool(CALL.name),), "").calls
    return any(call.name == CALL.name and call.arguments == CALL.arguments for call in calls)


def literals(d: Dialect) -> tuple[str, ...]:
    """The words by which a call of the dialect is recognized: its literals, or the keys of its object if it has none."""
    texts = [d.open, d.close, *(p for p in d.call if isinstance(p, str))]
    words = tuple(w for text in texts for w in text.split())
    return words or tuple(f'"{key}"' for p in d.call if isinstance(p, JsonCall) for key, _ in p.keys)
