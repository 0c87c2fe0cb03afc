"""A choice by levels: which group of tools, which group in it, which tool, with what; each over a short list.

A model that is shown tools is shown groups as tools without arguments; calling one opens it, `none_of_these` goes back
up. Whatever it answers besides is its reply, so that small talk costs one question. A model that decides by likelihood
is asked how likely each member of a list makes the request, and goes on with the best that it has seen anywhere.
Where no branch fits, the model that the driver knows as `search` is asked, with all the tools.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Noted
from ..nlu.intent import wanted
from ..plan.effects import Ask, Plan, tell
from ..plan.prompted import last_question
from ..schema.infer import AnyTool
from ..types import Finish, Note, Request, Tool, Usage
from ..wire.reading.collect import add_usage
from .group_tree import Group, Member, tools_in

LOOKS = 6
"""Lists that are looked into for one reply."""
MOST_CHARACTERS = 300
"""Characters of the names in a group that are told of it."""
BACK = "none_of_these"
SEARCH_ALL = "Call this if none of the others is about what is needed: all tools are searched then."
GO_BACK = "Call this if none of the others does what is needed: the other groups are shown again."
UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def levels(
    request: Request, root: Group, *, can: Collection[str] = (), beside: Sequence[AnyTool] = (), looks: int = LOOKS
) -> Plan[None]:
    """Tells the events of the reply to a request whose tools are in `root`. `beside` are tools shown in every list,
    such as those that the conversation has used. `can` is what the model can do; at most `looks` lists are looked
    into."""
    if request.choice == "none":
        yield from _handed_on(replace(request, tools=tuple(beside)), Usage())
    elif "scored" in can:
        yield from _weighed(request, root, beside, looks)
    else:
        yield from _descent(request, root, beside, looks)


# ------------------------------------------------------------------ a list, as a model is shown it


@dataclass(slots=True)
class OfferedTools:
    """The tools that are offered, the groups among them by the names that they have there, and the way back's."""

    tools: tuple[AnyTool, ...]
    opens: dict[str, Group]
    back: str


def listed(
    members: Iterable[Member], beside: Sequence[AnyTool], taken: Collection[str], *, first: bool
) -> OfferedTools:
    """A list with the groups as tools, by names that no tool has."""
    shown = {tool.name: tool for tool in beside}
    opens: dict[str, Group] = {}
    for member in members:
        if isinstance(member, Group):
            tool = as_tool(member, {*taken, *shown})
            opens[tool.name] = member
        else:
            tool = member
        shown.setdefault(tool.name, tool)
    back = _free(BACK, {*taken, *shown})
    shown[back] = Tool(back, SEARCH_ALL if first else GO_BACK)
    return OfferedTools(tuple(shown.values()), opens, back)


def as_tool(group: Group, taken: Collection[str] = ()) -> AnyTool:
    """A group as a tool that opens it: named after it, told by what is in it."""
    name = _free((UNSAFE.sub("_", group.name).strip("_")[:50] or "more") + "_tools", taken)
    said = group.description.strip() or (group.name if UNSAFE.search(group.name) else "")
    count = sum(1 for _ in tools_in(group))
    about = f"{said.rstrip('.')}. " if said else ""
    return Tool(name, f"{about}Opens {count} tools: {_names(group)}")


def _by_turns(group: Group) -> list[str]:
    """The names of what is in a group; of groups alone, the first tool of each, then the second of each."""
    inner = [member for member in group.members if isinstance(member, Group)]
    if len(inner) < len(group.members):
        return [member.name for member in group.members]
    rows = [[tool.name for tool in tools_in(member)] for member in inner]
    return [row[i] for i in range(max(map(len, rows))) for row in rows if i < len(row)]


def _names(group: Group) -> str:
    """The names of what is in a group, as far as there is room, each of its groups having its part."""
    told: list[str] = []
    room = MOST_CHARACTERS
    for name in _by_turns(group):
        room -= len(name) + 2
        if room < 0:
            return ", ".join([*told, "…"])
        told.append(name)
    return ", ".join(told)


def _free(name: str, taken: Collection[str]) -> str:
    free, count = name, 1
    while free in taken:
        count += 1
        free = f"{name}_{count}"
    return free


# ------------------------------------------------------------------ models that are shown tools


