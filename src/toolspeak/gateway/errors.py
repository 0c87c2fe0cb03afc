"""Errors as clients get them: a status, a code, and a message that holds nothing of the upstream's."""

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
    """The error as it is told: a client's mistake as 4xx, an upstream's as 502 to 504, our own as 500 without
    detail."""
    match error:
        case Refused():
            return error
        case UsageError():
            return Refused(_without_addresses(str(error)), status=error.status, code="invalid_value")
        case GenerationError():
            return Refused(str(error), status=502, code="no_valid_reply")
        case LimitReached() | TimeoutError():
            return Refused("the request took longer than it may", status=504, code="deadline")
        case RateLimited(retry_after=after):
            said = "the model's server has too many requests"
            return Refused(said, status=429, code="upstream_rate_limited", retry_after=after)
        case KeyRefused():
            said = "the model's server refused the gateway's own key"
            return Refused(said, status=502, code="upstream_key_refused")
        case BadRequest():
            return _refused_there(error)
        case ModelUnreachable(timed_out=late):
            said = (
                "the model's server did not begin to answer in time" if late else "the model's server cannot be reached"
            )
            return Refused(said, status=504 if late else 502, code="upstream_unreachable")
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
    """As the OpenAI API says it; Anthropic's own words are put by its codec."""
    most = f"This model's maximum context length is {limit} tokens." if limit else "The prompt exceeds the context."
    came = f" However, your messages resulted in {tokens} tokens." if tokens else ""
    said = f"{most}{came} Please reduce the length of the messages."
    told = Refused(said, code="context_length_exceeded", param="messages")
    told.tokens, told.limit = tokens, limit
    return told


def _without_addresses(text: str) -> str:
    """A message of ours for whoever holds the settings, such as what is missing there, may name a server."""
    return ADDRESS.sub("the model's server", text)


def _failed(error: ModelError) -> Refused:
    if not isinstance(error, ServerFailed):
        return Refused(error.reason or "the model's server failed", status=502, code="upstream_failed")
    # What a server says of its failure is for who runs it: its addresses and its insides stand there.
    if error.code == 503:  # for now: coming back may help
        said = "the model's server cannot answer now"
        if isinstance(last := error.__cause__, ModelError):
            said = f"the model's server failed too often and is not asked now; the last time: {refused(last)}"
        return Refused(said, status=503, code="upstream_down", retry_after=error.retry_after)
    if 300 <= error.code < 400:  # its own words tell where to
        said = f"the model's server redirects ({error.code}), which is not followed"
    else:
        said = f"the model's server failed ({error.code})" if error.code else "the model's server failed"
    return Refused(said, status=502, code="upstream_failed")
