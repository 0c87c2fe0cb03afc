"""Calls an operation: builds a request from the arguments, and turns the server's response into a result for a model."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from ...api.upstream_errors import excerpt
from ...errors import ToolError
from ...models.offload import offloaded
from ...schema.nonblocking_json import loads_or
from ...secret_removal import Secrets
from ..definition_checks import refuse_unsendable
from .auth import Keys
from .bodies import form_of, written
from .fetching import Bounds, Credentials, HttpAnswer, SentRequest, exchange
from .operations import Operation
from .styles import ArgumentSlot, deep_names, header_text, own_names, path_part, query_pairs, whole_segments, would_set

MOST_CHARACTERS = 1_500
"""The most characters of an error's body that are passed on."""
CHARSET = re.compile("(?i)utf|us-ascii|iso|latin|windows|cp|koi8|gb|big5|euc|shift|tis|mac")
"""How a charset begins that is one. Python knows others, some of which take time with the square of a text."""
LITERAL = "/:@!$&'()*+,;=~-._%"
"""Characters that are not encoded in the fixed parts of a path."""
NO_BODY: Any = object()


def function_of(
    operation: Operation, base: str, credentials: Credentials, bounds: Bounds, keys: Keys, advice: str
) -> Callable[..., Awaitable[Any]]:
    """Return the async function that calls an operation with the arguments of its tool. It raises ToolError; `advice`
    is added if the server requires a key."""
    named = operation.named
    secrets = Secrets(keys.secrets)

    async def call(**arguments: Any) -> Any:
        refuse_unsendable(arguments)
        try:
            sent = request_of(operation, base, arguments, keys.hidden)
            answer = await exchange(sent, credentials, bounds)
        except ToolError as error:
            raise ToolError(secrets.out_of(f"{named.title}: {error}")) from None
        return await offloaded(len(answer.body), _outcome, operation, answer, secrets, advice)

    call.__name__ = call.__qualname__ = named.name
    call.__doc__ = operation.description
    return call


def _outcome(operation: Operation, answer: HttpAnswer, secrets: Secrets, advice: str) -> Any:
    """Return the result of a response, or raise a ToolError. A large one takes a second to search for secrets."""
    text = _text(answer)
    if not 200 <= answer.status < 300:
        raise ToolError(_refusal(operation, answer, text, secrets, advice))
    return _value(answer, text, secrets)


def _target(path: str, filled: Mapping[str, str]) -> str:
    """Return the path with its values. Raises ToolError if a segment would become empty, `.` or `..`."""
    target = _filled(path, filled)
    if filled and not whole_segments(target) and whole_segments(re.sub(r"\{[^{}]*\}", "x", path)):
        raise ToolError("the arguments make a path with a part that is empty, `.` or `..`")
    return target


def request_of(
    operation: Operation, base: str, arguments: Mapping[str, Any], hidden: Collection[tuple[str, str]] = ()
) -> SentRequest:
    """Return the request for arguments, without credentials. No argument may set a parameter in `hidden`, pairs of
    place and name. Raises ToolError for arguments that cannot be sent."""
    values = {slot.argument: arguments[slot.argument] for slot in operation.slots if slot.argument in arguments}
    if unknown := arguments.keys() - values.keys():
        raise ToolError(f"there is no argument {min(unknown)!r}")
    parameters = _Parameters({"Accept": operation.accept})
    for slot in (slot for slot in operation.slots if slot.argument in values):
        if slot.place != "field" or form_of(operation.media) == "form":
            _refuse_others(slot, values[slot.argument], operation, hidden)
        parameters.set(slot, values[slot.argument])
    headers = parameters.headers
    if parameters.cookies:
        headers["Cookie"] = "; ".join(parameters.cookies)
    body = _body(operation, values, headers)
    url = base + _target(operation.named.path, parameters.path) + parameters.query_string()
    return SentRequest(operation.named.method.upper(), url, headers, body)


@dataclass(slots=True)
class _Parameters:
    """The encoded parameters of a request, by place."""

    headers: dict[str, str]
    path: dict[str, str] = field(default_factory=dict[str, str])
    query: list[str] = field(default_factory=list[str])
    cookies: list[str] = field(default_factory=list[str])

    def set(self, slot: ArgumentSlot, value: Any) -> None:
        """Encode a value for its slot. As in RFC 6570, null is left out: only JSON can express it."""
        if slot.place == "path":
            self.path[slot.name] = path_part(slot, value)
        elif value is None and not slot.json:
            return
        elif slot.place == "header":
            self.headers[slot.name] = header_text(slot, value)
        elif slot.place == "query":
            self.query += query_pairs(slot, value)
        elif slot.place == "cookie":
            self.cookies += query_pairs(slot, value)

    def query_string(self) -> str:
        return "?" + "&".join(self.query) if self.query else ""


