"""Writes calls and tools in a dialect."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from ...types import Tool, ToolCall
from ..dialect import (
    ARGS,
    DEFAULT_SERVER,
    ID,
    INDEX,
    NAME,
    SERVER,
    TEXT,
    TOOLS,
    Dialect,
    Header,
    JsonCall,
    Maybe,
    NumberedName,
    Part,
    Slot,
    ToolJson,
    ToolReprs,
    ToolRows,
    ToolSignatures,
)
from ..holes import ARGUMENTS, json_call, numbered_name
from ..memo import Memo

TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict", "null": "None"}


def write_calls(calls: Sequence[ToolCall], d: Dialect, first: int = 0) -> str:
    """The calls as the model would write them, as one section of the dialect; "" for none.

    `first` is the number of earlier calls in the conversation. Ids, and names with a number, count over the
    conversation; a number in a slot of its own counts within the turn.
    """
    if not calls:
        return ""
    bodies = [_one(call, d, first + i, i) for i, call in enumerate(calls)]
    if d.header:
        return _messages(calls, bodies, d, d.header)
    if d.items and len(d.items[0]) > 1:  # the calls are on their own lines: their inner lines get the same indentation
        pad = "\n" + d.items[0].rpartition("\n")[2]
        bodies = [body.replace("\n", pad) for body in bodies]
    inner = (d.items[1] if d.items else d.between).join(bodies)
    if d.items:
        inner = d.items[0] + inner + d.items[2]
    return d.open + inner + d.close


def _messages(calls: Sequence[ToolCall], bodies: Sequence[str], d: Dialect, header: Header) -> str:
    """Each call as a message of its own."""
    heads = ("".join(call.name if part is NAME else str(part) for part in header.call) for call in calls)
    rows = (
        header.start + head + header.stop + d.open + body + d.close for head, body in zip(heads, bodies, strict=True)
    )
    return d.between.join(rows) + header.end


def _one(call: ToolCall, d: Dialect, index: int, place: int) -> str:
    return "".join(_part(part, call, d, index, place) for part in d.call)


def _part(part: Part, call: ToolCall, d: Dialect, index: int, place: int) -> str:
    """One part of a call, which is the `index`th of its conversation and the `place`th of its turn."""
    match part:
        case str():
            return part
        case JsonCall():
            return json_call.write(part, replace(call, id=_id_in(part, call, d, index)))
        case Slot():
            number, call_id = str(place + d.index_base), written_id(call.id, d, index)
            return {NAME: call.name, ID: call_id, INDEX: number, SERVER: DEFAULT_SERVER}[part]
        case NumberedName():
            return numbered_name.write(part, call.name, index + d.index_base)
        case Maybe():
            return "".join(_part(p, call, d, index, place) for p in part.parts) if part.written else ""
        case _:
            return ARGUMENTS[type(part)].write(part, call)


def _id_in(part: JsonCall, call: ToolCall, d: Dialect, index: int) -> str:
    """The id in the object of a call: a number if the dialect numbers its calls."""
    if all(slot is not INDEX for _, slot in part.keys):
        return written_id(call.id, d, index)
    return call.id if call.id.isdecimal() else str(index + d.index_base)


def written_id(call_id: str, d: Dialect, index: int) -> str:
    """The id as the dialect writes it, with as many letters and digits as it specifies."""
    if not d.id_length or re.fullmatch(f"[A-Za-z0-9]{{{d.id_length}}}", call_id):
        return call_id or f"call_{index}"
    return str(index + 1).zfill(d.id_length)


Declaring = ToolJson | ToolRows | ToolSignatures | ToolReprs
_declared: Memo[str] = Memo()


def write_tools(tools: Sequence[Tool[..., Any]], how: Declaring) -> str:
    """The declaration of the tools for the model."""
    return _declared.get(tools, how, lambda: _written(tools, how), len)


def _written(tools: Sequence[Tool[..., Any]], how: Declaring) -> str:
    if isinstance(how, ToolSignatures):
        return "\n".join(_signature_block(tool) for tool in sorted(tools, key=lambda t: t.name))
    if isinstance(how, ToolReprs):
        return "[" + ", ".join(map(_repr, tools)) + "]"
    if isinstance(how, ToolRows):
        return how.between.join(_row(tool, how) for tool in tools)
    rows = [declared(tool, how.wrapped) for tool in tools]
    if how.lines:
        return how.between.join(dumps(row, how.indent, how.ascii) for row in rows)
    return dumps(rows, how.indent, how.ascii)


def declared(tool: Tool[..., Any], wrapped: bool = True) -> dict[str, Any]:
    """The tool as JSON data: name, description (if any), parameters; `wrapped` as in OpenAI's format."""
    row: dict[str, Any] = {"name": tool.name}
    if tool.description:
        row["description"] = tool.description
    row["parameters"] = tool.parameters
    return {"type": "function", "function": row} if wrapped else row


