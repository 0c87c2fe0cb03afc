"""Checks the calls of a reply against the policy of the client's key, before the client or a hosted tool gets them.

What a client says about a tool or a result does not count. The effects of tools come from the configuration, and the
origin of the conversation's content from its calls and results, which every request repeats. A call that the policy
refuses is removed from the reply; a text takes its place, and a note is added.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Literal, cast

from ..audit import audit
from ..drive import Done
from ..events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Noted, TextDelta
from ..models.base import Model
from ..models.offload import offloaded, request_size
from ..models.wrapper import Wrapper
from ..policy.content_origin import for_model, with_labels
from ..policy.globs import name_fits
from ..policy.policy import Policy
from ..schema.call_dicts import read_call
from ..types import Note, Reply, Request, ToolCall
from .text_gate import blank_line

Ask = Callable[[Request], AsyncGenerator[Event | Done[Reply]]]

LEFT_OUT = "(The call of {name} was left out: {why}.)"


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """A policy, and what happens to a call that needs approval: `refuse`, or `mark` for a client that asks its own user
    about calls."""

    policy: Policy
    on_ask: Literal["refuse", "mark"] = "refuse"

    def declares(self, name: str) -> bool:
        """Whether the configuration has an entry for a tool."""
        return any(name_fits(pattern, name, wide=False) for pattern in self.policy.tools)

    def labelled(self, request: Request) -> Request:
        """Return the request as the model reads it, with untrusted results in a frame."""
        known = {tool.name: tool for tool in request.tools or ()}
        labels = with_labels(request.messages, lambda name: self.policy.origin(name, known.get(name)))
        return replace(request, messages=for_model(labels))

    def judged(
        self, call: ToolCall, request: Request, running: Collection[str], who: str
    ) -> tuple[bool, Note | None, str]:
        """Return whether a call is passed on, the note that it gets, and why it is refused. Calls of tools in `running`
        are never marked, because no client sees them first."""
        decision = self.policy.decide(call, request.messages, tools=request.tools or (), labels=False)
        if decision.verdict == "allow":
            audit(call, decision, "allowed", who=who)
            return True, None, ""
        if (decision.verdict, self.on_ask, call.name in running) == ("ask", "mark", False):
            audit(call, decision, "marked", who=who)
            return True, Note("policy-asks", call.name), ""
        audit(call, decision, "refused", who=who)
        unknown = (decision.rule, self.declares(call.name)) == ("after_untrusted", False)
        hint = " as far as the gateway knows: [policy.tools] has no entry for it" if unknown else ""
        return False, Note("policy-refused", call.name), decision.why + hint


async def policed(
    ask: Ask, request: Request, rule: CallPolicy, running: Collection[str] = (), *, who: str = ""
) -> AsyncGenerator[Event | Done[Reply]]:
    """Yield the events of a reply without the calls that the policy refuses to `who`, the owner of a key."""
    reading = _CallCollector(request, rule, running, who)
    labelled = await offloaded(reading.history, rule.labelled, request)
    async with aclosing(ask(labelled)) as events:
        async for event in events:
            match event:
                case TextDelta(text):
                    yield TextDelta(reading.apart(text))
                case CallStart() | ArgumentsDelta() | CallEnd():
                    for passed in await offloaded(reading.size(event), reading.take, event):
                        yield passed
                case Finished("tool_calls", usage) if not reading.passed:
                    yield Finished("stop", usage)
                case Done(reply):
                    yield Done(reading.reply(reply))
                case _:
                    yield event


class Policed(Wrapper[Model]):
    """A model whose calls are passed on only if the policy of `who`, the owner of a key, does not refuse them."""

    def __init__(self, model: Model, rule: CallPolicy, who: str) -> None:
        super().__init__(model)
        self._rule, self._who = rule, who

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        ask = cast("Ask", self.model.stream)
        async with aclosing(policed(ask, request, self._rule, who=self._who)) as events:
            async for event in events:
                if not isinstance(event, Done):
                    yield event


class _CallCollector:
    """Collects each call of one reply to its end before it is passed on."""

    def __init__(self, request: Request, rule: CallPolicy, running: Collection[str], who: str) -> None:
        self._request, self._rule, self._running, self._who = request, rule, running, who
        self.history = request_size(request)
        """Characters of the conversation, which the policy looks through for each call."""
        self._arguments = 0
        self._open: list[CallStart | ArgumentsDelta | CallEnd] = []
        self._verdicts: list[bool] = []
        self._notes: list[Note] = []
        self._texts: list[str] = []
        self._tail = ""
        self._within_text = True

    @property
    def passed(self) -> int:
        """The number of calls that were passed on."""
        return sum(self._verdicts)

    def size(self, event: CallStart | ArgumentsDelta | CallEnd) -> int:
        """Return the characters that `take` works on: those of the whole call and of the conversation once it ends."""
        return self._arguments + self.history if isinstance(event, CallEnd) else 0

    def take(self, event: CallStart | ArgumentsDelta | CallEnd) -> list[Event]:
        """Return the events to pass on: none before a call ends, then the whole call or the text in its place."""
        self._open.append(event)
        if isinstance(event, ArgumentsDelta):
            self._arguments += len(event.json)
        if not isinstance(event, CallEnd):
            return []
        pieces, self._open, self._arguments = self._open, [], 0
        call = _call(pieces)
        fits, note, why = self._rule.judged(call, self._request, self._running, self._who)
        self._verdicts.append(fits)
        self._notes += [note] if note else []
        if fits:
            return [*pieces, *([Noted(note)] if note else [])]
        text = "" if self._request.schema else LEFT_OUT.format(name=call.name, why=why)
        self._texts += [text] if text else []
        return [*([TextDelta(self.apart(text, notice=True))] if text else []), *([Noted(note)] if note else [])]

    def apart(self, text: str, *, notice: bool = False) -> str:
        """Return a piece of text, after a blank line where the model's text and a notice meet."""
        gap = blank_line(self._tail) if notice or not self._within_text else ""
        self._within_text = not notice
        self._tail = (self._tail + gap + text)[-2:]
        return gap + text

    def reply(self, reply: Reply) -> Reply:
        """Return the whole reply as it was passed on."""
        calls = tuple(call for call, fits in zip(reply.calls, self._verdicts, strict=True) if fits)
        finish = reply.finish if calls or reply.finish != "tool_calls" else "stop"
        text, notes = reply.text, (*reply.notes, *self._notes)
        for notice in self._texts:
            text += blank_line(text) + notice
        return replace(reply, text=text, calls=calls, finish=finish, notes=notes)


def _call(pieces: list[CallStart | ArgumentsDelta | CallEnd]) -> ToolCall:
    """Return the call that these events make up."""
    start = next(piece for piece in pieces if isinstance(piece, CallStart))
    text = "".join(piece.json for piece in pieces if isinstance(piece, ArgumentsDelta))
    return read_call({"id": start.id, "name": start.name, "arguments": text or "{}"})
