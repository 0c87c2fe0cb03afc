"""Decides from the replies of a probe whether tools reach the model.

A call of an offered tool is proof. Without one, the prompt's tokens count: a prompt with tools is longer than without. A call
of another name proves nothing by itself, because a model may guess the name of a tool from the question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...api.upstream_errors import excerpt
from ...events import Event
from ...schema.suggestions import near
from ...types import Reply, Tool
from .capabilities import Finding

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER: Tool[..., Any] = Tool("get_weather", "The weather in a city, now.", CITY)
CLOCK: Tool[..., Any] = Tool("get_time", "The time in a city, now.", CITY)
OFFERING = ("streamed tools", "named", "required", "parallel")
"""Those in which tools are offered, the one with a free choice first."""
GROWN = 8
"""The prompt of a model that gets tools has grown by more tokens than these."""
NO_CALL = "no call came"
"""The end of what is said of tools that reach a model which called none of them."""


@dataclass(frozen=True, slots=True)
class ProbeReply:
    """A reply, and the events that told it."""

    reply: Reply
    events: Sequence[Event] = field(default_factory=list[Event])

    @property
    def brief(self) -> str:
        """The reply in few words."""
        if calls := self.reply.calls:
            return "called " + ", ".join(f"{call.name}({excerpt(call.json, 60)})" for call in calls[:3])
        return f"said {excerpt(self.reply.text, 60)!r}" if self.reply.text else f"said nothing ({self.reply.finish})"


def tools_reach(findings: dict[str, Finding], replies: dict[str, ProbeReply], plain: ProbeReply | None) -> Finding:
    """Whether tools reach the model: calls of them came, or at least the prompt has grown."""
    first = findings.get(OFFERING[0], Finding("no", "it does not answer chat requests"))
    before, read = (one.reply.usage.prompt_tokens if one else 0 for one in (plain, replies.get(OFFERING[0])))
    more = read - before if before and read else 0
    if (called := _called_tools(findings, replies, more)) is not None:
        return called
    if not (before and read):
        return first
    if more > GROWN:
        return Finding("yes", f"the model reads them ({more} more tokens), but {NO_CALL}")
    if {before, read} == _plain_counts(replies):
        return Finding(
            "unclear", f"{NO_CALL}; {read} tokens read, and as many for every request, so the count says nothing"
        )
    return Finding("no", "they are taken and dropped: the model reads no more tokens than without")


def _called_tools(findings: dict[str, Finding], replies: dict[str, ProbeReply], more: int) -> Finding | None:
    """What the calls show: whether an offered tool was called; None if there are none. A similar name counts if the prompt
    has grown, by `more` tokens: a model that was not offered a tool may still guess its name."""
    called = {name: {call.name for call in replies[name].reply.calls} for name in OFFERING if name in replies}
    for name, names in called.items():
        if names & {WEATHER.name, CLOCK.name}:
            return Finding("yes", findings[name].evidence)
    stranger = next(filter(called.get, called), "")
    if not stranger:
        return None
    evidence = f"{replies[stranger].brief}, which was not offered"
    offered = (WEATHER.name, CLOCK.name)
    if more > GROWN and any(near(name, offered) for names in called.values() for name in names):
        return Finding("yes", f"the model reads them ({more} more tokens), but it {evidence}: it misspells their names")
    return Finding("no", evidence)


def _plain_counts(replies: dict[str, ProbeReply]) -> set[int]:
    """How many tokens the requests without tools had; they are of different lengths."""
    plain = [answer for name, answer in replies.items() if name not in OFFERING]
    return {answer.reply.usage.prompt_tokens for answer in plain} if len(plain) > 1 else set()
