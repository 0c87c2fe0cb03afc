"""Reads text that arrives in pieces: up to a mark, a literal, whitespace, a short word.

Every function is a generator over a `Source` that yields when it needs more text and returns its result. Pitfalls:

- A position that is stored over a yield is wrong, because the buffer is compacted meanwhile. Store distances from
  `source.pos` instead.
- A decision must not depend on how much text has arrived. So nothing short is consumed before it is complete, and
  limits also apply when all the text is present.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar, cast

from ...events import ArgumentsDelta, TextDelta, ThoughtDelta
from .marks import Marks, Search

if TYPE_CHECKING:
    from .frames import RowOfEnds
    from .missing_quotes import Watch
    from .run_on_strings import NextCall
    from .text_end import TextEnd

T = TypeVar("T")
Scan = Generator[None, None, T]
Delta = type[TextDelta] | type[ThoughtDelta] | type[ArgumentsDelta]

GAP = 256
"""More whitespace than this, in characters, ends the search for what follows it."""
OUTSIDE_TAGS = re.compile(r"(?<![｜‖|])\s+(?![^<>]*>)|(?<=```)(?=<)")
PASSED = 128
"""The most pieces that are passed on before somebody looks at them."""
CAP = 256
"""The most characters of a name, a key or an id."""

MOST = 20
FIRST = cast("Callable[[str, int], re.Match[str]]", re.compile(rf"[^\n]{{0,{MOST}}}").match)
"""Matches the beginning of a line."""
SPACE = cast("Callable[[str, int], re.Match[str]]", re.compile(r"\s*").match)
"""Matches the whitespace at a position, which may be empty."""


Decoded = dict[int, tuple[str, object]]
Words = tuple[str, ...]


class Malformed(Exception):
    """The text left the dialect. An internal signal of the decoder that never leaves it.

    `unknown` is the name of a tool that is not offered, if that is the reason why this is no call.
    """

    def __init__(self, why: str, unknown: str = "") -> None:
        super().__init__(why)
        self.unknown = unknown


@dataclass(slots=True, eq=False, kw_only=True)
class Source:
    """Text that arrives in pieces, and the position up to which it was read."""

    text: str = ""
    """What arrived and is not dropped yet."""
    pos: int = 0
    """The position in `text` up to which it was read."""
    offset: int = 0
    """The length of the text that was dropped before `text`."""
    closed: bool = False
    """Whether no more text will arrive."""
    fast_search: Search | None = None
    """Searches a new piece; if it finds nothing, the piece may be emitted directly as a `fast_event`."""
    fast_event: Delta = TextDelta
    watch: Watch | TextEnd | None = None
    """Collects such pieces if they are the content of a string."""
    machine: Machine | None = None
    """Reads on in place of the waiting generators."""
    recording: list[str] | None = None
    """If it is a list, text is recorded when it is read, and can be given back."""
    recorded_from: int = 0
    """The position in `text` from which it is recorded."""
    ends: Words = ()
    """Marks of the end of a reply that close no call, so that a number before one may be incomplete."""
    next_call: NextCall | None = None
    """Finds the next call in a string that nothing closes."""
    ran_on: bool = False
    """Whether it found one: then a quote inside a later string shows that all calls are in a value."""
    row_of_ends: RowOfEnds | None = None
    """The marks of ends in a row that were looked at last."""
    decoded: Decoded | None = None
    """JSON texts that arrived complete, with their values, by the id of the text, so that nobody parses them again."""

    def add(self, piece: str) -> None:
        """Appends text; drops what was read and is not kept."""
        text, pos = self.text, self.pos
        if self.recording is not None:
            self.recording.append(text[self.recorded_from : pos])
            self.recorded_from = 0
        self.offset += pos
        self.text = text[pos:] + piece if pos < len(text) else piece
        self.pos = 0
        self.fast_search = self.machine = self.watch = None

    def start_recording(self) -> None:
        """From here on, text that is read can be given back."""
        self.recording, self.recorded_from = [], self.pos

    def recorded(self) -> str:
        """The text that was read since `start_recording`."""
        return "".join(self.recording or ()) + self.text[self.recorded_from : self.pos]

    def recorded_length(self) -> int:
        """The amount of text read since `start_recording`: a place for `rewind`. 0 if none is recorded."""
        return 0 if self.recording is None else len(self.recorded())

    def rewind(self, place: int) -> None:
        """Gives back the text that was read since that place, and keeps on recording."""
        if self.recording:
            old = "".join(self.recording)
            self.text, self.recording = old + self.text[self.recorded_from :], []
            self.offset -= len(old)
            self.recorded_from = 0
        self.pos = self.recorded_from + place

    def give_back(self) -> None:
        """Gives back the text that was read since `start_recording`."""
        if self.recording:
            old = "".join(self.recording)
            self.text, self.pos = old + self.text[self.recorded_from :], 0
            self.offset -= len(old)
        elif self.recording is not None:
            self.pos = self.recorded_from
        self.recording, self.recorded_from = None, self.pos


class Machine:
    """A reader as a state machine: `mode` is the next step, None at the end. A mode returns False if it needs more
    text, without having decided anything.

    It is faster than a generator if every few characters are a token, since it continues without waking the generators
    that wait for it.
    """

    __slots__ = ("mode", "s")

    def __init__(self, s: Source, mode: Callable[[], bool]) -> None:
        self.s = s
        self.mode: Callable[[], bool] | None = mode

    def step(self) -> bool:
        """Reads on as far as the text goes. Returns whether everything was read."""
        s = self.s
        while mode := self.mode:
            if not mode():
                if s.closed:
                    raise Malformed("unclosed literal")
                s.machine = self
                return False
        return True

    def run(self) -> Scan[None]:
        while not self.step():
            yield


def until(
    s: Source, wanted: Marks, emit: Callable[[str], None], delta: Delta | None = None, watch: TextEnd | None = None
) -> Scan[str | None]:
    """Passes text on up to a mark. Consumes and returns the mark, or None at the end. `delta` is the event for text
    that is emitted directly, and that `watch` collects."""
    while True:
        text, pos = s.text, s.pos
        m = (wanted.full if s.closed else wanted.search)(text, pos)
        if m is None:
            if pos < len(text):
                emit(text[pos:] if pos else text)
                s.pos = len(text)
            if s.closed:
                return None
            if delta:
                s.fast_search, s.fast_event, s.watch = wanted.fast_search, delta, watch
            yield
            continue
        if m.start() > pos:
            emit(text[pos : m.start()])
        if m.lastindex:
            s.pos = m.end()
            return m[0]
        s.pos = m.start()
        yield


def until_limit(s: Source, wanted: Marks, end: int) -> Scan[str | None]:
    """Consumes text up to a mark, which is consumed and returned. None if none begins up to the position `end`."""
    while True:
        m = (wanted.full if s.closed else wanted.search)(s.text, s.pos)
        s.pos = m.start() if m else len(s.text)
        if s.offset + s.pos > end:
            return None
        if m is None:
            if s.closed:
                return None
        elif m.lastindex:
            s.pos = m.end()
            return m[0]
        yield


def pass_all(s: Source, emit: Callable[[str], None]) -> Scan[None]:
    """Passes on everything up to the end: nothing is searched for."""
    while True:
        emit(s.text[s.pos :])
        s.pos = len(s.text)
        if s.closed:
            return
        yield


def visible(text: str, pos: int) -> int:
    """The end of the whitespace at `pos`, which is usually empty."""
    return SPACE(text, pos).end() if text[pos : pos + 1].isspace() else pos


def at(s: Source, *words: str, eat: bool = True) -> Scan[str]:
    """The longest of `words` that comes next after whitespace; "" if there is none. Consumes it, unless `eat` is
    false."""
    while True:
        text = s.text
        i = visible(text, s.pos)
        if i - s.pos > GAP:
            return ""
        best = ""
        if text.startswith(words, i):
            best = words[0] if len(words) == 1 else max((w for w in words if text.startswith(w, i)), key=len)
        if not s.closed:
            longest, ordered = _in_order(words)
            if len(text) - i < longest and _may_go_on(text, i, ordered):
                yield
                continue
        if best and eat:
            s.pos = i + len(best)
        return best


def _may_go_on(text: str, i: int, ordered: Words) -> bool:
    """Whether more text could complete what is at `i` to one of the words, or to a longer one."""
    rest = text[i:]
    behind = bisect_right(ordered, rest)  # here is the first word that begins with the rest and is longer
    return not rest or any(word.startswith(rest) for word in ordered[behind : behind + 1])


@lru_cache(1024)
def _in_order(words: Words) -> tuple[int, Words]:
    """The length of the longest word, 1 without words, and the words in order; they are a dialect's."""
    return max(map(len, words), default=1), tuple(sorted(words))


