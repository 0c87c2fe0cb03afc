"""Tools of the Responses API that the client runs, and whose calls have an item type of their own.

A client offers such a tool by its type only and knows its parameters from the API. The model gets a function with these
parameters. Its call goes to the client as an item of the tool's type, and the item with the output is read as the
result of the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...schema.nonblocking_json import dumps, loads_or
from ...types import Schema
from ..field_schemas import set_fields
from ..json_stream import Payload, record, records

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
PLACE: Schema = {"type": "integer"}
TEXTS: Schema = {"type": "array", "items": TEXT}


def _fields(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> dict[str, Any]:
    properties = {**required, **(optional or {})}
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _action(kind: str, **required: Schema) -> Schema:
    return _fields({"type": {"type": "string", "enum": [kind]}, **required})


POINT: Mapping[str, Schema] = {"x": PLACE, "y": PLACE}
ACTION: Schema = {
    "anyOf": [
        _action("screenshot"),
        _action("click", button={"enum": ["left", "right", "wheel", "back", "forward"]}, **POINT),
        _action("double_click", **POINT),
        _action("move", **POINT),
        _action("drag", path={"type": "array", "items": _fields(POINT)}),
        _action("scroll", **POINT, scroll_x=PLACE, scroll_y=PLACE),
        _action("type", text=TEXT),
        _action("keypress", keys=TEXTS),
        _action("wait"),
    ]
}
"""One action on a screen."""


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A tool that clients run: the name of its function, and how an item of its calls differs from the arguments.

    The arguments are in the item's field `within`, besides the fields in `fixed`; without `within` they are fields of
    the item. `beside` are further fields of each call, and `output` is the type of the item with the result.
    """

    name: str
    item: str
    prefix: str
    description: str
    parameters: Schema
    within: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    beside: Mapping[str, Any] = field(default_factory=dict[str, Any])
    output: str = ""

    def row(self, tool: Payload) -> Payload:
        """Return the function for a tool of this type."""
        row: Payload = {"name": self.name, "description": self.description, "parameters": self.parameters}
        if "display_width" in tool:
            row["description"] += f" The screen is {tool['display_width']} × {tool.get('display_height')} pixels."
        return row | set_fields(tool, "description", "parameters")

    def fields(self, arguments: str) -> Payload:
        """Return the fields of a call's item. A call that broke off has no arguments."""
        values = record(loads_or(arguments, None))
        if not self.within:
            return {**self.beside, **values}
        return {**self.beside, self.within: {**self.fixed, **values}}

    def arguments(self, item: Payload) -> str:
        """Return the arguments of the call in an item."""
        names: Mapping[str, Any] = self.parameters["properties"]
        source = record(item.get(self.within)) if self.within else {name: item.get(name) for name in names}
        values = {name: value for name, value in source.items() if value not in (None, self.fixed.get(name))}
        return dumps(values)


CLIENT_TOOLS: Mapping[str, ClientTool] = {
    "local_shell": ClientTool(
        "local_shell",
        "local_shell_call",
        "lsh",
        "Runs a command on the user's computer and gives what it prints. The command is a list: the program, then each "
        'of its arguments. For pipes and the like use ["bash", "-lc", "..."].',
        _fields(
            {"command": {**TEXTS, "minItems": 1}},
            {
                "working_directory": TEXT,
                "timeout_ms": COUNT,
                "env": {"type": "object", "additionalProperties": TEXT},
                "user": TEXT,
            },
        ),
        within="action",
        fixed={"type": "exec", "env": {}},
    ),
    "shell": ClientTool(
        "shell",
        "shell_call",
        "sh",
        "Runs shell commands on the user's computer, each by itself, and gives what they print and their exit codes.",
        _fields({"commands": {**TEXTS, "minItems": 1}}, {"timeout_ms": COUNT, "max_output_length": COUNT}),
        within="action",
    ),
    "apply_patch": ClientTool(
        "apply_patch",
        "apply_patch_call",
        "apc",
        "Creates, changes or deletes one file. The diff of a new file is its lines, each with + in front. The diff of a "
        "change has, for each place, a line that begins with @@, then the lines there: unchanged ones with a space in "
        "front, those to remove with -, those to add with +. To delete a file give an empty diff.",
        _fields({"type": {"enum": ["create_file", "update_file", "delete_file"]}, "path": TEXT, "diff": TEXT}),
        within="operation",
    ),
    "computer": ClientTool(
        "computer",
        "computer_call",
        "cu",
        "Does things on a screen, one after another, and gives a picture of it.",
        _fields({"actions": {"type": "array", "items": ACTION, "minItems": 1}}),
        beside={"pending_safety_checks": []},
    ),
    "computer_use_preview": ClientTool(
        "computer",
        "computer_call",
        "cu",
        "Does something on a screen, and gives a picture of it.",
        _fields({"action": ACTION}),
        beside={"pending_safety_checks": []},
    ),
    "tool_search": ClientTool(
        "tool_search",
        "tool_search_call",
        "tsc",
        "Finds tools that are not shown here. Call it when no tool that is shown does what is needed.",
        _fields({"query": {**TEXT, "description": "What the tool must do, in a few plain words."}}),
        within="arguments",
        beside={"execution": "client"},
        output="tool_search_output",
    ),
}
"""The tools by the type that a client offers."""

CALLED: Mapping[str, ClientTool] = {tool.item: tool for tool in reversed(CLIENT_TOOLS.values())}
"""The tools by the type of a call's item."""
ANSWERED: Mapping[str, ClientTool] = {tool.output or f"{item}_output": tool for item, tool in CALLED.items()}
"""The tools by the type of an output's item."""


def client_tool(tool: Payload) -> ClientTool | None:
    """Return the tool if the client runs it. A shell may also run in a container of the provider, and a search may be
    the provider's."""
    match tool.get("type"):
        case "shell" if record(tool.get("environment")).get("type", "local") != "local":
            return None
        case "tool_search" if tool.get("execution") != "client":
            return None
        case kind:
            return CLIENT_TOOLS.get(str(kind))


def called_arguments(item: Payload) -> tuple[str, str]:
    """Return the tool's name and the arguments in a call's item. A computer call has one action or several."""
    tool = CALLED[item["type"]]
    if tool.name == "computer" and item.get("actions") is None:
        tool = CLIENT_TOOLS["computer_use_preview"]
    return tool.name, tool.arguments(item)


def answered(item: Payload) -> Any:
    """Return the content of a message for the output in an item; None for other items."""
    output = item.get("output")
    if isinstance(output, list):
        return "\n".join(_ran(row) for row in records(output)) or "(nothing)"
    if isinstance(output, dict):
        url = record(output).get("image_url")
        return [{"type": "image_url", "image_url": {"url": url}}] if isinstance(url, str) else None
    if status := item.get("status") if item["type"] == "apply_patch_call_output" else None:
        return f"{status}\n{output}" if output else str(status)
    return output if isinstance(output, str) else None


def _ran(row: Payload) -> str:
    """Return the outcome of one command as text."""
    outcome = record(row.get("outcome"))
    end = "It took too long." if outcome.get("type") == "timeout" else f"Exit code: {outcome.get('exit_code')}"
    printed = [str(row.get(name) or "").rstrip("\n") for name in ("stdout", "stderr")]
    return "\n".join([*filter(None, printed), end])
