"""Decodes text to events. This is the only decoder: parsing a whole text means feeding it in one piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import UsageError
from ..events import ArgumentsDelta, Event, Finished
from ..types import Reply, Tool
from .dialect import Dialect
from .prompt.call_form import call_form
from .prompt.control_markers import was_broken
from .reading.call_repairs import note_cut
from .reading.collect import collect
from .reading.cut_before_end import cut_before_end
from .reading.cut_replies import drop_half_closer
from .reading.lexicon import program, turn_ends
from .reading.marker_restoring import Restorer
from .reading.reply import reply
from .reading.run_on_strings import NextCall
from .reading.source import PASSED, Decoded, Malformed
from .reading.state import State


class Decoder:
    """Converts text to events. `feed` takes the next piece of the reply, `close` ends it; neither raises on any text.
    A piece after `close` raises UsageError.

    `tools`: None accepts calls of any name, () of none. `prompt` is the text that the reply continues, "" if there was
    none, None if it is unknown; control markers that were defused in it are restored in the reply. `thoughts`: "split"
    separates thoughts, "keep" leaves them in the text. `ids` creates an id for each call. `decoded` collects the
    values of arguments that arrive complete, so that they need not be parsed again.
    """

    def __init__(
        self,
        d: Dialect,
        tools: Sequence[Tool[..., Any]] | None = None,
        prompt: str | None = None,
        thoughts: str = "split",
        ids: Callable[[], str] | None = None,
        decoded: Decoded | None = None,
    ) -> None:
        if thoughts not in ("split", "keep"):
            raise UsageError(f'thoughts: expected "split" or "keep", received {thoughts!r}')
        by_name = None if tools is None else {tool.name: tool for tool in tools}
        # Control markers that were defused in the prompt are restored in the reply.
        self.restorer = Restorer() if was_broken(prompt) else None
        self.state = State(
            tools=by_name, new_id=ids, stops=d.stop, ends=turn_ends(d), decoded=None if self.restorer else decoded
        )
        words = program(d, by_name != {}, thoughts != "keep")
        self.state.next_call = NextCall(d, by_name)
        self.run = reply(self.state, words, prompt)
        self.dialect = d
        self.done = False
        next(self.run, None)

    def feed(self, chunk: str) -> list[Event]:
        s = self.state
        lane = s.fast_search
        # Fast path: the reader only waits for a mark, and no mark is or begins in this chunk.
        if lane is not None and chunk and lane(chunk) is None:
            passed = s.passed_pieces
            passed.append(chunk)
            if len(passed) > PASSED:
                s.read_passed()
            out: list[Event] = [s.fast_event(chunk)]
        else:
            out = self._read(chunk)
        return self.restorer.feed(out) if self.restorer else out

    def _read(self, chunk: str) -> list[Event]:
        """The events of a piece that the readers have to look at."""
        if self.done:
            raise UsageError("this Decoder is closed: a new reply needs a new Decoder")
        s = self.state
        machine = s.machine
        if s.passed_pieces:
            s.read_passed()
        s.add(chunk)
        out: list[Event] = []
        s.events = out
        try:
            # A `Machine` reads on without the generators. They are only resumed when it is done.
            if machine is None or machine.step():
                next(self.run, None)
        except Malformed as e:
            self.run.throw(e)
        if s.text_pieces:
            s.flush_text()
        if parts := s.argument_pieces:
            if out or len(parts) > 1:
                s.flush_arguments()
            elif piece := parts.pop():
                out.append(ArgumentsDelta(piece))
        return out

    def close(self, cut: bool = False) -> list[Event]:
        """The events of the end. `cut`: the model's server says that it cut the reply, so the beginning of a call at its
        end is left out, with a note. Otherwise it may be what the model wrote, and stays text."""
        if self.done:
            return []
        s = self.state
        self.done = s.closed = True
        s.cut = cut
        if s.passed_pieces:
            s.read_passed()
        s.add("")
        if cut:
            drop_half_closer(s, program(self.dialect, s.tools != {}).closers_of_calls)
        out: list[Event] = []
        s.events = out
        for _ in self.run:
            pass
        s.note_unbalanced()
        if s.unread.ended(s.recent, s.call_count):
            s.note("unread-call", call_form(self.dialect, s.tools))
        elif cut_before_end(s, program(self.dialect, s.tools != {})):
            note_cut(s)
        s.flush_arguments()
        s.flush_text()
        s.emit(Finished("length" if s.truncated else "tool_calls" if s.call_count else "stop"))
        return self.restorer.feed(out) if self.restorer else out


def parse(
    text: str,
    d: Dialect,
    tools: Sequence[Tool[..., Any]] | None = None,
    prompt: str | None = None,
    thoughts: str = "split",
) -> Reply:
    """Converts a whole text to a Reply. Never raises on a model's text."""
    decoded: Decoded = {}
    decoder = Decoder(d, tools, prompt, thoughts, decoded=decoded)
    return collect([*decoder.feed(text), *decoder.close()], decoded)
