"""Answers the questions of an MCP server (the protocol's elicitation) by a function of the user.

Up to revision 2025-11-25, the server sends a question while the call is running. Since 2026-07-28, the call ends with its
questions, and is sent again with the answers.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any

import mcp.types as t
from mcp import Client
from pydantic import TypeAdapter

from ...errors import ToolError
from ...models.offload import offloaded
from ...running import in_thread
from ...secret_removal import Secrets
from ...tool_results import message_of, plain_size, without_passwords
from ...types import Schema

Content = Mapping[str, Any]
Elicit = Callable[[str, Schema], Content | Awaitable[Content | None] | None]
"""Returns the fields that a question asks for, by its text and the schema of the fields; None declines."""


RESULTS = TypeAdapter[t.CallToolResult | t.InputRequiredResult](t.CallToolResult | t.InputRequiredResult)
LONG = 86_400.0
"""Seconds; a call is bounded by its tool's `timeout` instead."""
ROUNDS = 10
"""How often a call may end with questions."""
MOST, AT_ONCE = 50, 10
"""The most questions of a server until none of its calls is running, and the most that are open at once."""


class QuestionHandler:
    """Answers questions by `elicit` while calls are `running`; calling it answers one, as the SDK needs it. `secrets()` are
    removed from questions, as from results."""

    def __init__(self, elicit: Elicit, secrets: Callable[[], Secrets]) -> None:
        self._elicit = elicit
        self._secrets = secrets
        self._calls = self._open = self._count = 0

    @contextlib.contextmanager
    def running(self) -> Generator[None]:
        """Answer questions while the block runs."""
        if not self._calls:
            self._count = 0
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1

    def _refusal(self) -> str:
        """Return why another question is not answered, "" if it is."""
        if not self._calls:
            return "no call is running that it could belong to"
        if self._open >= AT_ONCE:
            return f"{AT_ONCE} others are open"
        return f"there were {MOST} already" if self._count >= MOST else ""

    async def __call__(self, context: Any, params: t.ElicitRequestParams) -> t.ElicitResult | t.ErrorData:
        if why := self._refusal():
            return t.ErrorData(code=t.INTERNAL_ERROR, message=f"the question was not answered: {why}")
        self._open += 1
        self._count += 1
        try:
            return await self._answer(params)
        finally:
            self._open -= 1

    async def _answer(self, params: t.ElicitRequestParams) -> t.ElicitResult | t.ErrorData:
        form = isinstance(params, t.ElicitRequestFormParams)
        message = params.message if form else f"{params.message}\n{params.url}"
        schema: Schema = dict(params.requested_schema) if form else {"type": "object", "properties": {}}
        question = [message, schema]
        message, schema = await offloaded(plain_size(question), self._secrets().out_of_data, question)
        try:
            answer = await in_thread(lambda: self._elicit(message, schema))
            content = await answer if inspect.isawaitable(answer) else answer
        except Exception as error:  # noqa: BLE001 - whatever the function raises, the server gets an answer
            why = without_passwords(message_of(error))  # the server reads it
            return t.ErrorData(code=t.INTERNAL_ERROR, message=f"the question was not answered: {why}")
        if content is None:
            return t.ElicitResult(action="decline")
        return t.ElicitResult(action="accept", content=dict(content) if form else None)


async def call_tool(
    client: Client, questions: QuestionHandler | None, name: str, arguments: Mapping[str, Any]
) -> t.CallToolResult:
    """Return the server's result. The SDK's own `call_tool` validates it against the server's schema, whose patterns
    may take forever."""

    async def send(responses: Any, state: str | None) -> t.CallToolResult | t.InputRequiredResult:
        params = t.CallToolRequestParams(
            name=name, arguments=dict(arguments), input_responses=responses, request_state=state
        )
        request = t.CallToolRequest(params=params)
        return await client.session.send_request(request, RESULTS, request_read_timeout_seconds=LONG)

    with questions.running() if questions else contextlib.nullcontext():
        return await with_answers(send, questions)


Send = Callable[[t.InputResponses | None, str | None], Awaitable[t.CallToolResult | t.InputRequiredResult]]


async def with_answers(send: Send, questions: QuestionHandler | None) -> t.CallToolResult:
    """Return the result of a call that `send` sends, again with answers if it ends with questions. Raises ToolError for
    questions that nobody answers."""
    result = await send(None, None)
    for _ in range(ROUNDS):
        if isinstance(result, t.CallToolResult):
            return result
        responses: t.InputResponses = {
            key: await _answer(one, questions) for key, one in (result.input_requests or {}).items()
        }
        result = await send(responses, result.request_state)
    raise ToolError(f"the server asks questions without end: {ROUNDS} times in one call")


async def _answer(query: t.InputRequest, questions: QuestionHandler | None) -> t.ElicitResult:
    if not isinstance(query, t.ElicitRequest):
        raise ToolError(f"the server wants {query.method} from its client, which toolspeak does not offer")
    if questions is None:
        raise ToolError(f"the server asks its user, and nobody answers: pass elicit= to ts.mcp. {query.params.message}")
    answer = await questions(None, query.params)
    if isinstance(answer, t.ErrorData):
        raise ToolError(answer.message)
    return answer
