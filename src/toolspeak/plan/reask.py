"""Strategies for asking a model again after a wrong reply: with the problems, fewer tools, another dialect, other sampling
or another model.

    told       the problems are sent back to the model
    alone      the one tool that it tried to call is offered alone, and must be called
    dialect    the tools are described in another dialect
    sampling   other sampling: random if it was greedy, greedy if it was random
    model      another model is asked

Each is used once, in the given order, and skipped if it cannot change anything. If one reply is wanted (`Attempts`),
the problems are also sent back after the last strategy, as long as they change and "told" is among the strategies.

`Attempts` serves plans that want one valid reply; `loop` keeps a `ReaskState` itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NoReturn

from ..errors import Attempt, BadRequest, GenerationError, LimitReached, ModelError
from ..events import Noted
from ..schema.suggestions import near
from ..types import Message, Note, Reply, Request, Step, Tool, ToolCall, Usage, copy_with
from ..wire.reading.collect import add_usage
from .calls import assistant, draft_note, written
from .effects import Plan, ask, tell
from .refused_replies import shortened
from .token_limit import ended_at

RANDOM = 0.7
"""The temperature of random sampling, after greedy sampling or the server's default."""
GREEDY = 0.3
"""Sampling up to this temperature counts as greedy."""

REPLY_TO = {
    "alone": " (with that tool alone offered and a call of it required)",
    "dialect": " (with the tools described in the dialect {})",
    "sampling": " (with another temperature)",
    "model": " (by the model {})",
}
"""What an error says of a reply to each strategy, other than "told"."""

NO_CALL_ADVICE = (
    "`toolspeak doctor MODEL` shows what its server does with tools. Tools that are described in the prompt (`dialect=`,"
    ' --dialect, or `dialect` in the gateway\'s configuration) work with any model. The documentation has more: "When a model answers with prose"'
)
"""What to do about a model that answers with a text if a call is required."""


@dataclass(frozen=True, slots=True)
class ReaskStrategy:
    """One way of asking again: `told`, `alone`, `dialect:…`, `sampling` or `model:…`.

    `by` names the model that is asked, for the driver; "" is the model itself. `scored`: that model decides on calls
    by likelihood, so that neither error messages nor sampling change its decision.
    """

    name: str
    by: str = ""
    scored: bool = False

    @property
    def kind(self) -> str:
        return self.name.partition(":")[0]

    @property
    def idle(self) -> bool:
        """Whether it cannot change a call by itself."""
        return self.scored and self.kind in ("told", "alone", "sampling")


def usual(can: Collection[str]) -> tuple[ReaskStrategy, ...]:
    """The default strategies for a model with these capabilities: "told", then "alone"."""
    scored = "scored" in can
    constrained = "required" in can or "grammar" in can
    return (ReaskStrategy("told", scored=scored), *([ReaskStrategy("alone", scored=scored)] if constrained else []))


