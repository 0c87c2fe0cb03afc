"""Converts requests to the Responses API in both directions: a `Request` into JSON for a server, and a client's JSON
into a `Request`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ...errors import Refused, UsageError
from ...schema.infer import as_tools
from ...types import Message, Request, Schema, Tool
from ..field_schemas import FLAG, LIKELIEST, MAX_TOKENS, MODEL, OBJECT, SAMPLED, TEXT, cannot, set_fields
from ..incoming import IncomingRequest
from ..json_stream import Payload, record
from ..named_servers import in_responses
from ..openai_chat import is_strict
from .items import asks_to_compact, read_input, write_input
from .tools import TOOLS, Tools, allowed, demanded_type, read_choice, read_tools, write_choice, write_tool

SAMPLING = ("top_p", "presence_penalty", "frequency_penalty", "top_k", "min_p", "repetition_penalty")
"""Settings that are passed on by name: OpenAI's, then those of self-hosted servers."""

LOGPROBS = "message.output_text.logprobs"
"""The value of `include` that requests log probabilities."""

SEALED = "reasoning.encrypted_content"
"""The value of `include` of clients that send back data that only the server reads."""

ELSEWHERE = {
    "background": "responses in the background are not supported; send the request without it",
    "conversation": "conversations are not stored here; send the items, or previous_response_id",
    "prompt": "prompts are not stored here; send the input itself",
    "moderation": "moderation is not supported",
}
"""Fields for features that only the provider has, and why they are refused."""

IDLE = (
    "user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options",
    "service_tier", "stream_options", "max_tool_calls", "context_management",
)  # fmt: skip
"""Known fields without effect here; they are reported as ignored."""

ANYTHING: Schema = {}
TEXTLIKE: Schema = {"type": ["string", "null"], "maxLength": 512}
ITEM: Schema = {
    "type": "object",
    "properties": {"type": {"type": ["string", "null"]}, "role": {"type": ["string", "null"]}},
}
"""An item of an input: its type. The reader of each type checks the rest."""

BODY: Schema = {
    "type": "object",
    "additionalProperties": True,
    "required": ["model", "input"],
    "properties": {
        "model": MODEL,
        "input": {"anyOf": [TEXT, {"type": "array", "minItems": 1, "maxItems": 10_000, "items": ITEM}]},
        "instructions": {"type": ["string", "null"]},
        "previous_response_id": {"type": ["string", "null"], "minLength": 1, "maxLength": 128},
        "store": FLAG,
        "stream": FLAG,
        "tools": {**TOOLS, "type": ["array", "null"]},
        "tool_choice": {"anyOf": [
            {"enum": ["auto", "none", "required", None]},
            {"type": "object", "required": ["type"], "properties": {
                "type": TEXT, "name": TEXT, "mode": {"enum": ["auto", "required"]},
                "tools": {"type": "array", "maxItems": 10_000, "items": OBJECT}}}]},
        "parallel_tool_calls": FLAG,
        "text": {"type": ["object", "null"], "properties": {
            "verbosity": TEXTLIKE,
            "format": {"anyOf": [{"type": "null"}, {"type": "object", "required": ["type"], "properties": {
                "type": {"enum": ["text", "json_object", "json_schema"]},
                "name": TEXT, "schema": OBJECT, "strict": FLAG, "description": {"type": ["string", "null"]}}}]}}},
        "reasoning": {"type": ["object", "null"], "properties": {
            "effort": TEXTLIKE, "summary": TEXTLIKE, "generate_summary": TEXTLIKE}},
        "include": {"type": ["array", "null"], "maxItems": 64, "items": {"type": "string", "maxLength": 128}},
        "max_output_tokens": MAX_TOKENS,
        "max_tool_calls": {"type": ["integer", "null"], "minimum": 1, "maximum": 10_000_000},
        "metadata": {"type": ["object", "null"], "maxProperties": 16, "propertyNames": {"maxLength": 64},
                     "additionalProperties": {"type": "string", "maxLength": 512}},
        "truncation": {"enum": ["auto", "disabled", None]},
        **SAMPLED,
        "top_logprobs": LIKELIEST,
        "include_thinking": FLAG,
        "user": TEXTLIKE,
        "safety_identifier": TEXTLIKE,
        "prompt_cache_key": TEXTLIKE,
        "prompt_cache_retention": TEXTLIKE,
        "prompt_cache_options": {"type": ["object", "null"]},
        "service_tier": TEXTLIKE,
        "stream_options": {"type": ["object", "null"]},
        "context_management": ANYTHING,
        **dict.fromkeys(ELSEWHERE, ANYTHING),
    },
}  # fmt: skip
"""The schema of a request body. It has the fields that are read; any others are reported as ignored."""


