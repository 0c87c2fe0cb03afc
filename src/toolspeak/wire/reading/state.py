"""The state that all readers of a reply share: the text that arrives, the events that leave, and the open call."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import Any

from ...events import ArgumentsDelta, CallEnd, CallStart, Event, Noted, TextDelta, ThoughtDelta
from ...types import Note, Tool
from .call import Call
from .call_ids import unique_id
from .doubtful import DOUBTFUL, UNBALANCED
from .missing_quotes import LONG
from .quoting_signs import Surroundings
from .source import Malformed, Source
from .unbalanced_closers import NOTHING_BEHIND, TextBehind
from .unread_markers import UnreadMarkers

NAMED = re.compile(r"[^\s<>{}\[\]()\"'`|,;]+").fullmatch
"""Matches a possible tool name in a reply."""
FUNCTIONS = "functions"
"""The namespace in which some models were trained to see the functions of a request."""
NOTES = 100
"""The most notes of a reply."""
DEFERRED = 2_000_000
"""The most characters of arguments that are deferred."""
RECENT = 300
"""The most characters before a call that may show that it is an example."""


def may_name(text: str) -> bool:
    """Whether a tool name may begin like this."""
    seen = text.strip()
    return not seen or NAMED(seen) is not None


TextType = type[TextDelta] | type[ThoughtDelta]
Snapshot = tuple[int, int, frozenset[str], frozenset[tuple[str, str]], bool, bool, str, TextType, TextBehind]


@dataclass(slots=True, eq=False, kw_only=True)
class State(Source):
    """A source, and the events made from it, with what is needed to take a call back or to decide whether it is whole.

    One decoder reads one reply into it; `snapshot` and `undo` go back within the piece that is being read.
    """

    tools: dict[str, Tool[..., Any]] | None = None
    """Maps names to tools. None accepts any name."""
    new_id: Callable[[], str] | None = None
    """Creates the id of a call that has none."""
    stops: tuple[str, ...] = ()
    """The dialect's marks of the end of a reply."""
    tool_names: list[str] = field(default_factory=list[str])
    """The names of the tools, sorted."""

    events: list[Event] = field(default_factory=list[Event])
    argument_pieces: list[str] = field(default_factory=list[str])
    """Pieces of the open call's arguments that become the next event; `emit_arguments` appends to them."""
    emit_arguments: Callable[[str], None] = field(init=False)
    deferred_arguments: list[str] | None = None
    """The pieces of arguments that `release_arguments` will emit; None if pieces are emitted as they come."""
    text_pieces: list[str] = field(default_factory=list[str])
    """Pieces of text that become the next event, of the type `pieces_type`."""
    pieces_type: TextType = TextDelta
    text_type: TextType = TextDelta
    """The event for text that is read now: text or thought."""
    passed_pieces: list[str] = field(default_factory=list[str])
    """Pieces that were emitted directly, and are not counted in `pos` yet."""
    pending_notes: list[Note] = field(default_factory=list[Note])
    """Notes about text that can still be given back. They are dropped if it is."""
    note_keys: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """The rules and details of the notes so far."""

    call_count: int = 0
    used_ids: set[str] = field(default_factory=set[str])
    open_call: Call | None = None
    """The call whose start was emitted, but not its end."""
    complete_call: Call | None = None
    """A call that is complete unless what follows shows that it is not. Its end is not emitted yet."""
    events_after_call: list[Event] = field(default_factory=list[Event])
    """The texts in the object of the complete call. They are emitted after its end."""
    end_checked_at: int = -1
    """The position where it was last checked whether the call has more text."""
    doubtful: bool = False
    """Whether a note says that the current call is not whole."""
    call_inside: int = -1
    """The position in the current call from which another call may be written inside its arguments; -1 if none is."""
    end_guessed: int = -1
    """That position of a call that ended: what follows may belong to its arguments too."""
    fenced: bool = False
    """Whether the current call is in a code block."""
    failed_openers: int = 0
    broken_list: bool = False
    """Whether a list of calls failed to open a call, or had a broken one."""
    ignored_call: bool = False
    """Whether the open message is a call, but calls are not wanted."""
    no_reread: bool = False
    """Whether so much was read that a failure becomes text without a second reading."""
    cut: bool = False
    """Whether the model's server says that it cut the reply. Known only at the end."""
    waited: bool = True
    """Whether the reader of a call came to the end of the text, which may be its beginning: in a stream it always does."""
    truncated: bool = False
    """Whether the text ended in the middle of something."""

    unread: UnreadMarkers = field(default_factory=UnreadMarkers)
    """The markers of calls around something that is no call."""
    unbalanced: re.Pattern[str] | None = None
    """Matches the openers and closers in a text, if closers without an opener show that a call ended too early."""
    text_behind: TextBehind = NOTHING_BEHIND

    prompt_length: int = 0
    """The length of the recorded text that was in the prompt."""
    recent: str = ""
    """The last characters of the text, at most RECENT."""
    line: str = ""
    """The line of text before the current mark, or its end."""
    within_line: bool = False
    """Whether the next mark follows a broken call on its line."""
    surroundings: Surroundings | None = None
    """What ends the surroundings of the current call, if these may show that it is an example."""
    foreign_closer: str = ""
    """What closes the thought that begins here, if it is in tags that are none of the dialect."""
    unseen_thought: bool = True
    """Whether the reply may have begun in a thought that a prompt opened, and is in it still."""
    has_text: bool = False
    """Whether there was any text."""
    text_before_call: bool = False
    """Whether there was text on the line before the current call."""
    other_turn: Note | None = None
    """The note on the head of another role's turn, behind which no call counts."""
    reply_over: bool = False
    """Whether that turn certainly begins there: the model had ended its own."""
    calls_in_turn: list[str] = field(default_factory=list[str])
    """The names of such calls."""
    user_label: bool = False
    """Whether a line began with the label of the user's turn."""

    def __post_init__(self) -> None:
        self.tool_names = sorted(self.tools or ())
        self.emit_arguments = self.argument_pieces.append

    def read_passed(self) -> None:
        """Takes note of the pieces that were passed on without the readers. All text before them was read."""
        text = "".join(self.passed_pieces)
        self.passed_pieces.clear()
        self.pos += len(text)
        if watch := self.watch:
            watch.content += text
            if len(watch.content) > LONG:
                watch.shorten()
        if self.fast_event is TextDelta:
            self.recent = (self.recent + text)[-RECENT:]
            if self.unread.first_closer:
                self.unread.look(text)
            self.has_text |= not text.isspace()
        if all((self.call_count, self.fast_event is not ArgumentsDelta)):
            self.text_behind = self.text_behind.then(text, self.unbalanced)

    def emit_text(self, text: str) -> None:
        """Emits text, or a part of a thought."""
        if text:
            if self.complete_call:
                self.end_complete_call(text)
            if self.argument_pieces:
                self.flush_arguments()
            if self.text_type is TextDelta:
                self.recent = (self.recent + text)[-RECENT:]
                if self.unread.first_closer:
                    self.unread.look(text)
                self.has_text |= not text.isspace()
            if self.call_count:
                self.text_behind = self.text_behind.then(text, self.unbalanced)
            if self.pieces_type is not self.text_type:
                self.flush_text()
                self.pieces_type = self.text_type
            self.text_pieces.append(text)

    def flush_text(self) -> None:
        """Emits the collected pieces of text as one event."""
        if self.text_pieces:
            self.events.append(self.pieces_type("".join(self.text_pieces)))
            self.text_pieces.clear()

    def flush_arguments(self) -> None:
        if self.argument_pieces:
            if piece := self.argument_pieces[0] if len(self.argument_pieces) == 1 else "".join(self.argument_pieces):
                self.events.append(ArgumentsDelta(piece))
            self.argument_pieces.clear()

    def defer_arguments(self) -> None:
        """Collects the arguments from here on, up to DEFERRED characters: what comes later decides what a value is."""
        pieces, left = list[str](), DEFERRED

        def defer(piece: str) -> None:
            nonlocal left
            left -= len(piece)
            pieces.append(piece)
            if left < 0:
                self.release_arguments()

        self.deferred_arguments, self.emit_arguments = pieces, defer

    def release_arguments(self) -> None:
        """Emits the arguments that were deferred, if any."""
        if (pieces := self.deferred_arguments) is not None:
            self.deferred_arguments = None
            self.argument_pieces += pieces
            self.emit_arguments = self.argument_pieces.append

    def emit(self, event: Event) -> None:
        if self.complete_call and not isinstance(event, Noted):
            self.end_complete_call()
        if self.argument_pieces:
            self.flush_arguments()
        if self.text_pieces:
            self.flush_text()
        self.events.append(event)

    def note(self, rule: str, detail: str = "", place: int | None = None) -> None:
        """Adds a note at this position, or at the reader's. Equal notes of one call are added once."""
        self.doubtful |= rule in DOUBTFUL
        if rule == "unclosed-object" and self.open_call:
            self.open_call.unclosed = True
        note = Note(rule, detail, self.offset + self.pos if place is None else place)
        self.call_inside = note.at if rule in ("missing-quote", UNBALANCED) else self.call_inside
        if self.recording is None:
            self._emit_note(note)
        else:
            self.pending_notes.append(note)

    def _emit_note(self, note: Note) -> None:
        key = (f"{self.call_count} {note.rule}", note.detail)
        if key not in self.note_keys and len(self.note_keys) < NOTES:
            self.note_keys.add(key)
            self.emit(Noted(note))

    def commit(self) -> None:
        """Text that was read so far will not be given back."""
        self.recording, pending, self.pending_notes = None, self.pending_notes, []
        for note in pending:
            self._emit_note(note)

    def drop_notes(self) -> None:
        """Drops the notes since `start_recording`: they were about something that is no call."""
        self.pending_notes, self.doubtful, self.call_inside = [], False, -1

    def snapshot(self) -> Snapshot:
        """A snapshot for `undo`: events from here on may have to be taken back."""
        self.flush_arguments()
        self.flush_text()
        self.recording = None
        return (
            len(self.events),
            self.call_count,
            frozenset(self.used_ids),
            frozenset(self.note_keys),
            self.truncated,
            self.has_text,
            self.recent,
            self.text_type,
            self.text_behind,
        )

    def undo(self, snapshot: Snapshot) -> None:
        """Takes back all events since `snapshot`."""
        size, self.call_count, ids, noted, self.truncated, self.has_text, self.recent, self.text_type, behind = snapshot
        self.text_behind = behind
        self.used_ids, self.note_keys, self.pending_notes = set(ids), set(noted), []
        self.release_arguments()
        self.argument_pieces.clear()
        self.text_pieces.clear()
        self.events_after_call.clear()
        del self.events[size:]
        self.recording = self.complete_call = self.open_call = None
        self.doubtful, self.call_inside = False, -1

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
    def irrevocable(self) -> bool:
        """Whether a part of the text was emitted already, so that it cannot be given back and read differently."""
        return self.no_reread or self.recording is None or self.open_call is not None

    def begins_tool(self, text: str) -> bool:
        """Whether the name of an offered tool begins like this."""
        seen = text.strip()
        i = bisect_left(self.tool_names, seen)
        if i < len(self.tool_names) and self.tool_names[i].startswith(seen):
            return True
        space, dot, rest = seen.partition(".")
        return self.begins_tool(rest) if dot and space == FUNCTIONS else not dot and FUNCTIONS.startswith(space)

    def resolve_name(self, name: str) -> str:
        """The offered tool that this name means, with a note; the name itself if it means none."""
        if name in (self.tools or ()) or not (meant := self.tool_of(name)):
            return name
        self.note("meant-name", name)
        return meant

    def tool_of(self, name: str) -> str:
        """The offered tool that this name means: with entities, with the namespace of all functions before it, with its
        own namespace repeated (`a.a` is `a`), or with a namespace and a slash (`a/b` is `a.b`, else `b`). "" for none."""
        plain = unescape(name)
        space, _, rest = plain.partition(".")
        folder, _, base = plain.partition("/")
        tail = rest if space in (FUNCTIONS, rest.partition(".")[0]) else ""
        names = (plain, tail, f"{folder}.{base}", base if folder else "")
        return next((known for known in names if self.is_tool(known)), "")

    def name_in_message(self, to: str, name: str) -> str:
        """The name of a call whose message has a recipient that is not offered: a namespace, or another tool."""
        whole = f"{to}.{name}"
        if whole in self.tool_names:
            return whole
        if to == FUNCTIONS or f"{name}.".startswith(f"{to}."):
            return name
        self.note("other-name", name)
        return name if self.offered(name) else to

    def start_call(self, call: Call) -> None:
        """This is a call: emits its name. Raises Malformed if a guarded call names no offered tool."""
        if call.started or call.name is None:
            return
        if call.guard and (not self.offered(call.name) or (call.strict and self.tools is None)):
            raise Malformed(f"{call.name!r} is no tool")
        if self.other_turn:
            self.calls_in_turn.append(call.name)
            raise Malformed("a call in another role's turn")
        doubtful, self.doubtful = self.doubtful, False
        self.end_complete_call()
        self.doubtful = doubtful
        self.note_unbalanced()
        self.call_count += 1
        call.started, self.open_call = True, call
        written, call.id = call.id, unique_id(call.id, self.used_ids, self.next_id)
        self.emit(CallStart(call.name, call.id))
        self.commit()
        if written != call.id and written:
            self.note("doubled-id", written)
        if not self.offered(call.name):
            self.note("unknown-tool", call.name)
        if self.end_guessed >= 0:
            self.note("trailing-text", call.name, self.end_guessed)

    def note_unbalanced(self) -> None:
        """Notes closers without an opener in the text behind the last call; the text is over."""
        if closers := self.text_behind.lone_closers:
            note = Note("unbalanced-closers", closers, self.offset + self.pos - self.recorded_length())
            self.emit(Noted(note))
            self.end_guessed = note.at if self.ran_on else self.end_guessed
        self.text_behind = NOTHING_BEHIND

    def next_id(self) -> str:
        """A new id, for the last call."""
        return self.new_id() if self.new_id else f"call_{self.call_count}"

    def end_call(self, call: Call, whole: bool = True) -> None:
        if call.started and not call.ended:
            late = call.late_id
            self.used_ids -= {call.id} if late else set()
            if late and late in self.used_ids:
                self.note("doubled-id", late)
                late = None
            self.used_ids.add(late or call.id)
            call.ended, self.open_call, call.late_id = True, None, late
            self.end_guessed, self.call_inside = max(self.end_guessed, self.call_inside), -1
            if whole and not self.doubtful:
                self.complete_call = call
            else:
                self.doubtful = False
                self.emit(CallEnd(False, late))

    def end_complete_call(self, text: str = "") -> None:
        """Ends the call that is complete. `text` follows it and is neither a call nor certainly unrelated to it."""
        call, self.complete_call = self.complete_call, None
        if call is None:
            return
        if text:
            self.doubtful = True
            self.emit(Noted(Note("trailing-text", text.strip()[:1], self.offset + self.pos)))
        self.emit(CallEnd(not self.doubtful, call.late_id))
        self.doubtful = False
        self.events += self.events_after_call
        self.events_after_call.clear()
