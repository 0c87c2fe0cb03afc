"""Replies that must be JSON of a schema, for models without constrained sampling: asked for in the prompt, and
validated."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from ..errors import InvalidTool
from ..schema import nonblocking_json
from ..schema.bounded_cache import BoundedCache
from ..schema.check import check
from ..schema.coerce import coerce
from ..schema.phrases import short
from ..schema.repair_schema import repair_any
from ..schema.validators import judge
from ..schema.weight import weight
from ..types import Message, Note, Reply, Request, Schema, Tool
from .code_fences import unfenced
from .json_passages import BROKEN, OPENER, JsonText, json_values, own_texts, whole_values

OPEN = ("additionalProperties", "unevaluatedProperties")
ANY_OBJECT = {"type": "object"}


def in_words(request: Request, schema: Schema) -> Request:
    """The request with its schema as a sentence in the prompt, for a model that cannot constrain its output."""
    if request.tools and request.choice not in ("auto", "none"):
        return replace(request, schema=None)  # a call is required, so there is no text
    order_text = order(schema, bool(request.tools) and request.choice != "none")
    first, *rest = request.messages or [cast("Message", {})]
    if first.get("role") not in ("system", "developer"):
        messages: list[Message] = [{"role": "system", "content": order_text}, *request.messages]
        return replace(request, schema=None, messages=messages)
    content = first.get("content")
    if isinstance(content, list):
        combined: Any = [*content, {"type": "text", "text": f"\n\n{order_text}"}]
    else:
        combined = f"{content}\n\n{order_text}" if content else order_text
    return replace(request, schema=None, messages=[cast("Message", {**first, "content": combined}), *rest])


def order(schema: Schema, tools: bool = False) -> str:
    """The sentence that asks for JSON text of a schema."""
    where = "When you call no tool, answer" if tools else "Answer"
    if schema == ANY_OBJECT:
        return f"{where} with one JSON object and nothing else: no other words, no code fence."
    text = json.dumps(schema, ensure_ascii=False)
    return f"{where} with one JSON value and nothing else: no other words, no code fence. It must fit this JSON Schema:\n{text}"


def json_text(reply: Reply, schema: Schema, *, streamed: bool = False) -> tuple[Reply, str]:
    """The reply with only the JSON as its text, and what is wrong with it ("" for nothing).

    If the text is no value of the schema, the one that it contains counts: in a code fence or among words, and
    repaired and coerced like the arguments of a call, with notes. Of several different values none counts. A text that
    was `streamed` stays as it is.
    """
    wrong = _problems(reply.text, schema)
    if not wrong or streamed:
        return reply, wrong
    values, fits = list[JsonText](), list[JsonText]()
    for text in own_texts(reply.text):
        values = [_coerced(one, schema) for one in json_values(text)]
        fits = [one for one in values if not _problems(one.text, schema)]
        if fits and all(one.value == fits[0].value for one in fits):
            return replace(reply, text=fits[0].text, notes=(*reply.notes, *_around(reply.text), *fits[0].notes)), ""
    return reply, _why(reply.text, values, fits, schema)


def _why(text: str, values: Sequence[JsonText], fits: Sequence[JsonText], schema: Schema) -> str:
    """Why none of the values in a text counts."""
    if len(fits) > 1:
        return f"it has {len(fits)} values that fit and differ, and one is wanted"
    text = values[0].text if values else unfenced(text)
    begin = None if values else BROKEN.search(text)
    return _problems(text[begin.start() :] if begin else text, schema)


def _around(text: str) -> list[Note]:
    """Notes about what stands around the value in a text."""
    if not any(whole_values(text)):
        return [Note("words-left-out", "there were words beside the JSON")]
    fenced = unfenced(text) != text.strip()
    return [Note("unfenced", "the JSON stood in a code fence")] if fenced else []


def _coerced(passage: JsonText, schema: Schema) -> JsonText:
    """The passage with its value coerced to the schema, if it is an object."""
    written: Any = passage.value
    if not isinstance(written, dict):
        return passage
    value, notes = coerce(_tool(schema), cast("dict[str, Any]", written), passage.text)
    return JsonText(value, json.dumps(value, ensure_ascii=False), (*passage.notes, *notes)) if notes else passage


def _problems(text: str, schema: Schema) -> str:
    """Why a text is no JSON of a schema; "" if it is."""
    try:
        value: Any = nonblocking_json.loads(text, parse_constant=_no_number)
    except RecursionError:
        return "it nests too deep"
    except ValueError as error:
        return f"it is not JSON ({error})" if OPENER.match(text.lstrip()) else f"it is not JSON: {short(text.strip())}"
    problems = check(_tool(schema), cast("Mapping[str, Any]", value))
    return "; ".join(f"{one.path or 'the value'}: expected {one.expected}, got {one.received}" for one in problems)


def usable_form(schema: Schema) -> Schema:
    """The schema, if it is valid; otherwise repaired as a tool's is. Raises InvalidTool if it cannot be repaired."""
    try:
        judge(_tool(schema).parameters)
    except InvalidTool:
        schema = repair_any(schema)
        judge(_tool(schema).parameters)
    return schema


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


_tools = BoundedCache[int, tuple[Schema, Tool[..., Any]]](8_000_000)


def _tool(schema: Schema) -> Tool[..., Any]:
    """A tool that validates the text as its arguments. Unlisted properties are allowed unless the schema forbids them."""
    known = _tools.get(id(schema))
    if known is not None and known[0] is schema:
        return known[1]
    says = any(word in schema for word in OPEN)
    tool: Tool[..., Any] = Tool("reply", parameters=schema if says else {**schema, "additionalProperties": True})
    _tools.put(id(schema), (schema, tool), weight(schema)[0])  # keeping the schema alive keeps its id unique
    return tool
