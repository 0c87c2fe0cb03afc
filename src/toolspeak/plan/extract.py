"""A Python type as a tool, so that a value of it is got and checked like a call."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from ..errors import InvalidCall, InvalidTool
from ..schema.adapter import adapter
from ..schema.repair import repair
from ..schema.tidy import tidy
from ..types import Note, Problem, Reply, Tool, ToolCall
from .calls import checked

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

    def built(arguments: Mapping[str, Any], _injected: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        return [build(arguments)], {}

    name = re.sub(r"\W+", "_", getattr(kind, "__name__", "value").lower()).strip("_")
    return Tool(f"record_{name}", "Record what the text says.", repair(parameters), build=built), build


def written_plainly(tool: Tool[..., Any]) -> Callable[[Reply], Reply]:
    """What reads a reply that is the wanted value as JSON, and nothing else, as the call that was to carry it.

    Many models answer so. Only what fits is taken, with a note `value-without-call`; all else stays as it is.
    """
    names = set(tool.parameters["properties"])

    def read(reply: Reply) -> Reply:
        fenced = re.fullmatch(r"```\w*\n(.*)```", reply.text.strip(), re.DOTALL)
        try:
            value: object = json.loads(fenced[1] if fenced else reply.text)
        except (ValueError, RecursionError):
            return reply
        found = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        arguments: dict[str, Any] = found if names & found.keys() else {"value": value}
        written = ToolCall("", tool.name, arguments, json.dumps(arguments), (Note("value-without-call", tool.name),))
        fits = not reply.calls and names & arguments.keys() and not checked(written, [tool])[1]
        return replace(reply, text="", calls=(written,)) if fits else reply

    return read


def _problem(error: Any) -> Problem:
    path = "".join(f"/{part}" for part in error["loc"])
    received = json.dumps(error["input"], ensure_ascii=False, default=str)[:80]
    return Problem(path, error["msg"], received, f"{path or 'the value'}: {error['msg']}, received {received}")
