"""Converts requests for a chat completion in both directions: a `Request` into JSON for a server, and a client's JSON
into a `Request`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from ...errors import Refused
from ...schema.bounded_cache import BoundedCache
from ...schema.infer import as_tools
from ...types import Request, Schema
from ..field_schemas import COMPLETED, FLAG, LIKELIEST, MAX_TOKENS, MODEL, cannot, set_fields, stops
from ..incoming import IncomingRequest
from ..json_stream import Payload, record
from .messages import MESSAGE, read_messages, write_messages
from .tools import TOOL_FIELDS, Tools, read_offer, write_choice, write_tool

SAMPLING = (
    "top_p", "presence_penalty", "frequency_penalty", "logit_bias", "reasoning_effort", "verbosity",
    "top_k", "min_p", "repetition_penalty",
)  # fmt: skip
"""Settings that are passed on by name: OpenAI's, then those of self-hosted servers."""

ANY_OBJECT: Schema = {"type": "object"}
"""The schema for `json_object`."""

LOOSE = frozenset({
    "allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties",
    "propertyNames", "prefixItems", "contains", "uniqueItems", "unevaluatedProperties", "definitions",
})  # fmt: skip
"""Keywords of JSON Schema that OpenAI's `strict` mode does not support."""


def write_request(
    request: Request,
    model: str,
    *,
    usage: bool = True,
    thoughts: bool = False,
    max_tokens_field: str = "max_tokens",
    grammar_field: str = "",
    tag_field: str = "",
) -> Payload:
    """Return the JSON body of a request, streamed unless `whole` is set.

    `usage`: ask for the usage, which a few servers reject. `thoughts`: send the reasoning of earlier turns, which a few
    servers need and others reject. `grammar_field` and `tag_field`: the fields in which the server expects a grammar
    and a structural tag.
    """
    body: Payload = {"model": model, "messages": write_messages(request.messages, thoughts=thoughts)}
    body["stream"] = not request.whole
    if usage and not request.whole:
        body["stream_options"] = {"include_usage": True}
    body |= _tools_of(request)
    if request.schema is not None:
        body["response_format"] = _response_format(request.schema)
    return body | write_constraints(request, grammar_field, tag_field) | _settings_of(request, max_tokens_field)


def _settings_of(request: Request, max_tokens_field: str) -> Payload:
    """Return the settings of the reply: length, sampling, reasoning."""
    numbers = {max_tokens_field: request.max_tokens, "temperature": request.temperature, "seed": request.seed}
    fields: Payload = {key: value for key, value in numbers.items() if value is not None}
    if request.stop:
        fields["stop"] = list(request.stop)
    if request.thinking is not None:
        fields["chat_template_kwargs"] = {"enable_thinking": request.thinking}
    if request.logprobs is not None:
        fields |= {"logprobs": True, "top_logprobs": request.logprobs}
    return fields | dict(request.sampling)


def _tools_of(request: Request) -> Payload:
    if not request.tools:
        return {}
    fields: Payload = {"tools": [write_tool(tool) for tool in request.tools]}
    if request.choice != "auto":
        fields["tool_choice"] = write_choice(request.choice)
    if not request.parallel:
        fields["parallel_tool_calls"] = False
    return fields


def _response_format(schema: Schema) -> Payload:
    if schema == ANY_OBJECT:
        return {"type": "json_object"}
    named = {"name": "reply", "schema": dict(schema), "strict": is_strict(schema, root=True)}
    return {"type": "json_schema", "json_schema": named}


def write_constraints(request: Request, grammar_field: str, tag_field: str) -> Payload:
    """Return the grammar and the structural tag of a request, in the fields that the server expects.

    The field of a grammar is `grammar` (llama.cpp), `structured_outputs` or `guided_grammar` (vLLM), `ebnf` (SGLang).
    """
    body: Payload = {}
    if request.grammar is not None and grammar_field:
        wrapped = grammar_field == "structured_outputs"
        body[grammar_field] = {"grammar": request.grammar} if wrapped else request.grammar
    if request.tag is not None and tag_field:
        body[tag_field] = dict(request.tag)
    return body


def is_strict(schema: Any, *, root: bool = False) -> bool:
    """Whether OpenAI can enforce a schema: it rejects `strict` for any other.

    Every object must be closed, every property required, `anyOf` the only combination, and the `root` an object.
    Self-hosted servers enforce any schema, whatever `strict` says.
    """
    if isinstance(schema, list):
        return all(is_strict(item) for item in cast("list[Any]", schema))
    node = record(schema)
    if root and (node.get("type") != "object" or "anyOf" in node):
        return False
    if not LOOSE.isdisjoint(node) or not _closed(node):
        return False
    named = (*record(node.get("properties")).values(), *record(node.get("$defs")).values())
    return all(map(is_strict, (*named, *(node[key] for key in ("items", "anyOf") if key in node))))


