"""A request for a chat completion, both directions: a `Request` into the JSON to send, and such JSON into a `Request`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from ...errors import Refused
from ...schema.infer import as_tools
from ...types import Message, Request, Schema, Tool
from ..asked import Asked
from ..body import FLAG, MAX_TOKENS, MODEL, OBJECT, PENALTY, SHARE, STOP, TEMPERATURE, TEXT, cannot, given, stops
from ..payloads import Payload, record, records

SAMPLING = (
    "top_p", "presence_penalty", "frequency_penalty", "logit_bias", "reasoning_effort", "verbosity",
    "top_k", "min_p", "repetition_penalty",
)  # fmt: skip
"""Settings that are passed on by their names: OpenAI's, then those that servers of one's own add."""

LOOSE = frozenset({
    "allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties",
    "propertyNames", "prefixItems", "contains", "uniqueItems", "unevaluatedProperties", "definitions",
})  # fmt: skip
"""Words of a schema that OpenAI's `strict` does not know."""


def write_request(
    request: Request,
    model: str,
    *,
    usage: bool = True,
    thoughts: bool = False,
    max_tokens_field: str = "max_tokens",
    grammar_field: str = "",
) -> Payload:
    """The JSON body of a streamed request.

    `usage`: ask for the tokens spent, which a few servers refuse to be asked. `thoughts`: send back the
    reasoning of earlier turns, which a few servers want and others refuse. `grammar_field`: where the server
    takes a grammar.
    """
    body: Payload = {"model": model, "messages": write_messages(request.messages, thoughts=thoughts), "stream": True}
    if usage:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [write_tool(tool) for tool in request.tools]
        if request.choice != "auto":
            body["tool_choice"] = write_choice(request.choice)
        if not request.parallel:
            body["parallel_tool_calls"] = False
    if request.schema is not None:
        form = {"name": "reply", "schema": dict(request.schema), "strict": is_strict(request.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    if request.grammar is not None and grammar_field:
        body |= write_grammar(grammar_field, request.grammar)
    sampling = {max_tokens_field: request.max_tokens, "temperature": request.temperature, "seed": request.seed}
    body |= {key: value for key, value in sampling.items() if value is not None}
    if request.stop:
        body["stop"] = list(request.stop)
    if request.logprobs is not None:
        body |= {"logprobs": True, "top_logprobs": request.logprobs}
    return body | dict(request.sampling)


def write_grammar(field: str, grammar: str) -> Payload:
    """A grammar where a server takes it: `grammar` (llama.cpp), `structured_outputs` or `guided_grammar` (vLLM),
    `ebnf` (SGLang)."""
    return {field: {"grammar": grammar} if field == "structured_outputs" else grammar}


def write_messages(messages: Sequence[Message], *, thoughts: bool = False) -> list[Payload]:
    """Messages as the API takes them: they are in its form, but for reasoning and arguments left as objects."""
    return [_message(message, thoughts) for message in messages]


def write_tool(tool: Tool[..., Any]) -> Payload:
    """A tool as `tools` takes it: `{"type": "function", "function": {...}}`."""
    function: Payload = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    if not tool.description:
        del function["description"]
    if tool.strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def write_choice(choice: str) -> Any:
    """`tool_choice`: auto, none and required as they are, anything else is the name of a tool."""
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}


def is_strict(schema: Any) -> bool:
    """Whether OpenAI holds its sampling to a schema: it refuses `strict` for any other.

    Every object closed, every property required, no combination but anyOf. Servers of one's own hold to
    any schema, whatever `strict` says.
    """
    if isinstance(schema, list):
        return all(is_strict(item) for item in cast("list[Any]", schema))
    node = record(schema)
    if not LOOSE.isdisjoint(node):
        return False
    if "object" in node.get("type", ()) or "properties" in node:
        names = record(node.get("properties"))
        if node.get("additionalProperties") is not False or set(names) != set(node.get("required", ())):
            return False
    named = (*record(node.get("properties")).values(), *record(node.get("$defs")).values())
    return all(is_strict(inner) for inner in (*named, *(node[key] for key in ("items", "anyOf") if key in node)))


def _message(message: Message, thoughts: bool) -> Payload:
    out: Payload = dict(cast("Payload", message))
    if not thoughts:
        out.pop("reasoning_content", None)
    if calls := records(out.get("tool_calls")):
        out["tool_calls"] = [_call(call) for call in calls]
    return out


def _call(call: Payload) -> Payload:
    function = record(call.get("function"))
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        return call
    text = json.dumps({} if arguments is None else arguments, ensure_ascii=False)
    return {**call, "function": {**function, "arguments": text}}


# ------------------------------------------------------------------ read: what clients send

Tools = Callable[[Any], tuple[Tool[..., Any], ...] | None]

FUNCTION: Schema = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 256},
        "description": {"type": ["string", "null"]},
        "parameters": {"type": ["object", "null"]},
        "strict": FLAG,
    },
}
MESSAGE: Schema = {
    "type": "object",
    "required": ["role"],
    "properties": {
        "role": {"enum": ["system", "developer", "user", "assistant", "tool", "function"]},
        "content": {"anyOf": [{"type": ["string", "null"]}, {"type": "array", "items": {
            "type": "object", "required": ["type"], "properties": {"type": TEXT, "text": TEXT}}}]},
        "name": {"type": ["string", "null"]},
        "tool_call_id": {"type": ["string", "null"]},
        "reasoning_content": {"type": ["string", "null"]},
        "tool_calls": {"type": ["array", "null"], "maxItems": 256, "items": {
            "type": "object", "required": ["id", "function"], "properties": {
                "id": TEXT,
                "function": {"type": "object", "required": ["name"], "properties": {
                    "name": TEXT, "arguments": {"type": ["string", "object", "null"]}}}}}},
    },
}  # fmt: skip
BODY: Schema = {
    "type": "object",
    "additionalProperties": True,
    "required": ["model", "messages"],
    "properties": {
        "model": MODEL,
        "messages": {"type": "array", "minItems": 1, "maxItems": 10_000, "items": MESSAGE},
        "stream": FLAG,
        "stream_options": {"type": ["object", "null"], "properties": {"include_usage": FLAG}},
        "tools": {"type": ["array", "null"], "maxItems": 10_000, "items": {
            "type": "object", "required": ["type"], "properties": {"type": TEXT, "function": FUNCTION}}},
        "tool_choice": {"anyOf": [
            {"enum": ["auto", "none", "required", None]},
            {"type": "object", "required": ["type", "function"], "properties": {
                "type": {"const": "function"},
                "function": {"type": "object", "required": ["name"], "properties": {"name": TEXT}}}}]},
        "parallel_tool_calls": FLAG,
        "response_format": {"anyOf": [{"type": "null"}, {
            "type": "object", "required": ["type"], "properties": {
                "type": {"enum": ["text", "json_object", "json_schema"]},
                "json_schema": {"type": "object", "properties": {"schema": OBJECT, "strict": FLAG, "name": TEXT}}}}]},
        "n": {"type": ["integer", "null"], "minimum": 1, "maximum": 8},
        "stop": STOP,
        "max_tokens": MAX_TOKENS,
        "max_completion_tokens": MAX_TOKENS,
        "temperature": TEMPERATURE,
        "seed": {"type": ["integer", "null"], "minimum": -(2**63), "maximum": 2**63 - 1},
        "top_p": SHARE,
        "top_k": {"type": ["integer", "null"], "minimum": -1, "maximum": 100_000},
        "min_p": SHARE,
        "presence_penalty": PENALTY,
        "frequency_penalty": PENALTY,
        "repetition_penalty": {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 10},
        "logit_bias": {"type": ["object", "null"], "maxProperties": 1024,
                       "additionalProperties": {"type": "number", "minimum": -100, "maximum": 100}},
        "logprobs": FLAG,
        "top_logprobs": {"type": ["integer", "null"], "minimum": 0, "maximum": 20},
        "reasoning_effort": {"type": ["string", "null"], "maxLength": 32},
        "verbosity": {"type": ["string", "null"], "maxLength": 32},
        "include_thinking": FLAG,
    },
}  # fmt: skip
"""The body of a request, as far as it is read here; what else it holds is told to have been ignored."""


