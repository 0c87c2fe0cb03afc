"""A call of an operation: its arguments as a request, the server's answer as what a model reads."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

from ...api.failure import excerpt
from ...errors import ToolError
from ...models.address import redact
from .bodies import form_of, written
from .fetching import Answer, Bounds, Credentials, Sent, exchange
from .operations import Operation
from .styles import header_text, path_part, query_pairs

SHOWN = 1_500
"""Characters of an error's body that are told."""
LITERAL = "/:@!$&'()*+,;=~-._%"
"""What stays as it is in the fixed parts of a path."""


def function_of(
    operation: Operation, base: str, credentials: Credentials, bounds: Bounds, secrets: list[str], advice: str
) -> Callable[..., Awaitable[Any]]:
    """The async function that calls an operation with the arguments of its tool. It raises ToolError; `advice` is
    added where the server wants a key."""
    found = operation.found

    async def call(**arguments: Any) -> Any:
        try:
            sent = request_of(operation, base, arguments)
            answer = await exchange(sent, credentials, bounds)
        except ToolError as error:
            raise ToolError(redact(f"{found.method.upper()} {found.path}: {error}", secrets)) from None
        text = _text(answer)
        if not 200 <= answer.status < 300:
            raise ToolError(_refusal(operation, answer, text, secrets, advice))
        return _value(answer, text, secrets)

    call.__name__ = call.__qualname__ = found.name
    call.__doc__ = operation.description
    return call


def request_of(operation: Operation, base: str, arguments: Mapping[str, Any]) -> Sent:
    """The request that arguments make, but for the credentials. Raises ToolError for what cannot be sent."""
    given = {slot.argument: arguments[slot.argument] for slot in operation.slots if slot.argument in arguments}
    if unknown := arguments.keys() - given.keys():
        raise ToolError(f"there is no argument {min(unknown)!r}")
    path = operation.found.path
    filled: dict[str, str] = {}
    query: list[str] = []
    cookies: list[str] = []
    headers = {"Accept": operation.accept}
    for slot in operation.slots:
        if slot.argument not in given or slot.place in ("field", "body"):
            continue
        value = given[slot.argument]
        if value is None and slot.place != "path" and not slot.json:
            continue  # as RFC 6570 has it: only JSON can say null, and what is empty is something else
        if slot.place == "path":
            filled[slot.name] = path_part(slot, value)
        elif slot.place == "header":
            headers[slot.name] = header_text(slot, value)
        else:
            (query if slot.place == "query" else cookies).extend(query_pairs(slot, value))
    if cookies:
        headers["Cookie"] = "; ".join(cookies)
    body = _body(operation, given, headers)
    url = base + _filled(path, filled) + ("?" + "&".join(query) if query else "")
    return Sent(operation.found.method.upper(), url, headers, body)


def _filled(path: str, values: Mapping[str, str]) -> str:
    """The path with its holes filled. The text between them is the document's."""
    parts: list[str] = []
    for index, part in enumerate(path.replace("{", "}").split("}")):
        if index % 2 and part not in values:
            raise ToolError(f"the argument for {part!r}, a part of the path, is missing")
        parts.append(values[part] if index % 2 else quote(part, safe=LITERAL))
    return "".join(parts)


def _body(operation: Operation, given: Mapping[str, Any], headers: dict[str, str]) -> bytes | None:
    if not operation.media:
        return None
    slots = {slot.name: slot for slot in operation.slots if slot.place == "field"}
    whole = next((slot for slot in operation.slots if slot.place == "body"), None)
    if whole is not None:
        if whole.argument not in given:
            return None
        value = given[whole.argument]
    else:
        value = {slot.name: given[slot.argument] for slot in slots.values() if slot.argument in given}
        if not value and not operation.bodied:
            return None
    if not isinstance(value, dict) and form_of(operation.media) in ("form", "multipart"):
        raise ToolError("a form is made of fields: its value must be an object")
    headers["Content-Type"], body = written(operation.media, value, slots)
    return body


def _text(answer: Answer) -> str | None:
    """The body as text; None where it is none."""
    kind, _, more = answer.headers.get("Content-Type", "").partition(";")
    kind = kind.strip().lower()
    if b"\0" in answer.body[:1024] or kind.startswith(
        ("image/", "audio/", "video/", "font/", "application/octet-stream")
    ):
        return None
    charset = next((one.partition("=")[2].strip(' "') for one in more.split(";") if "charset=" in one.lower()), "utf-8")
    try:
        return answer.body.decode(charset)
    except (UnicodeDecodeError, LookupError):
        told = kind.startswith("text/") or form_of(kind) in ("json", "text")
        return answer.body.decode("utf-8", "replace") if told else None


def _value(answer: Answer, text: str | None, secrets: list[str]) -> Any:
    """What a model is given of a good answer: data of JSON, a text, or what there is where it is neither."""
    if not answer.body:
        return f"{answer.status} {answer.reason}".strip()
    if text is None:
        kind = answer.headers.get("Content-Type", "application/octet-stream")
        return {"content_type": kind, "bytes": len(answer.body), "note": "the content is no text and is not shown"}
    for secret in secrets:
        if len(secret) >= 8:
            text = text.replace(secret, "[hidden]")
    if form_of(answer.headers.get("Content-Type", "text/plain")) == "json" or text[:1] in "[{":
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def _refusal(operation: Operation, answer: Answer, text: str | None, secrets: list[str], advice: str) -> str:
    said = excerpt(text or "", SHOWN) if text is not None else "a body that is no text"
    where = f"{operation.found.method.upper()} {operation.found.path}"
    message = f"{where} answered {answer.status} {excerpt(answer.reason, 100)}".strip() + (f": {said}" if said else "")
    if answer.status in (401, 403) and advice:
        message += f" ({advice})"
    return redact(message, secrets)
