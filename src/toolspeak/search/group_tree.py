"""Trees of tool groups, for hierarchical selection.

A list of members (tools and groups) is short: a model chooses from it at once. Groups come from the user (`plain`,
`given`), from common prefixes of names (`by_prefix`), and for the rest from a `Split` function, which divides a list
into a few named groups; `search.word_groups` has one that groups by words.
"""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard, cast

from .. import stems
from ..errors import UsageError
from ..schema.infer import AnyTool, as_tool
from ..schema.phrases import short
from ..schema.suggestions import did_you_mean, listed, near
from ..types import Tool

log = logging.getLogger(__name__)

LIST = 8
"""The usual number of members in a list; it may have half as many more."""
WHOLE = 40
"""The most groups of a user in one list. More are merged."""
LEAST = 3
"""The number of tools with a common prefix that become a group."""
LONGEST_NAME, DEEP = 200, 8
"""Characters of a name, and words in it, that are compared."""
VERBS = frozenset(
    [
        "add",
        "analyze",
        "apply",
        "assign",
        "build",
        "calc",
        "calculate",
        "cancel",
        "change",
        "check",
        "close",
        "compare",
        "compute",
        "convert",
        "count",
        "create",
        "decode",
        "delete",
        "describe",
        "determine",
        "disable",
        "do",
        "download",
        "enable",
        "encode",
        "estimate",
        "evaluate",
        "execute",
        "fetch",
        "filter",
        "find",
        "format",
        "generate",
        "get",
        "group",
        "has",
        "identify",
        "insert",
        "invoke",
        "is",
        "join",
        "list",
        "load",
        "lookup",
        "make",
        "merge",
        "modify",
        "move",
        "open",
        "order",
        "parse",
        "plot",
        "post",
        "predict",
        "print",
        "process",
        "put",
        "query",
        "read",
        "recommend",
        "remove",
        "rename",
        "replace",
        "reset",
        "resolve",
        "retrieve",
        "run",
        "save",
        "search",
        "select",
        "send",
        "set",
        "show",
        "solve",
        "sort",
        "start",
        "stop",
        "submit",
        "sum",
        "sync",
        "track",
        "update",
        "upload",
        "use",
        "validate",
        "verify",
        "view",
        "write",
    ]
)
"""Verbs in the names of tools, which say nothing about their subject."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Tools under a name. `members` are tools and further groups; `description` says what they are for.

    In groups from a user, members may also be names and patterns of names: `Group("mail", ["mail_*"])`.
    """

    name: str
    members: Sequence[Any] = ()
    description: str = ""


Member = Tool[..., Any] | Group
Split = Callable[[Sequence[Member], int], Sequence[Group]]
"""Divides a list into at least two and at most so many groups. Each has a name, and none is empty."""


def tools_in(group: Group) -> Iterator[AnyTool]:
    """All tools in a group and in its subgroups."""
    for member in group.members:
        if isinstance(member, Group):
            yield from tools_in(member)
        else:
            yield member


# ------------------------------------------------------------------ groups from the user


def plain(spec: Any) -> tuple[Group, ...]:
    """The groups that a user specifies, with only names, patterns and further groups as members.

    `spec` is a mapping of names to members, or a list of Groups. Members are names and patterns (`mail_*`) of tools;
    Tools, functions and dicts; a Toolbox or another list of these; or a mapping of further groups. Raises UsageError
    for anything else.
    """
    if not (_is_groups(spec) or isinstance(spec, (Group, list, tuple))) or not spec:
        raise UsageError(f"groups: expected a mapping such as {{'mail': ['mail_*']}}, received {short(spec)}")
    members = _plain_members(spec)
    if strays := [member for member in members if not isinstance(member, Group)]:
        raise UsageError(f"groups: expected names with tools under them, received the tool {short(strays[0])} in none")
    return cast("tuple[Group, ...]", members)


def _plain_members(spec: Any) -> tuple[Any, ...]:
    members: list[Any] = []
    for one in _each(spec):
        if isinstance(one, Group):
            members.append(replace(one, members=_plain_members(one.members)))
        else:
            members.append(one if isinstance(one, str) else as_tool(one).name)
    return tuple(members)


