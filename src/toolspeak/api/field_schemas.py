"""Parts of the JSON Schemas of request bodies, and fields that every API reads in the same way."""

from __future__ import annotations

from typing import Any

from ..errors import Refused
from ..types import Schema

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": ["boolean", "null"]}
OBJECT: Schema = {"type": "object"}
MAX_TOKENS: Schema = {"type": ["integer", "null"], "minimum": 1, "maximum": 10_000_000}
TEMPERATURE: Schema = {"type": ["number", "null"], "minimum": 0, "maximum": 2}
SHARE: Schema = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
PENALTY: Schema = {"type": ["number", "null"], "minimum": -2, "maximum": 2}
LIKELIEST: Schema = {"type": ["integer", "null"], "minimum": 0, "maximum": 20}
MODEL: Schema = {"type": "string", "maxLength": 256}
"""An empty name stands for the only model."""
STOP: Schema = {
    "anyOf": [
        {"type": "null"},
        {"type": "string", "minLength": 1, "maxLength": 1024},
        {"type": "array", "maxItems": 16, "items": {"type": "string", "minLength": 1, "maxLength": 1024}},
    ]
}

SAMPLED: dict[str, Schema] = {
    "temperature": TEMPERATURE,
    "top_p": SHARE,
    "top_k": {"type": ["integer", "null"], "minimum": -1, "maximum": 100_000},
    "min_p": SHARE,
    "presence_penalty": PENALTY,
    "frequency_penalty": PENALTY,
    "repetition_penalty": {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 10},
}
"""The sampling settings of OpenAI's APIs and of compatible servers."""
COMPLETED: dict[str, Schema] = {
    "stream": FLAG,
    "stream_options": {"type": ["object", "null"], "properties": {"include_usage": FLAG}},
    "stop": STOP,
    "max_tokens": MAX_TOKENS,
    **SAMPLED,
    "seed": {"type": ["integer", "null"], "minimum": -(2**63), "maximum": 2**63 - 1},
    "logit_bias": {
        "type": ["object", "null"],
        "maxProperties": 1024,
        "additionalProperties": {"type": "number", "minimum": -100, "maximum": 100},
    },
}
"""Settings that chat completions and raw completions share."""


def set_fields(body: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the fields among `names` that the body sets to something other than null."""
    return {name: body[name] for name in names if body.get(name) is not None}


def stops(value: Any) -> tuple[str, ...]:
    """Return the stop strings from a string or a list of strings."""
    return (value,) if isinstance(value, str) else tuple(value or ())


def refuse_blank(name: str, at: str) -> None:
    """Raise Refused for a name of a tool that is empty or blank, at this place of the body."""
    if not name.strip():
        raise Refused(f"{at}: expected the name of a tool, got {name[:100]!r}", code="invalid_value", param=at)


def cannot(param: str, why: str) -> Refused:
    """Return the refusal of a field that is understood but not supported."""
    return Refused(f"{param}: {why}", code="unsupported_parameter", param=param)
