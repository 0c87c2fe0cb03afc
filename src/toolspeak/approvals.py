"""Decides whether a call may run: first by the policy, then by asking `approve`. If nobody can be asked, it is
pending."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .audit import audit
from .errors import ApprovalNeeded, NotApproved
from .models.sampling import checked_function
from .policy.approval_digests import call_digest, definition_digest
from .policy.policy import Decision, Policy, checked_policy
from .running import in_thread
from .types import Message, Note, Origin, Pending, Tool, ToolCall


@dataclass(frozen=True, slots=True)
class Edit:
    """An answer to an approval request: run the call with these arguments instead."""

    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to an approval request: do not run the call, and use this as its result."""

    result: Any


Approval = bool | str | Edit | Answer | None
Approve = Callable[[ToolCall], "Approval | Awaitable[Approval]"]
"""A callback that is called with the exact checked call before it runs.

It returns True to run it, Edit to run it with other arguments, Answer to use something else as its result, or a text
that says why it must not run. The call's note `asked-about` says why a policy asks.
"""

EXPIRY = 7 * 86_400.0
"""Seconds for which a pending call can be approved."""


@dataclass(slots=True)
class ApprovalGate:
    """Decides whether the calls of one turn may run: by a policy, an `approve` callback, both, or neither. `messages`
    is the conversation before the turn."""

    policy: Policy | None = None
    approve: Approve | None = None
    messages: Sequence[Message] = ()
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        """Raises UsageError for anything but a policy and a function."""
        checked_policy(self.policy)
        checked_function("approve", self.approve)

    async def ask(self, call: ToolCall, tool: Tool[..., Any], tools: Sequence[Tool[..., Any]]) -> ToolCall | Answer:
        """The call that may run, or the answer that replaces its result. Raises NotApproved, and ApprovalNeeded if
        nobody can be asked."""
        if self.policy is None:
            return call if self.approve is None else await self._answered(self.approve, call, None)
        decision = self.check(call, tools)
        if decision.verdict == "allow":
            audit(call, decision, "allowed")
            return call
        if self.approve is None:
            audit(call, decision, "pending")
            raise ApprovalNeeded(pending(call, tool, decision, self.messages), call=call)
        return await self._answered(self.approve, call, decision)

    def check(self, call: ToolCall, tools: Sequence[Tool[..., Any]]) -> Decision:
        """The policy's decision on a call. Raises NotApproved if it denies the call."""
        decision = (self.policy or Policy()).decide(call, self.messages, tools=tools)
        if decision.verdict == "deny":
            audit(call, decision, "refused")
            raise NotApproved(f"the call of {call.name!r} is refused by the policy: {decision.why}", call=call)
        return decision

    async def _answered(self, approve: Approve, call: ToolCall, decision: Decision | None) -> ToolCall | Answer:
        """The callback's answer. A sync `approve` runs in a thread, since it may wait for a person."""
        question = replace(call, notes=(*call.notes, Note("asked-about", decision.why))) if decision else call
        async with self._turn:  # one question at a time
            if inspect.iscoroutinefunction(approve):
                answer = await approve(question)
            else:
                answer = await in_thread(lambda: approve(question))
                if inspect.isawaitable(answer):
                    answer = await answer
        audit(call, decision, _outcome(answer))
        match answer:
            case Answer():
                return answer
            case Edit(arguments):
                return replace(call, arguments=dict(arguments), json="")
            case True:
                return call
            case _:
                reason = f": {answer}" if isinstance(answer, str) and answer else ""
                raise NotApproved(f"the call of {call.name!r} was not approved{reason}", call=call)

    def origin(self, tool: Tool[..., Any]) -> Origin | None:
        """The origin label for a result of the tool; None if no policy looks at it."""
        return None if self.policy is None else self.policy.origin(tool.name, tool)

    @property
    def own_words(self) -> Origin | None:
        """The origin label for texts that toolspeak itself writes about a call."""
        return None if self.policy is None else "trusted"


def _outcome(answer: object) -> str:
    match answer:
        case True:
            return "approved"
        case Edit():
            return "edited"
        case Answer():
            return "answered"
        case _:
            return "declined"


def pending(call: ToolCall, tool: Tool[..., Any], decision: Decision, messages: Sequence[Message]) -> Pending:
    """The call as it waits for approval. It expires EXPIRY seconds from now."""
    definition, expires = definition_digest(tool), round(time.time() + EXPIRY, 3)
    digest = call_digest(definition, call.id, call.arguments, messages, expires)
    return Pending(call.id, call.name, call.arguments, decision.why, decision.origin, digest, definition, expires)
