"""Finds tools that are preferred for any question: those that the instructions name, and the client's own.

A client such as a coding agent sends its own tools together with those of its MCP servers. It has few own tools and
cannot work without them; the names of a server's tools have the server's name as a prefix. `own` tells them apart by
their names, with rules that hold for any program.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ..plan.prompted import text_of
from ..types import Message

HARD = re.compile(r"__|[./:]")
"""Separators between a server's name and its tool's that hardly occur within a name."""
SOFT = re.compile(r"[_-]")
"""Separators that also occur within names."""
SERVER = 4
"""So many tools with the same first word make it the name of a server, if no name has a HARD separator."""
OWN = 64
"""The most own tools: if there seem to be more, the names do not tell them apart."""
SHARE = 4
"""Without HARD separators, at most one tool in so many is an own tool, since first words may also agree by chance."""
LONGEST = 200_000
"""Characters of the instructions that are searched."""
NAME = re.compile(r"[A-Za-z_][\w-]*(?:(?:[.:/])[\w-]+)*")


def server(name: str) -> str:
    """The part of a name before its last HARD separator; "" without one."""
    breaks = [match.start() for match in HARD.finditer(name)]
    return name[: breaks[-1]] if breaks else ""


def heads(names: Sequence[str]) -> list[str]:
    """For each name the server that it seems to belong to; "" for none."""
    hard = [server(name) for name in names]
    if any(hard):
        return hard
    first = [SOFT.split(name, maxsplit=1)[0] if SOFT.search(name) else "" for name in names]
    count = Counter(first)
    return [head if count[head] >= SERVER else "" for head in first]


def own(names: Sequence[str]) -> list[int]:
    """The places of the client's own tools: those without a server, if others have one. Empty if all are alike."""
    places = [place for place, head in enumerate(heads(names)) if not head]
    sure = any(map(server, names))
    most = min(OWN, len(names) - 1 if sure else len(names) // SHARE)
    return places if len(places) <= most else []


def named(messages: Sequence[Message]) -> Counter[str]:
    """The words of a conversation's instructions that may be tool names, with their counts."""
    words: Counter[str] = Counter()
    left = LONGEST
    for text in _instructions(messages):
        text = text[:left]
        left -= len(text)
        for word in NAME.findall(text):
            words[word] += 1
            if parts := [part for part in re.split(r"[.:/]", word) if part != word]:
                words.update(parts)
    return words


def _instructions(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        if message.get("role") in ("system", "developer"):
            yield text_of(message)


def servers(names: Sequence[str], most: int = 12) -> list[tuple[str, int]]:
    """The servers of these names with their numbers of tools, the largest first, at most `most`."""
    count = Counter(head for head in heads(names) if head)
    return sorted(count.items(), key=lambda row: (-row[1], row[0]))[:most]
