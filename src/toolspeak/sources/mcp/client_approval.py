"""Asks the user of an MCP client whether a call may run, by the protocol's elicitation.

Up to revision 2025-11-25, the server sends the question while the call is running. Since 2026-07-28, the call ends with
the question, and the client repeats the call with the answer and the state that came with the question. That state is
the random key of an open question. It is used up before the call runs, so an answer counts once, and only for the
arguments that were shown.
"""

from __future__ import annotations

import json
import secrets
from typing import Any

import mcp.types as t
from mcp.shared.exceptions import MCPError
from mcp_types.version import is_version_at_least

from ...approvals import Approval, Approve
from ...display import unhidden
from ...policy.approval_digests import digest
from ...types import ToolCall

ENDS_WITH_QUESTION = "2026-07-28"
"""The first revision of the protocol in which a call ends with the question."""
OPEN = 1_000
"""The most open questions; the oldest is forgotten first."""


class AnswerNeeded(Exception):
    """A call that cannot continue before its question is answered; `result` is what the client gets."""

    def __init__(self, result: t.InputRequiredResult) -> None:
        super().__init__("an answer is needed")
        self.result = result


class PendingQuestions:
    """The open questions of one server: random keys, and the digests of their calls."""

    def __init__(self) -> None:
        self._open: dict[str, str] = {}

    def approve(self, context: Any, request: t.CallToolRequestParams) -> Approve | None:
        """Asks the user of the client that sent the request; None where that client has no elicitation."""
        if not _asks_by_forms(context.session.client_capabilities):
            return None

        async def ask(call: ToolCall) -> Approval:
            if is_version_at_least(context.protocol_version, ENDS_WITH_QUESTION):
                return _verdict(self._answer(call, request))
            try:
                question = _question(call)
                answer = await context.session.elicit_form(
                    question.message, question.requested_schema, context.request_id
                )
            except MCPError as error:
                return f"the client could not ask its user: {error}"
            return _verdict(answer)

        return ask

    def _answer(self, call: ToolCall, request: t.CallToolRequestParams) -> t.ElicitResult:
        """The answer that came with the request. Raises AnswerNeeded where none is for this very call."""
        subject = digest([call.name, call.arguments])
        known = self._open.pop(str(request.request_state), None) == subject
        match request.input_responses:
            case {"approval": t.ElicitResult() as answer} if known:
                return answer
            case _:
                pass
        key = secrets.token_urlsafe()
        self._open[key] = subject
        if len(self._open) > OPEN:
            del self._open[next(iter(self._open))]
        question = t.ElicitRequest(params=_question(call))
        raise AnswerNeeded(t.InputRequiredResult(input_requests={"approval": question}, request_state=key))


def _asks_by_forms(client: t.ClientCapabilities | None) -> bool:
    """Whether a client can put a question to its user. What names no mode means forms."""
    match client.elicitation if client else None:
        case None | t.ElicitationCapability(form=None, url=t.UrlElicitationCapability()):
            return False
        case _:
            return True


def _question(call: ToolCall) -> t.ElicitRequestFormParams:
    """Return the question: the whole call, and why it needs approval. The form has no fields: accepting it is the
    approval."""
    why = next((note.detail for note in call.notes if note.rule == "asked-about"), "")
    arguments = unhidden(json.dumps(call.arguments, ensure_ascii=False, indent=1))
    message = (
        f"May the tool {call.name} run with these arguments?\n{arguments}\nThis is asked because of the policy: {why}"
    )
    return t.ElicitRequestFormParams(message=message, requested_schema={"type": "object", "properties": {}})


def _verdict(answer: t.ElicitResult) -> Approval:
    match answer.action:
        case "accept":
            return True
        case "decline":
            return "the user declined"
        case _:
            return "the user closed the question"
