"""Hierarchical selection: the model chooses a group of tools, then a group in it, then a tool, each from a short list.

A model with tool calling sees each group as a tool without arguments. Calling it opens the group; `none_of_these` goes
back up. If it calls a name that is not in the list, it is asked once more, with the names that are. Anything else is
its reply, so that small talk takes one request. A model that scores by likelihood is asked
how likely each member of a list makes the request, and continues with the best member seen in any list. If no branch
fits, the model that the driver knows as `search` is asked, with all the tools.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Noted
from ..nlu.intent import wanted
from ..plan.calls import answer, assistant, problem_text, unknown
from ..plan.effects import Ask, Plan, tell
from ..plan.prompted import last_question
from ..schema.infer import AnyTool
from ..schema.suggestions import free_name
from ..types import Finish, Message, Note, Request, Tool, Usage
from ..wire.reading.collect import add_usage, collect
from .group_tree import Group, Member, tools_in

LOOKS = 6
"""The most lists that are opened for one reply."""
MOST_CHARACTERS = 300
"""Characters of a group's description that list the names in it."""
BACK = "none_of_these"
SEARCH_ALL = "Call this if none of the others is about what is needed: all tools are searched then."
GO_BACK = "Call this if none of the others does what is needed: the other groups are shown again."
UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def levels(
    request: Request, root: Group, *, can: Collection[str] = (), beside: Sequence[AnyTool] = (), looks: int = LOOKS
) -> Plan[None]:
    """Passes on the events of the reply to a request whose tools are in `root`.

    `beside` are tools that are offered in every list, such as those that the conversation has used. `can` are the
    model's capabilities. At most `looks` lists are opened.
    """
    if request.choice == "none":
        yield from _pass_on(replace(request, tools=tuple(beside)), Usage())
    elif "scored" in can:
        yield from _by_likelihood(request, root, beside, looks)
    else:
        yield from _descent(request, root, beside, looks)


# ------------------------------------------------------------------ a list as it is offered to a model


@dataclass(slots=True)
class OfferedTools:
    """The offered tools, the groups among them by the names of their tools, and the name of the tool that goes back
    up."""

    tools: tuple[AnyTool, ...]
    opens: dict[str, Group]
    back: str


def listed(members: Iterable[Member], beside: Sequence[AnyTool], used: Collection[str], *, first: bool) -> OfferedTools:
    """A list with its groups as tools, with names that no other tool has."""
    tools = {tool.name: tool for tool in beside}
    opens: dict[str, Group] = {}
    for member in members:
        if isinstance(member, Group):
            tool = as_tool(member, {*used, *tools})
            opens[tool.name] = member
        else:
            tool = member
        tools.setdefault(tool.name, tool)
    back = free_name(BACK, {*used, *tools})
    tools[back] = Tool(back, SEARCH_ALL if first else GO_BACK)
    return OfferedTools(tuple(tools.values()), opens, back)


def as_tool(group: Group, used: Collection[str] = ()) -> AnyTool:
    """A group as a tool that opens it. It is named after the group, and its description says what is in it."""
    name = free_name((UNSAFE.sub("_", group.name).strip("_")[:50] or "more") + "_tools", used)
    description = group.description.strip() or (group.name if UNSAFE.search(group.name) else "")
    count = sum(1 for _ in tools_in(group))
    about = f"{description.rstrip('.')}. " if description else ""
    return Tool(name, f"{about}Opens {count} tools: {_names(group)}")


def _by_turns(group: Group) -> list[str]:
    """The names of a group's members. If all members are groups: the first tool of each, then the second of each, and
    so on."""
    inner = [member for member in group.members if isinstance(member, Group)]
    if len(inner) < len(group.members):
        return [member.name for member in group.members]
    rows = [[tool.name for tool in tools_in(member)] for member in inner]
    return [row[i] for i in range(max(map(len, rows))) for row in rows if i < len(row)]


