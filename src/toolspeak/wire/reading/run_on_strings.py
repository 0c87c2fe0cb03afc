"""Recognizes a string that nothing closes, and that ran over the end of its call into the next one.

A comment behind the quote that ends a string (`"a.py" // the file`), `...`, or a missing quote makes the rest of the call
part of the string: its closers, the opener of the next call, up to the first quote of that. So such a quote is looked
at: if the content before it ends with all closers of the call and an opener, and the text behind it begins a call, the
call ends at its closers, incomplete, and the next one is read.

A value that contains calls as text must stay one value. If its quotes are escaped, none is looked at. If they are not, the first
quote of an object in it decides: only closers that nothing in the value opens, directly before it, end the call. Where no mark
stands between two calls, all brackets of the value are counted. What follows may still show that it was a value:
a quote with a comma or bracket, or a closer, in a text behind the calls (`unbalanced-closers`).
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ..dialect import Dialect
from .missing_quotes import Watch, brackets_closed
from .seams import Seam, seams_of
from .source import Malformed, Source

WHY = "a string without its end runs into the next call"
AHEAD = 256
"""More characters than the first key of a call and its name have."""


class RunsOn(Malformed):
    """A string ran into the next call. The text from the end of its call on is given back."""


class NextCall:
    """Looks for the next call in the strings of a call. `tools` are the names of those offered; None if any is."""

    __slots__ = ("_dialect", "_seams", "tools")

    def __init__(self, d: Dialect, tools: Collection[str] | None) -> None:
        self._dialect, self.tools = d, tools
        self._seams: tuple[Seam, ...] | None = None

    @property
    def seams(self) -> tuple[Seam, ...]:
        """What the dialect writes between two calls, computed when the first string is looked at."""
        if self._seams is None:
            self._seams = seams_of(self._dialect)
        return self._seams

    def look(self, s: Source, watch: Watch, size: int, brackets: str) -> bool:
        """Looks at the quote of this size at the source's position, which does not end its string; `brackets` close
        what is open. Raises RunsOn if it belongs to the next call. Returns whether that needs more text."""
        if watch.opened:
            return False
        watch.remember()
        last = watch.tail.rstrip()[-1:]
        seam = next((seam for seam in self.seams if seam.last == last), None)
        if seam is None or not seam.begin(watch.tail):
            return False
        start = s.pos + size
        before = _closed(seam, watch, brackets + seam.outer)
        after = seam.after(s.text, start, start + AHEAD)
        if before is not None:
            if after is None:
                return not any((s.closed, len(s.text) >= start + AHEAD))
            if self._calls(seam, before.groupdict() | after.groupdict()):
                unread(s, watch.tail[watch.tail.rindex(seam.outer, 0, before.end("closers")) :])
                raise RunsOn(WHY)
        watch.opened = seam.call
        return False

    def _calls(self, seam: Seam, groups: dict[str, str | None]) -> bool:
        """Whether the name in these groups is that of a tool. Without marks it must be known."""
        name = groups.get("name")
        if None in (name, self.tools):
            return seam.marked | (not seam.call)
        return not frozenset(self.tools or ()).isdisjoint((name, str(name).rpartition(".")[2]))


def _closed(seam: Seam, watch: Watch, closers: str) -> re.Match[str] | None:
    """What is before the next call, if exactly these brackets are closed there."""
    before = seam.before(watch.tail, max(len(watch.tail) - seam.reach, 0))
    if before is None:
        return None
    more = watch.closed + brackets_closed(watch.tail[: before.end("closers")])
    exact = "".join(before["closers"].split()).endswith(closers)
    return before if all((exact, seam.marked | (more == len(closers)))) else None


def unread(s: Source, text: str) -> None:
    """Gives back the text that was read last."""
    lost = text[: max(len(text) - s.pos, 0)]
    if s.recording is not None and lost:
        s.recording = ["".join(s.recording)[: -len(lost)]]
    s.text, s.offset = lost + s.text, s.offset - len(lost)
    s.pos += len(lost) - len(text)
