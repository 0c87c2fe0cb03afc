"""Asks the model until its reply is valid: calls that pass their checks, or a text. Each problem is sent back to it.

Pitfalls: a conversation needs a result for every call, so valid calls beside an invalid one get one too ("not run").
Text that was already streamed cannot be taken back, so it is not asked for again. A call that was cut is never run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from ..api.tool_errors import error_text
from ..errors import Attempt, GenerationError, NoCall
from ..schema.phrases import beginning, number_of
from ..schema.suggestions import listed
from ..types import Message, Note, Problem, Reply, Request, ToolCall, copy_with
from .attempted_call import CUT, attempted, in_full, tries_of
from .calls import CUT_AT_LIMIT, answer, checked, not_allowed, one_call, problem_text, reached, without_calls
from .effects import Plan
from .json_reply import in_words, json_text, order
from .reask import NO_CALL_ADVICE, Attempts, ReaskStrategy, usual

NO_CALL, NO_FIT, NO_JSON = "That was no tool call.", "That does not fit:", "That is not valid JSON:"
"""How the model is told that its reply was wrong, in a user message."""

Read = Callable[[Reply], Reply]


def decide(
    request: Request,
    *,
    tries: int = 3,
    read: Read | None = None,
    can: Collection[str] = ("schema",),
    cut_stands: bool = False,
    first: bool = True,
    streamed: Callable[[], bool] = lambda: False,
    strategies: Sequence[ReaskStrategy] = usual(()),
    tokens: int | None = None,
) -> Plan[Reply]:
    """The model's reply with valid calls of offered tools, and with a text that matches the schema, if one is set.
    Nothing is executed.

    `read` converts each reply first. `can` are the model's capabilities: without "schema" the prompt asks for the
    schema in words, and the model is asked again if the text does not match, unless the text of the last reply was already
    passed on (`streamed`). With `cut_stands` a reply that was cut at its length counts, without the call that was cut. If only one
    call is allowed, further ones are dropped with a note, if `first`. A text that was meant as a call counts only
    if the model cannot do better. If no call is allowed, one in a text is dropped,
    and the model is asked again only if there is no text. `strategies` are the strategies for asking again; `tokens` limits
    the cost of all tries. Raises GenerationError with every attempt if no reply is valid.
    """
    in_prompt = request if request.schema is None or "schema" in can else in_words(request, request.schema)
    trying = Attempts(in_prompt, strategies, tries, tokens)
    while True:
        reply = yield from trying.ask(live=True)
        reply = trying.state.settled(read(reply) if read else reply)
        bounded = _bounded(_cut_at_limit(reply, request.max_tokens), cut_stands, first and not request.parallel)
        sent = request.schema is not None and streamed()
        reply, wrong, again = _judged(bounded, trying.state.expected_request(request, bounded), cut_stands, sent)
        if not wrong:
            return trying.right(reply)
        if request.choice == "none" and reply.calls and reply.text.strip():
            return trying.right(without_calls(reply))
        if sent:
            trying.tries = 1  # nothing may follow a text that was passed on
        trying.tries = tries_of(reply, request, trying.tries)
        try:
            yield from trying.wrong(reply, wrong, again)
        except GenerationError:
            last = _last_resort(reply, request)
            if last is None:
                raise
            return trying.last_resort(last)


def call(
    request: Request,
    *,
    tries: int = 3,
    read: Read | None = None,
    strategies: Sequence[ReaskStrategy] = usual(()),
    tokens: int | None = None,
    wanted: str = "exactly one call",
) -> Plan[ToolCall]:
    """Exactly one checked call, with a note of how often the model was asked again.

    Raises NoCall, which says what came instead of what was `wanted`, and GenerationError for calls that never become
    valid.
    """
    try:
        reply = yield from decide(request, tries=tries, read=read, first=False, strategies=strategies, tokens=tokens)
    except GenerationError as error:
        if error.reply is None or error.reply.calls:
            raise
        raise _no_call(error.reply, wanted, error.attempts) from error.__cause__
    if len(reply.calls) == 1:
        again = tuple(note for note in reply.notes if note.rule == "re-asked")
        return replace(reply.calls[0], notes=(*reply.calls[0].notes, *again))
    raise _no_call(reply, wanted)


def _no_call(reply: Reply, wanted: str, attempts: Sequence[Attempt] = ()) -> NoCall:
    """The error about a reply that is not the one call that was `wanted`."""
    names = ", ".join(call.name for call in reply.calls)
    came = (
        f"{number_of(len(reply.calls), 'call')} ({names}) came"
        if reply.calls
        else f"a text came: {beginning(reply.text, 200)!r}"
    )
    instead = f"{wanted} was wanted, and {came}{_why_text(reply)}{_nearest_try(attempts)}"
    error = NoCall(instead, attempts=attempts or [Attempt(reply, instead)])
    if not reply.calls:
        error.add_note(NO_CALL_ADVICE)
    return error


def _nearest_try(attempts: Sequence[Attempt]) -> str:
    """What was wrong with the first try that was nearly a call, as sentences that follow others; "" if the last one was too,
    or if there was none."""
    near = [any((one.reply.calls, *(note.rule == "like-a-call" for note in one.reply.notes))) for one in attempts]
    if True not in near or near[-1]:
        return ""
    number = near.index(True)
    return f". Try {number + 1} of {len(near)} was nearly a call: {attempts[number].error}"


def _why_text(reply: Reply) -> str:
    """Why a text is no call, as sentences that follow others; "" if nothing is known."""
    if reply.calls:
        return ""
    why = [note.detail for note in reply.notes if note.rule == "like-a-call"]
    why += [f"it is not valid JSON: {note.detail}" for note in reply.notes if note.rule == "not-json"]
    if reply.finish == "length":
        why.append(CUT_AT_LIMIT)
    return "".join(f". {one[:1].upper()}{one[1:]}" for one in why)


def _cut_at_limit(reply: Reply, limit: int | None) -> Reply:
    """The reply, with the finish reason `length` if it reached its limit of tokens with an incomplete call."""
    if all(call.whole for call in reply.calls):
        return reply
    return replace(reply, finish="length") if reached(limit, reply.usage) else reply


def _bounded(reply: Reply, cut_stands: bool, one: bool) -> Reply:
    """The reply without calls that it may not have in any case: cut ones, and more than one."""
    cut = [call for call in reply.calls if not call.whole] if cut_stands and reply.finish in CUT else []
    if cut:
        notes = [Note("cut-call", f"the call to {call.name} was cut off") for call in cut]
        whole = tuple(call for call in reply.calls if call.whole)
        reply = replace(reply, calls=whole, notes=(*reply.notes, *notes))
    return one_call(reply) if one else reply


def _refusal(call: ToolCall, problems: Sequence[Problem], choice: str) -> str:
    return not_allowed(call, choice) or "; ".join(problem.message for problem in problems)


def _judged(reply: Reply, request: Request, cut_stands: bool, streamed: bool) -> tuple[Reply, str, list[Message]]:
    """The reply with its calls coerced, what is wrong with it, and the messages that tell the model so."""
    if not reply.calls:
        return _judged_text(reply, request, cut_stands, streamed)
    tools = request.tools or ()
    judged = [checked(call, tools, reply.finish) for call in reply.calls]
    reply = copy_with(reply, calls=tuple(call for call, _ in judged))
    refusals = [_refusal(call, problems, request.choice) for call, problems in judged]
    wrong = " ".join(filter(None, refusals))
    if not wrong:
        return reply, "", []
    texts = [
        problem_text(problems) if problems else error_text(refusal or "Not run: another call was wrong. Call again.")
        for (_, problems), refusal in zip(judged, refusals, strict=True)
    ]
    # Also the valid calls beside a wrong one get a result: a conversation needs all of them.
    return reply, wrong, [answer(call, text) for call, text in zip(reply.calls, texts, strict=True)]


def _last_resort(reply: Reply, request: Request) -> Reply | None:
    """What counts of a reply that is wrong again and again: a text beside calls that are not allowed, or one that was
    meant as a call."""
    if request.choice == "none":
        return without_calls(reply) if reply.calls else None
    return reply if request.choice == "auto" and attempted(reply, request) else None


def _judged_text(reply: Reply, request: Request, cut_stands: bool, streamed: bool) -> tuple[Reply, str, list[Message]]:
    if cut_stands and reply.finish in CUT:
        return reply, "", []
    meant = attempted(reply, request)
    if request.choice not in ("auto", "none"):
        return _no_required_call(reply, request, f"{meant}." if meant else NO_CALL)
    if meant:
        return reply, meant, in_full(meant)
    if request.schema is None:
        return reply, "", []
    reply, wrong = json_text(reply, request.schema, streamed=streamed)
    if not wrong:
        return reply, "", []
    order_text = f"{NO_FIT} {wrong}. {order(request.schema)}"
    return reply, f"the text does not fit its schema: {wrong}", [{"role": "user", "content": order_text}]


def _no_required_call(reply: Reply, request: Request, fault: str) -> tuple[Reply, str, list[Message]]:
    """What is wrong with a text in place of a required call. `fault` is what to say if it is not JSON that is wrong."""
    names = [tool.name for tool in request.tools or ()]
    wanted = request.choice if request.choice in names else f"one of the tools: {listed(names)}"
    fault = next((f"{NO_JSON} {note.detail}." for note in reply.notes if note.rule == "not-json"), fault)
    order_text = f"{fault} Answer with a call to {wanted}, nothing else."
    why = f"a call to {wanted} was wanted, and a text came{_why_text(reply)}"
    return reply, why, [{"role": "user", "content": order_text}]