def _names(group: Group) -> str:
    """The names in a group up to the limit of characters, with a share for each of its subgroups."""
    names: list[str] = []
    room = MOST_CHARACTERS
    for name in _by_turns(group):
        room -= len(name) + 2
        if room < 0:
            return ", ".join([*names, "…"])
        names.append(name)
    return ", ".join(names)


# ------------------------------------------------------------------ models with tool calling


@dataclass(slots=True)
class ReplyListener:
    """Reads one reply: calls that open a group are kept here, all other events are passed on.

    `unknown` has the events of calls to names that are not in the list; with `every`, all names count as listed.
    """

    listed: OfferedTools
    hidden: Collection[str]
    every: bool = False
    opened: list[str] = field(default_factory=list[str])
    unknown: list[Event] = field(default_factory=list[Event])
    called: bool = False
    end: Finished = field(default_factory=Finished)
    _inside: bool = False
    _unknown: bool = False

    @property
    def done(self) -> bool:
        """Whether it is the reply to the request, and no step on the way to it."""
        steps = bool(self.opened) or bool(self.unknown)
        return self.called or not steps or self.end.finish in ("length", "content_filter")

    @property
    def finish(self) -> Finish:
        """The finish reason for the caller, to whom the calls that were kept here do not exist."""
        return "stop" if self.end.finish == "tool_calls" and not self.called else self.end.finish

    def hear(self, event: Event | None) -> Iterable[Event]:
        """The events to pass on."""
        match event:
            case None:
                return ()
            case Finished():
                self.end = event
                return ()
            case CallStart(name):
                self._begin(name)
            case Noted(note) if note.rule == "unknown-tool":
                self._unknown = not self._offers(note.detail)
                if self._opens(note.detail):
                    return ()
            case _:
                pass
        if self._unknown and isinstance(event, (CallStart, ArgumentsDelta, CallEnd, Noted)):
            self._unknown = isinstance(event, (CallStart, ArgumentsDelta))
            self.unknown.append(event)
            return ()
        if self._inside and isinstance(event, (CallStart, ArgumentsDelta, CallEnd)):
            self._inside = not isinstance(event, CallEnd)
            return ()
        return (event,)

    def _begin(self, name: str) -> None:
        """Records the beginning of a call."""
        self._inside = self._opens(name)
        self._unknown = not self._offers(name)
        if self._inside:
            self.opened.append(name)
        elif not self._unknown:
            self.called = True

    def _opens(self, name: str) -> bool:
        """Records a call that opens a group. A tool that only a group's description mentions opens its group, since
        its arguments were not shown yet."""
        return name in self.listed.opens or name == self.listed.back or name in self.hidden

    def _offers(self, name: str) -> bool:
        return self.every or self._opens(name) or any(name == tool.name for tool in self.listed.tools)

    def correction(self) -> list[Message]:
        """The messages that say which names can be called instead of the unknown ones."""
        reply = collect(self.unknown)
        names = [tool.name for tool in self.listed.tools]
        texts = [problem_text([unknown(call.name, names)]) for call in reply.calls]
        return [assistant(reply), *map(answer, reply.calls, texts)]


def _descent(request: Request, root: Group, beside: Sequence[AnyTool], looks: int) -> Plan[None]:
    homes = _group_of_each(root)
    path: list[Sequence[Group]] = [
        [root]
    ]  # the groups opened at each step: the members of the first, beside the other groups
    shut: set[Group] = set()
    spent, messages = Usage(), request.messages
    for _ in range(looks):
        members = [*path[-1][0].members, *path[-1][1:]] if path else []
        here = [member for member in members if not (isinstance(member, Group) and member in shut)]
        if not here:
            break
        listing = listed(here, beside, homes, first=len(path) == 1)
        offered = {tool.name for tool in listing.tools}
        ear = ReplyListener(listing, {name for name in homes if name not in offered})
        sent = replace(request, messages=messages, tools=listing.tools)
        yield Ask(sent, live=True, read=ear.hear, recorded=False)
        spent = add_usage(spent, ear.end.usage)
        if ear.done:
            yield from tell(*ear.unknown, Finished(ear.finish, spent))
            return
        if ear.opened:
            messages = request.messages
            yield from _follow_reply(path, shut, listing, ear, homes)
        elif messages is request.messages:
            messages = [*messages, *ear.correction()]
        else:
            break
    yield from tell(Noted(Note("groups-left", "no group fits: all tools are searched")))
    yield from _pass_on(request, spent, by="search")


