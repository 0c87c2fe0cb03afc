"""Turns a server's HTTP status and error body into the most specific error class.

Servers put their message into `{"error": {"message": …}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": …}`, a list
around one of these, or plain text.
"""

from __future__ import annotations

import re
from typing import Any, cast

from ..errors import BadRequest, KeyRefused, ModelError, PromptTooLong, RateLimited, ServerFailed
from ..schema.nonblocking_json import first_characters, loads_or
from ..schema.phrases import beginning

WORDS = 600
"""The most characters of a server's message that an error repeats."""

NO_TOOLS = re.compile(
    r"(not|n't) support[^.:]{0,40}\b(tools?|function.call)"  # "registry/x does not support tools"
    r"|\b(tools?|function.call)[^.:]{0,60}(not support|unsupported|requires? --)"  # "tools param requires --jinja flag"
    r"|endpoints found that support tool",
    re.IGNORECASE,
)

CONTEXT = re.compile(
    r"\bcontext[ _](length|window|size)\b"
    r"|\bprompt is too long\b"
    r"|\binput token count\b[^.]{0,40}\bexceeds\b"
    r"|\binputs?\b[^.]{0,60}\btokens?\b[^.]{0,40}must be <="
    r"|\b(input|prompt|request)\b[^.:]{0,60}\b(exceeds?|longer than)\b[^.:]{0,60}\b(tokens?|context)\b",
    re.IGNORECASE,
)
"""How servers say that a prompt exceeds the model's context."""
NUMBER = r"(\d[\d,]{0,11})"
LIMITS = (
    rf"(?:context (?:length|size|window)|maximum|limit|n_ctx|allowed)[^\d]{{0,30}}?{NUMBER}",
    rf"{NUMBER} (?:maximum|tokens? (?:maximum|context))",
    rf"(?:>|<=) ?{NUMBER}",
)
"""Patterns for the limit in such a message."""

FAILED_FOR_GOOD = re.compile(
    r"\b(input|prompt|text)\b[^.:]{0,60}\btoo (large|long|big)\b"
    r"|\bjinja (exception|error)|\bchat template\b[^.]{0,60}\b(error|fail)",
    re.IGNORECASE,
)
"""What llama.cpp says with a 500 of a request that fails every time: too long, or not to the template's liking."""

BY_KIND = {
    "invalid_api_key": 401, "authentication_error": 401, "permission_error": 403, "insufficient_quota": 429,
    "rate_limit_error": 429, "rate_limit_exceeded": 429, "requests": 429, "tokens": 429,
    "invalid_request_error": 400, "not_found_error": 404, "overloaded_error": 529,
    "context_length_exceeded": 400, "model_not_found": 404,
}  # fmt: skip
"""The status for each type of error, for errors inside a stream."""


def failure(status: int, body: Any, *, retry_after: float | None = None) -> ModelError:
    """Return the error for a response; `status` 0 means that the body came inside a successful response."""
    message = words(body)
    code = status or _status_in(body)
    if code in (401, 403):
        what = "the key" if code == 401 else "access"
        return KeyRefused(f"the server refused {what} ({code})" + (f": {message}" if message else ""))
    if code == 429:
        return RateLimited(
            f"too many requests (429): {message or 'the server gave no reason'}", retry_after=retry_after
        )
    refused = bool(NO_TOOLS.search(message))
    if (400 <= code <= 500 and code not in (404, 408)) and (too_long := prompt_too_long(body, message)):
        return too_long
    if 400 <= code < 500 and code != 408:
        if code == 404:
            message = f"{message or 'not found'} (are the address and the model's name right?)"
        return BadRequest(
            f"the server refused the request ({code}): {message or 'no reason given'}", tools_refused=refused, code=code
        )
    if refused or FAILED_FOR_GOOD.search(message):
        return BadRequest(f"the server refused the request ({code}): {message}", tools_refused=refused, code=code)
    return ServerFailed(
        f"the server failed{f' ({code})' if code else ''}: {message or 'no reason given'}",
        code=code,
        retry_after=retry_after,
    )