def token(s: Source, ends: Marks, cap: int = CAP, fits: Callable[[str], bool] | None = None) -> Scan[tuple[str, str]]:
    """A short text up to one of `ends` (not consumed), and that end; "" if the text ends.

    Consumes nothing until it is complete, so that all of it is given back on failure. `fits` checks whether a text may
    be the beginning of a valid one. Raises Malformed if it may not, and for a text longer than `cap`.
    """
    while True:
        text, pos = s.text, s.pos
        limit = pos + cap + 64
        m = (ends.full if s.closed or len(text) > limit else ends.search)(text, pos, limit)
        if m is not None and m.lastindex:
            if m.start() - pos > cap:
                break
            if fits and not fits(text[pos : m.start()]):
                break
            s.pos = m.start()
            return text[pos : s.pos], m[0]
        if len(text) >= limit or (s.closed and len(text) - pos > cap):
            break
        if fits and (s.closed or len(text) - pos > 1) and not fits(text[pos : m.start() if m else len(text)]):
            break
        if s.closed:
            s.pos = len(text)
            return text[pos:], ""
        yield
    raise Malformed("no such name")


@lru_cache(1024)
def literal_words(literal: str) -> tuple[str, ...]:
    """The words of a dialect's literal; a space inside a tag, or after its mark, does not separate words, but the
    end of a code block does."""
    return tuple(word for word in OUTSIDE_TAGS.split(literal) if word)


