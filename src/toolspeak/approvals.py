"""Decides whether a call may run: the policy first, then the person who is asked. Without anybody to ask, the call is
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
from .policy.digests import call_digest, definition_digest
from .policy.policy import Decision, Policy
from .running import in_thread
from .types import Message, Note, Origin, Pending, Tool, ToolCall


@dataclass(frozen=True, slots=True)
class Edit:
    """An answer about a call: run it with these arguments instead."""

    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer about a call: do not run it, and use this as its result."""

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
    """Decides which calls of one turn may run: by a policy, a callback, both, or neither. `messages` is the
    conversation before the turn."""

    policy: Policy | None = None
    approve: Approve | None = None
    messages: Sequence[Message] = ()
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def ask(self, call: ToolCall, tool: Tool[..., Any], tools: Sequence[Tool[..., Any]]) -> ToolCall | Answer:
        """Return the call to run, or the answer in place of its result. Raises NotApproved, and ApprovalNeeded if
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
        """Return the policy's decision on a call. Raises NotApproved if it denies the call."""
        decision = (self.policy or Policy()).decide(call, self.messages, tools=tools)
        if decision.verdict == "deny":
            audit(call, decision, "refused")
            raise NotApproved(f"the call of {call.name!r} is refused by the policy: {decision.why}", call=call)
        return decision

    async def _answered(self, approve: Approve, call: ToolCall, decision: Decision | None) -> ToolCall | Answer:
        """Return the call as the person wants it. A sync `approve` runs in a thread, because it may wait for a person."""
        question = replace(call, notes=(*call.notes, Note("asked-about", decision.why))) if decision else call
        async with self._turn:  # ask about one call at a time
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
        """Return the label of a result of the tool; None without a policy that uses labels."""
        return None if self.policy is None else self.policy.origin(tool.name, tool)

    @property
    def own_words(self) -> Origin | None:
        """Return the label of toolspeak's own texts about a call."""
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
    """Return the call as pending, starting now."""
    definition, expires = definition_digest(tool), round(time.time() + EXPIRY, 3)
    digest = call_digest(definition, call.id, call.arguments, messages, expires)
    return Pending(call.id, call.name, call.arguments, decision.why, decision.origin, digest, definition, expires)
