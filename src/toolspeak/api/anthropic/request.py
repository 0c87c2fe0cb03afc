"""Converts requests for a message in both directions: a `Request` into JSON for a server, and a client's JSON into a
`Request`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from ...errors import Refused
from ...schema.infer import as_tools
from ...types import Request, Schema, Tool
from ..choice import of_name, of_word
from ..field_schemas import FLAG, MAX_TOKENS, MODEL, OBJECT, SHARE, TEXT, cannot, set_fields
from ..incoming import IncomingRequest
from ..json_stream import Payload, record, records
from .content import ContentReader, need, write_messages, write_system
from .tool_changes import TOOL
from .tools import deferred, eager, member_names, read_tools, searched_here

EFFORTS = ("low", "medium", "high", "xhigh", "max")
NEUTRAL: Mapping[str, Any] = {
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "repetition_penalty": 1,
    "min_p": 0,
    "logit_bias": {},
}
"""Settings that the API does not have, with the value at which they have no effect."""
REST = ("top_p", "top_k")
MAX = 8192
"""The default of `max_tokens`, which the API requires."""

# ------------------------------------------------------------------ written: what a server is sent


def write_request(request: Request, model: str, *, max_tokens: int = MAX, thoughts: bool = False) -> Payload:
    """Return the JSON body of a streamed request.

    `thoughts`: send the reasoning of earlier turns. Anthropic accepts only reasoning that it signed, other servers
    accept any. Raises Refused for settings that the API does not have.
    """
    body = _body(request, model, thoughts=thoughts)
    body |= {"max_tokens": request.max_tokens or max_tokens, "stream": True}
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.stop:
        body["stop_sequences"] = list(request.stop)
    for name, setting in (("seed", request.seed), ("logprobs", request.logprobs)):
        if setting is not None:
            raise cannot(name, "the model's server has no such setting")
    return body | _sampling(request.sampling)


def write_count(request: Request, model: str) -> Payload:
    """Return the JSON body for `POST /v1/messages/count_tokens`."""
    return _body(request, model, thoughts=False)


def _body(request: Request, model: str, *, thoughts: bool) -> Payload:
    system, messages = write_system(request.messages)
    body: Payload = {"model": model, "messages": write_messages(messages, thoughts=thoughts)}
    if system:
        body["system"] = system
    body |= _tools(request, body["messages"])
    if request.schema is not None:
        body["output_config"] = {"format": {"type": "json_schema", "schema": dict(request.schema)}}
    if effort := request.sampling.get("reasoning_effort"):
        if effort not in EFFORTS:
            raise cannot("reasoning_effort", f"expected one of {', '.join(EFFORTS)}")
        body["output_config"] = {**body.get("output_config", {}), "effort": effort}
    if request.thinking is not None:
        body["thinking"] = {"type": "adaptive" if request.thinking else "disabled"}
    return body


def _tools(request: Request, turns: list[Payload]) -> Payload:
    if request.tools:
        body: Payload = {"tools": [write_tool(tool) for tool in request.tools]}
        if request.choice != "auto" or not request.parallel:
            body["tool_choice"] = write_choice(request.choice, parallel=request.parallel)
        return body
    # Every tool that the conversation calls must be declared, even if none may be called now.
    declared = [{"name": name, "input_schema": {"type": "object"}} for name in _called(turns)]
    return {"tools": declared, "tool_choice": {"type": "none"}} if declared else {}


def _called(turns: list[Payload]) -> Iterable[str]:
    """Yield the names of the tools that the turns call, each once."""
    blocks = [block for turn in turns for block in records(turn["content"]) if block["type"] == "tool_use"]
    return dict.fromkeys(str(block["name"]) for block in blocks)


def write_tool(tool: Tool[..., Any]) -> Payload:
    """Return a tool in the format of `tools`."""
    body: Payload = {"name": tool.name, "input_schema": {"type": "object", **tool.parameters}}
    if tool.description:
        body["description"] = tool.description
    if tool.strict:
        body["strict"] = True
    return body


def write_choice(choice: str, *, parallel: bool = True) -> Payload:
    """Return `tool_choice`: `any` if a call is required; any other name is a tool's."""
    body: Payload = {"type": {"auto": "auto", "none": "none", "required": "any"}.get(choice, "tool")}
    if body["type"] == "tool":
        body["name"] = choice
    if not parallel and choice != "none":
        body["disable_parallel_tool_use"] = True
    return body


