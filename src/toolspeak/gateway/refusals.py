"""What a client is told of an error: the status, a word for it, and a message that holds nothing of the upstream's."""

from __future__ import annotations

from ..errors import (
    BadRequest,
    GenerationError,
    KeyRefused,
    LimitReached,
    ModelError,
    ModelUnreachable,
    RateLimited,
    Refused,
    ServerFailed,
    StreamCut,
    ToolspeakError,
    UsageError,
)


def refused(error: BaseException) -> Refused:
    """The error as it is told: a client's mistake as 4xx, an upstream's as 502 to 504, our own as 500 without detail."""
    match error:
        case Refused():
            return error
        case UsageError():
            return Refused(str(error), status=error.status, code="invalid_value")
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
            return Refused(error.reason, code="upstream_refused")
        case ModelUnreachable(timed_out=late):
            said = (
                "the model's server did not begin to answer in time" if late else "the model's server cannot be reached"
            )
            return Refused(said, status=504 if late else 502, code="upstream_unreachable")
        case StreamCut():
            return Refused("the model's reply broke off", status=502, code="upstream_cut")
        case ServerFailed() | ModelError():
            return Refused(_failure(error), status=502, code="upstream_failed")
        case ToolspeakError():
            return Refused(str(error), status=error.status, code="failed")
        case _:
            return Refused("the gateway failed; its log says why", status=500, code="internal_error")


def _failure(error: ModelError) -> str:
    if isinstance(error, ServerFailed):  # its own words are for its operator: addresses and names stand in them
        if 300 <= error.code < 400:
            return f"the model's server redirects ({error.code}), which is not followed"
        return f"the model's server failed ({error.code})" if error.code else "the model's server failed"
    return error.reason or "the model's server failed"
