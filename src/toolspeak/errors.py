"""Defines every error that toolspeak raises.

    ToolspeakError
    ├── UsageError (ValueError)      the caller's request cannot be fulfilled as it is
    │   ├── InvalidTool              a function or schema that cannot be offered as a tool
    │   ├── DuplicateTool            two tools of one name
    │   ├── UnknownDialect           no dialect of that name
    │   ├── UnknownModel             no model of that name
    │   ├── TemplateError            a chat template that cannot render these messages
    │   ├── StaleApproval            a pending call that differs from the one shown, was refused, has run, or has expired
    │   ├── NotRecorded              a request that a recording has no answer to
    │   └── MissingExtra             an optional library is not installed
    ├── CallError                    a call that cannot be run
    │   ├── UnknownTool              its name is not in the toolbox
    │   ├── InvalidCall              its arguments do not fit the schema
    │   └── NotApproved              the approver or a policy rejected it
    │       └── ApprovalNeeded       a policy wants approval, and nobody can be asked
    ├── Refused                      the gateway rejects a request: malformed, too large, no valid key, too many
    ├── LimitReached                 the caller's limit of seconds or tokens is used up
    ├── ToolError                    the tool itself failed
    │   └── ToolTimeout              it exceeded its timeout
    ├── GenerationError              the model gave no valid reply; has every attempt
    │   └── NoCall                   exactly one call was required, the reply was something else
    └── ModelError                   the request to the model failed
        ├── ModelUnreachable         the server cannot be reached, or did not answer in time
        ├── KeyRefused               the server rejected the key
        ├── RateLimited              too many requests; `retry_after` in seconds if the server sent it
        ├── BadRequest               the server rejected the request itself
        │   └── PromptTooLong        the prompt does not fit into the model's context
        ├── ServerFailed             the server answered with an error
        ├── StreamCut                the reply broke off
        └── WeightsError             the file of a local model is missing, damaged or cannot be downloaded

Errors carry their details in fields, so no caller has to parse a message. `status` is the HTTP status with which a
server should pass the error on. No message ever contains a key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .types import Pending, Problem, Reply, ToolCall, Usage

LONGEST = 6_000
"""The most characters of an error's message: it may quote text of others of any length."""


class ToolspeakError(Exception):
    """The base class of all errors.

    A message that is longer than LONGEST loses its middle. `spent` is what the replies of a failed request cost.
    """

    status = 500
    spent = Usage()

    def __init__(self, *args: object) -> None:
        super().__init__(*(_clipped(one) if isinstance(one, str) else one for one in args))


