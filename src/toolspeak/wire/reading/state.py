"""The state that the readers of a reply share: the text that arrives, the events that leave, the open call."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any

from ...events import ArgumentsDelta, CallEnd, CallStart, Event, Noted, TextDelta, ThoughtDelta
from ...types import Note, Tool
from .source import Decoded, Malformed, Source

NAMED = re.compile(r"[^\s<>{}\[\]()\"'`|,;]+").fullmatch
"""What a tool may be called on a wire."""
FUNCTIONS = "functions"
"""The namespace in which models were taught that the functions of a request stand."""
NOTES = 100
"""No reply leaves more notes than this."""
DOUBTFUL = frozenset(["doubled-key", "expression", "other-name", "trailing-text", "unknown-key"])
"""Something of a call was left out, or it can be read in more than one way: a call with such a note is never whole."""


def may_name(text: str) -> bool:
    """May the name of any tool begin so?"""
    seen = text.strip()
    return not seen or NAMED(seen) is not None


Mark = tuple[
    int, int, frozenset[str], frozenset[tuple[str, str]], bool, bool, str, type[TextDelta] | type[ThoughtDelta]
]


@dataclass(slots=True)
class Call:
    """A call being read. `guard`: only an offered tool counts, and with `strict` it must be offered by name.

    Once it is `filled`, its arguments are all there, whatever happens to what closes it. It is `open_ended` where
    nothing closes it.
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
    """A source, and the events made from it.

    `args` takes more of the open call's arguments. `tools` maps a name to its tool; None: any name will do. What is noted while the text can still be
    given back waits until it cannot, and is forgotten if it is. `spent`: so much was read that a failure
    becomes text without a second reading. `cut`: the text ended where it may not. `above`: there was text before this line.
    `voice` is the event that what is said goes out as. `seed`: so much of what is kept stood in the prompt.
    `unread`: the message that is open is a call where none counts. `given` are the ids that calls have.
    `ending` is the call that is over, but for what comes behind it, and `behind` the texts that its object holds; `doubtful`: a note tells that what is read is not whole.
    `line`: the text of the line that is told, or the end of it; `within`: that stands before the call read, which is `fenced` or not;
    `unfinished`: what ends it is a sentence that goes on.
    `failures`: so many openers opened no call; `broken`: a list of calls was one of them, or held a call that broke. `judged` is the place where it was decided last whether more of a call stands there.
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

    def say(self, text: str) -> None:
        """More text for the user, or of a thought."""
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
        """Whether there was text."""
        return self.above or self.line != ""

    def flush_text(self) -> None:
        """Tell the pieces of text that were said as one."""
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
        """Tell of a repair at this place, or where the reader is; the same one of the same call once."""
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
        """What was read stays read."""
        self.log = None
        waiting, self.waiting = self.waiting, []
        for note in waiting:
            key = (f"{self.calls} {note.rule}", note.detail)
            if key not in self.noted and len(self.noted) < NOTES:
                self.noted.add(key)
                self.push(Noted(note))

    def forget(self) -> None:
        """What was noted since `keep` was about something that is none."""
        self.waiting, self.doubtful = [], False

    def mark(self) -> Mark:
        """How things stand, to come back to with `undo`: what is told from here on may have to be taken back."""
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
        """Nothing was told since `mark`."""
        size, self.calls, given, noted, self.cut, self.above, self.line, self.voice = mark
        self.given, self.noted, self.waiting = set(given), set(noted), []
        self.parts.clear()
        self.texts.clear()
        self.behind.clear()
        del self.out[size:]
        self.log = self.ending = self.live = None
        self.doubtful = False

    def schema(self, call: Call) -> Mapping[str, Any]:
        """The parameters of the tool that is called, {} where it is not known."""
        tool = (self.tools or {}).get(call.name or "")
        return tool.parameters if tool else {}

    def offered(self, name: str) -> bool:
        return self.tools is None or name in self.tools

    def is_tool(self, name: str) -> bool:
        """Whether tools are known, and one is called so."""
        return name in (self.tools or ())

    @property
    def gone_out(self) -> bool:
        """Whether something of what is read went out already, so that it cannot be given back and read otherwise."""
        return self.spent or self.log is None or self.live is not None

    def begins(self, text: str) -> bool:
        """Does the name of an offered tool begin so?"""
        seen = text.strip()
        i = bisect_left(self.names, seen)
        if i < len(self.names) and self.names[i].startswith(seen):
            return True
        space, dot, rest = seen.partition(".")
        return self.begins(rest) if dot and space == FUNCTIONS else not dot and FUNCTIONS.startswith(space)

    def called(self, name: str) -> str:
        """The name of the offered tool that is meant by this one: with entities, with the namespace of all functions
        before it, or its namespace repeated (`a.a` is `a`)."""
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
        """The name of a call whose message goes to something that is not offered: to its namespace, or to another
        tool."""
        whole = f"{to}.{name}"
        if whole in self.names:
            return whole
        if to == FUNCTIONS or f"{name}.".startswith(f"{to}."):
            return name
        self.note("other-name", name)
        return name if self.offered(name) else to

    def start(self, call: Call) -> None:
        """The call is one: tell its name. Raises Malformed where a guarded call names no tool."""
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
        """The id that the model wrote; where it wrote none, or that of another call, one of our own."""
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
        """The call that is over ends here. `behind` is what stands there that is neither a call nor free of it."""
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
