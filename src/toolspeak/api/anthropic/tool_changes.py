"""Tools that come and go in the middle of a conversation of the Messages API.

A result may refer to deferred tools (`tool_reference`), and a system turn may add a tool, by its name or with its definition,
or remove one. A tool that came later is shown to the model where it came, so that the beginning of the prompt stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import Refused
from ...schema.validators import judge
from ...types import Schema
from ..field_schemas import FLAG
from ..json_stream import Payload, record

TOOL: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 256},
        "type": {"type": ["string", "null"]},
        "description": {"type": ["string", "null"]},
        "input_schema": {"type": ["object", "null"]},
        "strict": FLAG,
        "defer_loading": FLAG,
        "input_examples": {"type": ["array", "null"], "maxItems": 100, "items": {"type": "object"}},
        "eager_input_streaming": FLAG,
        "configs": {"type": ["object", "null"]},
    },
}
"""A tool as far as it is read here."""


class ToolChanges:
    """What a conversation changes of its tools. `places` has by the names of tools the place of the first message that makes
    them callable, `removed` holds the names of those that cannot be called any more."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}
        self.removed: set[str] = set()
        self._defined: dict[str, tuple[str, Payload]] = {}

    def refer(self, name: str, place: int) -> str:
        """Makes a tool callable; what the model is told."""
        self.places.setdefault(name, place)
        self.removed.discard(name)
        return f"The tool {name} can be called now."

    def add(self, block: Payload, where: str, place: int) -> str:
        """Adds the tool of a block `tool_addition`; what the model is told, "" for tools of a provider's server. Raises
        Refused for a definition that is none."""
        tool = record(block.get("tool"))
        if tool.get("type") != "tool_definition":
            return self.refer(name, place) if (name := _referred(tool)) else ""
        definition = tool.get("definition")
        if not judge(TOOL).is_valid(definition) or not (name := record(definition).get("name")):
            at = f"{where}.tool.definition"
            raise Refused(f"{at}: expected a tool, with a name and an input_schema", code="invalid_value", param=at)
        self._defined.setdefault(name, (f"{where}.tool.definition", {**record(definition), "defer_loading": True}))
        return self.refer(name, place)

    def remove(self, block: Payload) -> str:
        """Removes the tool of a block `tool_removal`; what the model is told, "" for tools of a provider's server."""
        if not (name := _referred(record(block.get("tool")))):
            return ""
        self.removed.add(name)
        return f"The tool {name} can no longer be called."

    def defined(self, tools: list[Payload]) -> Iterator[tuple[str, Payload]]:
        """The tools that are defined in the conversation and not among these, each with where it stands."""
        names = {tool.get("name") for tool in tools}
        return (row for name, row in self._defined.items() if name not in names)

    def left(self, rows: list[Payload]) -> list[Payload]:
        """Those of the tools that can be called at the end."""
        return [row for row in rows if row["name"] not in self.removed]


def _referred(tool: Payload) -> str:
    """The name of the tool that a reference means, "" for one of a provider's server."""
    name = tool.get("name")
    return name if tool.get("type") == "tool_reference" and isinstance(name, str) else ""
