"""Asks whether a call may run: the policy first, then whoever answers for it. What nobody can answer now is pending."""

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
    """An answer to a call that is asked about: run it with these arguments instead."""

    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a call that is asked about: do not run it, and take this for its result."""

    result: Any


Approval = bool | str | Edit | Answer | None
Approve = Callable[[ToolCall], "Approval | Awaitable[Approval]"]
"""Asked before a call runs, with the exact checked call. True runs it, Edit does so with other arguments, Answer takes
something else for its result; a text is the reason why not. A note `asked-about` of the call says why a policy asks."""

EXPIRY = 7 * 86_400.0
"""Seconds for which a call that is pending can be approved."""


@dataclass(slots=True)
class ApprovalGate:
    """Who may let the calls of one turn run: a policy, somebody who is asked, both, or nobody. `messages` is the
    conversation before the turn."""

    policy: Policy | None = None
    approve: Approve | None = None
    messages: Sequence[Message] = ()
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def ask(self, call: ToolCall, tool: Tool[..., Any], tools: Sequence[Tool[..., Any]]) -> ToolCall | Answer:
        """The call that may run, or what is taken for its result. Raises NotApproved, and ApprovalNeeded where nobody is
        there to ask."""
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
        """What the policy says to a call. Raises NotApproved where it denies it."""
        decision = (self.policy or Policy()).decide(call, self.messages, tools=tools)
        if decision.verdict == "deny":
            audit(call, decision, "refused")
            raise NotApproved(f"the call of {call.name!r} is refused by the policy: {decision.why}", call=call)
        return decision

    async def _answered(self, approve: Approve, call: ToolCall, decision: Decision | None) -> ToolCall | Answer:
        """The call, as whoever is asked wants it. A sync `approve` runs in a thread: it may wait for a person."""
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
        """The label of a result of the tool; None where there is no policy that looks at it."""
        return None if self.policy is None else self.policy.origin(tool.name, tool)

    @property
    def own_words(self) -> Origin | None:
        """The label of what toolspeak itself says of a call."""
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
    """The call as it waits for approval, from now on."""
    definition, expires = definition_digest(tool), round(time.time() + EXPIRY, 3)
    digest = call_digest(definition, call.id, call.arguments, messages, expires)
    return Pending(call.id, call.name, call.arguments, decision.why, decision.origin, digest, definition, expires)