def dumps(value: object, indent: int | None = None, plain: bool = False) -> str:
    """JSON text, ASCII only if `plain`; values without a JSON form become text."""
    return json.dumps(value, ensure_ascii=plain, indent=indent, default=_plain)


def _plain(value: object) -> object:
    """A mapping that is no dict as a dict, anything else as text, so that a schema's default never fails."""
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else str(value)


def _row(tool: Tool[..., Any], how: ToolRows) -> str:
    values = {
        NAME: tool.name,
        TEXT: tool.description,
        ARGS: dumps(tool.parameters, how.indent),
        TOOLS: dumps(declared(tool, wrapped=False), how.indent),
    }
    return "".join(part if isinstance(part, str) else values[part] for part in how.each)


def _signature_block(tool: Tool[..., Any]) -> str:
    first = tool.description.strip().splitlines()[:1]
    return "\n".join([signature(tool), *(f"  {line}" for line in first), ""])


def signature(tool: Tool[..., Any]) -> str:
    """The tool as a Python signature, from its schema: `f(url: str, tries: Optional[int] = None) -> Any`."""
    needed = tool.parameters.get("required") or ()
    rows: list[str] = []
    for name, schema in _properties(tool):
        kind = python_type(schema)
        if name in needed:
            rows.append(f"{name}: {kind}")
        else:
            rows.append(f"{name}: {kind} = {schema.get('default')!r}")
    return f"{tool.name}({', '.join(rows)}) -> Any"


def _properties(tool: Tool[..., Any]) -> list[tuple[str, Mapping[str, Any]]]:
    properties: Mapping[str, Any] = tool.parameters.get("properties") or {}
    return [(name, cast("Mapping[str, Any]", s) if isinstance(s, Mapping) else {}) for name, s in properties.items()]


def _union(names: list[str]) -> str:
    if "None" in names and len(names) == 2:
        names.remove("None")
        return f"Optional[{names[0]}]"
    return " | ".join(names)


def python_type(schema: Mapping[str, Any]) -> str:
    """A JSON Schema as a Python annotation: List[str], Optional[int], Literal['a', 'b'], int | str, Any."""
    if "enum" in schema:
        return "Literal[" + ", ".join(map(repr, schema["enum"])) + "]"
    kind: object = schema.get("type")
    options = cast("Sequence[Mapping[str, Any]]", schema.get("anyOf") or schema.get("oneOf") or ())
    if isinstance(kind, list):
        options = [{**schema, "type": k} for k in cast("list[object]", kind)]
    if options:
        return _union(list(dict.fromkeys(map(python_type, options))))
    if kind == "array":
        items: object = schema.get("items")
        return f"List[{python_type(cast('Mapping[str, Any]', items))}]" if isinstance(items, Mapping) else "list"
    return TYPES.get(kind, "Any") if isinstance(kind, str) else "Any"


def _repr(tool: Tool[..., Any]) -> str:
    types = ", ".join(f"{name!r}: {_type_repr(schema)}" for name, schema in _properties(tool))
    return f"{{'name': {tool.name!r}, 'type': {{{types}}}, 'description': {tool.description!r}}}"


def _type_repr(schema: Mapping[str, Any]) -> str:
    """An annotation as Python prints it: <class 'str'>, typing.Optional[typing.List[str]]."""
    name = python_type(schema)
    if name in TYPES.values() or name == "list":
        return "<class 'NoneType'>" if name == "None" else f"<class '{name}'>"
    for word in ("List[", "Optional[", "Literal["):
        name = name.replace(word, "typing." + word)
    return "typing.Any" if name == "Any" else name
