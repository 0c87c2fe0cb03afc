"""Extracts a value of a Python type: the type becomes a tool, so that the value is requested and checked like a call."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from types import FunctionType, MethodType
from typing import Any, NamedTuple, cast

from ..errors import GenerationError, InvalidCall, InvalidTool
from ..schema.adapter import adapter
from ..schema.coerce import coerce
from ..schema.infer import as_tool
from ..schema.phrases import short
from ..schema.repair_schema import KEYWORDS, repair, repair_any
from ..schema.tidy import generator, tidy
from ..schema.validators import OPEN, judge
from ..schema.walk import resolve
from ..types import Message, Note, Problem, Reply, Request, Schema, Tool, ToolCall, Usage
from ..wire.reading.collect import add_usage
from . import decide
from .calls import checked
from .code_fences import unfenced
from .effects import Plan, spending
from .json_passages import JsonText, fault, json_values, own_texts, unwrapped, whole_values

NO_TYPES = (str, bytes, bytearray, FunctionType, MethodType)
"""What pydantic would misread as a type. It would run a text as Python code, to find the type with that name."""
NOT_READABLE = (SyntaxError, NameError, AttributeError, TypeError)
"""What pydantic raises besides its own errors: for a name in quotes inside a type, for a value instead of a type."""
EXPECTED = "expected a type or a JSON Schema as a dict, received"

MARKS = " \t\r\n.!\"'`*"
"""Characters that may surround a value in a text: quotes, emphasis, the end of a sentence."""
OTHER_WORDS = "Sorry, the text does not say so; I would have to guess."
"""A text that is no value. A type that accepts it accepts any text."""


class Extraction(NamedTuple):
    """How a value is extracted.

    - `tool`: its arguments describe the value.
    - `build`: makes the value from checked arguments.
    - `read`: reads a reply as a call of the tool.
    - `wrapped`: whether the value is the tool's only argument, `value`.
    - `wanted`: describes the value in errors.
    """

    tool: Tool[..., Any]
    build: Callable[[Mapping[str, Any]], Any]
    read: Callable[[Reply], Reply]
    wrapped: bool
    wanted: str


def extraction(kind: Any) -> Extraction:
    """The extraction of a value of `kind`.

    `kind` is a type that pydantic supports, or a JSON Schema as a dict, whose values are JSON data. Raises InvalidTool
    for anything else.
    """
    if isinstance(kind, Mapping):
        return _by_schema(cast("Mapping[str, Any]", kind))
    from pydantic import PydanticSchemaGenerationError, PydanticUserError, ValidationError

    if isinstance(kind, NO_TYPES):
        what = "text" if isinstance(kind, str) else f"a {type(kind).__name__}"
        raise InvalidTool(f"cannot extract {what}: {EXPECTED} {kind!r:.80}")
    try:
        values = adapter(kind)
        own = values.json_schema(schema_generator=generator())
        schema = tidy(own)
    except (PydanticSchemaGenerationError, PydanticUserError, *NOT_READABLE) as error:
        raise InvalidTool(f"cannot extract it: {EXPECTED} {kind!r:.80}: {str(error).splitlines()[0]}") from error
    parameters, whole = _parameters(schema)

    def build(arguments: Mapping[str, Any]) -> Any:
        try:
            return values.validate_json(json.dumps(arguments if whole else arguments["value"]))
        except ValidationError as error:  # from a validator that the user wrote; no schema can express it
            raise InvalidCall(f"no {name}: {error}", problems=[_problem(one) for one in error.errors()]) from error

    def built(arguments: Mapping[str, Any], _injected: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        return [build(arguments)], {}

    name = re.sub(r"\W+", "_", getattr(kind, "__name__", "value").lower()).strip("_")
    tool: Tool[..., Any] = Tool(f"record_{name}", "Record what the text says.", repair(parameters), build=built)
    return Extraction(tool, build, reader(tool, _parameters(own)[0], bare=not whole), not whole, _wanted(kind))


def _wanted(kind: Any) -> str:
    """The description of a value in an error."""
    return f"a value of {kind.__name__ if isinstance(kind, type) else str(kind).replace('typing.', '')}"


def _by_schema(schema: Mapping[str, Any]) -> Extraction:
    """The extraction of a value of a JSON Schema. Raises InvalidTool if it is none."""
    if KEYWORDS.isdisjoint(schema):
        raise InvalidTool(f"expected a JSON Schema, with `type` or another keyword, received {schema!r:.80}")
    name = re.sub(r"\W+", "_", str(schema.get("title", "value")).lower()).strip("_")
    parameters, whole = _parameters(dict(schema))
    spec = {"name": f"record_{name[:50]}", "description": "Record what the text says.", "parameters": parameters}
    try:
        tool = as_tool(spec)
    except InvalidTool:
        judge(repair_any(schema))  # whose error names the place in the schema itself
        raise

    def build(arguments: Mapping[str, Any]) -> Any:
        return arguments if whole else arguments["value"]

    wanted = f"a value of the schema {schema['title']!r:.80}" if "title" in schema else "a value of the schema"
    return Extraction(tool, build, reader(tool, parameters, bare=not whole), not whole, wanted)


def _parameters(schema: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The parameters of a tool that records a value of this schema, and whether the value is all of the arguments."""
    if schema.get("type") == "object" and "properties" in schema:
        return schema, True
    wrapped: dict[str, Any] = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
    shared = {name: schema[name] for name in ("$defs", "definitions") if name in schema}
    inner = {name: part for name, part in schema.items() if name not in shared}
    return {**wrapped, "properties": {"value": inner}, **shared}, False


