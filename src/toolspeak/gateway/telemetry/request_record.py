"""The record of a finished request: names, numbers and times, without any text of the conversation."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from time import perf_counter, time

from ...errors import ToolspeakError
from ...events import CallStart, Event, Finished, Noted, TextDelta, ThoughtDelta
from ...types import Usage

UNKNOWN = "unknown"
"""Replaces names from clients that are not configured: no client's text may become a label."""
GONE = 499
"""The status of a request whose client left before the response was complete."""
SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
LONGEST_ID = 64
POLICY_NOTES = frozenset(("policy-refused", "policy-asks"))
"""Notes about calls that a policy decided; the audit has them. Nothing was repaired."""


def request_id(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the client's `x-request-id` if it is short and harmless, otherwise a new id."""
    for name, value in headers:
        if name == b"x-request-id" and 0 < len(value) <= LONGEST_ID and SAFE.issuperset(value):
            return value.decode("ascii")
    return "req_" + os.urandom(12).hex()


@dataclass(slots=True)
class RequestRecord:
    """One request. `route` is an existing route or `unknown`, `model` a configured one or `unknown`, `key` the name of
    a key.

    `status` is the status sent to the client, 499 if it left first. `code` is why the request was refused or failed,
    one of our codes, "" for success. `estimated` says that the tokens are estimated, because the server does not report
    them. `ran` is how many calls of the operator's tools ran here. `visible_tools` is how many tools the model saw, if not all;
    `searches` is how often it searched for others. `default` says that the default model answers to an unknown name.
    `meant` are our fields that ignored ones misspell, and the model that an unknown name misspells. Times are in seconds: `seconds` in all, `first` to the first token.
    """

    id: str = ""
    method: str = ""
    route: str = UNKNOWN
    api: str = ""
    model: str = ""
    key: str = ""
    status: int = 0
    code: str = ""
    stream: bool = False
    seconds: float = 0.0
    first: float | None = None
    waited: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    estimated: bool = False
    calls: int = 0
    ran: int = 0
    finish: str = ""
    repairs: dict[str, int] = field(default_factory=dict[str, int])
    reasks: int = 0
    visible_tools: str = ""
    searches: int = 0
    default: bool = False
    meant: tuple[str, ...] = ()
    retries: int = 0
    bytes: int = 0
    gone: bool = False
    time: float = field(default_factory=time)
    began: float = field(default_factory=perf_counter)

    def hear(self, event: Event) -> None:
        """Count an event that is passed on to the client."""
        kind = type(event)
        if kind is TextDelta or kind is ThoughtDelta:
            if self.first is None:
                self.first = perf_counter() - self.began
        elif kind is CallStart:
            self.calls += 1
            if self.first is None:
                self.first = perf_counter() - self.began
        elif isinstance(event, Noted):
            rule = event.note.rule
            if rule == "re-asked":
                self.reasks += 1
            elif rule == "tools-shown":
                self.visible_tools = event.note.detail
            elif rule == "tools-searched":
                self.searches += 1
            elif rule not in POLICY_NOTES:
                self.repairs[rule] = self.repairs.get(rule, 0) + 1
        elif isinstance(event, Finished):
            self.count(event.usage)
            self.finish = event.finish

    def count(self, usage: Usage) -> None:
        """Count the tokens of a reply, or those that a failed request cost."""
        self.tokens_in += usage.prompt_tokens
        self.tokens_out += usage.completion_tokens
        self.estimated |= usage.estimated

    def failed(self, error: Exception, code: str) -> None:
        """Count what a failed request cost, and note the code of its error."""
        self.code = code
        if isinstance(error, ToolspeakError):
            self.count(error.spent)

    def retried(self) -> None:
        """Count a request that was sent to an upstream once more."""
        self.retries += 1

    def times(self) -> tuple[float, float]:
        """Return the seconds to the first token, if there is one, and until now."""
        now = perf_counter() - self.began
        return (now if self.first is None else self.first), now

    def close(self, *, gone: bool) -> None:
        """End the record."""
        self.seconds = perf_counter() - self.began
        self.gone = gone
        if gone:
            self.status = GONE
            self.code = "client_gone"