def own_tools(spec: Any) -> Iterator[AnyTool]:
    """The tools that are in groups as objects, not by name."""
    for one in _each(spec):
        if isinstance(one, Group):
            yield from own_tools(one.members)
        elif not isinstance(one, str):
            yield as_tool(one)


def resolve_groups(spec: Iterable[Group], tools: Iterable[AnyTool], *, strict: bool = True) -> Group:
    """One group with the given groups, in which tools replace names. A tool is in the first group that names it. If
    `strict`, a name without a tool raises UsageError."""
    known = {tool.name: tool for tool in tools}
    left = dict(known)

    def filled(group: Group, where: str) -> Group | None:
        where = f"{where}, {group.name}"
        members: list[Member] = []
        for one in group.members:
            if isinstance(one, Group):
                inner = filled(one, where)
                members += [inner] if inner else []
            else:
                members += [left.pop(name) for name in _named(one, known, where, strict) if name in left]
        return replace(group, members=tuple(members)) if members else None

    return Group("", tuple(filter(None, (filled(group, "groups") for group in spec))))


def _named(pattern: str, known: Mapping[str, AnyTool], where: str, strict: bool) -> list[str]:
    if pattern in known:
        return [pattern]
    if names := fnmatch.filter(known, pattern):
        return names
    if strict:
        raise UsageError(f"{where}: there is no tool {short(pattern)}.{did_you_mean(near(pattern, known))}")
    return []


def _is_groups(spec: Any) -> TypeGuard[Mapping[Any, Any]]:
    """Whether it is a mapping of groups, and not a dict that describes a tool."""
    if not isinstance(spec, Mapping):
        return False
    mapping = cast("Mapping[Any, Any]", spec)
    return not isinstance(mapping.get("name"), str) and not isinstance(mapping.get("function"), Mapping)


def _each(spec: Any) -> Iterator[Any]:
    """The members in a mapping of groups, a list (also a nested one), or a single member."""
    if _is_groups(spec):
        yield from (one if isinstance(one, Group) else Group(str(name), one) for name, one in spec.items())
    elif isinstance(spec, (str, Tool, Group, Mapping)) or not isinstance(spec, Iterable):
        yield spec
    else:
        for one in cast("Iterable[Any]", spec):
            yield from _each(one)


# ------------------------------------------------------------------ computed groups


def by_prefix(tools: Sequence[AnyTool], long: int = LIST) -> list[Member]:
    """The tools, with tools that share a prefix in groups: `github_…`, `stripe.customers.…`.

    A group is at the place of its first tool. One that is longer than `long` is divided by the next parts of the
    names.
    """
    return _by_piece(tools, [_pieces(tool.name) for tool in tools], 0, long)


def _by_piece(tools: Sequence[AnyTool], pieces: Sequence[Sequence[str]], at: int, long: int) -> list[Member]:
    places: dict[str, list[int]] = {}
    for place, parts in enumerate(pieces):
        if len(parts) > at:
            places.setdefault(_singular(parts[at]), []).append(place)
    if len(places) == 1 and all(len(parts) > at for parts in pieces):
        return _by_piece(tools, pieces, at + 1, long)  # all names share this part
    grouped: dict[int, Group] = {}
    inside: set[int] = set()
    for group in places.values():
        if len(group) < LEAST:
            continue
        alike = [tools[place] for place in group]
        inner: Sequence[Member] = alike
        if len(group) > long:
            inner = _by_piece(alike, [pieces[place] for place in group], at + 1, long)
        grouped[group[0]] = Group("_".join(pieces[group[0]][: at + 1]), tuple(inner))
        inside.update(group)
    return [
        grouped.get(place) or tools[place] for place in range(len(tools)) if place in grouped or place not in inside
    ]


def _pieces(name: str) -> list[str]:
    """The parts of a name without its verbs: `list_users` has the same subject as `create_user`."""
    pieces = [piece.lower() for piece in stems.PART.findall(name[:LONGEST_NAME])[:DEEP]]
    return [piece for piece in pieces if piece not in VERBS] or pieces


