"""Asking again in a way that changes something: the rungs, and where one stands on them.

    told       the problems go back to the model
    alone      the one tool that it wanted is offered alone, and must be called
    dialect    the tools are told in another dialect
    sampling   other sampling: what was greedy is drawn at random, and the other way round
    model      another model is asked

Each is taken once, in the order given, and left out where it cannot change anything. Where one reply is wanted
(`Attempts`), the problems are told after the last one too, as long as they are others and telling is among the rungs.
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
from .calls import assistant, written
from .effects import Plan, ask, tell

RANDOM = 0.7
"""The temperature of other sampling where it was greedy so far, or left to the model's server."""
GREEDY = 0.3
"""The temperature up to which sampling counts as greedy."""


@dataclass(frozen=True, slots=True)
class ReaskStrategy:
    """One way of asking again: `told`, `alone`, `dialect:…`, `sampling` or `model:…`.

    `by` names who is asked, "" for the model itself; the driver knows who that is. `scored`: who is asked decides on
    calls by likelihood, so that neither what it is told of its mistakes nor other sampling changes what it decides.
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
    """The rungs of a model that can do that, where no others are asked for: it is told, then held to the one tool."""
    scored = "scored" in can
    held = "required" in can or "grammar" in can
    return (ReaskStrategy("told", scored=scored), *([ReaskStrategy("alone", scored=scored)] if held else []))


class ReaskState:
    """Where one stands: what is to be asked (`request`, but for its messages), of whom (`by`), on which `rung`.

    `rung` is "" until something was wrong. `forced` is whether a call must come, for one that was wrong was wanted;
    `anew` whether who is asked now has not seen what came before.
    """

    def __init__(self, request: Request, rungs: Sequence[ReaskStrategy]) -> None:
        self.first = self.request = request
        self.left = list(rungs)
        self.rung = self.by = ""
        self.forced = self.telling = self.anew = self._scored = False
        self._before = (request, False)

    def up(self, reply: Reply | None, *, same: bool = False, wrong: Sequence[ToolCall] = ()) -> bool:
        """Goes on to the next rung that changes something; False where there is none.

        `reply` is the one that was wrong, None where none came; `same` whether the one before was equal, `wrong` its
        calls that were.
        """
        while self.left:
            rung = self.left.pop(0)
            self._before = (self.request, self.forced)
            self._scored = rung.scored and bool(self.request.tools)
            if self._prepare(rung, reply, same, wrong):
                self._stands(rung.name, rung.by)
                return True
        return False

    def tell_again(self, *, same: bool) -> bool:
        """Goes on telling after the last rung; False where telling is no rung, or brought the `same` reply again."""
        if same or self._scored or not self.telling:
            return False
        self._stands("told", self.by)
        return True

    def over(self, error: ModelError) -> bool:
        """Goes on after nobody answered; False where nobody else can be asked.

        A request that was refused because of the rung is asked on another one; else another model is.
        """
        if self.refused(error):
            self.request, self.forced = self._before
        else:
            while self.left and self.left[0].kind != "model":
                self.left.pop(0)
        return self.up(None)

    def refused(self, error: ModelError) -> bool:
        """Whether the model may well answer a request that the rung has not changed."""
        return isinstance(error, BadRequest) and self.rung.partition(":")[0] in ("alone", "dialect", "sampling")

    def demanded(self, request: Request, reply: Reply) -> Request:
        """The request that a reply must fit: where a call is forced words are none, yet any call that was wanted is."""
        if reply.calls or not self.forced:
            return request
        return replace(request, tools=self.request.tools, choice=self.request.choice)

    def _stands(self, name: str, by: str) -> None:
        self.anew = by != self.by
        self.rung, self.by = name, by

    def _prepare(self, rung: ReaskStrategy, reply: Reply | None, same: bool, wrong: Sequence[ToolCall]) -> bool:
        """Whether the rung changes anything. Prepares what is to be asked on it."""
        scored = self._scored
        match rung.kind:
            case "told":
                stale, self.telling = same and self.telling, True
                return reply is not None and not scored and not stale
            case "alone":
                # One that is scored had fixed on the tool already: who is asked after it gets that tool alone.
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
        """Has one who called wrongly call: in a dialect that he does not know, a call in his own would pass as
        words."""
        if reply is not None and reply.calls and self.request.choice == "auto":
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
    """The one tool that a wrong reply was about: that of its one wrong call, or that which a text names where a call
    must come. None where that is not clear, or no call may come."""
    tools = {tool.name: tool for tool in request.tools or ()}
    if request.choice == "none":
        return None
    if request.choice in tools:
        return tools[request.choice]
    if len(wrong) == 1:
        meant = [wrong[0].name] if wrong[0].name in tools else near(wrong[0].name, tools, at_most=2)
    elif wrong or reply.calls or request.choice != "required":
        return None
    else:
        meant = [name for name in tools if len(tools) == 1 or name in reply.text]
    return tools[meant[0]] if len(meant) == 1 else None


def sampled_otherwise(request: Request) -> Request:
    """The request, sampled in another way."""
    greedy = request.temperature is None or request.temperature <= GREEDY
    seed = None if request.seed is None else request.seed + 1
    return replace(request, temperature=RANDOM if greedy else 0, seed=seed)


class Attempts:
    """The tries at one reply: each attempt, what all of them cost, and what is asked next.

    `tries` replies are asked for at most; after `tokens` none is asked for any more.
    """

    def __init__(self, request: Request, rungs: Sequence[ReaskStrategy], tries: int, tokens: int | None) -> None:
        self.climb = ReaskState(request, rungs)
        self.tries = tries
        self.tokens = tokens
        self.attempts: list[Attempt] = []
        self.notes: list[Note] = []
        self.told: list[Message] = list(request.messages)
        """The conversation with all that whoever is asked now has answered, and what was wrong with it."""
        self._last: Reply | None = None

    def ask(self, *, live: bool = False) -> Plan[Reply]:
        """The next reply. Raises what the model raises where nobody else can be asked, with what was tried before."""
        while True:
            climb = self.climb
            request = replace(climb.request, messages=self.messages) if self.attempts else climb.request
            try:
                return (yield from ask(request, live=live, by=climb.by))
            except LimitReached as error:
                error.attempts = tuple(self.attempts)
                raise
            except ModelError as error:
                yield from self._failed(error)

    @property
    def messages(self) -> list[Message]:
        """The conversation as it is asked now."""
        return self.told if self.climb.telling else list(self.climb.first.messages)

    def wrong(self, reply: Reply, why: str, say: Sequence[Message]) -> Plan[None]:
        """Goes on after a reply that is wrong: `why`, in words for people; `say` tells the model. Raises
        GenerationError, LimitReached with every attempt where it ends."""
        same = self._last is not None and _same(self._last, reply)
        self._last = reply
        self.attempts.append(Attempt(reply, why, self.climb.rung))
        self.told = [*self.told, assistant(reply), *say]
        if len(self.attempts) >= self.tries:
            self._give_up()
        # One tool alone brings one call: of several calls the good ones would be lost, so all count as wrong.
        if not self.climb.up(reply, same=same, wrong=reply.calls) and not self.climb.tell_again(same=same):
            self._give_up(repeated=same and self.climb.telling)
        spent = self.usage
        if self.tokens is not None and spent.prompt_tokens + spent.completion_tokens >= self.tokens:
            raise LimitReached(
                f"the tokens that were given are used up after {_counted(len(self.attempts))}; the last one: {why}",
                limit="tokens",
                reply=reply,
                attempts=self.attempts,
            )
        yield from self._again(why)

    def right(self, reply: Reply) -> Reply:
        """The reply, with what was done to get it."""
        messages = [*self.messages, assistant(reply)]
        if not self.attempts:
            return copy_with(reply, messages=messages)
        steps = [Step(attempt.reply, rung=attempt.rung) for attempt in self.attempts]
        usage = add_usage(self.usage, reply.usage)
        notes = (*self.notes, *reply.notes)
        last = replace(reply, messages=messages, usage=usage, notes=notes)
        return replace(last, steps=(*steps, Step(reply, rung=self.climb.rung)))

    @property
    def usage(self) -> Usage:
        """What the attempts have cost."""
        return reduce(add_usage, (attempt.reply.usage for attempt in self.attempts), Usage())

    def _failed(self, error: ModelError) -> Plan[None]:
        """Goes on after nobody answered."""
        asked = self.climb.by
        refused = self.climb.refused(error)
        why = f"{type(error).__name__}: {error}"
        self.attempts.append(Attempt(Reply(), why, self.climb.rung, error))
        if len(self.attempts) < self.tries and self.climb.over(error):
            yield from self._again(why)
        elif (refused or asked.startswith("model")) and any(attempt.failure is None for attempt in self.attempts):
            self._give_up(error)
        else:
            for attempt in self.attempts[:-1]:
                error.add_note(f"tried before{attempt.rung and ', '}{attempt.rung}: {attempt.error}")
            raise error

    def _again(self, why: str) -> Plan[None]:
        if self.climb.anew:
            self.told, self._last = list(self.climb.first.messages), None
        rung = self.climb.rung
        self.notes.append(Note("re-asked", why if rung == "told" else f"{rung}: {why}"))
        yield from tell(Noted(self.notes[-1]))

    def _give_up(self, cause: ModelError | None = None, *, repeated: bool = False) -> NoReturn:
        last = self.attempts[-1]
        where = f" ({last.rung})" if last.rung not in ("", "told") else ""
        why = ", the same as before though it was told, so it was not asked again" if repeated else ""
        raise GenerationError(
            f"no valid reply in {_counted(len(self.attempts))}; the last one{where}{why}: {last.error}",
            attempts=self.attempts,
        ) from cause


def _counted(tries: int) -> str:
    return f"{tries} {'try' if tries == 1 else 'tries'}"


def _same(one: Reply, other: Reply) -> bool:
    def content(reply: Reply) -> tuple[str, list[tuple[str, str]]]:
        return reply.text, [(call.name, written(call)) for call in reply.calls]

    return content(one) == content(other)