def _sampling(sampling: Mapping[str, Any]) -> Payload:
    for name, value in sampling.items():
        if name not in (*REST, "reasoning_effort") and (name not in NEUTRAL or NEUTRAL[name] != value):
            raise cannot(name, "the model's server has no such setting")
    return {name: value for name, value in sampling.items() if name in REST}


# ------------------------------------------------------------------ read: what clients send

Tools = Callable[[Any], tuple[Tool[..., Any], ...] | None]

BLOCK: Schema = {
    "type": "object",
    "required": ["type"],
    "properties": {
        "type": TEXT,
        "source": {"type": ["object", "string"]},
        "input": OBJECT,
        "is_error": FLAG,
        "content": {"anyOf": [
            {"type": ["string", "null", "object"]},
            {"type": "array", "items": {"type": "object", "required": ["type"], "properties": {"type": TEXT}}},
        ]},
    },
}  # fmt: skip
"""A block. The `content` of a provider's tool result may be an object."""
CONTENT: Schema = {"anyOf": [TEXT, {"type": "array", "items": BLOCK}]}
TURN_OUTPUT: Schema = {"type": ["object", "null"], "properties": {"effort": {"enum": [*EFFORTS, None]}}}
FORMAT: Schema = {
    "type": ["object", "null"],
    "required": ["type"],
    "properties": {"type": {"const": "json_schema"}, "schema": OBJECT},
}
COUNTED: Mapping[str, Schema] = {
    "model": MODEL,
    "messages": {"type": "array", "minItems": 1, "maxItems": 10_000, "items": {
        "type": "object", "required": ["role"],
        "properties": {"role": {"enum": ["user", "assistant", "system"]}, "content": CONTENT,
                       "clear_at": {"type": ["string", "null"]}, "output_config": TURN_OUTPUT}}},
    "system": {"anyOf": [{"type": ["string", "null"]}, {"type": "array", "items": BLOCK}]},
    "tools": {"type": ["array", "null"], "maxItems": 10_000, "items": TOOL},
    "tool_choice": {"anyOf": [{"type": "null"}, {
        "type": "object", "required": ["type"],
        "properties": {"type": {"enum": ["auto", "any", "tool", "none"]}, "name": TEXT,
                       "disable_parallel_tool_use": FLAG}}]},
    "thinking": {"anyOf": [{"type": "null"}, {
        "type": "object", "required": ["type"],
        "properties": {"type": TEXT, "budget_tokens": MAX_TOKENS}}]},
    "output_config": {"type": ["object", "null"], "properties": {
        "format": FORMAT, "effort": {"enum": [*EFFORTS, None]}}},
    "output_format": FORMAT,
    "mcp_servers": {"type": ["array", "null"]},
    "thread": {"type": ["object", "string", "null"]},
}  # fmt: skip
BODY: Schema = {
    "type": "object",
    "additionalProperties": True,
    "required": ["model", "messages", "max_tokens"],
    "properties": {
        **COUNTED,
        "max_tokens": {**MAX_TOKENS, "type": "integer"},
        "stream": FLAG,
        "stop_sequences": {"type": ["array", "null"], "maxItems": 8191, "items": {"type": "string", "maxLength": 1024}},
        "temperature": SHARE,
        "top_p": SHARE,
        "top_k": {"type": ["integer", "null"], "minimum": 0, "maximum": 100_000},
    },
}
"""The schema of a request body. It has the fields that are read; any others are reported as ignored."""
COUNT_BODY: Schema = {**BODY, "required": ["model", "messages"]}
"""The schema of a body for `count_tokens`."""


