"""The names of many tools, much alike: every deed done to every thing."""

from __future__ import annotations

from typing import Any

DEEDS = ["get", "set", "list", "create", "delete", "update", "find", "send", "book", "cancel"]
THINGS = [
    "weather",
    "flight",
    "hotel",
    "train",
    "taxi",
    "email",
    "invoice",
    "calendar",
    "note",
    "photo",
    "song",
    "recipe",
    "map",
    "stock",
    "loan",
    "tax",
]
NAMES = [f"{deed}_{thing}" for thing in THINGS for deed in DEEDS]


def definition(name: str) -> dict[str, Any]:
    """A small tool of one of these names."""
    deed, thing = name.split("_")
    schema = {"type": "object", "properties": {"which": {"type": "string"}}, "required": ["which"]}
    return {"name": name, "description": f"To {deed} one {thing} of the user.", "parameters": schema}
