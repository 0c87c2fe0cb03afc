"""Tools of the Messages API that the client runs, and whose parameters are defined by their type.

A client offers such a tool by its type and name only. The model gets a function with these parameters, and its call
goes to the client like that of any other tool.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...types import Schema
from ..json_stream import Payload

TEXT: Schema = {"type": "string"}
LINE: Schema = {"type": "integer", "minimum": 0}
LINES: Schema = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
PLACE: Schema = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}

EDITED: Mapping[str, Schema] = {
    "file_text": {**TEXT, "description": "create: the whole text of the file."},
    "old_str": {**TEXT, "description": "str_replace: the text to replace, which the file must have exactly once."},
    "new_str": {**TEXT, "description": "str_replace: the text to put there."},
    "insert_line": {**LINE, "description": "insert: the line behind which the text goes; 0 is the beginning."},
    "insert_text": {**TEXT, "description": "insert: the text."},
    "view_range": {**LINES, "description": "view: the first and the last line to show; -1 is the end."},
}
"""The commands of the file editor."""

FIRST_ACTIONS = (
    "screenshot", "left_click", "right_click", "middle_click", "double_click", "left_click_drag", "mouse_move", "type",
    "key", "cursor_position",
)  # fmt: skip
LATER_ACTIONS = ("left_mouse_down", "left_mouse_up", "triple_click", "scroll", "hold_key", "wait")
"""The actions of the computer tool since 2025."""


def _commands(commands: tuple[str, ...], required: tuple[str, ...], properties: Mapping[str, Schema]) -> dict[str, Any]:
    """Return the parameters of a tool with several commands, where one parameter names the command."""
    word = {"type": "string", "enum": list(commands)}
    return {
        "type": "object",
        "properties": {"command": word, **properties},
        "required": ["command", *required],
        "additionalProperties": False,
    }


def _bash(_: Payload) -> Payload:
    properties: dict[str, Schema] = {
        "command": {**TEXT, "description": "The command to run."},
        "restart": {"type": "boolean", "description": "Starts the shell anew instead; the command is then empty."},
    }
    parameters = {"type": "object", "properties": properties, "required": ["command"], "additionalProperties": False}
    description = "Runs commands in a bash shell that stays open between calls, and gives what they print."
    return {"description": description, "parameters": parameters}


def _editor(tool: Payload) -> Payload:
    commands = ("view", "create", "str_replace", "insert")
    if str(tool.get("type")).startswith(("text_editor_20241022", "text_editor_20250124")):
        commands = (*commands, "undo_edit")
    description = (
        "Shows and edits files. view: a file with the numbers of its lines, or the names in a folder. create: a new file. "
        "str_replace: puts one text in the place of another. insert: puts a text behind a line."
    )
    return {"description": description, "parameters": _commands(commands, ("path",), {"path": TEXT, **EDITED})}


def _memory(_: Payload) -> Payload:
    commands = ("view", "create", "str_replace", "insert", "delete", "rename")
    description = (
        "Keeps notes in files below /memories, over many conversations. Look there (view /memories) before a task begins, "
        "and write down what is worth knowing later. rename takes old_path and new_path, every other command path."
    )
    properties = {"path": TEXT, **EDITED, "old_path": TEXT, "new_path": TEXT}
    return {"description": description, "parameters": _commands(commands, (), properties)}


def _computer(tool: Payload) -> Payload:
    actions = FIRST_ACTIONS if tool["type"] == "computer_20241022" else (*FIRST_ACTIONS, *LATER_ACTIONS)
    if tool.get("enable_zoom") is True:
        actions = (*actions, "zoom")
    wide, high = tool.get("display_width_px"), tool.get("display_height_px")
    screen = f" The screen is {wide} pixels wide and {high} high." if wide and high else ""
    properties: dict[str, Schema] = {
        "action": {"type": "string", "enum": list(actions)},
        "coordinate": {**PLACE, "description": "Where: [x, y] in pixels from the top left."},
        "start_coordinate": {**PLACE, "description": "left_click_drag: where it begins."},
        "text": {**TEXT, "description": "type: the text. key, hold_key: the key, such as Return or ctrl+s."},
        "scroll_direction": {"enum": ["up", "down", "left", "right"]},
        "scroll_amount": LINE,
        "duration": {"type": "number", "minimum": 0, "description": "wait, hold_key: how many seconds."},
    }
    if "zoom" in actions:
        region = {"type": "array", "items": {"type": "integer"}, "minItems": 4, "maxItems": 4}
        properties["region"] = {**region, "description": "zoom: [left, top, right, bottom]."}
    parameters = {"type": "object", "properties": properties, "required": ["action"], "additionalProperties": False}
    return {"description": f"Uses a computer by its screen, mouse and keyboard.{screen}", "parameters": parameters}


CLIENT_TOOLS: Mapping[str, Callable[[Payload], Payload]] = {
    "bash_": _bash,
    "text_editor_": _editor,
    "memory_": _memory,
    "computer_": _computer,
}
"""The function for each tool, by the type without its date."""


def client_tool(tool: Payload) -> Payload | None:
    """Return the description and parameters of a tool that the client runs; None for any other tool."""
    head, _, date = str(tool.get("type")).rpartition("_")
    maker = CLIENT_TOOLS.get(f"{head}_") if date.isdigit() else None
    return maker(tool) if maker else None
