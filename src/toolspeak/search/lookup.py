"""`search_tools`: what a model calls when the tool that it needs is not shown. It is answered here and goes no further."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from ..api.payloads import record
from ..events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Logprobs, Noted, TextDelta
from ..plan.calls import answer, assistant
from ..plan.speak import text_of
from ..types import Finish, Message, Note, Request, Tool, ToolCall
from ..wire.collect import collect
from .kept import Indexed
from .question import Round, bounded
from .views import View

NAME = "search_tools"
DESCRIPTION = (
    "Finds tools that are not shown here; there are {count} more{of}. Call it when no tool that is shown does what is "
    "needed, before you say that something cannot be done. What it finds can be called next."
)
PARAMETERS = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What the tool must do, in a few plain words."}},
    "required": ["query"],
}
NOTHING = "No further tool was found. Search in other words, or answer without."
ENOUGH = "No more can be searched for this answer."
LONGEST = 200
"""Characters of a tool's description that a search tells: its definition is shown beside it."""
HEAD = 40
"""Characters of a server's name that are told."""


def search_tool(taken: Collection[str], count: int, servers: Sequence[tuple[str, int]] = ()) -> Tool[..., Any]:
    """The tool, by a name that no other has. It says that `count` tools are not shown, and of which servers."""
    name, number = NAME, 1
    while name in taken:
        number += 1
        name = f"{NAME}_{number}"
    of = ", ".join(f"{server[:HEAD]} ({many})" for server, many in servers)
    return Tool(name, DESCRIPTION.format(count=count, of=f", most of them of {of}" if of else ""), PARAMETERS)


def query(call: ToolCall) -> str:
    """What a call searches for: whatever text it holds."""
    texts = [value for value in _texts(call.arguments) if value.strip()]
    return bounded(" ".join(texts) if call.arguments else call.json.strip('{} "'))


def told(found: Sequence[Tool[..., Any]], *, last: bool = False) -> str:
    """What a search found, for the model."""
    enough = f"\n{ENOUGH}" if last else ""
    if not found:
        return NOTHING + enough
    tools = [{"name": tool.name, "description": _short(tool.description)} for tool in found]
    return json.dumps({"can be called now": tools}, ensure_ascii=False) + enough


def results(indexed: Indexed, one: Round, *, last: bool) -> list[Message]:
    """The results of the searches in one reply, as the conversation goes on."""
    made: list[Message] = []
    for call, names in zip(one.message.get("tool_calls") or (), one.found, strict=False):
        found = [indexed.tools[indexed.places[name]] for name in names if name in indexed.places]
        searched = ToolCall(str(call.get("id") or ""), str(record(call.get("function")).get("name") or NAME), {})
        made.append(answer(searched, told(found, last=last)))
    return made


def replayed(view: View, messages: Sequence[Message], most: int) -> tuple[list[Message], dict[str, int]]:
    """The conversation with its searches where they were made, and by the names of the tools that were added the place
    of the message that brought each."""
    made: list[Message] = []
    late: dict[str, int] = {}
    places: list[int] = []
    for place, message in enumerate(messages):
        before = ""
        for number, one in enumerate(view.rounds.get(place, ()), 1):
            if one.beside:
                continue  # nothing followed the search: the answer itself was that reply
            made += [one.message, *results(view.indexed, one, last=number == most)]
            late |= dict.fromkeys((name for found in one.found for name in found), len(made) - 1)
            before += text_of(one.message)
        places.append(len(made))
        made.append(_after(message, before))
    for place, at in view.later.items():
        name = view.indexed.tools[place].name
        if name not in late and at is not None and (spot := _spot(made, places, at)) is not None:
            late[name] = spot
    added = {tool.name for tool in view.added()}
    return made, {name: at for name, at in late.items() if name in added}


class Turn:
    """What a model has been told within one reply: the conversation, the tools, and those that came late."""

    def __init__(self, messages: list[Message], late: dict[str, int], tools: list[Tool[..., Any]]) -> None:
        self.messages = messages
        self.late = late
        self.tools = tools

    def add(self, indexed: Indexed, one: Round, *, last: bool) -> None:
        """Goes on behind a search."""
        self.messages = [*self.messages, one.message, *results(indexed, one, last=last)]
        for name in dict.fromkeys(name for found in one.found for name in found):
            self.tools.append(indexed.tools[indexed.places[name]])
            self.late[name] = len(self.messages) - 1

    def next_request(self, request: Request, without: Tool[..., Any] | None) -> Request:
        """The request as it goes on, without the search where there is enough of it."""
        tools = tuple(tool for tool in self.tools if tool is not without)
        names = {tool.name for tool in tools}
        hidden = tuple(tool for tool in request.hidden if tool.name not in names)
        return replace(request, messages=self.messages, tools=tools, late=dict(self.late), hidden=hidden)


def _spot(made: Sequence[Message], places: Sequence[int], at: int) -> int | None:
    """The place of the message that may hold definitions, from the one that brought them on."""
    start = places[at] if at < len(places) else len(made)
    return next((spot for spot in range(start, len(made)) if made[spot].get("role") in ("user", "tool")), None)


def _after(message: Message, before: str) -> Message:
    """An answer without the text that was said in front of a search, which stands before it."""
    content = message.get("content")
    if not before or not isinstance(content, str) or not content.startswith(before):
        return message
    return {**message, "content": content[len(before) :].lstrip("\n")}


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

    def message(self, searches: Sequence[ToolCall]) -> Message:
        """The reply with its searches alone, as the conversation goes on."""
        return assistant(replace(collect(self._heard), calls=tuple(searches)))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        inner = cast("dict[str, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
        for one in inner:
            yield from _texts(one)
