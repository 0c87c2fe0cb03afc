"""Tools, tool choice and calls of a chat completion, both directions.

Clients offer functions, custom tools (one text in) and, from before there were tools, `functions`. All of them become
Tools. The kind of each is remembered, so that its calls are written in the format that the client expects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from ...errors import InvalidTool, Refused
from ...schema.suggestions import did_you_mean, near
from ...types import Schema, Tool
from .. import custom_tools
from ..choice import WORDS, of_name, of_word
from ..field_schemas import FLAG, TEXT, cannot
from ..json_stream import Payload, record, records

Tools = Callable[[Any], tuple[Tool[..., Any], ...] | None]

NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 256}
FUNCTION: Schema = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": NAME,
        "description": {"type": ["string", "null"], "maxLength": 262_144},
        "parameters": {"type": ["object", "null"]},
        "strict": FLAG,
    },
}
CUSTOM: Schema = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": NAME,
        "description": {"type": ["string", "null"], "maxLength": 262_144},
        "format": {"type": ["object", "null"], "required": ["type"], "properties": {"type": TEXT}},
    },
}
TOOL: Schema = {
    "type": "object",
    "required": ["type"],
    "properties": {"type": {"type": "string", "maxLength": 64}, "function": FUNCTION, "custom": CUSTOM},
}
NAMED: Schema = {"type": "object", "required": ["name"], "properties": {"name": NAME}}
ALLOWED: Schema = {
    "type": "object",
    "required": ["mode", "tools"],
    "properties": {
        "mode": {"enum": ["auto", "required"]},
        "tools": {"type": "array", "maxItems": 10_000, "items": TOOL},
    },
}
TOOL_FIELDS: Mapping[str, Schema] = {
    "tools": {"type": ["array", "null"], "maxItems": 10_000, "items": TOOL},
    "tool_choice": {"anyOf": [
        {"enum": ["auto", "none", "required", None]},
        {"type": "object", "required": ["type", "function"], "properties": {"type": {"const": "function"}, "function": NAMED}},
        {"type": "object", "required": ["type", "custom"], "properties": {"type": {"const": "custom"}, "custom": NAMED}},
        {"type": "object", "required": ["type", "allowed_tools"], "properties": {
            "type": {"const": "allowed_tools"}, "allowed_tools": ALLOWED}}]},
    "functions": {"type": ["array", "null"], "maxItems": 10_000, "items": FUNCTION},
    "function_call": {"anyOf": [{"enum": ["auto", "none", None]}, NAMED]},
    "parallel_tool_calls": FLAG,
}  # fmt: skip
"""The fields of a body that are about tools."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools that may be called, the choice among them, and how their calls are written: as custom ones for the
    names in `custom`, as `function_call` if `legacy`."""

    tools: tuple[Tool[..., Any], ...]
    choice: str
    custom: frozenset[str] = frozenset()
    legacy: bool = False


def write_tool(tool: Tool[..., Any]) -> Payload:
    """Return a tool in the format of `tools`: `{"type": "function", "function": {...}}`."""
    function: Payload = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    if not tool.description:
        del function["description"]
    if tool.strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def write_choice(choice: str) -> Any:
    """Return `tool_choice`: auto, none and required as they are; anything else is the name of a tool."""
    return choice if choice in WORDS else {"type": "function", "function": {"name": choice}}


def read_offer(fields: Mapping[str, Any], tools: Tools) -> Offer:
    """Return the tools and choice of a body. Raises Refused for a tool or choice that is not possible."""
    rows, legacy = records(fields.get("tools")), records(fields.get("functions"))
    if rows and legacy:
        raise Refused("functions: give tools or functions, not both", param="functions")
    if legacy:
        return _legacy_offer(_offered(legacy, tools, "functions"), fields.get("function_call"))
    offered = _offered([_described(at, row) for at, row in enumerate(rows)], tools, "tools")
    custom = frozenset(str(row["custom"]["name"]) for row in rows if row["type"] == "custom")
    choice = fields.get("tool_choice")
    if not isinstance(choice, dict):
        return _chosen(offered, choice, custom, "tool_choice")
    table = cast("Payload", choice)
    value = record(table[table["type"]])
    if table["type"] == "allowed_tools":
        return _chosen(*_allowed(offered, value), custom, "tool_choice")
    return _chosen(offered, str(value["name"]), custom, "tool_choice", named=True)


def _offered(functions: list[Payload], tools: Tools, param: str) -> tuple[Tool[..., Any], ...]:
    try:
        return (tools(functions) if functions else None) or ()
    except InvalidTool as error:
        raise Refused(str(error), code="invalid_tool", param=param) from None


def _legacy_offer(offered: tuple[Tool[..., Any], ...], choice: Any) -> Offer:
    """Return the offer of `functions` and `function_call`, the fields from before there were tools."""
    named = isinstance(choice, dict)
    name: str | None = str(cast("Payload", choice)["name"]) if named else choice
    return _chosen(offered, name, frozenset(), "function_call", True, named=named)


def _described(at: int, tool: Payload) -> Payload:
    """Return an entry of `tools` as a function."""
    match tool["type"]:
        case "function" if "function" in tool:
            return tool["function"]
        case "custom" if "custom" in tool:
            return custom_tools.function(tool["custom"])
        case "function" | "custom" as kind:
            raise Refused(f"tools.{at}.{kind}: expected an object, it is missing", param=f"tools.{at}.{kind}")
        case kind:
            raise cannot(f"tools.{at}", f"only functions and custom tools are supported, not {kind!r}")


def _allowed(offered: tuple[Tool[..., Any], ...], allowed: Payload) -> tuple[tuple[Tool[..., Any], ...], str]:
    """Return the tools that are in a list of allowed ones, and the choice among them."""
    names = {str(record(row.get("function") or row.get("custom")).get("name", "")) for row in records(allowed["tools"])}
    if unknown := names - {tool.name for tool in offered}:
        name = min(unknown)[:100]
        meant = did_you_mean(near(name, [tool.name for tool in offered]))
        message = f"tool_choice: {name!r} is allowed and is not among the tools.{meant}"
        raise Refused(message, code="invalid_value", param="tool_choice.allowed_tools")
    return tuple(tool for tool in offered if tool.name in names), str(allowed["mode"])


def _chosen(
    offered: tuple[Tool[..., Any], ...],
    choice: str | None,
    custom: frozenset[str],
    param: str,
    legacy: bool = False,
    *,
    named: bool = False,
) -> Offer:
    choice = choice or "auto"
    read = of_word if choice in WORDS and not named else of_name
    choice, left = read(choice, offered, param)
    return Offer(left, choice, custom, legacy)


def write_call(key: str, name: str, arguments: str, custom: frozenset[str]) -> Payload:
    """Return a whole call for a message; `key` is its id."""
    if name in custom:
        return {"id": key, "type": "custom", "custom": {"name": name, "input": custom_tools.custom_input(arguments)}}
    return {"id": key, "type": "function", "function": {"name": name, "arguments": arguments}}