class ReaskState:
    """The current state of re-asking: the next `request` (without its messages), the model (`by`) and the strategy
    (`strategy`).

    `strategy` is "" until something was wrong. `forced`: a call is required now, because a wrong one was wanted. `anew`:
    the model that is asked now has not seen the earlier replies.
    """

    def __init__(self, request: Request, strategies: Sequence[ReaskStrategy]) -> None:
        self.first = self.request = request
        self.left = list(strategies)
        self.strategy = self.by = ""
        self.forced = self.telling = self.anew = self._scored = False
        self._before = (request, False)

    def advance(self, reply: Reply | None, *, same: bool = False, wrong: Sequence[ToolCall] = ()) -> bool:
        """Moves to the next strategy that changes something; False if there is none.

        `reply` is the wrong reply, None if none came. `same`: it equals the one before. `wrong` are its invalid calls.
        """
        while self.left:
            strategy = self.left.pop(0)
            self._before = (self.request, self.forced)
            self._scored = strategy.scored and bool(self.request.tools)
            if self._prepare(strategy, reply, same, wrong):
                self._set_current(strategy.name, strategy.by)
                return True
        return False

    def tell_again(self, *, same: bool) -> bool:
        """Sends the problems back once more after the last strategy; False if "told" is no strategy or if it got the
        `same` reply."""
        if same or self._scored or not self.telling:
            return False
        self._set_current("told", self.by)
        return True

    def advance_after_error(self, error: ModelError) -> bool:
        """Moves on after a failed request; False if no other model can be asked.

        If the server refused the request because of the current strategy, the next strategy is used; otherwise another
        model.
        """
        if self.refused(error):
            self.request, self.forced = self._before
        else:
            while self.left and self.left[0].kind != "model":
                self.left.pop(0)
        return self.advance(None)

    def refused(self, error: ModelError) -> bool:
        """Whether the model may well accept the request without the changes of the current strategy."""
        return isinstance(error, BadRequest) and self.strategy.partition(":")[0] in ("alone", "dialect", "sampling")

    def expected_request(self, request: Request, reply: Reply) -> Request:
        """The request against which a reply is checked. If a call is forced, text is invalid, but any call of the
        original request is valid."""
        if reply.calls or not self.forced:
            return request
        return replace(request, tools=self.request.tools, choice=self.request.choice)

    def settled(self, reply: Reply) -> Reply:
        """The reply. If its only calls are drafts in a thought, and the model was asked again, it decided against them: what is
        behind the thought is its answer."""
        closers = [note.detail for note in map(draft_note, reply.calls) if note]
        if not all((self.strategy, self.request.choice == "auto", closers, len(closers) == len(reply.calls))):
            return reply
        before, closer, behind = reply.text.partition(closers[-1])
        thought, text = (before, behind) if closer else ("", before)
        if not text.strip():
            return reply
        finish = "stop" if reply.finish == "tool_calls" else reply.finish
        return replace(reply, calls=(), text=text.strip(), thought=reply.thought + thought, finish=finish)

    def _set_current(self, name: str, by: str) -> None:
        self.anew = by != self.by
        self.strategy, self.by = name, by

    def _prepare(self, strategy: ReaskStrategy, reply: Reply | None, same: bool, wrong: Sequence[ToolCall]) -> bool:
        """Prepares the next request for the strategy. Returns whether it changes anything."""
        scored = self._scored
        match strategy.kind:
            case "told":
                stale, self.telling = same and self.telling, True
                return reply is not None and not scored and not stale
            case "alone":
                # A scored model has already chosen the tool, so the model asked after it gets that tool alone.
                return reply is not None and self._narrow(reply, wrong) and not scored
            case "dialect":
                self._force(reply)
                return bool(self.request.tools) and self.request.choice != "none"
            case "sampling":
                self.request = sampled_otherwise(self.request) if not scored else self.request
                return not scored
            case _:
                self.request, self.forced = self.first, False
                return True

    def _force(self, reply: Reply | None) -> None:
        """Requires a call after a wrong one: in an unfamiliar dialect, a call in the model's own format would pass as
        text."""
        if reply is not None and _meant(reply.calls) and self.request.choice == "auto":
            self.request = replace(self.request, choice="required")
            self.forced = True

    def _narrow(self, reply: Reply, wrong: Sequence[ToolCall]) -> bool:
        tool = wanted(reply, self.first, wrong)
        offered = self.request.tools or ()
        if tool is None or (len(offered) == 1 and self.request.choice in ("required", tool.name)):
            return False
        self.request = replace(self.request, tools=(tool,), choice=tool.name)
        self.forced = True
        return True


def wanted(reply: Reply, request: Request, wrong: Sequence[ToolCall]) -> Tool[..., Any] | None:
    """The one tool that a wrong reply was about: that of its one invalid call, or the one that a text names if a call
    is required. None if this is unclear or no call is allowed."""
    tools = {tool.name: tool for tool in request.tools or ()}
    if request.choice == "none":
        return None
    if request.choice in tools:
        return tools[request.choice]
    wrong = _meant(wrong)
    if len(wrong) == 1:
        meant = [wrong[0].name] if wrong[0].name in tools else near(wrong[0].name, tools, at_most=2)
    elif wrong or reply.calls or request.choice != "required":
        return None
    else:
        meant = [name for name in tools if len(tools) == 1 or name in reply.text]
    return tools[meant[0]] if len(meant) == 1 else None