def expect(s: Source, literal: str) -> Scan[None]:
    """Consumes the words of a literal, with any whitespace around each. Raises Malformed if they do not come."""
    for word in literal_words(literal):
        if not (yield from at(s, word)):
            raise Malformed(f"expected {word!r}")


def blank(s: Source) -> Scan[bool]:
    """Consumes whitespace. Returns whether something follows."""
    while True:
        s.pos = SPACE(s.text, s.pos).end()
        if s.pos < len(s.text) or s.closed:
            return s.pos < len(s.text)
        yield


def peek(s: Source, n: int) -> Scan[str]:
    """The next n characters, or fewer at the end. Consumes nothing."""
    while len(s.text) - s.pos < n and not s.closed:
        yield
    return s.text[s.pos : s.pos + n]


def following(s: Source, offset: int = 0) -> Scan[str]:
    """The first visible character from `offset` characters ahead on; "" at the end or if it is far away. Consumes
    nothing."""
    while True:
        i = visible(s.text, s.pos + offset)
        if i - s.pos - offset > GAP:
            return ""
        if i < len(s.text):
            return s.text[i]
        if s.closed:
            return ""
        yield


def beginning(s: Source) -> Scan[str]:
    """The first visible characters that come next, up to the end of their line. Consumes nothing."""
    while True:
        i = visible(s.text, s.pos)
        line = FIRST(s.text, i)[0]
        if s.closed or len(line) == MOST or i + len(line) < len(s.text):
            return line.rstrip()
        yield


def skip(s: Source, most: int) -> Scan[None]:
    """Consumes at most `most` characters of whitespace."""
    yield from peek(s, most)
    s.pos = min(SPACE(s.text, s.pos).end(), s.pos + most)
