"""Writes the log probabilities of a text's tokens in the form of the Responses API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..json_stream import Payload


def write_logprob(token: Mapping[str, Any]) -> Payload:
    """Return a token's log probability with all fields of the API."""
    others = token.get("top_logprobs") or ()
    return _token(token) | {"top_logprobs": [_token(other) for other in others]}


def _token(token: Mapping[str, Any]) -> Payload:
    text = str(token.get("token", ""))
    spelled = token.get("bytes")
    return {
        "token": text,
        "bytes": spelled if isinstance(spelled, list) else list(text.encode()),
        "logprob": token.get("logprob", 0.0),
    }