def read_request(body: Mapping[str, Any], tools: Tools = as_tools) -> IncomingRequest:
    """Parse a body that matches BODY. `tools` makes Tools from dicts. Raises UsageError or Refused for a request that
    cannot be served.

    `previous_response_id` and `store` are only passed on: the caller with a store adds the earlier items to `input`,
    and sets in `echo` whether the response is stored.
    """
    fields = dict(body)
    for name, why in ELSEWHERE.items():
        if fields.get(name):
            raise cannot(name, why)
    compacts = asks_to_compact(fields["input"])
    if compacts:
        fields |= {"tool_choice": "none", "text": None, "include": None, "store": False}
    instructions = fields.get("instructions")
    first: list[Message] = [{"role": "system", "content": instructions}] if instructions else []
    messages, unread, loaded = read_input(fields["input"], first)
    chosen, offer = allowed(fields.get("tool_choice"), read_tools(fields.get("tools"), tools, loaded))
    demanded = demanded_type(chosen, offer)
    choice, offered = read_choice(None if demanded else chosen, offer.tools)
    thinking = fields.get("include_thinking")
    if record(fields.get("reasoning")).get("effort") == "none":
        thinking = False
    request = Request(
        messages=messages,
        tools=offered,
        choice=choice,
        parallel=fields.get("parallel_tool_calls") is not False,
        max_tokens=fields.get("max_output_tokens"),
        temperature=fields.get("temperature"),
        schema=_format(record(record(fields.get("text")).get("format"))),
        thinking=thinking,
        logprobs=_logprobs(fields),
        sampling=set_fields(fields, *SAMPLING) | _levels(fields),
        deferred=offer.deferred,
        search=offer.search,
    )
    return IncomingRequest(
        fields["model"],
        request,
        stream=fields.get("stream") is True,
        thoughts=not compacts and fields.get("include_thinking") is not False,
        ignored=tuple(sorted({*_ignored(fields), *unread, *offer.ignored})),
        echo=_echo(fields),
        names=offer.names,
        hosted=offer.hosted,
        demanded=demanded,
        servers=in_responses(fields.get("tools"), fields["input"]),
        tells_servers=True,
        sealed=SEALED in (fields.get("include") or ()),
        previous=fields.get("previous_response_id") or "",
        store=fields.get("store") is not False,
        schema_field="text.format",
        compacts=compacts,
    )


def _logprobs(fields: Payload) -> int | None:
    if LOGPROBS in (fields.get("include") or ()):
        return fields.get("top_logprobs") or 0
    return fields.get("top_logprobs") or None


def _levels(fields: Payload) -> Payload:
    """Return `reasoning.effort` and `text.verbosity` under their names in chat completions."""
    effort, verbosity = record(fields.get("reasoning")).get("effort"), record(fields.get("text")).get("verbosity")
    return {name: value for name, value in (("reasoning_effort", effort), ("verbosity", verbosity)) if value}


def _format(wanted: Payload) -> Schema | None:
    match wanted.get("type"):
        case "json_object":
            return {"type": "object"}
        case "json_schema":
            if (schema := wanted.get("schema")) is None:
                raise Refused(
                    "text.format.schema: a schema is missing", code="invalid_value", param="text.format.schema"
                )
            return cast("Schema", schema)
        case _:
            return None


