"""Everything that toolspeak raises.

    ToolspeakError
    ├── UsageError (ValueError)      the caller asked for something that cannot be
    │   ├── InvalidTool              a function or schema that cannot be offered as a tool
    │   ├── DuplicateTool            two tools of one name
    │   ├── UnknownDialect           no dialect of that name
    │   ├── UnknownModel             no model of that name
    │   ├── TemplateError            a chat template that cannot render these messages
    │   ├── StaleApproval            a pending call that is not what was shown, or has expired
    │   ├── NotRecorded              a request that a recording has no answer to
    │   └── MissingExtra             an optional library is not installed
    ├── CallError                    a call that cannot be run
    │   ├── UnknownTool              its name is not in the toolbox
    │   ├── InvalidCall              its arguments do not fit the schema
    │   └── NotApproved              whoever was asked said no
    │       └── ApprovalNeeded       a policy wants somebody's approval, and nobody is there to ask
    ├── Refused                      the gateway does not take a request: malformed, too large, no key, too many
    ├── LimitReached                 the seconds or tokens that the caller gave are used up
    ├── ToolError                    the tool itself failed
    │   └── ToolTimeout              it took longer than it may
    ├── GenerationError              the model never gave what was asked for; holds every attempt
    │   └── NoCall                   exactly one call was wanted, something else came
    └── ModelError                   the model could not be asked
        ├── ModelUnreachable         no server there, or no answer in time
        ├── KeyRefused               the server does not know the key
        ├── RateLimited              too many requests; `retry_after` in seconds where it was told
        ├── BadRequest               the server refused the request itself
        │   └── PromptTooLong        the prompt does not fit into the model's context
        ├── ServerFailed             the server answered with an error of its own
        ├── StreamCut                the reply broke off in the middle
        └── WeightsError             a local model's file is missing, broken or cannot be fetched

Every error carries its evidence in fields. `status` is the HTTP status that a server in front should
answer with. No message ever holds a key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .types import Pending, Problem, Reply, ToolCall

LONGEST = 6_000
"""Characters of an error's message. What others wrote stands in it, and a name of theirs may be as long as they like."""


class ToolspeakError(Exception):
    """The root of all errors here.

    A message that is longer than LONGEST has its middle left out.
    """

    status = 500

    def __init__(self, *args: object) -> None:
        super().__init__(*(_clipped(one) if isinstance(one, str) else one for one in args))


def _clipped(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[3 - LONGEST // 2 :]}"


class UsageError(ToolspeakError, ValueError):
    """The caller asked for something that cannot be."""

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
    """No dialect of that name; `near` holds the nearest ones."""

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
    """A pending call that is not what was shown to who approves it, or has expired: nothing has run."""

    status = 409


class MissingExtra(UsageError, ImportError):
    """An optional library is not installed; the message holds the command that installs it."""

    status = 501


class Refused(ToolspeakError):
    """The gateway does not take a request: it is malformed, too large, has no key, or there are too many.

    `code` is a word for it that programs can read, `param` where in the body (`messages.0.role`), `retry_after`
    in seconds where coming back may help, `request_id` what the gateway's log knows the request by. Of a prompt that is too
    long, `tokens` says how many it has and `limit` how many the context holds, where that is known. `details` are the
    fields by which a client of Anthropic's API knows what to do instead.
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
    """A request that a recording has no answer to; `diff` is how it differs from the nearest that is in there."""

    def __init__(self, message: str, *, diff: str = "") -> None:
        super().__init__(message)
        self.diff = diff


class CallError(ToolspeakError):
    """A call that cannot be run; `problems` says why, each with a sentence for the model."""

    status = 422

    def __init__(self, message: str, *, call: ToolCall | None = None, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.call = call
        self.problems = tuple(problems)


class UnknownTool(CallError):
    """A call to a tool that is not in the toolbox; `near` holds the nearest names."""

    def __init__(
        self, message: str, *, call: ToolCall | None = None, problems: Sequence[Problem] = (), near: Sequence[str] = ()
    ) -> None:
        super().__init__(message, call=call, problems=problems)
        self.near = tuple(near)


class InvalidCall(CallError):
    """A call whose arguments do not fit the tool's schema."""


class NotApproved(CallError):
    """A call that whoever was asked refused, or a policy."""

    status = 403


class ApprovalNeeded(NotApproved):
    """A call that a policy wants somebody's approval for, and nobody is there to ask: it is `pending`."""

    def __init__(self, pending: Pending, *, call: ToolCall | None = None) -> None:
        super().__init__(f"the call of {pending.tool!r} waits for approval: {pending.why}", call=call)
        self.pending = pending


class LimitReached(ToolspeakError):
    """A limit that the caller set was reached; `limit` names it, `reply` is what had come until then.

    `attempts` holds each reply before that one that did not fit, where one that fits was asked for.
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
    """A tool failed while it ran; the cause is `__cause__`."""

    def __init__(self, message: str, *, call: ToolCall | None = None) -> None:
        super().__init__(message)
        self.call = call


class ToolTimeout(ToolError):
    """A tool took longer than it may."""

    status = 504


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try: what the model replied, and what was wrong with it.

    `rung` says in which way the model was asked again, such as `told` or `alone`; "" is the first try. `failure` is set
    where no reply came: then `reply` is empty.
    """

    reply: Reply
    error: str
    rung: str = ""
    failure: ModelError | None = None


class GenerationError(ToolspeakError):
    """The model never gave what was asked for; `attempts` holds each try, `reply` the last one.

    `run` is the reply of a run whose answer was wanted as a value (`output=`) and never became one: what was done, is done.
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
    """Exactly one call was wanted and something else came."""


class ModelError(ToolspeakError):
    """The model could not be asked, or its answer could not be had; `reason` says why, without the server's address."""

    status = 502
    reason = ""


class ModelUnreachable(ModelError):
    """No server there, or no answer in time (`timed_out`)."""

    status = 504

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


class KeyRefused(ModelError):
    """The server does not know the key."""

    status = 401


class RateLimited(ModelError):
    """Too many requests; `retry_after` is in seconds where the server told."""

    status = 429

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class BadRequest(ModelError):
    """The server refused the request itself; `tools_refused` when it was for offering tools."""

    status = 400

    def __init__(self, message: str, *, tools_refused: bool = False) -> None:
        super().__init__(message)
        self.tools_refused = tools_refused


class PromptTooLong(BadRequest):
    """The prompt does not fit into the model's context: it has so many `tokens`, and the context is of `limit`, each None
    where nobody told."""

    def __init__(self, message: str, *, tokens: int | None = None, limit: int | None = None) -> None:
        super().__init__(message)
        self.tokens = tokens
        self.limit = limit


class ServerFailed(ModelError):
    """The server answered with an error of its own; `code` is the HTTP status it gave, 0 for none."""

    def __init__(self, message: str, *, code: int = 0, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after = retry_after


class StreamCut(ModelError):
    """The reply broke off in the middle; `text` is what had come."""

    def __init__(self, message: str, *, text: str = "") -> None:
        super().__init__(message)
        self.text = text


class WeightsError(ModelError):
    """A local model's file is missing, broken, or cannot be fetched."""
