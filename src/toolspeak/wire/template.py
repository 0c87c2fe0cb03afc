"""A model's own chat template: rendering it within bounds, and finding out what it can tell."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from ..errors import TemplateError
from ..types import Tool, ToolCall
from .decode import parse
from .syntax import Dialect, JsonCall

DATE_FORM = "%Y-%m-%d %H:%M:%S %Z"
SIZE = 1_000_000
"""The longest template, in characters."""
FUEL = 50_000_000
"""Steps that a template may take, so that none runs for ever."""

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
GENERATION = re.compile(r"(\{%[-+]?)\s*(end)?generation\s*([-+]?%\})")
TOKEN = re.compile(r"<\|[^\s<>|{}'\"]{1,60}\|>|<｜[^\s<>{}'\"]{1,60}｜>")


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a template can tell: tools, calls (their arguments as objects or as text), results, a system turn.

    `sample` is a conversation with a call as it renders it.
    """

    tools: bool
    calls: bool
    objects: bool
    results: bool
    system: bool
    sample: str


def render_template(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] | None,
    *,
    variables: Mapping[str, Any] | None = None,
    now: datetime | None = None,
    generate: bool = True,
) -> str:
    """The conversation as the template writes it. Raises TemplateError with the template's own words."""
    import minijinja

    if len(template) > SIZE:
        raise TemplateError(f"expected a chat template of at most {SIZE} characters, got {len(template)}")

    def refuse(message: object = "") -> str:
        raise TemplateError(f"the chat template refuses these messages: {message}")

    def strftime_now(form: str) -> str:
        if now is None:
            raise TemplateError("the chat template asks for the time: give now=")
        return now.strftime(form)

    engine = minijinja.Environment(
        filters={"tojson": _tojson},
        globals={"raise_exception": refuse, "strftime_now": strftime_now},
        fuel=FUEL,
        debug=False,
    )
    engine.trim_blocks = engine.lstrip_blocks = True
    template = GENERATION.sub(_generation, template)
    context = _functions(template, tools, now) | {"bos_token": "", "eos_token": "", **(variables or {})}
    context |= {"messages": list(messages), "add_generation_prompt": generate}
    if tools:
        context["tools"] = list(tools)
    try:
        return engine.render_str(template, None, **context)
    except minijinja.TemplateError as e:
        why = str(e).splitlines()[0]
    if not tools and "undefined" in why:  # some ask how many tools there are before they ask whether there are any
        context["tools"] = []
        try:
            return engine.render_str(template, None, **context)
        except minijinja.TemplateError:
            pass
    raise TemplateError(f"the chat template cannot be rendered: {why}")


def _generation(tag: re.Match[str]) -> str:
    """The tags that mark what an assistant wrote, which are none of Jinja's own, as a condition that holds."""
    return tag[1] + (" endif " if tag[2] else " if true ") + tag[3]


def _functions(template: str, tools: Sequence[Mapping[str, Any]] | None, now: datetime | None) -> dict[str, Any]:
    """What templates from before `tools` was the custom are given: functions and datetime, as text."""
    if re.search(r"\btools\b", template):
        return {}
    functions = [tool.get("function", tool) for tool in tools or ()]
    date = now.strftime(DATE_FORM).strip() if now else ""
    return {"functions": json.dumps(functions, indent=4, ensure_ascii=False, default=str), "datetime": date}


def _tojson(value: object, indent: int | None = None, ensure_ascii: bool = False, **more: Any) -> str:
    """JSON as chat templates mean it: nothing escaped for HTML."""
    known = {k: more[k] for k in ("sort_keys", "separators") if k in more}
    return json.dumps(value, indent=indent, ensure_ascii=ensure_ascii, default=str, **known)


@lru_cache(64)
def abilities(template: str) -> Abilities:
    """What the template can tell, found by rendering a small conversation in several ways."""
    user = {"role": "user", "content": "probe_question"}
    time = datetime(2024, 7, 26)

    def attempt(messages: list[dict[str, Any]], tools: list[Mapping[str, Any]] | None = None) -> str:
        try:
            return render_template(template, messages, tools, now=time)
        except TemplateError:
            return ""

    def conversation(arguments: object) -> list[dict[str, Any]]:
        function = {"name": CALL.name, "arguments": arguments}
        call = {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": CALL.id, "type": "function", "function": function}],
        }
        return [user, call, {"role": "tool", "tool_call_id": CALL.id, "name": CALL.name, "content": "probe_result"}]

    samples = [attempt(conversation(a), [TOOL]) for a in (CALL.arguments, json.dumps(CALL.arguments))]
    right = ["probe_value" in s and '\\"probe_value' not in s for s in samples]
    sample = samples[0] if right[0] else samples[1] if right[1] else ""
    system = attempt([{"role": "system", "content": "probe_system"}, user])
    return Abilities(
        tools=CALL.name in attempt([user], [TOOL]),
        calls=any(right),
        objects=right[0],
        results="probe_result" in sample,
        system="probe_system" in system,
        sample=sample,
    )


def speaks(template: str, d: Dialect) -> bool:
    """Does the template tell tools, calls and results, and its calls in the dialect?"""
    known = abilities(template)
    if not (known.tools and known.calls and known.results and all(w in known.sample for w in literals(d))):
        return False
    calls = parse(known.sample, replace(d, forms=()), (Tool(CALL.name),)).calls
    return any(call.name == CALL.name and call.arguments == CALL.arguments for call in calls)


def literals(d: Dialect) -> tuple[str, ...]:
    """The words by which a call of the dialect is known: its literals, or the keys of its object where it has none."""
    texts = [d.open, d.close, *(p for p in d.call if isinstance(p, str))]
    words = tuple(w for text in texts for w in text.split())
    return words or tuple(f'"{key}"' for p in d.call if isinstance(p, JsonCall) for key, _ in p.keys)


def tokens(template: str) -> tuple[str, ...]:
    """The control markers that a template writes, as far as they look like some: <|..|>."""
    return tuple(dict.fromkeys(TOKEN.findall(template)))