def _ignored(fields: Payload) -> list[str]:
    """Return the names of the fields without effect."""
    known: Mapping[str, Any] = BODY["properties"]
    names = [name for name in fields if name not in known] + [name for name in IDLE if fields.get(name) is not None]
    if fields.get("truncation") == "auto":
        names.append("truncation")
    return names + [f"include.{name}" for name in fields.get("include") or () if name not in (LOGPROBS, SEALED)]


def _echo(fields: Payload) -> Payload:
    """Return what the API repeats of a request in its response. A missing field gets the API's default."""
    text, reasoning = record(fields.get("text")), record(fields.get("reasoning"))

    def had(name: str, default: Any) -> Any:
        value = fields.get(name)
        return default if value is None else value

    return {
        "background": False,
        "instructions": fields.get("instructions"),
        "max_output_tokens": fields.get("max_output_tokens"),
        "max_tool_calls": None,
        "metadata": had("metadata", {}),
        "parallel_tool_calls": had("parallel_tool_calls", True),
        "previous_response_id": fields.get("previous_response_id"),
        "prompt_cache_key": fields.get("prompt_cache_key"),
        "reasoning": {"effort": reasoning.get("effort"), "summary": reasoning.get("summary")},
        "safety_identifier": fields.get("safety_identifier"),
        "service_tier": "default",
        "store": False,
        "temperature": had("temperature", 1.0),
        "text": {"format": text.get("format") or {"type": "text"}, "verbosity": text.get("verbosity") or "medium"},
        "tool_choice": had("tool_choice", "auto"),
        "tools": [_with_defaults(tool) for tool in fields.get("tools") or ()],
        "top_logprobs": had("top_logprobs", 0),
        "top_p": had("top_p", 1.0),
        "presence_penalty": had("presence_penalty", 0.0),
        "frequency_penalty": had("frequency_penalty", 0.0),
        "truncation": "disabled",
        "user": fields.get("user"),
    }


def _with_defaults(tool: Payload) -> Payload:
    if tool["type"] != "function":
        return tool
    return {"description": None, "parameters": None, "strict": False, **tool}


# ------------------------------------------------------------------ written: what servers are sent


def _write_tools(request: Request, tools: Sequence[Tool[..., Any]]) -> Payload:
    body: Payload = {"tools": [write_tool(tool) for tool in tools]}
    if request.choice != "auto":
        body["tool_choice"] = write_choice(request.choice)
    if not request.parallel:
        body["parallel_tool_calls"] = False
    return body


def write_request(request: Request, model: str, *, thoughts: bool = False) -> Payload:
    """Return the JSON body of a streamed request; the server is told to store nothing.

    `thoughts`: send the reasoning of earlier turns, which a few servers need and others reject. Raises UsageError for
    settings that the API does not have.
    """
    for name in ("stop", "seed"):
        if getattr(request, name) not in (None, ()):
            raise UsageError(f"the Responses API has no {name}")
    items = write_input(request.messages, thoughts=thoughts)
    body: Payload = {"model": model, "input": items, "stream": True, "store": False}
    if request.tools:
        body |= _write_tools(request, request.tools)
    sampling = dict(request.sampling)
    text, reasoning = _write_text(request, sampling.pop("verbosity", None)), sampling.pop("reasoning_effort", None)
    if text:
        body["text"] = text
    if reasoning:
        body["reasoning"] = {"effort": reasoning}
    limits = {"max_output_tokens": request.max_tokens, "temperature": request.temperature}
    body |= {name: value for name, value in limits.items() if value is not None}
    if request.logprobs is not None:
        body |= {"include": [LOGPROBS], "top_logprobs": request.logprobs}
    return body | sampling


def _write_text(request: Request, verbosity: Any) -> Payload:
    text: Payload = {"verbosity": verbosity} if verbosity else {}
    if request.schema is not None:
        schema = dict(request.schema)
        text["format"] = {
            "type": "json_schema",
            "name": "reply",
            "schema": schema,
            "strict": is_strict(schema, root=True),
        }
    return text