def _closed(node: Payload) -> bool:
    """Whether an object schema allows no properties but the required ones. True for other schemas."""
    if "object" not in node.get("type", ()) and "properties" not in node:
        return True
    return node.get("additionalProperties") is False and set(record(node.get("properties"))) == set(
        node.get("required", ())
    )


# ------------------------------------------------------------------ read: what clients send

BODY: Schema = {
    "type": "object",
    "additionalProperties": True,
    "required": ["model", "messages"],
    "properties": {
        "model": MODEL,
        "messages": {"type": "array", "minItems": 1, "maxItems": 10_000, "items": MESSAGE},
        **COMPLETED,
        **TOOL_FIELDS,
        "response_format": {"anyOf": [{"type": "null"}, {
            "type": "object", "required": ["type"], "properties": {
                "type": {"enum": ["text", "json_object", "json_schema"]},
                "json_schema": {"type": "object", "properties": {
                    "schema": {"type": ["object", "null"]}, "strict": FLAG,
                    "name": {"type": "string", "maxLength": 256}}}}}]},
        "n": {"type": ["integer", "null"], "minimum": 1, "maximum": 8},
        "max_completion_tokens": MAX_TOKENS,
        "logprobs": FLAG,
        "top_logprobs": LIKELIEST,
        "reasoning_effort": {"type": ["string", "null"], "maxLength": 32},
        "verbosity": {"type": ["string", "null"], "maxLength": 32},
        "include_thinking": FLAG,
        "chat_template_kwargs": {"type": ["object", "null"], "maxProperties": 64},
        "modalities": {"type": ["array", "null"], "maxItems": 8, "items": {"type": "string", "maxLength": 32}},
        "audio": {"type": ["object", "null"]},
    },
}  # fmt: skip
"""The schema of a request body. It has the fields that are read; any others are reported as ignored."""


def read_request(body: Mapping[str, Any], tools: Tools = as_tools) -> IncomingRequest:
    """Parse a body that matches BODY. `tools` makes Tools from dicts. Raises Refused for a request that cannot be
    served."""
    fields = {name: value for name, value in body.items() if value is not None}
    _refuse(fields)
    offer = read_offer(fields, tools)
    template = record(fields.get("chat_template_kwargs"))
    thinking = fields.get("include_thinking", template.get("enable_thinking"))
    request = Request(
        messages=read_messages(fields["messages"]),
        tools=offer.tools,
        choice=offer.choice,
        parallel=fields.get("parallel_tool_calls") is not False and not offer.legacy,
        max_tokens=fields.get("max_completion_tokens") or fields.get("max_tokens"),
        temperature=fields.get("temperature"),
        seed=fields.get("seed"),
        stop=stops(fields.get("stop")),
        schema=_format(record(fields.get("response_format"))),
        thinking=thinking if isinstance(thinking, bool) else None,
        logprobs=fields.get("top_logprobs", 0) if fields.get("logprobs") else None,
        sampling=set_fields(fields, *SAMPLING),
    )
    return IncomingRequest(
        fields["model"],
        request,
        stream=fields.get("stream") is True,
        usage=record(fields.get("stream_options")).get("include_usage") is True,
        n=fields.get("n") or 1,
        thoughts=thinking is not False,
        ignored=_ignored(fields, template),
        echo={"custom": offer.custom, "legacy": offer.legacy},
    )


def _refuse(fields: Mapping[str, Any]) -> None:
    """Raises Refused for fields that would change the answer but are not supported."""
    if "audio" in fields or set(fields.get("modalities", ())) - {"text"}:
        raise cannot("audio" if "audio" in fields else "modalities", "only text can be answered here")
    if {name for name in ("logprobs", "top_logprobs") if fields.get(name)} == {"top_logprobs"}:
        raise Refused("top_logprobs: it needs logprobs to be true", code="invalid_value", param="top_logprobs")


def _ignored(fields: Mapping[str, Any], template: Payload) -> tuple[str, ...]:
    known: Mapping[str, Any] = BODY["properties"]
    names = [name for name in fields if name not in known]
    names += [f"chat_template_kwargs.{name}" for name in template if name != "enable_thinking"]
    return tuple(sorted(names))


def _format(wanted: Payload) -> Schema | None:
    match wanted.get("type"):
        case "json_object":
            return ANY_OBJECT
        case "json_schema":
            schema = record(wanted.get("json_schema")).get("schema")
            if schema is None:
                raise Refused("response_format.json_schema: a schema is missing", param="response_format.json_schema")
            return _known(json.dumps(schema))
        case _:
            return None


_formats = BoundedCache[str, Schema](8_000_000, 1_000_000)
BY_CHARACTER = 20
"""An estimate of the bytes in memory per character of a schema's JSON."""


def _known(text: str) -> Schema:
    """Parse a schema. The same text gives the same object while it is cached, so that validators and grammars are built
    once."""
    known = _formats.get(text)
    if known is None:
        known = cast("Schema", json.loads(text))
        _formats.put(text, known, BY_CHARACTER * len(text))
    return known
