"""Messages of Ollama's chat API: their JSON Schema, reading and writing.

Arguments are objects, images are separate from the text, and a result names the tool instead of the call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ...errors import Refused
from ...schema.nonblocking_json import dumps, loads_or
from ...types import Message, Schema
from ..base64_text import decode_base64
from ..field_schemas import TEXT, cannot
from ..images import image_kind, image_url
from ..json_stream import Payload, record, records
from ..openai_chat.messages import ARGUMENTS, ID, NAME

IMAGES: Schema = {"type": ["array", "null"], "maxItems": 100, "items": {"type": "string", "minLength": 1}}
MESSAGE: Schema = {
    "type": "object",
    "required": ["role"],
    "properties": {
        "role": {"enum": ["system", "user", "assistant", "tool"]},
        "content": TEXT,
        "thinking": TEXT,
        "images": IMAGES,
        "tool_calls": {"type": ["array", "null"], "maxItems": 1024, "items": {
            "type": "object", "required": ["function"], "properties": {
                "id": ID,
                "function": {
                    "type": "object", "required": ["name"], "properties": {"name": NAME, "arguments": ARGUMENTS}}}}},
        "tool_name": {"type": "string", "maxLength": 256},
        "name": {"type": "string", "maxLength": 256},
        "tool_call_id": {"type": "string", "maxLength": 512},
    },
}  # fmt: skip
"""One message of a body."""

DATA_URL = re.compile("data:[^,]{0,200};base64,")
"""The prefix of a data URL."""
# ------------------------------------------------------------------ written: what a server is sent


def write_messages(messages: Sequence[Message]) -> list[Payload]:
    """Return messages in Ollama's format."""
    names: dict[str, str] = {}
    out: list[Payload] = []
    for message in messages:
        calls = records(message.get("tool_calls"))
        names |= {str(call.get("id")): str(record(call.get("function")).get("name", "")) for call in calls}
        out.append(_message(message, calls, names))
    return out


def _message(message: Message, calls: list[Payload], names: Mapping[str, str]) -> Payload:
    role = message.get("role", "user")
    text, images = _content(message.get("content"))
    out: Payload = {"role": "system" if role == "developer" else role, "content": text}
    if images:
        out["images"] = images
    if thought := message.get("reasoning_content"):
        out["thinking"] = thought
    if calls:
        out["tool_calls"] = [{"function": _function(record(call.get("function")))} for call in calls]
    if role == "tool":
        out["tool_name"] = message.get("name") or names.get(message.get("tool_call_id", ""), "")
    return out


def _content(content: Any) -> tuple[str, list[str]]:
    """Return the text of a content, and its images as plain base64. Raises Refused for any other part."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else "", []
    texts: list[str] = []
    images: list[str] = []
    for part in records(cast("list[Any]", content)):
        if isinstance(text := part.get("text"), str):
            texts.append(text)
        elif part.get("type") == "image_url":
            images.append(_image(str(record(part.get("image_url")).get("url", ""))))
        else:
            raise cannot("messages", f"Ollama takes text and images, not a part of the type {part.get('type')!r:.60}")
    return "".join(texts), images


def _image(url: str) -> str:
    if match := DATA_URL.match(url):
        return url[match.end() :]
    raise cannot("messages", "Ollama takes an image as base64 in a data: URL; one at an address is not fetched for it")


def _function(function: Payload) -> Payload:
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        # an earlier call with invalid JSON is still part of the conversation
        arguments = loads_or(arguments or "{}", {"arguments": arguments})
    return {"name": function.get("name", ""), "arguments": arguments or {}}


# ------------------------------------------------------------------ read: what clients send


def read_messages(rows: Sequence[Payload]) -> list[Message]:
    """Return messages that match MESSAGE in our format. A result that names no call belongs to the first call of its
    tool that has no result yet. Raises Refused for a result without a call, and for an invalid image."""
    waiting: dict[str, str] = {}
    return [_read(row, at, waiting) for at, row in enumerate(rows)]


def _read(row: Payload, at: int, waiting: dict[str, str]) -> Message:
    """Return one message. `waiting` maps ids of earlier calls without a result to the names of their tools."""
    role, text = str(row["role"]), str(row.get("content", ""))
    message: Message = {"role": role, "content": text}
    if images := row.get("images"):
        if role != "user":
            raise cannot(f"messages.{at}.images", f"images are taken in messages of the user, not of the role {role}")
        message["content"] = read_content(text, images, f"messages.{at}.images")
    if role == "tool":
        message["tool_call_id"] = _answered(row, at, waiting)
    elif role == "assistant":
        if thought := row.get("thinking"):
            message["reasoning_content"] = thought
        if calls := [
            _read_call(call, f"call_{at:04d}_{i:04d}") for i, call in enumerate(records(row.get("tool_calls")))
        ]:
            message["tool_calls"] = calls
            waiting.update((str(call["id"]), str(call["function"]["name"])) for call in calls)
    return message


def _read_call(call: Payload, key: str) -> Payload:
    function = record(call["function"])
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else dumps(arguments or {})
    return {"id": call.get("id", key), "type": "function", "function": {"name": function["name"], "arguments": text}}


def _answered(row: Payload, at: int, waiting: dict[str, str]) -> str:
    """Return the id of the call that a result belongs to, and remove it from `waiting`."""
    key, name = row.get("tool_call_id", ""), row.get("tool_name", row.get("name", ""))
    call_id = (
        key if key in waiting else next((known for known, called in waiting.items() if name in ("", called)), None)
    )
    if call_id is None:
        what = f"of the tool {name[:100]!r} " if name else ""
        raise Refused(
            f"messages.{at}: no call {what}that has no result yet comes before this result",
            code="invalid_value", param=f"messages.{at}",
        )  # fmt: skip
    del waiting[call_id]
    return call_id


def read_content(text: str, images: Sequence[str], where: str) -> list[dict[str, Any]]:
    """Return a text and its images as content parts. Raises Refused for invalid base64."""
    parts = [{"type": "text", "text": text}] if text else []
    urls = [_url(image, f"{where}.{at}") for at, image in enumerate(images)]
    return [*parts, *({"type": "image_url", "image_url": {"url": url}} for url in urls)]


def _url(image: str, where: str) -> str:
    """Return the data URL of an image in base64."""
    if DATA_URL.match(image):
        return image
    data = decode_base64(image)
    if data is None:
        raise Refused(f"{where}: expected an image in base64", code="invalid_value", param=where)
    return image_url(image, image_kind(data) or "png")
