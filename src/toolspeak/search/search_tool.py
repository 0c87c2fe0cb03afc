"""The `search_tools` tool: its definition, its results, and past searches put back into the conversation. The search is
answered locally and never reaches the caller."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from ..api.json_stream import record, records
from ..plan.calls import answer
from ..plan.prompted import text_of
from ..schema.phrases import beginning
from ..schema.suggestions import free_name
from ..types import Message, Request, Tool, ToolCall
from .conversation_queries import AnsweredRound, Names, bounded
from .index_memory_cache import IndexedTools
from .internal_tools import without_beginning
from .visible_tools import View

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
NOTHING = "No further tool was found."
OTHER_WORDS = "Search in other words, or answer without."
ENOUGH = "No more can be searched for this answer."
LONGEST = 200
"""Characters of a tool's description in a search result; its definition is shown as well."""
HEAD = 40
"""Characters of a server's name that are shown."""


def search_tool(used: Collection[str], count: int, servers: Sequence[tuple[str, int]] = ()) -> Tool[..., Any]:
    """The search tool, with a name that no other tool has. It says that `count` tools are not shown, and of which
    servers."""
    of = ", ".join(f"{server[:HEAD]} ({many})" for server, many in servers)
    described = DESCRIPTION.format(count=count, of=f", most of them of {of}" if of else "")
    return Tool(free_name(NAME, used), described, PARAMETERS)


def query(call: ToolCall) -> str:
    """The query of a call: whatever text it has."""
    texts = [value for value in _texts(call.arguments) if value.strip()]
    return bounded(" ".join(texts) if call.arguments else call.json.strip('{} "'))


def result_text(matches: Sequence[Tool[..., Any]], *, last: bool = False) -> str:
    """The result of a search, for the model."""
    if not matches:
        return f"{NOTHING} {ENOUGH if last else OTHER_WORDS}"
    enough = f"\n{ENOUGH}" if last else ""
    tools = [{"name": tool.name, "description": beginning(tool.description, LONGEST)} for tool in matches]
    return json.dumps({"can be called now": tools}, ensure_ascii=False) + enough


def results(indexed: IndexedTools, one: AnsweredRound[Names], *, last: bool) -> list[Message]:
    """The results of the searches in one reply, as messages."""
    rows: list[Message] = []
    for call, names in zip(records(one.message.get("tool_calls")), one.results, strict=False):
        matches = [indexed.tools[indexed.places[name]] for name in names if name in indexed.places]
        searched = ToolCall(str(call.get("id") or ""), str(record(call.get("function")).get("name") or NAME), {})
        rows.append(answer(searched, result_text(matches, last=last)))
    return rows


def replayed(view: View, messages: Sequence[Message], most: int) -> tuple[list[Message], dict[str, int]]:
    """The conversation with its searches at their places; and for each added tool the index of the message that
    introduced it."""
    replay: list[Message] = []
    late: dict[str, int] = {}
    places: list[int] = []
    for place, message in enumerate(messages):
        before = ""
        for number, one in enumerate(view.rounds.get(place, ()), 1):
            if one.beside:
                continue  # nothing followed the search: the reply was passed on as the answer
            replay += [one.message, *results(view.indexed, one, last=number >= most)]
            late |= dict.fromkeys((name for names in one.results for name in names), len(replay) - 1)
            before += text_of(one.message)
        places.append(len(replay))
        replay.append(without_beginning(message, before))
    for place, at in view.later.items():
        name = view.indexed.tools[place].name
        if name not in late and at is not None and (spot := _definition_index(replay, places, at)) is not None:
            late[name] = spot
    added = {tool.name for tool in view.added()}
    return replay, {name: at for name, at in late.items() if name in added}


class SearchConversation:
    """The conversation within one reply: its messages, its tools, and the tools that were added."""

    def __init__(self, messages: list[Message], late: dict[str, int], tools: list[Tool[..., Any]]) -> None:
        self.messages = messages
        self.late = late
        self.tools = tools

    def add(self, indexed: IndexedTools, one: AnsweredRound[Names], *, last: bool) -> None:
        """Appends a search."""
        self.messages = [*self.messages, one.message, *results(indexed, one, last=last)]
        for name in dict.fromkeys(name for names in one.results for name in names):
            self.tools.append(indexed.tools[indexed.places[name]])
            self.late[name] = len(self.messages) - 1

    def next_request(self, request: Request, without: Tool[..., Any] | None) -> Request:
        """The request with the conversation so far; without the search tool after the last round."""
        tools = tuple(tool for tool in self.tools if tool is not without)
        names = {tool.name for tool in tools}
        hidden = tuple(tool for tool in request.hidden if tool.name not in names)
        return replace(request, messages=self.messages, tools=tools, late=dict(self.late), hidden=hidden)


def _definition_index(messages: Sequence[Message], places: Sequence[int], at: int) -> int | None:
    """The index of a message that may contain definitions, at or after the one that introduced them."""
    start = places[at] if at < len(places) else len(messages)
    return next((spot for spot in range(start, len(messages)) if messages[spot].get("role") in ("user", "tool")), None)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        inner = cast("dict[str, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
        for one in inner:
            yield from _texts(one)
