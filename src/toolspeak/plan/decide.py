"""Which checked calls a request wants, or which text: asked again, with what was wrong, until it fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..errors import Attempt, GenerationError, NoCall
from ..events import Noted
from ..types import Message, Note, Reply, Request, ToolCall
from .calls import answer, assistant, checked, error_text, problem_text
from .effects import Plan, ask, tell

Read = Callable[[Reply], Reply]


def decide(request: Request, *, tries: int = 3, read: Read | None = None) -> Plan[Reply]:
    """The model's reply, every call in it offered and valid. Nothing is executed.

    `read` sees each reply first. Raises GenerationError with every attempt when no reply fits. A model that
    gives the same wrong reply twice is not asked again.
    """
    attempts: list[Attempt] = []
    messages = list(request.messages)
    while len(attempts) < tries:
        reply = yield from ask(replace(request, messages=messages), live=True)
        reply = read(reply) if read else reply
        reply, wrong, again = _judged(reply, request)
        if not wrong:
            return replace(reply, messages=[*messages, assistant(reply)])
        circling = bool(attempts) and _same(attempts[-1].reply, reply)
        attempts.append(Attempt(reply, wrong))
        if circling:
            break
        if len(attempts) < tries:
            yield from tell(Noted(Note("asked-again", wrong)))
        messages = [*messages, assistant(reply), *again]
    raise GenerationError(
        f"no valid reply in {len(attempts)} tries; the last one: {attempts[-1].error}", attempts=attempts
    )


def call(request: Request, *, tries: int = 3, read: Read | None = None) -> Plan[ToolCall]:
    """Exactly one checked call. Raises NoCall, which says what came instead; GenerationError for calls that never fit."""
    try:
        reply = yield from decide(request, tries=tries, read=read)
    except GenerationError as error:
        if error.reply is None or error.reply.calls:
            raise
        raise NoCall(_instead(error.reply), attempts=error.attempts) from None
    if len(reply.calls) == 1:
        return reply.calls[0]
    instead = _instead(reply)
    raise NoCall(instead, attempts=[Attempt(reply, instead)])


def _instead(reply: Reply) -> str:
    names = ", ".join(call.name for call in reply.calls)
    came = f"{len(reply.calls)} calls ({names}) came" if reply.calls else f"a text came: {reply.text[:200]!r}"
    return f"exactly one call was wanted, and {came}"


def _judged(reply: Reply, request: Request) -> tuple[Reply, str, list[Message]]:
    """The reply with its calls coerced, what is wrong with it, and the messages that tell the model."""
    tools = request.tools or ()
    names = [tool.name for tool in tools]
    if not reply.calls:
        if request.choice in ("auto", "none"):
            return reply, "", []
        wanted = request.choice if request.choice in names else f"one of the tools: {', '.join(names)}"
        asked = f"That was no tool call. Answer with a call to {wanted}, nothing else."
        return reply, f"a call to {wanted} was wanted, and a text came", [{"role": "user", "content": asked}]
    judged = [checked(call, tools) for call in reply.calls]
    reply = replace(reply, calls=tuple(call for call, _ in judged))
    refusals = [
        _refused(call, request.choice) or "; ".join(problem.message for problem in problems)
        for call, problems in judged
    ]
    wrong = " ".join(filter(None, refusals))
    told = [
        problem_text(problems) if problems else error_text(refusal or "Not run: another call was wrong. Call again.")
        for (_, problems), refusal in zip(judged, refusals, strict=True)
    ]
    return reply, wrong, _answers(reply.calls, told)


def _refused(call: ToolCall, choice: str) -> str:
    """Why a call may not stand whatever its arguments, or ""."""
    if choice == "none":
        return "No tool may be called now. Answer in words."
    return "" if choice in ("auto", "required", call.name) else f"Only {choice} may be called, not {call.name}."


def _answers(calls: Sequence[ToolCall], told: Sequence[str]) -> list[Message]:
    """An answer to every call, the good ones beside a bad one too: a conversation needs that."""
    return [answer(call, text) for call, text in zip(calls, told, strict=True)]


def _same(one: Reply, other: Reply) -> bool:
    def content(reply: Reply) -> tuple[str, list[tuple[str, str]]]:
        return reply.text, [(call.name, call.json) for call in reply.calls]

    return content(one) == content(other)