def _meant(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """The calls that are no drafts: nobody is made to call what he thought of and did not call."""
    return [call for call in calls if draft_note(call) is None]


def sampled_otherwise(request: Request) -> Request:
    """The request with other sampling."""
    greedy = request.temperature is None or request.temperature <= GREEDY
    seed = None if request.seed is None else request.seed + 1
    return replace(request, temperature=RANDOM if greedy else 0, seed=seed)


class Attempts:
    """The tries for one valid reply: each attempt, their total cost, and the next request.

    There are at most `tries` replies, and no new one after `tokens`.
    """

    def __init__(self, request: Request, strategies: Sequence[ReaskStrategy], tries: int, tokens: int | None) -> None:
        self.state = ReaskState(request, strategies)
        self.tries = tries
        self.tokens = tokens
        self.attempts: list[Attempt] = []
        self.notes: list[Note] = []
        self.conversation: list[Message] = list(request.messages)
        """The conversation with the replies of the model that is asked now, and with their problems."""
        self._last: Reply | None = None

    def ask(self, *, live: bool = False) -> Plan[Reply]:
        """The next reply. Raises the model's error if no other model can be asked, with the earlier attempts."""
        while True:
            state = self.state
            request = replace(state.request, messages=self.messages) if self.attempts else state.request
            try:
                read = ended_at(self.tokens - self._spent) if self.tokens else None
                return (yield from ask(request, live=live, by=state.by, read=read))
            except LimitReached as error:
                error.attempts = tuple(self.attempts)
                raise
            except ModelError as error:
                yield from self._failed(error)

    @property
    def messages(self) -> list[Message]:
        """The conversation for the next request."""
        return self.conversation if self.state.telling else list(self.state.first.messages)

    def wrong(self, reply: Reply, why: str, say: Sequence[Message]) -> Plan[None]:
        """Continues after a wrong reply. `why` is for people; `say` are the messages for the model. Raises
        GenerationError, or LimitReached with every attempt, if there is no next try."""
        same = self._last is not None and _same(self._last, reply)
        self._last = reply
        self.attempts.append(Attempt(reply, why, self.state.strategy))
        if len(self.attempts) >= self.tries:
            self._give_up()
        # With one tool alone there would be one call, and valid ones beside it would be lost. So all count as wrong.
        if not self.state.advance(reply, same=same, wrong=reply.calls) and not self.state.tell_again(same=same):
            self._give_up(repeated=same and self.state.telling)
        if self.tokens is not None and self._spent >= self.tokens:
            raise LimitReached(
                f"the token limit is used up after {_counted(len(self.attempts))}; the last one: {why}",
                limit="tokens",
                reply=reply,
                attempts=self.attempts,
            )
        self.conversation = [*self.conversation, assistant(shortened(reply, reply.calls, text=True)), *say]
        yield from self._again(why)

    def last_resort(self, reply: Reply) -> Reply:
        """The last reply, which was wrong as well, with the attempts before it as steps and notes."""
        self.attempts.pop()
        return self.right(reply)

    def right(self, reply: Reply) -> Reply:
        """The reply, with its attempts as steps and notes."""
        messages = [*self.messages, assistant(reply)]
        if not self.attempts:
            return copy_with(reply, messages=messages)
        steps = [Step(attempt.reply, strategy=attempt.strategy) for attempt in self.attempts]
        usage = add_usage(self.usage, reply.usage)
        notes = (*self.notes, *reply.notes)
        last = replace(reply, messages=messages, usage=usage, notes=notes)
        return replace(last, steps=(*steps, Step(reply, strategy=self.state.strategy)))

    @property
    def usage(self) -> Usage:
        """The total usage of the attempts."""
        return reduce(add_usage, (attempt.reply.usage for attempt in self.attempts), Usage())

    @property
    def _spent(self) -> int:
        return self.usage.prompt_tokens + self.usage.completion_tokens

    def _failed(self, error: ModelError) -> Plan[None]:
        """Continues after a failed request."""
        by = self.state.by
        refused = self.state.refused(error)
        why = f"{type(error).__name__}: {error}"
        self.attempts.append(Attempt(Reply(), why, self.state.strategy, error))
        if len(self.attempts) < self.tries and self.state.advance_after_error(error):
            yield from self._again(why)
        elif (refused or by.startswith("model")) and any(attempt.failure is None for attempt in self.attempts):
            self._give_up(error)
        else:
            for attempt in self.attempts[:-1]:
                error.add_note(f"tried before{attempt.strategy and ', '}{attempt.strategy}: {attempt.error}")
            raise error

    def _again(self, why: str) -> Plan[None]:
        if self.state.anew:
            self.conversation, self._last = list(self.state.first.messages), None
        strategy = self.state.strategy
        self.notes.append(Note("re-asked", why if strategy == "told" else f"{strategy}: {why}"))
        yield from tell(Noted(self.notes[-1]))

    def _give_up(self, cause: ModelError | None = None, *, repeated: bool = False) -> NoReturn:
        last = self.attempts[-1]
        kind, _, name = last.strategy.partition(":")
        where = REPLY_TO.get(kind, "").format(name)
        why = (
            ", the same as before although the problems were sent back, so the model was not asked again"
            if repeated
            else ""
        )
        advice = "".join(
            f". {note.detail.capitalize()}" for note in last.reply.notes if note.rule == "unfilled-objects"
        )
        if self._only_text():
            advice += f". {NO_CALL_ADVICE}"
        raise GenerationError(
            f"no valid reply in {_counted(len(self.attempts))}; the last one{where}{why}: {last.error}{advice}",
            attempts=self.attempts,
        ) from cause

    def _only_text(self) -> bool:
        """Whether a call was required, and no attempt had one."""
        replies = [attempt.reply for attempt in self.attempts if attempt.failure is None]
        return self.state.first.choice not in ("auto", "none") and not any(reply.calls for reply in replies)


def _counted(tries: int) -> str:
    return f"{tries} {'try' if tries == 1 else 'tries'}"


def _same(one: Reply, other: Reply) -> bool:
    def content(reply: Reply) -> tuple[str, list[tuple[str, str]]]:
        return reply.text, [(call.name, written(call)) for call in reply.calls]

    return content(one) == content(other)
