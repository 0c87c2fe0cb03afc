"""Converts requests to Ollama's chat API in both directions: a `Request` into JSON for a server, and a client's JSON
into a `Request`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ...schema.infer import as_tools
from ...types import Request, Schema
from ..field_schemas import COMPLETED, FLAG, LIKELIEST, MODEL, SAMPLED, STOP, stops
from ..incoming import IncomingRequest
from ..json_stream import Payload, record, records
from ..openai_chat import write_tool
from ..openai_chat.request import ANY_OBJECT
from ..openai_chat.tools import FUNCTION, Tools, read_offer
from .messages import MESSAGE, read_messages, write_messages

SAMPLING = {
    "top_p": "top_p", "top_k": "top_k", "min_p": "min_p", "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty", "repetition_penalty": "repeat_penalty",
}  # fmt: skip
"""The settings of `Request.sampling` by the names of Ollama's options."""
EFFORTS = ("low", "medium", "high")
"""The levels of thinking, besides on and off."""
SETTINGS = frozenset({*SAMPLING, "reasoning_effort"})
"""The settings of `Request.sampling` that the API supports."""

# ------------------------------------------------------------------ written: what a server is sent


def write_request(request: Request, model: str) -> Payload:
    """Return the JSON body of a streamed request.

    The API has no tool choice: for `none` no tools are sent, for a name only that tool.
    """
    body: Payload = {"model": model, "messages": write_messages(request.messages), "stream": True}
    any_tool = request.choice in ("auto", "required")
    if tools := [tool for tool in request.tools or () if any_tool or tool.name == request.choice]:
        body["tools"] = [write_tool(tool) for tool in tools]
    if request.schema is not None:
        body["format"] = dict(request.schema)
    if (think := _think(request)) is not None:
        body["think"] = think
    if options := _options(request):
        body["options"] = options
    return body


def _think(request: Request) -> bool | str | None:
    """Return whether the model is to think, or how much."""
    effort = request.sampling.get("reasoning_effort")
    return effort if effort in EFFORTS and request.thinking is not False else request.thinking


def _options(request: Request) -> Payload:
    """Return the sampling settings of the request."""
    wanted = {
        "num_predict": request.max_tokens, "temperature": request.temperature, "seed": request.seed,
        **{option: request.sampling.get(name) for name, option in SAMPLING.items()}, "stop": list(request.stop) or None,
    }  # fmt: skip
    return {key: value for key, value in wanted.items() if value is not None}


# ------------------------------------------------------------------ read: what clients send

OPTIONS: Schema = {
    "type": ["object", "null"],
    "maxProperties": 64,
    "properties": {
        "num_predict": {"type": ["integer", "null"], "minimum": -2, "maximum": 10_000_000},
        "seed": COMPLETED["seed"],
        "stop": STOP,
        "temperature": SAMPLED["temperature"],
        **{option: SAMPLED[name] for name, option in SAMPLING.items()},
    },
}
COMMON: Mapping[str, Schema] = {
    "model": MODEL,
    "stream": FLAG,
    "think": {"enum": [True, False, *EFFORTS, None]},
    "format": {"anyOf": [{"enum": ["", "json", None]}, {"type": "object"}]},
    "options": OPTIONS,
    "logprobs": FLAG,
    "top_logprobs": LIKELIEST,
}
"""Fields that chat and generate requests share."""
TOOL: Schema = {
    "type": "object",
    "required": ["function"],
    "properties": {"type": {"enum": ["function", None]}, "function": FUNCTION},
}
BODY: Schema = {
    "type": "object",
    "additionalProperties": True,
    "required": ["model"],
    "properties": {
        **COMMON,
        "messages": {"type": ["array", "null"], "maxItems": 10_000, "items": MESSAGE},
        "tools": {"type": ["array", "null"], "maxItems": 10_000, "items": TOOL},
    },
}
"""The body of a request, as far as it is read here; what else it holds is told to have been ignored. One without messages
asks to load the model."""


def read_request(body: Mapping[str, Any], tools: Tools = as_tools) -> IncomingRequest:
    """Parse a body that matches BODY. `tools` makes Tools from dicts. Raises Refused for a request that cannot be
    served."""
    offered = [{**tool, "type": "function"} for tool in records(body.get("tools"))]
    request = Request(
        messages=read_messages(records(body.get("messages"))),
        tools=read_offer({"tools": offered}, tools).tools,
        **read_settings(body),
    )
    return incoming(body, request, BODY)


def read_settings(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `Request` fields for settings. Numbers that stand for no limit or for the default are left out."""
    options, think = record(body.get("options")), body.get("think")
    whole = {name: int(options[name]) for name in ("num_predict", "seed", "top_k") if options.get(name) is not None}
    sampling: dict[str, Any] = {
        name: whole.get(option, options[option]) for name, option in SAMPLING.items() if options.get(option) is not None
    }
    if think in EFFORTS:
        sampling["reasoning_effort"] = think
    return {
        "max_tokens": whole["num_predict"] if whole.get("num_predict", 0) > 0 else None,
        "seed": whole["seed"] if whole.get("seed", -1) >= 0 else None,
        "temperature": options.get("temperature"),
        "stop": stops(options.get("stop")),
        "schema": _format(body.get("format")),
        "thinking": None if think is None else think is not False,
        "logprobs": body.get("top_logprobs") or (0 if body.get("logprobs") else None),
        "sampling": sampling,
    }


def incoming(body: Mapping[str, Any], request: Request, schema: Schema) -> IncomingRequest:
    """Return the request with how to send the reply: streamed, unless the body says otherwise."""
    known, options = schema["properties"], OPTIONS["properties"]
    ignored = [name for name in body if name not in known]
    ignored += [f"options.{name}" for name in record(body.get("options")) if name not in options]
    return IncomingRequest(
        body["model"],
        request,
        stream=body.get("stream") is not False,
        thoughts=body.get("think") is not False,
        ignored=tuple(sorted(ignored)),
        schema_field="format",
    )


def _format(wanted: Any) -> Schema | None:
    if wanted == "json":
        return ANY_OBJECT
    return cast("Schema", wanted) if isinstance(wanted, dict) else None
