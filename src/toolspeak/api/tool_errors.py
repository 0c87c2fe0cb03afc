"""A tool's error as text, for conversations whose format has no field for it: JSON with the single field `error`, a
message or an object (see `tool_results.exception_text`)."""

from __future__ import annotations

import json

from ..schema.nonblocking_json import loads_or
from .json_stream import record


def error_text(message: str) -> str:
    """Return the result of a failed tool. A message that is such a result stays unchanged."""
    return json.dumps({"error": message}, ensure_ascii=False) if error_in(message) is None else message


def error_in(text: str) -> str | None:
    """Return the error in such a result: its message, or the whole text if it is an object; None for any other text."""
    if not text.startswith('{"error": '):
        return None
    body = record(loads_or(text, None))
    error = body.get("error")
    if len(body) != 1 or not isinstance(error, str | dict):
        return None
    return error if isinstance(error, str) and error_text(error) == text else text
