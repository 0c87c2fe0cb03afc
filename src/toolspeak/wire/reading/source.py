"""Reading text that arrives in pieces: until a mark, a literal, white space, a short word.

Everything is a generator over a `Source` that yields when it needs more text and returns what it
found. A position kept over a yield is wrong, since the buffer is compacted while it waits: keep
distances from `source.pos`. A decision never depends on how much has arrived: what is short is not
consumed before it is whole, and limits hold as well when all the text is there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from functools import lru_cache
from typing import TypeVar, cast

from ...events import ArgumentsDelta, TextDelta, ThoughtDelta

T = TypeVar("T")
Scan = Generator[None, None, T]
Delta = type[TextDelta] | type[ThoughtDelta] | type[ArgumentsDelta]
Search = Callable[..., "re.Match[str] | None"]

GAP = 256
"""White space longer than this, in characters, ends the search for what follows it."""
OUTSIDE_TAGS = re.compile(r"\s+(?![^<>]*>)")
CAP = 256
"""A name, a key or an id is at most this long, in characters."""

SPACE = cast("Callable[[str, int], re.Match[str]]", re.compile(r"\s*").match)
"""Matches the white space at a place, which may be none."""


Decoded = dict[int, tuple[str, object]]
Words = tuple[str, ...]


class Malformed(Exception):
    """The text left the dialect: a signal between the rooms of the decoder, never seen outside.

    `unknown` is the name of a tool that was not offered, where it is that which makes this no call.
    """

    def __init__(self, why: str, unknown: str = "") -> None:
        super().__init__(why)
        self.unknown = unknown


class Source:
    """Text that arrives in pieces, and the position up to which it was read.

    While `lane` is set, a piece in which it finds nothing may go straight out as a `delta`. While `log`
    is a list, what is read is kept and can be given back. While `step` is set, it may read on in place of the generator
    that waits: it tells False where it needs more text still.
    `decoded` holds the JSON that was all there at once, by the id of its text, and its value: nobody need decode it again.
    """

    __slots__ = (
        "base",
        "closed",
        "decoded",
        "delta",
        "lane",
        "log",
        "logpos",
        "pos",
        "step",
        "text",
    )

    def __init__(self, decoded: Decoded | None = None) -> None:
        self.text = ""
        self.pos = 0
        self.base = 0
        self.closed = False
        self.decoded = decoded
        self.lane: Search | None = None
        self.delta: Delta | None = None
        self.step: Callable[[], bool] | None = None
        self.log: list[str] | None = None
        self.logpos = 0

    def add(self, piece: str) -> None:
        """Take in more text; what was read and is not kept is let go."""
        text, pos = self.text, self.pos
        if self.log is not None:
            self.log.append(text[self.logpos : pos])
            self.logpos = 0
        self.base += pos
        self.text = text[pos:] + piece if pos < len(text) else piece
        self.pos = 0
        self.lane = self.step = None

    def keep(self) -> None:
        """From here on, what is read can be given back."""
        self.log, self.logpos = [], self.pos

    def recorded(self) -> str:
        """What was read since `keep`."""
        return "".join(self.log or ()) + self.text[self.logpos : self.pos]

    def eaten(self) -> int:
        """How much was read since `keep`: a place to `rewind` to."""
        return len(self.recorded())

    def rewind(self, place: int) -> None:
        """Give back what was read since that place, and go on keeping."""
        if self.log:
            old = "".join(self.log)
            self.text, self.log = old + self.text[self.logpos :], []
            self.base -= len(old)
            self.logpos = 0
        self.pos = self.logpos + place

    def back(self) -> None:
        """Give back what was read since `keep`."""
        if self.log:
            old = "".join(self.log)
            self.text, self.pos = old + self.text[self.logpos :], 0
            self.base -= len(old)
        elif self.log is not None:
            self.pos = self.logpos
        self.log, self.logpos = None, self.pos


class Machine:
    """A reader whose `mode` is what it does next, None at its end; a mode tells False where it needs more text, and has
    then decided nothing. Costs less than generators where every few characters are a token: it goes on without waking
    those that wait for it."""

    __slots__ = ("mode", "s")

    def __init__(self, s: Source, mode: Callable[[], bool]) -> None:
        self.s = s
        self.mode: Callable[[], bool] | None = mode

    def step(self) -> bool:
        """Read on as far as the text goes. Is all of it read?"""
        s = self.s
        while mode := self.mode:
            if not mode():
                if s.closed:
                    raise Malformed("unclosed literal")
                s.step = self.step
                return False
        return True

    def run(self) -> Scan[None]:
        while not self.step():
            yield


def _opening(word: str) -> str:
    """A pattern for every proper prefix of `word`."""
    tail = ""
    for c in reversed(word[1:-1]):
        tail = f"(?:{re.escape(c)}{tail})?"
    return re.escape(word[0]) + tail if len(word) > 1 else ""


class Marks:
    """A set of literals to look for: the leftmost, of those the longest, or a half one where the text ends.

    `special` is a character class (without brackets) that keeps a piece off the lane.
    """

    __slots__ = ("full", "lane", "search")

    def __init__(self, words: tuple[str, ...], special: str = "") -> None:
        ordered = sorted({w for w in words if w}, key=len, reverse=True)

        def whole(word: str) -> str:
            rest = [v[len(word) :] for v in ordered if v != word and v.startswith(word)]
            wait = "|".join(filter(None, map(_opening, rest)))
            return re.escape(word) + (f"(?!(?:{wait})?\\Z)" if rest else "") + "()"  # the group: it is whole

        # Every branch begins with a letter of its own, so that the search skips to the first letters: five times faster.
        found = "|".join([*map(whole, ordered), *(half + "\\Z" for half in map(_opening, ordered) if half)])
        self.search = re.compile(found).search
        self.full = re.compile("(" + "|".join(map(re.escape, ordered)) + ")").search
        first = sorted({w[0] for w in ordered})
        rare = not any(c.isalnum() or c == " " for c in first)
        letters = "".join(map(re.escape, first))
        self.lane: Search = re.compile(
            f"[{letters}{special}]" if rare else found + (f"|[{special}]" if special else "")
        ).search


@lru_cache(1024)
def marks(words: tuple[str, ...], special: str = "") -> Marks:
    """The marks for `words`, made once."""
    return Marks(words, special)


def until(s: Source, wanted: Marks, emit: Callable[[str], None], delta: Delta | None = None) -> Scan[str | None]:
    """Pass text on until a mark; eat and return it, or None at the end. `delta`: the event that text may go out as."""
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
                s.lane, s.delta = wanted.lane, delta
            yield
            continue
        if m.start() > pos:
            emit(text[pos : m.start()])
        if m.lastindex:
            s.pos = m.end()
            return m[0]
        s.pos = m.start()
        yield


def visible(text: str, pos: int) -> int:
    """Where the white space at `pos` ends, which is mostly none."""
    return SPACE(text, pos).end() if text[pos : pos + 1].isspace() else pos


def at(s: Source, *words: str, eat: bool = True) -> Scan[str]:
    """Which of `words` (the longest) comes next after white space; "" if none does. Eats it, or nothing."""
    while True:
        text = s.text
        i = visible(text, s.pos)
        if i - s.pos > GAP:
            return ""
        best = ""
        if text.startswith(words, i):
            best = words[0] if len(words) == 1 else max((w for w in words if text.startswith(w, i)), key=len)
        if not s.closed and len(text) - i < longest(words) and _may_go_on(text, i, words):
            yield
            continue
        if best and eat:
            s.pos = i + len(best)
        return best


def _may_go_on(text: str, i: int, words: tuple[str, ...]) -> bool:
    """Whether more text could make what stands from `i` on, if anything does, one of the words, or a longer one of them."""
    rest = text[i:]
    return any(word.startswith(rest) for word in words if len(word) > len(rest)) if rest else True


@lru_cache(1024)
def longest(words: tuple[str, ...]) -> int:
    """The length of the longest word, 1 without words; they are a dialect's."""
    return max(map(len, words), default=1)