def _singular(piece: str) -> str:
    """A key that a word shares with its plural."""
    return piece[:-1] if len(piece) > 3 and piece.endswith("s") and piece[-2] not in "su" else piece


def tree(root: Group, tools: Iterable[AnyTool], split: Split, most: int = LIST) -> Group:
    """The groups of `root`, with exactly the given `tools` in them. They keep their names and places. Tools in no group
    are grouped by their names, and lists of tools that are more than half longer than `most` are divided."""
    wanted = {tool.name: tool for tool in tools}
    group = only(root, wanted) or Group("")
    grouped = {tool.name for tool in tools_in(group)}
    rest = [tool for name, tool in wanted.items() if name not in grouped]
    return replace(root, members=_of_user([*group.members, *rest], split, most))


def only(group: Group, wanted: Collection[str]) -> Group | None:
    """The group with only the wanted tools; None if it has none of them."""
    members: list[Member] = []
    for member in group.members:
        if not isinstance(member, Group):
            members += [member] if member.name in wanted else []
        elif inner := only(member, wanted):
            members.append(inner)
    return replace(group, members=tuple(members)) if members else None


def _of_user(members: Sequence[Member], split: Split, most: int) -> tuple[Member, ...]:
    """The members of a user's group, with the tools beside its groups as a short list."""
    groups, tools = _groups_and_tools(members)
    if not groups:
        return _shaped(tools, split, most)
    if len(groups) > WHOLE:
        groups = _merged(groups, most)
        members = [*groups, *tools]
    inner = {group: _single(replace(group, members=_of_user(group.members, split, most))) for group in groups}
    if len(members) > most + most // 2:
        members = [*groups, *_shaped(tools, split, most, beside=len(groups))]
    return tuple(inner.get(member, member) if isinstance(member, Group) else member for member in members)


def _merged(groups: Sequence[Group], most: int) -> list[Group]:
    """Groups of a user as a few groups, in their order. The names list what is in them."""
    parts = in_order(groups, most)
    named = [replace(part, name=listed([group.name for group in part.members], 10)) for part in parts]
    log.warning(
        "%d groups are too many for one list (at most %d) and are merged: %s. Put groups into groups to choose how",
        len(groups), WHOLE, "; ".join(group.name for group in named),
    )  # fmt: skip
    return named


def _shaped(members: Sequence[Member], split: Split, most: int, beside: int = 0) -> tuple[Member, ...]:
    """The members as a short list of groups with short lists, if `beside` other groups are in the same list."""
    long = most + most // 2
    if beside + len(members) > long and len(members) > LEAST:
        groups, tools = _groups_and_tools(members)
        members = [*groups, *by_prefix(tools, long)]
    if beside + len(members) > long and len(members) > LEAST:
        groups, tools = _groups_and_tools(members)
        room = most - beside - len(groups)
        # If there is room, the groups keep their places, and the single tools beside them are put into groups.
        members = [*groups, *split(tools, room)] if room >= 2 else list(split(members, max(most - beside, 2)))
    return tuple(
        _single(replace(member, members=_shaped(member.members, split, most))) if isinstance(member, Group) else member
        for member in members
    )


def _groups_and_tools(members: Sequence[Member]) -> tuple[list[Group], list[AnyTool]]:
    groups = [member for member in members if isinstance(member, Group)]
    return groups, [member for member in members if not isinstance(member, Group)]


def _single(group: Group) -> Member:
    """The only member of a group that has no other, else the group."""
    return group.members[0] if len(group.members) == 1 else group


def in_order(members: Sequence[Member], most: int) -> list[Group]:
    """Divides a list into parts of equal length, in order: the Split that uses no knowledge."""
    parts = min(most, max(2, -(-len(members) // LIST)))
    ends = [len(members) * part // parts for part in range(parts + 1)]
    return [Group(f"part_{i + 1}", tuple(members[ends[i] : ends[i + 1]])) for i in range(parts)]
