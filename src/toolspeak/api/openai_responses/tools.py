"""Tools and tool choice of the Responses API, both directions.

The fields of a function are directly in its tool. A `custom` tool takes any text: the model gets a function with one
string parameter, `input`, and its calls are written as calls of a custom tool. A `namespace` contains tools; the model
sees their full names, and a call is written with both parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...errors import Refused
from ...types import Schema, Tool
from .. import custom_tools
from ..choice import WORDS, not_run, of_name, of_word
from ..field_schemas import FLAG, TEXT, cannot
from ..json_stream import Payload, record, records
from .client_tools import CLIENT_TOOLS, client_tool

Tools = Callable[[Any], tuple[Tool[..., Any], ...] | None]


FUNCTIONS = ("function", "custom")
"""The types of tools that the client runs and describes. Any other type that is not in CLIENT_TOOLS runs at its provider, and
is left out."""
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
TOOL: Schema = {
    "type": "object",
    "required": ["type"],
    "properties": {
        "type": TEXT,
        "name": {"type": "string", "minLength": 1, "maxLength": 256},
        "description": TEXT_OR_NULL,
        "parameters": {"type": ["object", "null"]},
        "strict": FLAG,
        "defer_loading": FLAG,
        "execution": TEXT_OR_NULL,
        "format": {"type": ["object", "null"]},
    },
}
TOOLS: Schema = {
    "type": "array",
    "maxItems": 10_000,
    "items": {
        **TOOL,
        "properties": {
            **TOOL["properties"],
            "tools": {"type": "array", "maxItems": 10_000, "items": TOOL},
        },
    },
}
"""The schema of tools, with the fields that are read. A namespace contains tools."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Tools in the conversation: `where` they are, and the index of the message that they came with."""

    where: str
    place: int
    tools: list[Payload]


@dataclass(frozen=True, slots=True)
class Offer:
    """What a request offers.

    - `tools`: the tools that the model can call.
    - `ignored`: the fields that have no effect.
    - `hosted`: the tools that a provider would run, each by its type and its place in the request.
    - `names`: for each tool, its type and the name (and namespace) under which its calls are reported.
    - `deferred`: the tools that are hidden until a message refers to them, each with that message's index, or None.
    - `search`: whether the gateway searches the hidden tools. If the client offers a search of its own, it does not.
    """

    tools: tuple[Tool[..., Any], ...]
    ignored: tuple[str, ...]
    hosted: tuple[tuple[str, str], ...]
    names: Mapping[str, tuple[str, Payload]]
    deferred: Mapping[str, int | None]
    search: bool


def read_tools(value: Any, tools: Tools, loaded: Sequence[Loaded] = ()) -> Offer:
    """Return the tools of a body, and those that its conversation loaded. Raises Refused for an unsupported type."""
    reading = _ToolCollector()
    for row in _each(value):
        reading.offer(*row)
    search = "tool_search" not in reading.names
    for one in loaded:
        for row in _each(one.tools, one.where):
            reading.load(*row, one.place)
    ignored = (*reading.ignored, *(where for _, where in reading.hosted))
    return Offer(tools(reading.rows) or (), ignored, tuple(reading.hosted), reading.names, reading.deferred, search)


class _ToolCollector:
    """Collects the tools while they are read; see `Offer`."""

    def __init__(self) -> None:
        self.rows: list[Payload] = []
        self.names: dict[str, tuple[str, Payload]] = {}
        self.deferred: dict[str, int | None] = {}
        self.ignored: list[str] = []
        self.hosted: list[tuple[str, str]] = []

    def offer(self, where: str, namespace: str, tool: Payload) -> None:
        """Add a tool of the body."""
        if row := _row(where, namespace, tool):
            self._add(row, namespace, tool)
            if tool.get("defer_loading") is True:
                self.deferred[row["name"]] = None
            if not custom_tools.is_enforced(tool):
                self.ignored.append(f"{where}.format")
        elif tool["type"] == "namespace":
            self.ignored.append(f"{where}.description")
        elif tool["type"] != "tool_search":  # the gateway searches unless the client does
            self.hosted.append((tool["type"], f"{where}.{tool['type']}"))

    def load(self, where: str, namespace: str, tool: Payload, place: int) -> None:
        """Add a tool of the conversation, or refer to one of the body, at the index of a message."""
        if (row := _row(where, namespace, tool)) is None:
            return
        if row["name"] not in self.names:
            self._add(row, namespace, tool)
            self.deferred[row["name"]] = place
        elif self.deferred.get(row["name"], place) is None:
            self.deferred[row["name"]] = place

    def _add(self, row: Payload, namespace: str, tool: Payload) -> None:
        named = {} if tool["type"] in CLIENT_TOOLS else {"name": tool["name"]}
        self.rows.append(row)
        self.names[row["name"]] = (tool["type"], {**named, **({"namespace": namespace} if namespace else {})})


