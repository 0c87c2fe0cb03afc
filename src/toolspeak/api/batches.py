"""OpenAI's Files and Batch APIs: the objects that clients get, and the schema of `POST /v1/batches`."""

from __future__ import annotations

from typing import Any, cast

from ..types import Schema
from .json_stream import Payload

ENDPOINTS = ("/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses")
"""The endpoints that the lines of a batch may use."""
DAY = 86_400
OPEN = ("validating", "in_progress", "finalizing", "cancelling")
"""The statuses of an unfinished batch."""
SECONDS = (3600, 30 * DAY)
"""The smallest and largest number of seconds for `expires_after`."""

EXPIRY: Schema = {
    "type": "object",
    "required": ["anchor", "seconds"],
    "properties": {
        "anchor": {"enum": ["created_at"]},
        "seconds": {"type": "integer", "minimum": SECONDS[0], "maximum": SECONDS[1]},
    },
    "additionalProperties": True,
}
BODY: Schema = {
    "type": "object",
    "required": ["input_file_id", "endpoint", "completion_window"],
    "properties": {
        "input_file_id": {"type": "string", "minLength": 1, "maxLength": 256},
        "endpoint": {"enum": list(ENDPOINTS)},
        "completion_window": {"enum": ["24h"]},
        "metadata": {
            "type": ["object", "null"],
            "maxProperties": 16,
            "propertyNames": {"maxLength": 64},
            "additionalProperties": {"type": "string", "maxLength": 512},
        },
        "output_expires_after": EXPIRY,
    },
    "additionalProperties": True,
}


def write_file(key: str, name: str, purpose: str, size: int, created: int, expires: int) -> Payload:
    """Return a file object."""
    return {
        "id": key, "object": "file", "bytes": size, "created_at": created, "expires_at": expires, "filename": name,
        "purpose": purpose, "status": "processed", "status_details": None,
    }  # fmt: skip


def write_batch(key: str, body: dict[str, Any], created: int) -> Payload:
    """Return the batch object of a new batch."""
    times = ("in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")
    return {
        "id": key, "object": "batch", "endpoint": body["endpoint"], "errors": None,
        "input_file_id": body["input_file_id"], "completion_window": body["completion_window"], "status": "validating",
        "output_file_id": None, "error_file_id": None, "created_at": created, "expires_at": created + DAY,
        **{f"{time}_at": None for time in times},
        "request_counts": {"total": 0, "completed": 0, "failed": 0}, "metadata": body.get("metadata"), "usage": None,
    }  # fmt: skip


def write_errors(errors: list[Payload]) -> Payload:
    """Return the errors of a failed batch, each with its `line` (from 1), `code`, `message` and `param`."""
    return {"object": "list", "data": errors}


def write_usage(tokens_in: int, tokens_out: int) -> Payload:
    """Return the total tokens of a batch."""
    return {
        "input_tokens": tokens_in, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": tokens_out,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": tokens_in + tokens_out,
    }  # fmt: skip


def read_usage(body: Any) -> tuple[int, int]:
    """Return the input and output tokens in the body of a response of any endpoint."""
    response = cast("Payload", body) if isinstance(body, dict) else {}
    usage = response.get("usage")
    if not isinstance(usage, dict):
        return 0, 0
    counts = cast("Payload", usage)
    tokens_in = counts.get("prompt_tokens", counts.get("input_tokens", 0))
    return tokens_in, counts.get("completion_tokens", counts.get("output_tokens", 0))


def unanswered(key: str, custom_id: str) -> Payload:
    """Return the output line of a request that expired with its batch."""
    message = "This request could not be executed before the completion window expired."
    return {"id": key, "custom_id": custom_id, "response": None, "error": {"code": "batch_expired", "message": message}}
