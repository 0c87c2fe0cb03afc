"""A tool's error as text, for every conversation whose form has no field that says so: JSON with the one field `error`, a
message or an object of more (see `tool_results.exception_text`)."""

from __future__ import annotations

import json

from ..schema.json_pieces import loads_or
from .json_stream import record


def error_text(message: str) -> str:
    """The result of a tool that failed. A message that is such a result stays as it is."""
    return json.dumps({"error": message}, ensure_ascii=False) if error_in(message) is None else message


def error_in(text: str) -> str | None:
    """What such a result says: its message, or all of it where it is more than a message; None for any other text."""
    if not text.startswith('{"error": '):
        return None
    told = record(loads_or(text, None))
    error = told.get("error")
    if len(told) != 1 or not isinstance(error, str | dict):
        return None
    return error if isinstance(error, str) and error_text(error) == text else text