def _clipped(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[3 - LONGEST // 2 :]}"


class UsageError(ToolspeakError, ValueError):
    """The caller's request cannot be fulfilled as it is."""

    status = 400


class InvalidTool(UsageError):
    """A function or schema that cannot be offered as a tool; `path` says where in it."""

    def __init__(self, message: str, *, tool: str = "", path: str = "") -> None:
        super().__init__(message)
        self.tool = tool
        self.path = path


class DuplicateTool(UsageError):
    """Two tools of one name."""

    def __init__(self, message: str, *, name: str = "") -> None:
        super().__init__(message)
        self.name = name


class UnknownDialect(UsageError):
    """No dialect of that name; `near` are the most similar names."""

    def __init__(self, message: str, *, name: str = "", near: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.name = name
        self.near = tuple(near)


class UnknownModel(UsageError):
    """No model of that name."""

    status = 404


class TemplateError(UsageError):
    """A chat template that cannot render these messages."""


class StaleApproval(UsageError):
    """A pending call that differs from the one that was shown, was refused, has expired, or has run already. Nothing runs."""

    status = 409


class MissingExtra(UsageError, ImportError):
    """An optional library is not installed; the message has the command that installs it."""

    status = 501


class Refused(ToolspeakError):
    """The gateway rejects a request: it is malformed, too large, has no valid key, or there are too many.

    `code` is a short word for programs, `param` the place in the body (`messages.0.role`), `retry_after` the seconds
    after which a retry may work, `request_id` the id in the gateway's log. For a prompt that is too long, `tokens` is
    its length and `limit` the size of the context, if known. `details` are further fields that clients of Anthropic's
    API evaluate.
    """

    status = 400
    request_id: str | None = None
    details: Mapping[str, Any] | None = None
    tokens: int | None = None
    limit: int | None = None

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        code: str = "invalid_request",
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        self.retry_after = retry_after


class NotRecorded(UsageError):
    """A request that a recording has no answer to; `diff` shows how it differs from the most similar recorded one."""

    def __init__(self, message: str, *, diff: str = "") -> None:
        super().__init__(message)
        self.diff = diff


class CallError(ToolspeakError):
    """A call that cannot be run; `problems` are the reasons, each with a sentence for the model."""

    status = 422

    def __init__(self, message: str, *, call: ToolCall | None = None, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.call = call
        self.problems = tuple(problems)


class UnknownTool(CallError):
    """A call to a tool that is not in the toolbox; `near` are the most similar names."""

    def __init__(
        self, message: str, *, call: ToolCall | None = None, problems: Sequence[Problem] = (), near: Sequence[str] = ()
    ) -> None:
        super().__init__(message, call=call, problems=problems)
        self.near = tuple(near)


class InvalidCall(CallError):
    """A call whose arguments do not fit the tool's schema."""


class NotApproved(CallError):
    """A call that the approver or a policy rejected."""

    status = 403


class ApprovalNeeded(NotApproved):
    """A call that needs approval by a policy, and nobody can be asked: it is `pending`."""

    def __init__(self, pending: Pending, *, call: ToolCall | None = None) -> None:
        super().__init__(f"the call of {pending.tool!r} waits for approval: {pending.why}", call=call)
        self.pending = pending


class LimitReached(ToolspeakError):
    """A limit of the caller was reached; `limit` is its name, `reply` the part of the reply that had arrived.

    `attempts` are the earlier replies that were rejected, if a valid one was requested.
    """

    status = 504

    def __init__(
        self, message: str, *, limit: str = "", reply: Reply | None = None, attempts: Sequence[Attempt] = ()
    ) -> None:
        super().__init__(message)
        self.limit = limit
        self.reply = reply
        self.attempts = tuple(attempts)


class ToolError(ToolspeakError):
    """A tool failed while it ran; the original exception is `__cause__`."""

    def __init__(self, message: str, *, call: ToolCall | None = None) -> None:
        super().__init__(message)
        self.call = call


class ToolTimeout(ToolError):
    """A tool exceeded its timeout."""

    status = 504


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try: the model's reply, and what was wrong with it.

    `strategy` is how the model was asked again, such as `told` or `alone`; "" for the first try. `failure` is set if
    no reply arrived; `reply` is empty then.
    """

    reply: Reply
    error: str
    strategy: str = ""
    failure: ModelError | None = None

    @property
    def rung(self) -> str:
        """The older name of `strategy`."""
        return self.strategy


class GenerationError(ToolspeakError):
    """The model gave no valid reply; `attempts` has every try, `reply` the last one.

    `run` is set if a run (`output=`) finished but its answer could not be converted: it is the reply of that run,
    whose calls were executed.
    """

    status = 502
    run: Reply | None = None

    def __init__(self, message: str, *, attempts: Sequence[Attempt] = ()) -> None:
        super().__init__(message)
        self.attempts = tuple(attempts)

    @property
    def reply(self) -> Reply | None:
        return next((attempt.reply for attempt in reversed(self.attempts) if attempt.failure is None), None)


class NoCall(GenerationError):
    """Exactly one call was required, and the reply was something else."""


class ModelError(ToolspeakError):
    """The request to the model failed; `reason` says why, without the server's address."""

    status = 502
    reason = ""


class ModelUnreachable(ModelError):
    """The server cannot be reached, or did not answer in time (`timed_out`)."""

    status = 504

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


class KeyRefused(ModelError):
    """The server rejected the key, or a hosted provider's key is not set."""

    status = 401


class RateLimited(ModelError):
    """Too many requests; `retry_after` is in seconds, if the server sent it."""

    status = 429

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class BadRequest(ModelError):
    """The server rejected the request itself; `tools_refused` if it did so because tools were offered.

    `code` is its HTTP status, 0 if there is none.
    """

    status = 400

    def __init__(self, message: str, *, tools_refused: bool = False, code: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.tools_refused = tools_refused


class PromptTooLong(BadRequest):
    """The prompt has `tokens` tokens and does not fit into the model's context of `limit` tokens. Either is None if
    unknown."""

    def __init__(self, message: str, *, tokens: int | None = None, limit: int | None = None) -> None:
        super().__init__(message)
        self.tokens = tokens
        self.limit = limit


class ServerFailed(ModelError):
    """The server answered with an error; `code` is its HTTP status, 0 if there is none."""

    def __init__(self, message: str, *, code: int = 0, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after = retry_after


class StreamCut(ModelError):
    """The reply broke off; `text` is the part that had arrived."""

    def __init__(self, message: str, *, text: str = "") -> None:
        super().__init__(f"{message}; {len(text):,} characters of its text had arrived" if text else message)
        self.text = text


class WeightsError(ModelError):
    """The file of a local model is missing, damaged, or cannot be downloaded."""
