"""Toolsets of the Messages API (computer, browser): one entry of `tools` stands for many tools that the client runs.

The model gets a function for each member, with the names of set and member (`browser_navigate`). A call goes to the
client in the API's format, with the member's name and `toolset_name`, and comes back like that in a conversation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...types import Schema
from ..field_schemas import cannot
from ..json_stream import Payload, record

Fields = Mapping[str, Schema]
Member = tuple[str, Fields, tuple[str, ...]]
"""The description of a member, its parameters, and the required ones."""

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 1}
SECONDS: Schema = {"type": "number", "minimum": 0}
DIRECTION: Schema = {"enum": ["up", "down", "left", "right"]}
PIXELS = "pixels from the top left"
REGION: Schema = {
    "type": "array", "items": {"type": "integer"}, "minItems": 4, "maxItems": 4,
    "description": f"[left, top, right, bottom] in {PIXELS}.",
}  # fmt: skip
PLACE: Schema = {
    "type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2, "description": f"[x, y] in {PIXELS}.",
}  # fmt: skip
MODIFIERS: Fields = {"text": {**TEXT, "description": "Keys to hold down meanwhile, such as ctrl+shift."}}
KEYS: Fields = {"text": {**TEXT, "description": "The key or keys, such as Return or ctrl+s."}}
WRITTEN: Fields = {"text": {**TEXT, "description": "The text to type."}}
CLICK: Fields = {"coordinate": PLACE, **MODIFIERS}
SCROLL: Fields = {"scroll_direction": DIRECTION, "scroll_amount": {**COUNT, "description": "Steps of the wheel."}}

COMPUTER: Mapping[str, Member] = {
    "screenshot": ("Takes a picture of the screen.", {}, ()),
    "left_click": ("Clicks, at the pointer where no coordinate is given.", CLICK, ()),
    "right_click": ("Clicks with the right button.", CLICK, ()),
    "middle_click": ("Clicks with the middle button.", CLICK, ()),
    "double_click": ("Clicks twice.", CLICK, ()),
    "triple_click": ("Clicks three times.", CLICK, ()),
    "left_click_drag": (
        "Drags from start_coordinate to coordinate.", {"start_coordinate": PLACE, **CLICK},
        ("start_coordinate", "coordinate"),
    ),
    "left_mouse_down": ("Presses the left button and holds it.", {}, ()),
    "left_mouse_up": ("Lets the left button go.", {}, ()),
    "mouse_move": ("Moves the pointer without a click.", {"coordinate": PLACE}, ("coordinate",)),
    "cursor_position": ("Tells where the pointer is.", {}, ()),
    "scroll": ("Scrolls.", {"coordinate": PLACE, **SCROLL, **MODIFIERS}, ("scroll_direction", "scroll_amount")),
    "type": ("Types a text.", WRITTEN, ("text",)),
    "key": ("Presses a key or several at once.", {**KEYS, "repeat": COUNT}, ("text",)),
    "hold_key": ("Holds keys down for some seconds.", {**KEYS, "duration": SECONDS}, ("text", "duration")),
    "wait": ("Waits for some seconds.", {"duration": SECONDS}, ("duration",)),
    "zoom": ("Takes an enlarged picture of a part of the screen.", {"region": REGION}, ("region",)),
}  # fmt: skip

POINT: Schema = {
    "type": "object",
    "properties": {"type": {"const": "coordinate"}, "x": {"type": "integer"}, "y": {"type": "integer"}},
    "required": ["type", "x", "y"],
    "description": f"A point of the page, in {PIXELS}.",
}
ELEMENT: Schema = {
    "type": "object",
    "properties": {"type": {"const": "ref"}, "ref": TEXT},
    "required": ["type", "ref"],
    "description": "An element, by the ref that read_page or find gave, such as ref_7.",
}
TAB: Fields = {"tab_id": {**TEXT, "description": "Another tab than the active one."}}
EITHER: Fields = {"target": {"anyOf": [POINT, ELEMENT]}, **TAB}
AT_POINT: Fields = {"target": POINT, **TAB}
AT_ELEMENT: Fields = {"target": ELEMENT, **TAB}
CLICKED: Fields = {**EITHER, "modifiers": {**TEXT, "description": "Keys to hold down meanwhile, such as ctrl+shift."}}

BROWSER: Mapping[str, Member] = {
    "navigate": ("Opens an address, or goes back, forward, reload.", {"url": TEXT, **TAB}, ("url",)),
    "read_page": (
        "Gives the elements of the page with a ref for each.",
        {"filter": {"enum": ["interactive", "all"]}, "depth": COUNT, "ref": TEXT, **TAB}, (),
    ),
    "get_page_text": ("Gives the text of the page.", TAB, ()),
    "find": ("Finds elements by a description in words.", {"query": TEXT, **TAB}, ("query",)),
    "screenshot": ("Takes a picture of the page.", TAB, ()),
    "zoom": ("Takes an enlarged picture of a part of the page.", {"region": REGION, **TAB}, ("region",)),
    "left_click": ("Clicks.", CLICKED, ("target",)),
    "right_click": ("Clicks with the right button.", CLICKED, ("target",)),
    "middle_click": ("Clicks with the middle button.", CLICKED, ("target",)),
    "double_click": ("Clicks twice.", CLICKED, ("target",)),
    "triple_click": ("Clicks three times.", CLICKED, ("target",)),
    "left_click_drag": ("Drags from one point to another.", {"from": POINT, **AT_POINT}, ("from", "target")),
    "left_mouse_down": ("Presses the left button and holds it.", AT_POINT, ("target",)),
    "left_mouse_up": ("Lets the left button go.", AT_POINT, ("target",)),
    "mouse_move": ("Moves the pointer without a click.", AT_POINT, ("target",)),
    "hover": ("Moves the pointer over something.", EITHER, ("target",)),
    "scroll": ("Scrolls at a point.", {**AT_POINT, **SCROLL}, ("target", "scroll_direction")),
    "scroll_to": ("Scrolls until an element is seen.", AT_ELEMENT, ("target",)),
    "type": ("Types a text where the page has the focus.", {**WRITTEN, **TAB}, ("text",)),
    "key": ("Presses keys.", {**KEYS, "repeat": COUNT, **TAB}, ("text",)),
    "hold_key": ("Holds keys down for some seconds.", {**KEYS, "duration": SECONDS, **TAB}, ("text", "duration")),
    "form_input": (
        "Sets the value of a field: true or false for a box, an option or a text for a list.",
        {"value": {"type": ["string", "number", "boolean"]}, **AT_ELEMENT}, ("target", "value"),
    ),
    "file_upload": (
        "Puts files into a field for files.",
        {"paths": {"type": "array", "items": TEXT}, "document_ids": {"type": "array", "items": TEXT}, **AT_ELEMENT},
        ("target",),
    ),
    "javascript_exec": (
        "Runs JavaScript in the page and gives the value of its last expression.", {"text": TEXT, **TAB}, ("text",)
    ),
    "read_console": ("Gives what the page wrote to the console.", TAB, ()),
    "read_network": ("Gives the requests that the page made.", TAB, ()),
    "list_tabs": ("Lists the open tabs.", {}, ()),
    "new_tab": ("Opens an empty tab.", {}, ()),
    "switch_tab": ("Makes a tab the active one.", {"tab_id": TEXT}, ("tab_id",)),
    "close_tab": ("Closes a tab.", {"tab_id": TEXT}, ("tab_id",)),
    "wait": ("Waits for some seconds.", {"duration": SECONDS, **TAB}, ("duration",)),
}  # fmt: skip

TOOLSETS: Mapping[str, tuple[str, Mapping[str, Member]]] = {
    "computer_toolset_20260801": ("computer", COMPUTER),
    "browser_toolset_20260801": ("browser", BROWSER),
}
"""The name and members of a set, by its type."""
MEMBER = "member"
"""The type of a member in `IncomingRequest.names`."""
BY_WISH = ("file_upload", "javascript_exec")
"""Members with effects outside the page: offered only if the client enables them by name."""


def members(tool: Payload, where: str) -> list[Payload] | None:
    """Return the functions of a toolset, each with its `member` and whether it is deferred; None if this is not a
    toolset. Raises Refused for an unknown member."""
    if (entry := TOOLSETS.get(str(tool.get("type")))) is None:
        return None
    toolset, known = entry
    configs = record(tool.get("configs"))
    if unknown := next((name for name in configs if name not in known), None):
        raise cannot(
            f"{where}.configs", f"{unknown[:100]!r} is not a member of this toolset; it has {', '.join(known)}"
        )
    rows: list[Payload] = []
    for name, (about, properties, required) in known.items():
        config = record(configs.get(name))
        if config.get("enabled", name not in BY_WISH) is False:
            continue
        parameters = {
            "type": "object",
            "properties": dict(properties),
            "required": list(required),
            "additionalProperties": False,
        }
        named = {"name": full_name(toolset, name), "member": {"name": name, "toolset_name": toolset}}
        rows.append(
            {**named, "description": about, "parameters": parameters, "defer_loading": config.get("defer_loading")}
        )
    return rows


def full_name(toolset: Any, name: str) -> str:
    """Return the model's name for a member; a tool outside of a set keeps its name."""
    return f"{toolset}_{name}" if isinstance(toolset, str) and toolset else name


def state_text(block: Payload) -> str:
    """Return a block with the state of a browser as text for a model."""
    lines = [f"Open tabs: {len(tabs)}" if (tabs := block.get("tabs")) else "No tab is open."]
    for tab in map(record, tabs or ()):
        active = " (active)" if tab.get("active") is True else ""
        lines.append(f"- {tab.get('tab_id')}{active}: {tab.get('title')} {tab.get('url')}".rstrip())
    for change in map(record, block.get("state_changes") or ()):
        fields = ", ".join(f"{key} {value}" for key, value in change.items() if key != "type" and value is not None)
        lines.append(f"{str(change.get('type')).replace('_', ' ')}: {fields}")
    return "\n".join(lines)
