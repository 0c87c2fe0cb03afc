"""The state that all readers of a reply share: the text that arrives, the events that leave, and the open call."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any

from ...events import ArgumentsDelta, CallEnd, CallStart, Event, Noted, TextDelta, ThoughtDelta
from ...types import Note, Tool
from .missing_quotes import LONG
from .source import Decoded, Malformed, Source

NAMED = re.compile(r"[^\s<>{}\[\]()\"'`|,;]+").fullmatch
"""Matches a possible tool name in a reply."""
FUNCTIONS = "functions"
"""The namespace in which some models were trained to see the functions of a request."""
NOTES = 100
"""The most notes of a reply."""
DOUBTFUL = frozenset(["doubled-key", "expression", "missing-quote", "other-name", "trailing-text", "unknown-key"])
"""Rules of notes that say that a part of a call was dropped, or that it is ambiguous: such a call is never whole."""


def may_name(text: str) -> bool:
    """Whether a tool name may begin like this."""
    seen = text.strip()
    return not seen or NAMED(seen) is not None


Mark = tuple[
    int, int, frozenset[str], frozenset[tuple[str, str]], bool, bool, str, type[TextDelta] | type[ThoughtDelta]
]


@dataclass(slots=True)
class Call:
    """A call being read.

    `guard`: it counts only for an offered tool; `strict`: the tool must be offered by name. `filled`: its arguments
    are complete, whatever happens to its closer. `open_ended`: nothing closes it.
    """

    guard: bool = False
    strict: bool = False
    name: str | None = None
    id: str = ""
    late_id: str | None = None
    started: bool = False
    filled: bool = False
    ended: bool = False
    open_ended: bool = False


class State(Source):
    """A source, and the events made from it. What is needed to take a call back, or to judge it, is here as well:

    - `args` appends to the open call's arguments. `tools` maps names to tools; None accepts any name.
    - `waiting`: notes about text that can still be given back; they are dropped if it is.
    - `spent`: so much was read that a failure becomes text without a second reading.
    - `cut`: the text ended in the middle of something. `unread`: the open message is a call, but calls do not count.
    - `voice`: the event for text (text or thought). `seed`: the length of the kept text that was in the prompt.
    - `given`: the ids of calls so far. `doubtful`: a note says that the current call is not whole.
    - `ending`: a call that is complete unless what follows spoils it; `behind`: the texts in its object.
    - `line`: the current line of text, or its end. `above`: there was text before it. `within`: there was text on the
      line before the current call, which is `fenced` or not. `unfinished`: that text is a sentence that continues.
    - `failures`: the number of openers that opened no call. `broken`: a list of calls was one of them, or had a broken
      call.
    - `judged`: the position where it was last decided whether the call has more text.
    """

    __slots__ = (
        "above",
        "args",
        "behind",
        "broken",
        "calls",
        "cut",
        "doubtful",
        "ending",
        "failures",
        "fenced",
        "given",
        "ids",
        "judged",
        "line",
        "live",
        "names",
        "noted",
        "out",
        "parts",
        "passed",
        "seed",
        "spent",
        "texts",
        "told",
        "tools",
        "unfinished",
        "unread",
        "voice",
        "waiting",
        "within",
    )

    def __init__(
        self, tools: dict[str, Tool[..., Any]] | None, ids: Callable[[], str] | None, decoded: Decoded | None = None
    ) -> None:
        super().__init__(decoded)
        self.tools = tools
        self.names = sorted(tools or ())
        self.ids = ids
        self.given: set[str] = set()
        self.out: list[Event] = []
        self.parts: list[str] = []
        self.args = self.parts.append
        self.passed: list[str] = []
        self.waiting: list[Note] = []
        self.noted: set[tuple[str, str]] = set()
        self.live: Call | None = None
        self.ending: Call | None = None
        self.doubtful = False
        self.judged = -1
        self.calls = 0
        self.spent = False
        self.above = self.within = self.unfinished = self.fenced = False
        self.line = ""
        self.cut = self.broken = False
        self.seed = 0
        self.unread = False
        self.voice: type[TextDelta] | type[ThoughtDelta] = TextDelta
        self.told: type[TextDelta] | type[ThoughtDelta] = TextDelta
        self.texts: list[str] = []
        self.behind: list[Event] = []
        self.failures = 0

    def look_back(self) -> None:
        """Takes note of the pieces that were passed on without the readers. All text before them was read."""
        text = "".join(self.passed)
        self.passed.clear()
        self.pos += len(text)
        if watch := self.watch:
            watch.content += text
            if len(watch.content) > LONG:
                watch.shorten()
        elif self.delta is TextDelta and not text.isspace():
            self.line = text

    def say(self, text: str) -> None:
        """Emits text, or a part of a thought."""
        if text:
            if self.ending:
                self.settle(text)
            if self.parts:
                self.flush()
            if self.voice is TextDelta:
                _, newline, last = text.rpartition("\n")
                self.above |= not text.isspace()
                self.above |= self.line != ""
                self.line = last.strip() or ("" if newline else self.line)
            if self.told is not self.voice:
                self.flush_text()
                self.told = self.voice
            self.texts.append(text)

    @property
    def spoken(self) -> bool:
        """Whether there was any text."""
        return self.above or self.line != ""

    def flush_text(self) -> None:
        """Emits the collected pieces of text as one event."""
        if self.texts:
            self.out.append(self.told("".join(self.texts)))
            self.texts.clear()

    def flush(self) -> None:
        if self.parts:
            if piece := self.parts[0] if len(self.parts) == 1 else "".join(self.parts):
                self.out.append(ArgumentsDelta(piece))
            self.parts.clear()

    def push(self, event: Event) -> None:
        if self.ending and not isinstance(event, Noted):
            self.settle()
        if self.parts:
            self.flush()
        if self.texts:
            self.flush_text()
        self.out.append(event)

    def note(self, rule: str, detail: str = "", place: int | None = None) -> None:
        """Adds a note at this position, or at the reader's. Equal notes of one call are added once."""
        self.doubtful |= rule in DOUBTFUL
        key = (f"{self.calls} {rule}", detail)
        if key in self.noted or len(self.noted) >= NOTES:
            return
        note = Note(rule, detail, self.base + self.pos if place is None else place)
        if self.log is not None:
            self.waiting.append(note)
        else:
            self.noted.add(key)
            self.push(Noted(note))

    def commit(self) -> None:
        """Text that was read so far will not be given back."""
        self.log = None
        waiting, self.waiting = self.waiting, []
        for note in waiting:
            key = (f"{self.calls} {note.rule}", note.detail)
            if key not in self.noted and len(self.noted) < NOTES:
                self.noted.add(key)
                self.push(Noted(note))

    def forget(self) -> None:
        """Drops the notes since `keep`: they were about something that is no call."""
        self.waiting, self.doubtful = [], False

    def mark(self) -> Mark:
        """A snapshot for `undo`: events from here on may have to be taken back."""
        self.flush()
        self.flush_text()
        self.log = None
        return (
            len(self.out),
            self.calls,
            frozenset(self.given),
            frozenset(self.noted),
            self.cut,
            self.above,
            self.line,
            self.voice,
        )

    def undo(self, mark: Mark) -> None:
        """Takes back all events since `mark`."""
        size, self.calls, given, noted, self.cut, self.above, self.line, self.voice = mark
        self.given, self.noted, self.waiting = set(given), set(noted), []
        self.parts.clear()
        self.texts.clear()
        self.behind.clear()
        del self.out[size:]
        self.log = self.ending = self.live = None
        self.doubtful = False

    def schema(self, call: Call) -> Mapping[str, Any]:
        """The parameters of the called tool; {} if it is unknown."""
        tool = (self.tools or {}).get(call.name or "")
        return tool.parameters if tool else {}

    def offered(self, name: str) -> bool:
        return self.tools is None or name in self.tools

    def is_tool(self, name: str) -> bool:
        """Whether the tools are known and one has this name."""
        return name in (self.tools or ())

    @property
    def gone_out(self) -> bool:
        """Whether a part of the text was emitted already, so that it cannot be given back and read differently."""
        return self.spent or self.log is None or self.live is not None

    def begins(self, text: str) -> bool:
        """Whether the name of an offered tool begins like this."""
        seen = text.strip()
        i = bisect_left(self.names, seen)
        if i < len(self.names) and self.names[i].startswith(seen):
            return True
        space, dot, rest = seen.partition(".")
        return self.begins(rest) if dot and space == FUNCTIONS else not dot and FUNCTIONS.startswith(space)

    def called(self, name: str) -> str:
        """The offered tool that this name means: with entities, with the namespace of all functions before it, or with
        its own namespace repeated (`a.a` is `a`)."""
        tools = self.tools or {}
        if name in tools:
            return name
        plain = unescape(name)
        space, _, rest = plain.partition(".")
        meant = plain if plain in tools else rest if space in (FUNCTIONS, rest.partition(".")[0]) else ""
        if meant not in tools:
            return name
        self.note("meant-name", name)
        return meant

    def addressed(self, to: str, name: str) -> str:
        """The name of a call whose message has a recipient that is not offered: a namespace, or another tool."""
        whole = f"{to}.{name}"
        if whole in self.names:
            return whole
        if to == FUNCTIONS or f"{name}.".startswith(f"{to}."):
            return name
        self.note("other-name", name)
        return name if self.offered(name) else to

    def start(self, call: Call) -> None:
        """This is a call: emits its name. Raises Malformed if a guarded call names no offered tool."""
        if call.started or call.name is None:
            return
        if call.guard and (not self.offered(call.name) or (call.strict and self.tools is None)):
            raise Malformed(f"{call.name!r} is no tool")
        doubtful, self.doubtful = self.doubtful, False
        self.settle()
        self.doubtful = doubtful
        self.calls += 1
        call.started, self.live = True, call
        written = call.id
        call.id = self.own_id(written)
        self.push(CallStart(call.name, call.id))
        self.commit()
        if written != call.id and written:
            self.note("doubled-id", written)
        if not self.offered(call.name):
            self.note("unknown-tool", call.name)

    def own_id(self, written: str) -> str:
        """The id that the model wrote; a new one if it wrote none, or that of another call."""
        if not written or written in self.given:
            written = self.ids() if self.ids else f"call_{self.calls}"
            while written in self.given:
                written += "_"
        self.given.add(written)
        return written

    def end(self, call: Call, whole: bool = True) -> None:
        if call.started and not call.ended:
            late = call.late_id
            self.given -= {call.id} if late else set()
            if late and late in self.given:
                self.note("doubled-id", late)
                late = None
            self.given.add(late or call.id)
            call.ended, self.live, call.late_id = True, None, late
            if whole and not self.doubtful:
                self.ending = call
            else:
                self.doubtful = False
                self.push(CallEnd(False, late))

    def settle(self, behind: str = "") -> None:
        """Ends the call that is complete. `behind` is text after it that is neither a call nor certainly unrelated to
        it."""
        call, self.ending = self.ending, None
        if call is None:
            return
        if behind:
            self.doubtful = True
            self.push(Noted(Note("trailing-text", behind.strip()[:1], self.base + self.pos)))
        self.push(CallEnd(not self.doubtful, call.late_id))
        self.doubtful = False
        self.out += self.behind
        self.behind.clear()