def _refuse_others(slot: ArgumentSlot, value: Any, operation: Operation, hidden: Collection[tuple[str, str]]) -> None:
    """Raises ToolError for an object whose fields would become other parameters of the document, or parameters with
    credentials."""
    names = [*own_names(slot, value), *deep_names(slot, value)]
    if not names:
        return
    others = [
        parameter.name for parameter in operation.slots if parameter.place == slot.place and parameter is not slot
    ]
    others += [name for place, name in hidden if place == slot.place]
    if wrong := would_set(slot, names, others):
        raise ToolError(
            f"the argument {slot.argument!r} must not have the field {wrong[0]!r}: it would set another parameter"
        )


def _filled(path: str, values: Mapping[str, str]) -> str:
    """Return the path with its placeholders filled. The text between them comes from the document."""
    parts: list[str] = []
    for index, part in enumerate(path.replace("{", "}").split("}")):
        if index % 2 and part not in values:
            raise ToolError(f"the argument for {part!r}, a part of the path, is missing")
        parts.append(values[part] if index % 2 else quote(part, safe=LITERAL))
    return "".join(parts)


def _body(operation: Operation, arguments: Mapping[str, Any], headers: dict[str, str]) -> bytes | None:
    if not operation.media:
        return None
    slots = {slot.name: slot for slot in operation.slots if slot.place == "field"}
    value = _body_value(operation, slots.values(), arguments)
    if value is NO_BODY:
        return None
    if not isinstance(value, dict) and form_of(operation.media) in ("form", "multipart"):
        raise ToolError("a form is made of fields: its value must be an object")
    headers["Content-Type"], body = written(operation.media, value, slots)
    return body


def _body_value(operation: Operation, fields: Iterable[ArgumentSlot], arguments: Mapping[str, Any]) -> Any:
    """Return the argument that is the body, or an object of the arguments that are its fields; NO_BODY for none."""
    whole = next((slot for slot in operation.slots if slot.place == "body"), None)
    if whole is not None:
        return arguments.get(whole.argument, NO_BODY)
    value = {slot.name: arguments[slot.argument] for slot in fields if slot.argument in arguments}
    return value if value or operation.bodied else NO_BODY


def _text(answer: HttpAnswer) -> str | None:
    """Return the body as text; None if it is binary."""
    kind, _, more = answer.headers.get("Content-Type", "").partition(";")
    kind = kind.strip().lower()
    if b"\0" in answer.body[:1024] or kind.startswith(
        ("image/", "audio/", "video/", "font/", "application/octet-stream")
    ):
        return None
    charset = next((one.partition("=")[2].strip(' "') for one in more.split(";") if "charset=" in one.lower()), "utf-8")
    if not CHARSET.match(charset):
        charset = "utf-8"
    try:
        return answer.body.decode(charset)
    except (UnicodeDecodeError, LookupError):
        return answer.body.decode("utf-8", "replace") if form_of(kind) in ("json", "text") else None


def _value(answer: HttpAnswer, text: str | None, secrets: Secrets) -> Any:
    """Return the result of a successful response: JSON data, text, or a description of other content."""
    if not answer.body:
        return secrets.out_of(f"{answer.status} {answer.reason}".strip(), exact=True)
    if text is None:
        kind = secrets.out_of(answer.headers.get("Content-Type", "application/octet-stream"), exact=True)
        return {"content_type": kind, "bytes": len(answer.body), "note": "the content is not text and is not shown"}
    text = secrets.out_of(text, exact=True)
    if form_of(answer.headers.get("Content-Type", "text/plain")) == "json" or text[:1] in "[{":
        return loads_or(text, text)
    return text


def _refusal(operation: Operation, answer: HttpAnswer, text: str | None, secrets: Secrets, advice: str) -> str:
    body = (
        "a body that is not text"
        if text is None
        else excerpt(secrets.out_of(text[: 20 * MOST_CHARACTERS]), MOST_CHARACTERS)
    )
    message = f"{operation.named.title} answered {answer.status} {excerpt(answer.reason, 100)}".strip() + (
        f": {body}" if body else ""
    )
    if answer.status in (401, 403) and advice:
        message += f" ({advice})"
    return secrets.out_of(message)
