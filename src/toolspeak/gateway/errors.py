"""Errors as clients get them: a status, a code, and a message that reveals nothing of the upstream."""

from __future__ import annotations

import re

from ..errors import (
    BadRequest,
    GenerationError,
    KeyRefused,
    LimitReached,
    ModelError,
    ModelUnreachable,
    PromptTooLong,
    RateLimited,
    Refused,
    ServerFailed,
    StreamCut,
    ToolspeakError,
    UsageError,
)

ADDRESS = re.compile(r"https?://[^\s,;]*")


def refused(error: BaseException) -> Refused:
    """Return the error for the client: a client's mistake as 4xx, an upstream's failure as 502 to 504, an internal
    error as 500 without details."""
    match error:
        case Refused():
            return error
        case UsageError():
            return Refused(_without_addresses(str(error)), status=error.status, code="invalid_value")
        case GenerationError():
            return Refused(str(error), status=502, code="no_valid_reply")
        case LimitReached() | TimeoutError():
            return Refused("the request exceeded its time limit", status=504, code="deadline")
        case RateLimited(retry_after=after):
            message = "the model's server has too many requests"
            return Refused(message, status=429, code="upstream_rate_limited", retry_after=after)
        case KeyRefused():
            message = "the model's server refused the gateway's own key"
            return Refused(message, status=502, code="upstream_key_refused")
        case BadRequest():
            return _refused_there(error)
        case ModelUnreachable(timed_out=late):
            message = (
                "the model's server did not begin to answer in time" if late else "the model's server cannot be reached"
            )
            return Refused(message, status=504 if late else 502, code="upstream_unreachable")
        case StreamCut():
            return Refused("the model's reply broke off", status=502, code="upstream_cut")
        case ServerFailed() | ModelError():
            return _failed(error)
        case ToolspeakError():
            return Refused(_without_addresses(str(error)), status=error.status, code="failed")
        case _:
            return Refused("the gateway failed; its log says why", status=500, code="internal_error")


def _refused_there(error: BadRequest) -> Refused:
    if isinstance(error, PromptTooLong):
        return _too_long(error.tokens, error.limit)
    return Refused(error.reason or _without_addresses(str(error)), code="upstream_refused")


def _too_long(tokens: int | None, limit: int | None) -> Refused:
    """Return the error in OpenAI's wording; the codec of Anthropic's API uses its own."""
    most = f"This model's maximum context length is {limit} tokens." if limit else "The prompt exceeds the context."
    came = f" However, your messages resulted in {tokens} tokens." if tokens else ""
    message = f"{most}{came} Please reduce the length of the messages."
    error = Refused(message, code="context_length_exceeded", param="messages")
    error.tokens, error.limit = tokens, limit
    return error


def _without_addresses(text: str) -> str:
    """Return one of our own messages without the server's name, which is for the operator only."""
    return ADDRESS.sub("the model's server", text)


def _failed(error: ModelError) -> Refused:
    if not isinstance(error, ServerFailed):
        return Refused(error.reason or "the model's server failed", status=502, code="upstream_failed")
    # A server's own message is for its operator: it may contain addresses and internals.
    if error.code == 503:  # a temporary failure: a retry may succeed
        message = "the model's server is unavailable"
        if isinstance(last := error.__cause__, ModelError):
            message = (
                f"the model's server failed too often, so it gets no requests for now; its last error: {refused(last)}"
            )
        return Refused(message, status=503, code="upstream_down", retry_after=error.retry_after)
    if 300 <= error.code < 400:  # the server's message contains the target address
        message = f"the model's server redirects ({error.code}), which is not followed"
    else:
        message = f"the model's server failed ({error.code})" if error.code else "the model's server failed"
    return Refused(message, status=502, code="upstream_failed")


def drop_traceback(error: BaseException | None) -> None:
    """Remove the traceback of an error. Its frames hold what they worked on, which holds the error: a reference cycle
    that only a garbage collection would free."""
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
