"""Reads numbers and booleans as texts in the arguments that a server receives as text, such as those in a path or a query.

There `666` and `"666"` are the same bytes, so nothing is lost. A number becomes the text that the model wrote: `1.10`
stays `1.10`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ..types import Note, Tool
from .kinds import DEPTH, OF_VALUE, Shapes
from .nonblocking_json import dumps, loads_or
from .phrases import short
from .walk import escape


def texts_of_numbers(
    tool: Tool[..., Any], arguments: Mapping[str, Any], text: str
) -> tuple[Mapping[str, Any], tuple[Note, ...]]:
    """(the arguments, one note for each change). A number or a boolean is replaced by its text if the tool's schema
    allows only a text there. `text` is the JSON of the arguments."""
    if not tool.sent_as_text:
        return arguments, ()
    read = _NumberReader(Shapes(tool.parameters))
    literals = loads_or(text, {}, parse_float=str)
    values = {
        name: read.value(value, _part(literals, name), tool.parameters["properties"].get(name), f"/{escape(name)}")
        if name in tool.sent_as_text
        else value
        for name, value in arguments.items()
    }
    return values, tuple(read.notes)


class _NumberReader:
    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        self.notes: list[Note] = []

    def value(self, value: Any, literal: Any, schema: Any, path: str, depth: int = 0) -> Any:
        """The value with its numbers as texts. `literal` is the same value with its floats as they were written."""
        if depth > DEPTH:
            return value
        if isinstance(value, list):
            items = self.shapes.items(schema)
            return [
                self.value(part, _part(literal, at), items, f"{path}/{at}", depth + 1)
                for at, part in enumerate(cast("list[Any]", value))
            ]
        if isinstance(value, dict):
            return {
                name: self.value(
                    part, _part(literal, name), self.shapes.member(schema, name), f"{path}/{escape(name)}", depth + 1
                )
                for name, part in cast("dict[str, Any]", value).items()
            }
        kinds = self.shapes.kinds(schema)
        if not isinstance(value, (int, float)) or "string" not in kinds or kinds & _kinds_of(value):
            return value
        text = literal if isinstance(literal, str) else dumps(value, 0)
        self.notes.append(Note("coerced", f"{path}: {short(value)} was read as a text"))
        return text


def _kinds_of(value: float) -> frozenset[str]:
    return OF_VALUE[bool] if isinstance(value, bool) else OF_VALUE[int]


def _part(literal: Any, key: Any) -> Any:
    """The part of a JSON value that may not have it."""
    try:
        return literal[key]
    except (KeyError, IndexError, TypeError):
        return None