def token(s: Source, ends: Marks, cap: int = CAP, fits: Callable[[str], bool] | None = None) -> Scan[tuple[str, str]]:
    """A short text up to one of `ends` (not eaten), and that end, "" where the text ends.

    Eats nothing until it is whole, so that a failure gives all of it back. `fits` tells whether a text may be the
    beginning of what is wanted: what is not is given back at once. Raises Malformed then, and where it is longer than
    `cap`.
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
    """The words of a dialect's literal; a blank between the brackets of a tag is a part of its name."""
    return tuple(word for word in OUTSIDE_TAGS.split(literal) if word)


def expect(s: Source, literal: str) -> Scan[None]:
    """Eat the words of a literal, with any white space around each."""
    for word in literal_words(literal):
        if not (yield from at(s, word)):
            raise Malformed(f"expected {word!r}")


def blank(s: Source) -> Scan[bool]:
    """Eat white space; is there something after it?"""
    while True:
        s.pos = SPACE(s.text, s.pos).end()
        if s.pos < len(s.text) or s.closed:
            return s.pos < len(s.text)
        yield


def peek(s: Source, n: int) -> Scan[str]:
    """The next n characters, or what there is at the end. Eats nothing."""
    while len(s.text) - s.pos < n and not s.closed:
        yield
    return s.text[s.pos : s.pos + n]


def following(s: Source, offset: int = 0) -> Scan[str]:
    """The first visible character at `offset` from here or after it, "" at the end or far away. Eats nothing."""
    while True:
        i = visible(s.text, s.pos + offset)
        if i - s.pos - offset > GAP:
            return ""
        if i < len(s.text):
            return s.text[i]
        if s.closed:
            return ""
        yield


def skip(s: Source, most: int) -> Scan[None]:
    """Eat at most `most` characters of white space."""
    yield from peek(s, most)
    s.pos = min(SPACE(s.text, s.pos).end(), s.pos + most)
