"""`search_tools`: what a model calls when the tool that it needs is not shown. It is answered here and goes no further."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from ..events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Logprobs, Noted, TextDelta
from ..plan.calls import answer, assistant
from ..types import Finish, Message, Note, Tool, ToolCall
from ..wire.collect import collect
from .question import bounded

NAME = "search_tools"
DESCRIPTION = (
    "Finds tools that are not shown here. Call it only when no tool that is shown does what is needed. "
    "What it finds can be called next."
)
PARAMETERS = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What the tool must do, in a few plain words."}},
    "required": ["query"],
}
NOTHING = "No further tool was found. Search in other words, or answer without."
LONGEST = 200
"""Characters of a tool's description that a search tells: its definition is shown beside it."""


def search_tool(taken: Collection[str]) -> Tool[..., Any]:
    """The tool, by a name that no other has."""
    name, count = NAME, 1
    while name in taken:
        count += 1
        name = f"{NAME}_{count}"
    return Tool(name, DESCRIPTION, PARAMETERS)


def query(call: ToolCall) -> str:
    """What a call searches for: whatever text it holds."""
    texts = [value for value in _texts(call.arguments) if value.strip()]
    return bounded(" ".join(texts) if call.arguments else call.json.strip('{} "'))


def told(found: Sequence[Tool[..., Any]]) -> str:
    """What a search found, for the model."""
    if not found:
        return NOTHING
    tools = [{"name": tool.name, "description": _short(tool.description)} for tool in found]
    return json.dumps({"can be called now": tools}, ensure_ascii=False)


class Ear:
    """Listens to one reply: what is not about `search_tools`, whose name here is `name`, goes on; what is stays here.

    `names` are those of all tools that may be called, `after` is the text that was said before this reply. Text is
    `held` back until it is sure that the model goes on from it to no search.
    """

    def __init__(self, name: str, names: Collection[str], *, after: str = "", held: bool = False) -> None:
        self._name = name
        self._names = names
        self._gap = "" if not after or after.endswith("\n") else "\n\n"
        self._holds = held
        self._held: list[Event] = []
        self._within = False
        self._heard: list[Event] = []
        self._told: list[str] = []
        self.called: list[str] = []
        """The names of the other tools that were called."""
        self.end = Finished()

    def hear(self, event: Event) -> Iterable[Event]:
        """The event as it goes on, if it does."""
        match event:
            case Finished():
                self.end = event
                return ()
            case TextDelta(text):
                event = TextDelta(self._gap + text)
                self._gap = ""
                self._told.append(event.text)
            case CallStart(name):
                self._within = name == self._name
                self.called += [] if self._within else [name]
            # Who reads a dialect knows what is shown; that a tool is offered which is not shown, it cannot know.
            case Noted(Note("unknown-tool", name)) if name in self._names or name == self._name:
                return ()
            case _:
                pass
        self._heard.append(event)
        if self._within and isinstance(event, (CallStart, ArgumentsDelta, CallEnd)):
            self._within = not isinstance(event, CallEnd)
            return ()
        if self._holds and isinstance(event, (TextDelta, Logprobs)):
            self._held.append(event)
            return ()
        return (event,)

    def rest(self, *, dropped: bool) -> list[Event]:
        """What was held back, once the reply is over: nothing where it is dropped."""
        if dropped and self._held:
            self._told = []
        return [] if dropped else self._held

    @property
    def text(self) -> str:
        """What was said, as it went on."""
        return "".join(self._told)

    @property
    def finish(self) -> Finish:
        """Why the reply ended, to those who know of no search."""
        return "stop" if self.end.finish == "tool_calls" and not self.called else self.end.finish

    def searches(self) -> list[ToolCall]:
        """The searches that were asked for, without one that was cut."""
        calls = [call for call in collect(self._heard).calls if call.name == self._name]
        if self.end.finish == "length":
            calls = [call for call in calls if call.whole]
        return [replace(call, arguments={"query": query(call)}, whole=True) for call in calls]

    def messages(self, searches: Sequence[ToolCall], results: Sequence[str]) -> list[Message]:
        """The reply and what its searches found, as the conversation goes on."""
        said = assistant(replace(collect(self._heard), calls=tuple(searches)))
        return [said, *(answer(call, text) for call, text in zip(searches, results, strict=True))]


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        inner = cast("dict[str, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
        for one in inner:
            yield from _texts(one)