def prompt_too_long(body: Any, message: str) -> PromptTooLong | None:
    """Return the error if a server rejected a prompt that exceeds the context, with the numbers in its message."""
    table = _table(_decoded(body) if isinstance(body, (bytes, str)) else body)
    error = _table(table.get("error")) or table
    kinds = (error.get("code"), error.get("type"))
    if not CONTEXT.search(message) and not {"context_length_exceeded", "exceed_context_size_error"} & set(
        map(str, kinds)
    ):
        return None
    tokens, limit = _whole(error.get("n_prompt_tokens")), _whole(error.get("n_ctx"))
    limit = _limit_in(message) if limit is None else limit
    tokens = _prompt_tokens_in(limit, message) if tokens is None else tokens
    problem = f"the prompt is too long for the model's context: {message.rstrip('.')}. Give fewer tools or messages"
    return PromptTooLong(problem, tokens=tokens, limit=limit)


def _limit_in(message: str) -> int | None:
    """Return the limit that a server's message names."""
    matches = (re.search(pattern, message, re.IGNORECASE) for pattern in LIMITS)
    return next((_whole(match[1]) for match in matches if match), None)


def _prompt_tokens_in(limit: int | None, message: str) -> int | None:
    """Return the number of the prompt's tokens in a server's message: the largest number, if it is above the limit."""
    numbers = [number for text in re.findall(NUMBER, message) if (number := _whole(text)) is not None]
    return max((number for number in numbers if limit is None or number > limit), default=None)


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _whole(value: Any) -> int | None:
    text = str(value).replace(",", "") if isinstance(value, (int, str)) and not isinstance(value, bool) else ""
    return int(text) if text.isdigit() and text.isascii() and len(text) < 12 else None


def words(body: Any) -> str:
    """Return the message in an error body, cut to a limit; for an HTML page its title."""
    if isinstance(body, (bytes, str)):
        body = _decoded(body)
    if isinstance(body, list):
        body = next(iter(cast("list[Any]", body)), "")
    message = _message_in(body)
    if isinstance(message, dict):
        return excerpt_of(message)
    text = message if isinstance(message, str) else first_characters(message, 4 * WORDS) if message else ""
    title = re.search(r"<title[^>]*>(.*?)</title>", text[:65536], re.DOTALL | re.IGNORECASE)
    return excerpt(title[1] if title else text)


def _message_in(body: Any) -> Any:
    """Return the message in an error's body, at most four levels deep in `error`, `message`, `detail` or `msg`; the body
    itself if it has none of these."""
    for _ in range(4):
        table = _table(body)
        inner = next((table[key] for key in ("error", "message", "detail", "msg") if table.get(key)), None)
        if inner is None:
            break
        body = inner
    return body


def excerpt(text: str, size: int = WORDS) -> str:
    """Return the beginning of a text on one line, without control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * size]).split())
    return beginning(line, size)


def excerpt_of(value: Any) -> str:
    """Return the beginning of a JSON value on one line."""
    return excerpt(first_characters(value, 4 * WORDS))


def _decoded(body: bytes | str) -> Any:
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    return loads_or(text, text)


def _status_in(body: Any) -> int:
    if isinstance(body, list):
        body = next(iter(cast("list[Any]", body)), None)
    error = cast("dict[str, Any]", body).get("error", body) if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return 0
    fields = cast("dict[str, Any]", error)
    values = map(_as_status, (fields.get("status_code"), fields.get("code"), fields.get("type")))
    return next((value for value in values if value is not None), 0)


def _as_status(value: Any) -> int | None:
    if isinstance(value, int):
        return int(value)
    if not isinstance(value, str):
        return None
    return int(value) if value.isdigit() and len(value) == 3 else BY_KIND.get(value)
