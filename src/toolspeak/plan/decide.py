"""Which checked calls a request wants, or which text: asked again, with what was wrong, until it fits."""

from __future__ import annotations

from dataclasses import replace

from ..errors import Attempt, GenerationError, NoCall
from ..types import Message, Note, Reply, Request, ToolCall
from .calls import answer, assistant, checked, problem_text
from .effects import Plan, ask


def decide(request: Request, *, tries: int = 3) -> Plan[Reply]:
    """The model's reply, every call in it offered and valid. Nothing is executed.

    Raises GenerationError with every attempt when no reply fits. A model that gives the same wrong reply
    twice is not asked a third time.
    """
    attempts: list[Attempt] = []
    messages = list(request.messages)
    while len(attempts) < tries:
        reply = yield from ask(replace(request, messages=messages), live=True)
        calls, wrong = _judged(reply, request)
        if not wrong:
            return replace(reply, calls=calls, messages=[*messages, assistant(replace(reply, calls=calls))])
        again = bool(attempts) and _same(attempts[-1].reply, reply)
        attempts.append(Attempt(reply, " ".join(message["content"] or "" for message in wrong)))  # pyright: ignore
        if again:
            break
        messages = [*messages, assistant(reply), *wrong]
    raise GenerationError(
        f"no valid reply in {len(attempts)} tries; the last one: {attempts[-1].error}", attempts=attempts
    )


def call(request: Request, *, tries: int = 3) -> Plan[ToolCall]:
    """Exactly one checked call. Raises NoCall, which says what came instead."""
    reply = yield from decide(request, tries=tries)
    if len(reply.calls) == 1:
        return reply.calls[0]
    came = f"{len(reply.calls)} calls ({', '.join(call.name for call in reply.calls)})" if reply.calls else "a text"
    shown = "" if reply.calls else f": {reply.text[:200]!r}"
    raise NoCall(f"exactly one call was wanted, and {came} came{shown}", attempts=[Attempt(reply, came)])


def _judged(reply: Reply, request: Request) -> tuple[tuple[ToolCall, ...], list[Message]]:
    """The calls, coerced, and a message about each that cannot stand."""
    tools = request.tools or ()
    judged = [checked(call, tools) for call in reply.calls]
    wrong: list[Message] = [answer(call, problem_text(problems)) for call, problems in judged if problems]
    if wrong:  # a conversation must answer every call, also the good ones beside a bad one
        wrong = [
            answer(
                call,
                problem_text(problems) if problems else '{"error": "Not run: another call was wrong. Call again."}',
            )
            for call, problems in judged
        ]
    names = [tool.name for tool in tools]
    if not reply.calls and request.choice not in ("auto", "none"):
        wanted = request.choice if request.choice in names else f"one of the tools: {', '.join(names)}"
        wrong = [{"role": "user", "content": f"That was no tool call. Answer with a call to {wanted}, nothing else."}]
    elif request.choice in names and any(call.name != request.choice for call in reply.calls) and not wrong:
        wrong = [answer(call, f'{{"error": "Only {request.choice} may be called."}}') for call in reply.calls]
    return tuple(call for call, _ in judged), wrong


def _same(one: Reply, other: Reply) -> bool:
    def content(reply: Reply) -> tuple[str, list[tuple[str, str]]]:
        return reply.text, [(call.name, call.json) for call in reply.calls]

    return content(one) == content(other)


def noted(reply: Reply, rule: str, detail: str = "") -> Reply:
    """The reply with one note more."""
    return replace(reply, notes=(*reply.notes, Note(rule, detail)))
