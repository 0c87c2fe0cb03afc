"""A Python type as a tool, so that a value of it is got and checked like a call."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ..errors import InvalidCall, InvalidTool
from ..schema.adapter import adapter
from ..schema.repair import repair
from ..schema.tidy import tidy
from ..types import Problem, Tool

T = TypeVar("T")


def extraction(kind: type[T]) -> tuple[Tool[..., Any], Callable[[Mapping[str, Any]], T]]:
    """The tool whose arguments describe a value of `kind`, and what makes that value of checked arguments."""
    from pydantic import PydanticSchemaGenerationError, PydanticUserError, ValidationError

    try:
        values = adapter(kind)
        schema = tidy(values.json_schema())
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise InvalidTool(f"cannot extract a {kind!r}: {str(error).splitlines()[0]}") from error
    whole = schema.get("type") == "object" and "properties" in schema
    parameters = schema if whole else {"type": "object", "properties": {"value": schema}, "required": ["value"]}
    if not whole and "$defs" in schema:
        parameters["$defs"] = schema.pop("$defs")

    def build(arguments: Mapping[str, Any]) -> T:
        try:
            return values.validate_json(json.dumps(arguments if whole else arguments["value"]))
        except ValidationError as error:  # what only the type itself can judge: a validator of the user's own
            raise InvalidCall(f"no {name}: {error}", problems=[_problem(one) for one in error.errors()]) from error

    def checked(arguments: Mapping[str, Any], _injected: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        return [build(arguments)], {}

    name = re.sub(r"\W+", "_", getattr(kind, "__name__", "value").lower()).strip("_")
    return Tool(f"record_{name}", "Record what the text says.", repair(parameters), build=checked), build


def _problem(error: Any) -> Problem:
    path = "".join(f"/{part}" for part in error["loc"])
    received = json.dumps(error["input"], ensure_ascii=False, default=str)[:80]
    return Problem(path, error["msg"], received, f"{path or 'the value'}: {error['msg']}, received {received}")