def read_request(body: Mapping[str, Any], tools: Tools = as_tools) -> IncomingRequest:
    """Parse a body that matches BODY. `tools` makes Tools from dicts. Raises UsageError or Refused for a request that
    cannot be served."""
    fields = dict(body)
    _check(fields)
    reading = ContentReader()
    messages = reading.turns(fields["messages"], reading.system(fields.get("system")))
    tool_choice = record(fields.get("tool_choice"))
    described = records(fields.get("tools"))
    every = [*((f"tools.{i}", tool) for i, tool in enumerate(described)), *reading.changes.defined(described)]
    rows = reading.changes.left(read_tools(every, reading))
    offered = tools(rows) or ()
    demanded = _demanded(tool_choice, offered, reading)
    choice, offered = _chosen({} if demanded else tool_choice, offered)
    reading.name_servers(fields.get("mcp_servers"), described)
    output = record(fields.get("output_config"))
    thinking = record(fields.get("thinking"))
    sampling = set_fields(fields, *REST) | _effort(reading.effort or output.get("effort"))
    request = Request(
        messages=messages,
        tools=offered,
        choice=choice,
        parallel=tool_choice.get("disable_parallel_tool_use") is not True,
        max_tokens=fields.get("max_tokens"),
        temperature=fields.get("temperature"),
        stop=tuple(stop for stop in fields.get("stop_sequences") or () if stop),
        schema=_schema(output.get("format") or fields.get("output_format")),
        thinking=THINKING.get(thinking.get("type", "")),
        sampling=sampling,
        deferred=deferred(rows, reading.changes.places),
        search=searched_here(described),
    )
    return IncomingRequest(
        fields["model"],
        request,
        stream=fields.get("stream") is True,
        thoughts=request.thinking is True and thinking.get("display") != "omitted",
        ignored=_ignored(fields, thinking, output, reading),
        names=member_names(rows),
        eager=eager(tool for _, tool in every),
        hosted=tuple(reading.hosted),
        demanded=demanded,
        schema_field=_schema_field(output),
        servers=reading.servers,
        tells_servers=reading.knows_servers,
    )


def _check(fields: Payload) -> None:
    """Raises Refused for features that need data at the provider. After the refusal of `thread`, which would contain
    only the end of a conversation, clients send the whole conversation again."""
    if fields.get("compaction"):
        raise cannot("compaction", "conversations are not compacted here; ask for a summary of it in a message")
    if not fields.get("thread"):
        return
    error = cannot("thread", "no conversations are kept here; send all messages, without thread")
    error.details = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    raise error


def _effort(effort: str | None) -> Payload:
    return {"reasoning_effort": effort} if effort else {}


THINKING = {"enabled": True, "adaptive": True, "disabled": False}


def _demanded(choice: Payload, offered: tuple[Tool[..., Any], ...], reading: ContentReader) -> str:
    """Return the type of the provider's tool that a choice demands: "required" for any of them, "" for none."""
    kinds = [kind for kind, _ in reading.hosted]
    if choice.get("type") == "any":
        return "" if offered else "required" * bool(kinds)
    names = {tool.name for tool in offered}
    name = str(choice.get("name"))
    return "" if name in names else next((kind for kind in kinds if kind.startswith(f"{name}_")), "")


def _chosen(choice: Payload, offered: tuple[Tool[..., Any], ...]) -> tuple[str, tuple[Tool[..., Any], ...]]:
    """Return the choice, and the tools that it leaves. Raises Refused for a tool that is not offered."""
    kind = choice.get("type") or "auto"
    if kind == "tool":
        return of_name(need(choice, "name", "tool_choice"), offered, "tool_choice.name")
    return of_word("required" if kind == "any" else kind, offered, "tool_choice")


def _schema_field(output: Mapping[str, Any]) -> str:
    """Return the field with the schema of the reply: the current one, or the one of the beta."""
    return "output_config.format" if output.get("format") else "output_format"


def _schema(form: Any) -> Schema | None:
    if form is None:
        return None
    if (schema := record(form).get("schema")) is None:
        raise Refused("output_config.format: a schema is missing", param="output_config.format.schema")
    return cast("Schema", schema)


def _ignored(fields: Payload, thinking: Payload, output: Payload, reading: ContentReader) -> tuple[str, ...]:
    known: Mapping[str, Any] = BODY["properties"]
    names = {name for name in fields if name not in known} | reading.ignored | {where for _, where in reading.hosted}
    if thinking.get("type", "disabled") not in THINKING:
        names.add("thinking.type")
    names |= {f"thinking.{name}" for name in thinking if name not in ("type", "display")}
    names |= {f"output_config.{name}" for name in output if name not in ("format", "effort")}
    return tuple(sorted(names))
