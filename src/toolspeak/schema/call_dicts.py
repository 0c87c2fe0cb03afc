"""Reads a call from a dict: in toolspeak's form, a provider's, or that of one of the older packages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn, cast

from ..errors import InvalidCall
from ..types import Problem, ToolCall
from . import nonblocking_json
from .phrases import short

NAMES = ("name", "functionName", "function_name", "tool", "tool_name")
ARGUMENTS = ("arguments", "args", "tool_input", "input", "parameters")


def looks_like_call(x: Any) -> bool:
    """Whether `x` is a dict that names a tool, in one of the formats that `read_call` reads."""
    if not isinstance(x, Mapping):
        return False
    outer = cast("Mapping[str, Any]", x)
    inner = outer.get("function")
    if isinstance(inner, Mapping):
        outer = cast("Mapping[str, Any]", inner)
    return any(isinstance(outer.get(key), str) and outer[key] for key in NAMES)


def read_call(x: Any) -> ToolCall:
    """Converts `x` to a ToolCall. It is a ToolCall, or a dict with a name and arguments (a dict, or JSON text).

    Formats: OpenAI's `{"id", "function": {"name", "arguments"}}`, Anthropic's `{"id", "name", "input"}`,
    `{"functionName", "args"}`, `{"tool", "tool_input"}`, `{"type": "tool-call", "tool", "args"}`. Missing or null
    arguments mean no arguments. Raises InvalidCall for anything else; nothing is guessed.
    """
    if isinstance(x, ToolCall):
        return x
    if not isinstance(x, Mapping):
        _refuse("", "a call", x, f"a call is an object with a name and arguments; got {short(x)}")
    outer = cast("Mapping[str, Any]", x)
    inner = outer.get("function")
    call = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else outer
    name = _only_name(call, outer)
    raw = _only_arguments(call, outer)
    call_id = outer.get("id")
    text = raw if isinstance(raw, str) else _dumped(raw)
    return ToolCall(call_id if isinstance(call_id, str) else "", name, _arguments(raw, name), text)


def _only_name(call: Mapping[str, Any], outer: Mapping[str, Any]) -> str:
    names = {str(call[key]) for key in NAMES if isinstance(call.get(key), str) and call[key]}
    if len(names) != 1:
        what = "it has none" if not names else f"it has {len(names)}: {short(sorted(names))}"
        _refuse("", "one name", outer, f"a call needs exactly one tool name; {what}, in {short(outer, 200)}")
    return names.pop()


def _only_arguments(call: Mapping[str, Any], outer: Mapping[str, Any]) -> Any:
    keys = [key for key in ARGUMENTS if call.get(key) is not None]
    if len(keys) > 1:
        _refuse("", "arguments once", outer, f"a call gives its arguments once; here are {' and '.join(keys)}")
    return call[keys[0]] if keys else {}


def _arguments(raw: Any, name: str) -> dict[str, Any]:
    arguments: Any = raw
    if isinstance(raw, str):
        try:
            arguments = nonblocking_json.loads(raw) if raw.strip() else {}
        except (ValueError, RecursionError) as error:
            _refuse("", "JSON", raw, f"the arguments of {short(name)} are not JSON ({error}): {short(raw, 200)}")
    if not isinstance(arguments, dict):
        _refuse("", "object", arguments, f"the arguments of {short(name)} must be an object; got {short(arguments)}")
    return cast("dict[str, Any]", arguments)


def _dumped(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return ""


def _refuse(path: str, expected: str, value: Any, message: str) -> NoReturn:
    raise InvalidCall(message, problems=[Problem(path, expected, short(value), message)])