def _row(where: str, namespace: str, tool: Payload) -> Payload | None:
    """Return the function for a tool; None for one that is not offered. Raises Refused for one of an unknown type with
    parameters, because the client should run it."""
    kind = tool["type"]
    if not namespace:
        if kind in CLIENT_TOOLS:
            return client.row(tool) if (client := client_tool(tool)) else None
        if kind not in FUNCTIONS and tool.get("parameters") is None:
            return None
    if kind not in FUNCTIONS:
        raise cannot(f"{where}.type", f"tools of the type {kind[:100]!r} are not supported; offer a function")
    if not isinstance(tool.get("name"), str):
        hint = ", beside its type and not within `function`" if "function" in tool else ""
        raise Refused(f"{where}.name: a tool needs a name{hint}", code="invalid_value", param=f"{where}.name")
    row = custom_tools.function(tool) if kind == "custom" else _function(tool)
    return {**row, "name": full_name(namespace, tool["name"])}


def _each(value: Any, top: str = "tools") -> Iterator[tuple[str, str, Payload]]:
    """Yield every tool with its place and namespace; a namespace itself comes before its tools."""
    for at, tool in enumerate(records(value)):
        yield f"{top}.{at}", "", tool
        if tool.get("type") == "namespace":
            for inside, inner in enumerate(records(tool.get("tools"))):
                yield f"{top}.{at}.tools.{inside}", str(tool.get("name") or ""), inner


def tool_names(value: Any) -> list[str]:
    """Return the full names of tools."""
    rows = ((namespace, tool.get("name")) for _, namespace, tool in _each(value) if tool.get("type") != "namespace")
    return [full_name(namespace, name) for namespace, name in rows if isinstance(name, str)]


def full_name(namespace: Any, name: str) -> str:
    """Return the model's name for a tool in a namespace. `functions` is the namespace of tools that have none."""
    if not isinstance(namespace, str) or namespace in ("", "functions"):
        return name
    return f"{namespace}{name}" if namespace.endswith("__") else f"{namespace}__{name}"


def _function(tool: Payload) -> Payload:
    return {key: tool[key] for key in ("name", "description", "parameters", "strict") if tool.get(key) is not None}


def allowed(choice: Any, offer: Offer) -> tuple[Any, Offer]:
    """Return the offer without tools that a list of allowed ones leaves out, and the choice among the rest; any other
    choice leaves all. Raises Refused for a tool that is not offered."""
    choice_object = record(choice)
    if choice_object.get("type") != "allowed_tools":
        return choice, offer
    rows = [*enumerate(records(choice_object.get("tools")))]
    clients = {*FUNCTIONS, *CLIENT_TOOLS} - dict(offer.hosted).keys()
    hosted = {str(row.get("type")) for _, row in rows} - clients
    names = {
        _named(row, f"tool_choice.tools.{at}", offer.tools) for at, row in rows if str(row.get("type")) not in hosted
    }
    tools = tuple(tool for tool in offer.tools if tool.name in names)
    left = tuple((kind, where) for kind, where in offer.hosted if kind in hosted)
    return choice_object.get("mode") or "auto", replace(offer, tools=tools, hosted=left)


def demanded_type(choice: Any, offer: Offer) -> str:
    """Return the type of the provider's tool that a choice demands: "required" for any of them, "" for none."""
    if choice == "required":
        return "" if offer.tools else "required" * bool(offer.hosted)
    kind = str(record(choice).get("type"))
    return kind if kind in dict(offer.hosted).keys() - CLIENT_TOOLS.keys() else ""


def read_choice(value: Any, offered: tuple[Tool[..., Any], ...]) -> tuple[str, tuple[Tool[..., Any], ...]]:
    """Return the choice, and the tools that it leaves. Raises Refused for a tool that is not offered."""
    if not isinstance(value, dict):
        return of_word(value or "auto", offered, "tool_choice")
    choice = record(value)
    kind = choice.get("type")
    if kind in ("function", "custom", *CLIENT_TOOLS):
        return of_name(_named(choice, "tool_choice", offered), offered, "tool_choice")
    raise not_run(str(kind))


def _named(row: Mapping[str, Any], where: str, offered: tuple[Tool[..., Any], ...]) -> str:
    client = CLIENT_TOOLS.get(str(row.get("type")))
    name = client.name if client else full_name(row.get("namespace"), str(row.get("name")))
    names = [tool.name for tool in offered]
    if name not in names:
        known = ", ".join(names[:20]) or "none"
        message = f"{where}.name: {name[:100]!r} is not among the tools ({known})"
        raise Refused(message, code="invalid_value", param=f"{where}.name")
    return name


def write_tool(tool: Tool[..., Any]) -> Payload:
    """Return a tool in the format of `tools`."""
    description = {"description": tool.description} if tool.description else {}
    # The default of `strict` is true, with which the API rejects schemas that it cannot enforce.
    return {
        "type": "function",
        "name": tool.name,
        **description,
        "parameters": dict(tool.parameters),
        "strict": tool.strict,
    }


def write_choice(choice: str) -> Any:
    """Return `tool_choice`: auto, none and required as they are; anything else is the name of a tool."""
    return choice if choice in WORDS else {"type": "function", "name": choice}