@dataclass(slots=True)
class ReplyListener:
    """Listens to one reply: calls that open something stay here, the rest goes on."""

    listed: OfferedTools
    hidden: Collection[str]
    opened: list[str] = field(default_factory=list[str])
    called: bool = False
    end: Finished = field(default_factory=Finished)
    _inside: bool = False

    @property
    def finish(self) -> Finish:
        """How the reply ended for who asked: calls that stayed here are none."""
        return "stop" if self.end.finish == "tool_calls" and not self.called else self.end.finish

    def hear(self, event: Event | None) -> Iterable[Event]:
        """The events that go on."""
        match event:
            case None:
                return ()
            case Finished():
                self.end = event
                return ()
            case CallStart(name):
                self._inside = self._opens(name)
                if self._inside:
                    self.opened.append(name)
                else:
                    self.called = True
            case Noted(note) if note.rule == "unknown-tool" and self._opens(note.detail):
                return ()
            case _:
                pass
        if self._inside and isinstance(event, (CallStart, ArgumentsDelta, CallEnd)):
            self._inside = not isinstance(event, CallEnd)
            return ()
        return (event,)

    def _opens(self, name: str) -> bool:
        """A tool's name that a group told of opens the list that the tool is in: its arguments were not shown yet."""
        return name in self.listed.opens or name == self.listed.back or name in self.hidden


def _descent(request: Request, root: Group, beside: Sequence[AnyTool], looks: int) -> Plan[None]:
    homes = _homes(root)
    path: list[Sequence[Group]] = [[root]]  # those opened at each step: what is in the first, and the others beside it
    shut: set[Group] = set()
    spent = Usage()
    for _ in range(looks):
        members = [*path[-1][0].members, *path[-1][1:]] if path else []
        here = [member for member in members if not (isinstance(member, Group) and member in shut)]
        if not here:
            break
        shown = listed(here, beside, homes, first=len(path) == 1)
        offered = {tool.name for tool in shown.tools}
        ear = ReplyListener(shown, {name for name in homes if name not in offered})
        yield Ask(replace(request, tools=shown.tools), live=True, read=ear.hear, recorded=False)
        spent = add_usage(spent, ear.end.usage)
        if ear.called or not ear.opened or ear.end.finish in ("length", "content_filter"):
            yield from tell(Finished(ear.finish, spent))
            return
        yield from _on(path, shut, shown, ear, homes)
    yield from tell(Noted(Note("groups-left", "no group fits: all tools are searched")))
    yield from _handed_on(request, spent, by="search")


def _on(
    path: list[Sequence[Group]], shut: set[Group], shown: OfferedTools, ear: ReplyListener, homes: Mapping[str, Group]
) -> Plan[None]:
    """Goes where the reply says: into a group, or into several at once, or back up."""
    groups = [shown.opens.get(name) or homes[name] for name in ear.opened if name != shown.back]
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


def _homes(root: Group) -> dict[str, Group]:
    """The group that each tool stands in."""
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


def _handed_on(request: Request, spent: Usage, by: str = "") -> Plan[None]:
    """The reply to a request as it is, with what was spent before."""
    ear = ReplyListener(OfferedTools((), {}, ""), ())
    yield Ask(request, live=True, read=ear.hear, recorded=False, by=by)
    yield from tell(Finished(ear.end.finish, add_usage(spent, ear.end.usage)))


# ------------------------------------------------------------------ models that decide by likelihood


def _weighed(request: Request, root: Group, beside: Sequence[AnyTool], looks: int) -> Plan[None]:
    question, results = last_question(request.messages)
    if results and request.choice == "auto":  # the results are put into words
        yield from _handed_on(replace(request, tools=tuple(beside) or tuple(tools_in(root))[:1]), Usage())
        return
    best, opened = yield from _descended(root, beside, question, looks)
    notes = [Noted(_opened(group)) for group in opened]
    if best is None:
        yield from tell(*notes, Noted(Note("groups-left", "no group fits: all tools are searched")))
        yield from _handed_on(request, Usage(), by="search")
    else:
        yield from tell(*notes)
        yield from _handed_on(replace(request, tools=(best,)), Usage())


def _descended(
    root: Group, beside: Sequence[AnyTool], question: str, looks: int
) -> Plan[tuple[AnyTool | None, list[Group]]]:
    """The best tool that is wanted more than needed, going on with the best branch seen; and what was opened."""
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