def reader(tool: Tool[..., Any], schema: Schema, *, bare: bool) -> Callable[[Reply], Reply]:
    """A function that reads a reply as the call that carries the value. `schema` is that of the tool's arguments.

    Many models write the value as JSON text instead: alone, in a code fence, or in a sentence. If it is valid it
    becomes a call with a note `value-without-call`; of several valid ones none does. An invalid one becomes a call
    only if there is no other text, so that the model is told what is wrong with it. If the value is no object
    (`bare`), it may be written without JSON quotes, unless any text would be valid: a choice, a date, a number with a
    full stop. Unlisted keys are dropped with a note `ignored-keys`, unless the type forbids them: then the call is
    invalid.
    """
    names = set(tool.parameters["properties"])

    def written(passage: JsonText) -> ToolCall | None:
        value, text, notes = (
            passage if bare else unwrapped(passage, names, (tool.name, tool.name.removeprefix("record_")))
        )
        record: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        if not names & record.keys():
            record, text = dict[str, Any](value=value), f'{{"value": {text}}}'
        if not names & record.keys():
            return None
        notes = (Note("value-without-call", tool.name), *notes)
        return _listed(ToolCall(f"call_{tool.name}", tool.name, record, text, notes), tool, schema)

    closed = bool(checked(ToolCall("", tool.name, {"value": OTHER_WORDS}), [tool])[1]) if bare else False

    def unquoted(text: str) -> ToolCall | None:
        """The text as the value, without quotes and similar marks around it; a single word of several if it alone is
        valid."""
        value = unfenced(text).strip(MARKS)
        call = written(JsonText(value, json.dumps(value))) if value else None
        if call is None or len(value.split()) == 1:
            return call
        return None if checked(call, [tool])[1] else call

    def read(reply: Reply) -> Reply:
        if reply.calls:
            return replace(reply, calls=tuple(_listed(call, tool, schema) for call in reply.calls))
        call: ToolCall | None = None
        for text in own_texts(reply.text):
            calls = [one for one in map(written, json_values(text)) if one is not None]
            fits = [one for one in calls if not checked(one, [tool])[1]]
            if any(one.arguments != fits[0].arguments for one in fits):
                return reply
            call = fits[0] if fits else next(map(written, whole_values(text)), None)
            if call is None and closed:
                call = unquoted(text)
            if call is not None:
                return replace(reply, text="", calls=(call,))
        return _with_fault(reply)

    return read


def _with_fault(reply: Reply) -> Reply:
    """The reply with a note of what is wrong with its JSON."""
    wrong = fault(reply.text)
    return replace(reply, notes=(*reply.notes, Note("not-json", wrong))) if wrong else reply


def _listed(call: ToolCall, tool: Tool[..., Any], schema: Schema) -> ToolCall:
    """The call without the keys that the type does not list, with a note."""
    ignored: list[str] = []
    arguments = without_ignored(call.arguments, schema, schema, ignored)
    if not ignored:
        return call
    coerced, changes = coerce(tool, call.arguments, call.json)  # only its text has all digits of a Decimal
    arguments = without_ignored(coerced, schema, schema, [])
    notes = (*call.notes, *changes, Note("ignored-keys", ", ".join(ignored)))
    return replace(call, arguments=arguments, json=json.dumps(arguments), notes=notes)


def without_ignored(value: Any, schema: Any, root: Schema, ignored: list[str]) -> Any:
    """The value without keys of objects that the schema neither lists nor mentions; their names are appended to
    `ignored`. A value that may be one of several kinds of objects is not changed."""
    node = _one_kind(schema, root)
    if isinstance(value, list):
        return [without_ignored(one, node.get("items"), root, ignored) for one in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    record = cast("dict[str, Any]", value)
    known: Mapping[str, Any] = node.get("properties", {})
    if known and not node.keys() & set(OPEN):
        ignored += [name for name in record if name not in known]
        record = {name: one for name, one in record.items() if name in known}
    others = node.get("additionalProperties")
    return {name: without_ignored(one, known.get(name, others), root, ignored) for name, one in record.items()}


def _one_kind(schema: Any, root: Schema) -> Mapping[str, Any]:
    """The schema with its reference resolved, and of two alternatives the one that is not null; {} if there is none."""
    while isinstance(schema, Mapping):
        node = cast("Mapping[str, Any]", schema)
        others: list[Any] = [one for one in node.get("anyOf", ()) if one != {"type": "null"}]
        if "$ref" in node:
            schema = resolve(root, str(node["$ref"]))
        elif len(others) == 1:
            schema = others[0]
        else:
            return node
    return {}


def with_output(plan: Plan[Reply], request: Request, kind: Any, **again: Any) -> Plan[Reply]:
    """The reply of a run, with its answer as a value of `kind`: read from the answer, or extracted in one more
    request.

    A run that ends without text has none. Raises GenerationError with the run's reply if no valid value comes.
    """
    tool, build, read, _, wanted = extraction(kind)
    reply = yield from plan
    if not reply.text.strip():
        return reply
    plain = read(replace(reply, calls=()))
    if plain.calls:
        call, problems = checked(plain.calls[0], [tool])
        if not problems:
            return replace(reply, output=build(call.arguments))
    order: Message = {"role": "user", "content": f"Record this answer: {reply.text}"}
    second = replace(request, messages=[*reply.messages, order], tools=(tool,), choice=tool.name, parallel=False)
    spent: list[Usage] = []
    try:
        call = yield from spending(decide.call(second, read=read, wanted=wanted, **again), spent)
    except GenerationError as error:
        error.run = reply
        raise
    usage = reduce(add_usage, spent, reply.usage)
    return replace(reply, output=build(call.arguments), usage=usage)


def _problem(error: Any) -> Problem:
    path = "".join(f"/{part}" for part in error["loc"])
    received = short(error["input"])
    return Problem(path, error["msg"], received, f"{path or 'the value'}: {error['msg']}, received {received}")
