"""Ollama's `POST /api/generate`: one prompt, wrapped in the model's template or, with `raw`, as it is.

The lines are those of the chat API, with the text in `response` in place of a message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import Refused
from ...types import Message, Request, Schema
from ..field_schemas import FLAG, TEXT, cannot
from ..incoming import IncomingRequest
from .messages import IMAGES, read_content
from .request import COMMON, incoming, read_settings
from .writer import GenerateWriter as ReplyWriter, write_error, write_generated as write_reply

__all__ = ["BODY", "ReplyWriter", "read_request", "write_error", "write_reply"]

BODY: Schema = {
    "type": "object",
    "additionalProperties": True,
    "required": ["model"],
    "properties": {
        **COMMON,
        "prompt": TEXT,
        "suffix": TEXT,
        "system": TEXT,
        "template": TEXT,
        "context": {"type": ["array", "null"]},
        "images": IMAGES,
        "raw": FLAG,
    },
}
"""The schema of a request body, with the fields that are read. Without a prompt it is a request to load the model."""


def read_request(body: Mapping[str, Any], tools: object = None) -> IncomingRequest:
    """Parse a body that matches BODY; the API has no `tools`. Raises Refused for a request that cannot be served."""
    _refuse(body)
    prompt, settings = body.get("prompt", ""), read_settings(body)
    if body.get("raw"):
        return incoming(body, Request(prompt=prompt, **settings), BODY)
    images = body.get("images")
    content = read_content(prompt, images, "images") if images else prompt
    messages: list[Message] = [{"role": "user", "content": content}]
    if system := body.get("system"):
        messages.insert(0, {"role": "system", "content": system})
    return incoming(body, Request(messages=messages, **settings), BODY)


def _refuse(body: Mapping[str, Any]) -> None:
    """Raises Refused for fields that would change the answer but are not supported."""
    if body.get("suffix"):
        raise cannot("suffix", "a prompt is answered or continued here; what comes after it cannot be given")
    if body.get("template"):
        raise cannot(
            "template", "the model's own template is used; set raw to true and send the prompt as it should be"
        )
    if body.get("context"):
        raise cannot("context", "no tokens of earlier turns are kept here; send the whole conversation to /api/chat")
    if body.get("raw") and (name := next((name for name in ("system", "images", "format") if body.get(name)), "")):
        raise Refused(f"{name}: a raw prompt is all that the model is given", code="invalid_value", param=name)