def read_request(body: Mapping[str, Any], tools: Tools = as_tools) -> Asked:
    """What a body that fits BODY asks for. `tools` makes Tools of dicts. Raises UsageError for what cannot be done."""
    fields = dict(body)
    offered = tools([tool["function"] for tool in _functions(fields.get("tools"))]) or ()
    schema = _format(record(fields.get("response_format")))
    thinking = fields.get("include_thinking")
    if fields.get("reasoning_effort") == "none":
        thinking = False
    request = Request(
        messages=[cast("Message", message) for message in fields["messages"]],
        tools=offered,
        choice=_choice(fields.get("tool_choice")),
        parallel=fields.get("parallel_tool_calls") is not False,
        max_tokens=fields.get("max_completion_tokens") or fields.get("max_tokens"),
        temperature=fields.get("temperature"),
        seed=fields.get("seed"),
        stop=stops(fields.get("stop")),
        schema=schema,
        thinking=thinking,
        logprobs=(fields.get("top_logprobs") or 0) if fields.get("logprobs") else None,
        sampling=given(fields, *SAMPLING),
    )
    known: Mapping[str, Any] = BODY["properties"]
    return Asked(
        fields["model"],
        request,
        stream=fields.get("stream") is True,
        usage=record(fields.get("stream_options")).get("include_usage") is True,
        n=fields.get("n") or 1,
        thoughts=fields.get("include_thinking") is not False,
        ignored=tuple(sorted(name for name in fields if name not in known)),
    )


def _functions(tools: Any) -> list[Payload]:
    for at, tool in enumerate(records(tools)):
        if tool["type"] != "function" or "function" not in tool:
            raise cannot(f"tools.{at}", f"only functions can be offered here, not a tool of the type {tool['type']!r}")
    return records(tools)


def _choice(choice: Any) -> str:
    if isinstance(choice, dict):
        return str(record(cast("Payload", choice)["function"])["name"])
    return choice or "auto"


def _format(wanted: Payload) -> Schema | None:
    match wanted.get("type"):
        case "json_object":
            return {"type": "object"}
        case "json_schema":
            schema = record(wanted.get("json_schema")).get("schema")
            if schema is None:
                raise Refused("response_format.json_schema: a schema is missing", param="response_format.json_schema")
            return cast("Schema", schema)
        case _:
            return None
