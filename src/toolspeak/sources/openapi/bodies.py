"""Request bodies: selects the media type that is sent, and encodes the value."""

from __future__ import annotations

import base64
import binascii
import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from ...errors import ToolError
from .styles import ArgumentSlot, query_pairs

Form = Literal["json", "form", "multipart", "text", "bytes"]


def form_of(media: str) -> Form:
    """Return how a body of a media type is encoded."""
    kind = media.partition(";")[0].strip().lower()
    if kind in ("application/json", "*/*", "application/*") or kind.endswith("+json"):
        return "json"
    if kind == "application/x-www-form-urlencoded":
        return "form"
    if kind.startswith("multipart/"):
        return "multipart"
    return "text" if kind.startswith("text/") or kind.endswith(("xml", "yaml", "graphql", "ndjson")) else "bytes"


def chosen(content: Mapping[str, Any]) -> str:
    """Return the media type to send, of those that an operation accepts: JSON before forms before text; "" for none."""
    order: Sequence[Form] = ("json", "form", "multipart", "text", "bytes")
    return min(content, key=lambda media: (order.index(form_of(media)), "+" in media, "*" in media), default="")


def written(media: str, value: Any, slots: Mapping[str, ArgumentSlot]) -> tuple[str, bytes]:
    """Return (content type, body) for a value; `slots` say how each field of a form is encoded. Raises ToolError."""
    form = form_of(media)
    if form == "json":
        kind = "application/json" if "*" in media else media
        return kind, json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    if form == "form" and isinstance(value, dict):
        pairs = [pair for name, part in _fields(value) for pair in query_pairs(_slot(name, slots), part)]
        return media, "&".join(pairs).encode()
    if form == "multipart" and isinstance(value, dict):
        return _multipart(media.partition(";")[0].strip(), _fields(value), slots)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if form == "bytes":
        return media.replace("*/*", "application/octet-stream"), _bytes(text, "body")
    return (media if "charset" in media else f"{media}; charset=utf-8"), text.encode()


def _fields(value: Any) -> list[tuple[str, Any]]:
    """Return the fields of a form. Null is left out, because a form cannot express it."""
    return [(name, part) for name, part in cast("dict[str, Any]", value).items() if part is not None]


def _slot(name: str, slots: Mapping[str, ArgumentSlot]) -> ArgumentSlot:
    return slots.get(name) or ArgumentSlot(name, "field", name, "form", True)


def _bytes(text: str, argument: str) -> bytes:
    """Decode base64, in which models write bytes."""
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ToolError(f"the argument {argument!r} must be base64") from None


def _multipart(kind: str, fields: list[tuple[str, Any]], slots: Mapping[str, ArgumentSlot]) -> tuple[str, bytes]:
    boundary = uuid.uuid4().hex
    body = bytearray()
    for name, value in fields:
        slot = _slot(name, slots)
        parts = [value] if slot.json or not isinstance(value, list) else cast("list[Any]", value)
        for part in parts:
            body += f"--{boundary}\r\n".encode() + _part(name, part, slot) + b"\r\n"
    return f"{kind}; boundary={boundary}", bytes(body + f"--{boundary}--\r\n".encode())


def _part(name: str, value: Any, slot: ArgumentSlot) -> bytes:
    if any(c in name for c in "\r\n"):
        raise ToolError("the name of a field contains a line break")
    head = 'Content-Disposition: form-data; name="{}"'.format(name.replace('"', "%22"))
    if slot.file:
        head += f'; filename="{slot.argument}"\r\nContent-Type: application/octet-stream'
        content = _bytes(str(value), slot.argument)
    elif isinstance(value, (dict, list)) or slot.json:
        head += "\r\nContent-Type: application/json"
        content = json.dumps(value, ensure_ascii=False).encode()
    else:
        content = (value if isinstance(value, str) else json.dumps(value)).encode()
    return head.encode() + b"\r\n\r\n" + content
