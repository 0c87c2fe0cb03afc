"""A Python type as a tool, so that a value of it is got and checked like a call."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ..errors import InvalidTool
from ..schema.repair import repair
from ..schema.tidy import tidy
from ..types import Tool

T = TypeVar("T")


def extraction(kind: type[T]) -> tuple[Tool[..., Any], Callable[[Mapping[str, Any]], T]]:
    """The tool whose arguments describe a value of `kind`, and what makes that value of checked arguments."""
    from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter

    try:
        adapter: TypeAdapter[T] = TypeAdapter(kind)
        schema = tidy(adapter.json_schema())
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise InvalidTool(f"cannot extract a {kind!r}: {str(error).splitlines()[0]}") from error
    whole = schema.get("type") == "object" and "properties" in schema
    parameters = schema if whole else {"type": "object", "properties": {"value": schema}, "required": ["value"]}
    if not whole and "$defs" in schema:
        parameters["$defs"] = schema.pop("$defs")
    name = getattr(kind, "__name__", "value").lower()
    tool: Tool[..., Any] = Tool(f"record_{name}", "Record what the text says.", repair(parameters))

    def build(arguments: Mapping[str, Any]) -> T:
        value = arguments if whole else arguments["value"]
        return adapter.validate_json(json.dumps(value))

    return tool, build
