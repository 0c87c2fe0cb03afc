"""Reads the calls of code blocks that follow a text, which count only if no text follows the blocks either; and calls
that other surroundings may only show.

Until that is known, a copy of the state reads on by itself, and its events wait. Then the state becomes the copy, or
forgets it, and the calls are an example: text. After more than `DRAFT` characters nothing waits any longer, and the
calls are not whole if a text follows. All that is decided by what was read, never by what has arrived.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import fields
from functools import partial

from .block_comments import MAY_COMMENT
from .call_repairs import only
from .fences import language
from .foreign_markers import markers_before
from .lexicon import Program
from .lookahead import ahead
from .quotations import CodeBlock
from .source import SPACE, Scan, at
from .state import State
from .surroundings import LONG, shows, surrounding
from .unread_markers import words_follow

DRAFT = 65_536
"""The most characters that are held back after the opener of a call in a thought or in a code block."""

Attempt = Callable[[State, Program, str, bool], Scan[bool]]
NAMES = tuple(field.name for field in fields(State) if field.name != "events")
"""The fields of a state without its events."""
Outcome = tuple[bool, bool]
"""Whether calls were read, and whether text follows them."""


def calls_after(s: State, p: Program, attempt: Attempt, word: str, thinking: bool, block: CodeBlock) -> Scan[bool]:
    """The reader of calls after their opener, or the fence before them. It returns whether there are any."""
    s.surroundings = None
    if thinking:
        return attempt(s, p, word, thinking)
    if word.strip() in p.fences:
        return _code_block(s, p, attempt, word, block)
    if len(s.line) <= LONG or MAY_COMMENT(s.recent):
        s.surroundings = surrounding(s, p, word)
    if s.surroundings is None:
        reader = attempt(s, p, word, thinking)
        return reader if word.strip() not in p.markers_of_calls else _watched(s, p, reader, block)
    return _unless_example(s, partial(_calls, p=p, attempt=attempt, word=word), len)


def _watched(s: State, p: Program, reader: Scan[bool], block: CodeBlock) -> Scan[bool]:
    """Reads calls after their opener. If there are none, and it is not quoted, its closer is watched for."""
    quoted, first = any((block.open, s.text_before_call)), not s.has_text
    words = (yield from words_follow(s)) if first > bool(p.visible_closers) else True
    done = yield from reader
    if not any((done, quoted, s.other_turn)):
        s.unread.open(p.visible_closers, first=first, words=words)
    return done


def _code_block(s: State, p: Program, attempt: Attempt, word: str, block: CodeBlock) -> Scan[bool]:
    """Tries to read calls after the fence `word`. Returns whether there are any. If not, `block` is open."""

    def opener(text: str) -> int:
        return SPACE(text, 0).end() + len(word.strip())

    blocks = partial(_blocks, p=p, attempt=attempt, word=word)
    done = yield from (_unless_example(s, blocks, opener) if s.has_text else attempt(s, p, word, False))
    if not done:
        yield from block.fence(s)
    return done


def _unless_example(s: State, read: Callable[[State], Scan[Outcome]], length: Callable[[str], int]) -> Scan[bool]:
    """Reads calls, unless a text after them shows that they are an example: text. Then `length` is that of the part of
    it that is passed on."""
    s.flush_arguments()
    s.flush_text()
    branch = _copied(s)
    start = s.offset + s.pos
    reader = read(branch)
    while True:
        s.pos = len(s.text)
        try:
            next(reader)
        except StopIteration as end:
            done, example = end.value
            break
        if branch.offset + branch.pos - start > DRAFT:
            s.recording = None
            _pass_events(branch, s)
        yield
        branch.closed = s.closed
        branch.add(s.text[s.pos :])
    end_of_calls = branch.offset + branch.pos
    if example and end_of_calls - start <= DRAFT:
        s.give_back()
        s.failed_openers += 1
        text = s.text[s.pos : end_of_calls - s.offset]
        text = text[: length(text)]
        s.emit_text(text)
        s.pos += len(text)
        return False
    if branch.recording is not None:
        branch.give_back()
    _pass_events(branch, s)
    for name in NAMES:
        setattr(s, name, getattr(branch, name))
    return done


def _blocks(s: State, p: Program, attempt: Attempt, word: str) -> Scan[Outcome]:
    """Reads the calls of one block after the other."""
    while True:
        if not (yield from attempt(s, p, word, False)):
            return False, False
        s.start_recording()
        word = yield from at(s, *p.fences)
        if not word:
            return True, not (yield from only(s, p.beyond_fence))
        yield from language(s)
        if not (yield from at(s, *p.openers, eat=False)):
            return True, True
        s.rewind(s.recorded().index(word) + len(word))


def _calls(s: State, p: Program, attempt: Attempt, word: str) -> Scan[Outcome]:
    """Reads one call after the other, up to the end of what surrounds them."""
    around = s.surroundings
    while True:
        if not (yield from attempt(s, p, word, False)):
            return False, False
        if around and (yield from shows(s, p, around)):
            return True, True
        # The next opener may look like a marker of another family before a bare object.
        opens = (yield from ahead(s, 0, p.openers)) > 0
        between = 0 if opens else (yield from markers_before(s, p.openers, 0))
        s.emit_text(s.text[s.pos : s.pos + between])
        s.pos += between
        s.start_recording()
        word = yield from at(s, *p.openers)
        if not word:
            return True, False


def _copied(s: State) -> State:
    """A copy of the state, without its events, that reads on by itself."""
    branch = copy(s)
    for name in NAMES:
        value: object = getattr(s, name)
        if type(value) in (list, set):
            setattr(branch, name, copy(value))
    branch.events = []
    branch.emit_arguments = branch.argument_pieces.append
    return branch


def _pass_events(branch: State, s: State) -> None:
    """Moves the events of the copy to the state."""
    branch.flush_arguments()
    branch.flush_text()
    s.events += branch.events
    branch.events.clear()
