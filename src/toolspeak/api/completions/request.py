"""Converts requests to continue a prompt in both directions: a `Request` into JSON for a server, and a client's JSON
into a `Request`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...errors import UsageError
from ...types import Request, Schema
from ..field_schemas import COMPLETED, FLAG, LIKELIEST, MODEL, cannot, set_fields, stops
from ..incoming import IncomingRequest
from ..json_stream import Payload, record
from ..openai_chat import write_constraints

TOKENS = 1024
"""The default of `max_tokens`. The API's own default of 16 is of no use."""
MOST = 8
"""The most replies to one request: to one prompt, or one to each of several."""
SAMPLING = ("top_p", "presence_penalty", "frequency_penalty", "logit_bias", "top_k", "min_p", "repetition_penalty")
"""Settings that are passed on by name: OpenAI's, then those of self-hosted servers."""


def write_request(
    request: Request, model: str, *, grammar_field: str = "", schema_field: str = "", tag_field: str = ""
) -> Payload:
    """Return the JSON body of a streamed request, which must have a `prompt`.

    The fields say where the server expects a grammar, a schema (`json_schema`: llama.cpp, `response_format`: vLLM,
    SGLang) and a structural tag (`response_format`).
    """
    if request.prompt is None:
        raise UsageError("/v1/completions continues a prompt, but the request has messages: render them first")
    body: Payload = {
        "model": model,
        "prompt": request.prompt,
        "max_tokens": TOKENS if request.max_tokens is None else request.max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    sampling = {"temperature": request.temperature, "seed": request.seed, "logprobs": request.logprobs}
    body |= {key: value for key, value in sampling.items() if value is not None}
    if request.stop:
        body["stop"] = list(request.stop)
    body |= _constraints(request, grammar_field, schema_field, tag_field)
    return body | dict(request.sampling)


def _constraints(request: Request, grammar_field: str, schema_field: str, tag_field: str) -> Payload:
    """Return the constraints of the reply, each in the field that the server expects."""
    body = write_constraints(request, grammar_field, tag_field)
    if request.schema is not None and schema_field:
        body |= write_schema(schema_field, request.schema)
    return body


def write_schema(field: str, schema: Schema) -> Payload:
    """Return a schema in the field that the server expects."""
    if field == "response_format":
        return {field: {"type": "json_schema", "json_schema": {"name": "reply", "schema": dict(schema)}}}
    return {field: dict(schema)}


# ------------------------------------------------------------------ read: what clients send

BODY: Schema = {
    "type": "object",
    "additionalProperties": True,
    "required": ["model", "prompt"],
    "properties": {
        "model": MODEL,
        "prompt": {"anyOf": [
            {"type": "string"},
            {"type": "array", "minItems": 1, "maxItems": MOST, "items": {"type": "string"}}]},
        **COMPLETED,
        "n": {"type": ["integer", "null"], "minimum": 1, "maximum": MOST},
        "best_of": {"type": ["integer", "null"], "minimum": 1, "maximum": 100},
        "suffix": {"type": ["string", "null"]},
        "echo": FLAG,
        "logprobs": LIKELIEST,
    },
}  # fmt: skip
"""The schema of a request body. It has the fields that are read; any others are reported as ignored."""


def read_request(body: Mapping[str, Any], tools: object = None) -> IncomingRequest:
    """Parse a body that matches BODY; the API has no `tools`. Raises Refused for a request that cannot be served."""
    fields = dict(body)
    each = fields.get("n") or 1
    prompts: list[str] = [fields["prompt"]] if isinstance(fields["prompt"], str) else fields["prompt"]
    _refuse(fields, each, len(prompts))
    request = Request(
        prompt=prompts[0],
        max_tokens=fields.get("max_tokens"),
        temperature=fields.get("temperature"),
        seed=fields.get("seed"),
        stop=stops(fields.get("stop")),
        logprobs=fields.get("logprobs"),
        sampling=set_fields(fields, *SAMPLING),
    )
    known: Mapping[str, Any] = BODY["properties"]
    return IncomingRequest(
        fields["model"],
        request,
        stream=fields.get("stream") is True,
        usage=record(fields.get("stream_options")).get("include_usage") is True,
        n=max(each, len(prompts)),
        several=tuple(replace(request, prompt=prompt) for prompt in prompts) if len(prompts) > 1 else (),
        echo={"prompt": fields["prompt"]} if fields.get("echo") else {},
        ignored=tuple(sorted(name for name in fields if name not in known)),
    )


def _refuse(fields: Mapping[str, Any], each: int, prompts: int) -> None:
    if fields.get("suffix"):
        raise cannot("suffix", "text after the completion is not supported")
    if (fields.get("best_of") or 1) > 1:
        raise cannot("best_of", "only n is supported: all replies that are generated are returned")
    if fields.get("echo") and fields.get("logprobs") is not None:
        raise cannot("logprobs", "the likelihoods of an echoed prompt are not available")
    if each > 1 and prompts > 1:
        raise cannot("n", "several replies are made to one prompt, or one to each of several")