def _follow_reply(
    path: list[Sequence[Group]], shut: set[Group], offered: OfferedTools, ear: ReplyListener, homes: Mapping[str, Group]
) -> Plan[None]:
    """Follows the reply: into a group, into several at once, or back up."""
    groups = [offered.opens.get(name) or homes[name] for name in ear.opened if name != offered.back]
    groups = list(dict.fromkeys(group for group in groups if group is not path[-1][0]))
    if not groups:
        left = path.pop()[0]
        shut.add(left)
        if path:
            yield from tell(Noted(Note("group-left", left.name)))
        return
    yield from tell(*(Noted(_opened(group)) for group in groups))
    path.append(groups)


def _opened(group: Group) -> Note:
    return Note("group-opened", f"{group.name}: {sum(1 for _ in tools_in(group))} tools")


def _group_of_each(root: Group) -> dict[str, Group]:
    """The group of each tool."""
    homes: dict[str, Group] = {}
    left = [root]
    while left:
        group = left.pop()
        for member in group.members:
            if isinstance(member, Group):
                left.append(member)
            else:
                homes[member.name] = group
    return homes


def _pass_on(request: Request, spent: Usage, by: str = "") -> Plan[None]:
    """The reply to a request unchanged, with the usage of the earlier requests added."""
    ear = ReplyListener(OfferedTools((), {}, ""), (), every=True)
    yield Ask(request, live=True, read=ear.hear, recorded=False, by=by)
    yield from tell(Finished(ear.end.finish, add_usage(spent, ear.end.usage)))


# ------------------------------------------------------------------ models that decide by likelihood


def _by_likelihood(request: Request, root: Group, beside: Sequence[AnyTool], looks: int) -> Plan[None]:
    question, results = last_question(request.messages)
    if results and request.choice == "auto":  # the model only has to put the results into words
        yield from _pass_on(replace(request, tools=tuple(beside) or tuple(tools_in(root))[:1]), Usage())
        return
    best, opened = yield from _best_first_search(root, beside, question, looks)
    notes = [Noted(_opened(group)) for group in opened]
    if best is None:
        yield from tell(*notes, Noted(Note("groups-left", "no group fits: all tools are searched")))
        yield from _pass_on(request, Usage(), by="search")
    else:
        yield from tell(*notes)
        yield from _pass_on(replace(request, tools=(best,)), Usage())


def _best_first_search(
    root: Group, beside: Sequence[AnyTool], question: str, looks: int
) -> Plan[tuple[AnyTool | None, list[Group]]]:
    """The best tool with a positive surplus, searched best branch first; and the opened groups."""
    opened: list[Group] = []
    best: tuple[float, AnyTool] | None = None
    members: Sequence[Member] = (*beside, *root.members)
    branches: list[tuple[float, int, Group]] = []
    count = 0
    for _ in range(looks):
        tools = [as_tool(member) if isinstance(member, Group) else member for member in members]
        worths = yield from wanted(tools, question)
        for member, (worth, surplus) in zip(members, worths, strict=True):
            count += 1
            if isinstance(member, Group):
                heapq.heappush(branches, (-worth, count, member))
            elif surplus > 0 and (best is None or worth > best[0]):
                best = (worth, member)
        if not branches or (best and best[0] >= -branches[0][0]):
            break
        _, _, group = heapq.heappop(branches)
        opened.append(group)
        members = group.members
    return best[1] if best else None, opened
