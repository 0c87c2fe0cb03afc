"""Tools that come before others whatever the question: those that the instructions name, and the client's own.

A client such as a coding agent sends its own tools together with those of the MCP servers that it was given. Its own
are few, and it cannot work without them; what a server brings has a name with the server's in front. So the names tell
them apart, by rules that hold for any program: see `own`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ..plan.prompted import text_of
from ..types import Message

HARD = re.compile(r"__|[./:]")
"""What programs put between a server's name and its tool's, and hardly anybody within a name."""
SOFT = re.compile(r"[_-]")
"""What may stand there too, and stands within names as well."""
SERVER = 4
"""Tools whose names begin with one word, from which that word is taken for a server's where nothing HARD is in any
name."""
OWN = 64
"""Own tools at most: where more look like it, the names do not tell them apart."""
SHARE = 4
"""Where nothing HARD is in any name, own tools are at most one in so many: first words are shared by chance, too."""
LONGEST = 200_000
"""Characters of the instructions that are looked at."""
NAME = re.compile(r"[A-Za-z_][\w-]*(?:(?:[.:/])[\w-]+)*")


def server(name: str) -> str:
    """What stands before the last HARD separator of a name, "" without one."""
    found = [match.start() for match in HARD.finditer(name)]
    return name[: found[-1]] if found else ""


def heads(names: Sequence[str]) -> list[str]:
    """For each name that of the server that it seems to come from, "" for none."""
    hard = [server(name) for name in names]
    if any(hard):
        return hard
    first = [SOFT.split(name, maxsplit=1)[0] if SOFT.search(name) else "" for name in names]
    count = Counter(first)
    return [head if count[head] >= SERVER else "" for head in first]


def own(names: Sequence[str]) -> list[int]:
    """The places of the tools that are the client's own: those without a server, beside others that have one. None
    where all are alike."""
    found = [place for place, head in enumerate(heads(names)) if not head]
    sure = any(map(server, names))
    most = min(OWN, len(names) - 1 if sure else len(names) // SHARE)
    return found if len(found) <= most else []


def named(messages: Sequence[Message]) -> Counter[str]:
    """The words of a conversation's instructions that may be names, with how often each stands there."""
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
    """The servers of these names with how many tools each has, the largest first, at most so many."""
    count = Counter(head for head in heads(names) if head)
    return sorted(count.items(), key=lambda row: (-row[1], row[0]))[:most]
