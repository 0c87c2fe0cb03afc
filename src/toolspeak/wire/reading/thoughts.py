"""Reads thoughts, and the calls in them: only calls at the very end of a reply that ends with a thought count.

A thought in tags that are none of the dialect (`THOUGHT_TAGS`) is read like one of the dialect, but stays text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ...events import Noted, TextDelta, ThoughtDelta
from ...types import Note
from ..dialect import Thinking
from ..turn_ends import TURN_ENDS
from .code_blocks import DRAFT, Attempt
from .emphasized_tags import closer_of, closers
from .lexicon import CALL, END, FRAME, HEAD, THINK, Program
from .lookahead import ahead
from .marks import Marks, marks
from .next_mark import Match, record_from
from .source import Scan, at, following, pass_all, skip, until, until_limit
from .state import State
from .turn_over import turn_over


@dataclass(frozen=True, slots=True)
class Ends:
    """The words at which the reader of a thought stops: `closers` end it, `opening` are they and the beginnings of calls.
    `unthink` are the closers of its own. `foreign`: it is in tags that are none of the dialect."""

    closers: Marks
    opening: Marks
    unthink: tuple[str, ...]
    foreign: bool = False


@lru_cache(1024)
def _ends(p: Program, foreign: str) -> Ends | None:
    """The ends of the dialect's own thoughts, or of one with this closer; None if nothing ends it."""
    if foreign:
        unthink = (*closers(foreign), *(word for word in p.tags.values() if word not in ("", *p.frames)))
        ends = (*unthink, *p.around)
        return Ends(marks(ends), marks((*ends, *p.drafts)), unthink, foreign=True)
    if p.closers is None or p.opening is None:
        return None
    return Ends(p.closers, p.opening, p.unthink)


def _apart(s: State, p: Program) -> Thinking | None:
    """The marks of the thought that begins here, if it is separated from the text by marks of the dialect."""
    return p.d.thinking if all((p.split, not s.foreign_closer)) else None


def opened(s: State, p: Program, word: str, space: str) -> Scan[None]:
    """After the opener of a thought was consumed."""
    s.foreign_closer = p.foreign.get(word.strip(), "") or closer_of(word, p.emphasized)
    thinking = _apart(s, p)
    s.emit_text(("\n" if word[0] == "\n" else "") if thinking else space + word)
    s.text_before_call = False
    if thinking:
        if thinking.also:  # an incomplete opener may precede the complete one
            yield from at(s, thinking.open.strip())
        yield from skip(s, len(thinking.open) - len(thinking.open.rstrip()))


def after_prompt(s: State, p: Program, prompt: str, now: str) -> str:
    """The state after a prompt that opens nothing else: THINK if it ends with the opener of a thought in other tags."""
    if now or not (tail := prompt.rstrip()):
        return now
    s.foreign_closer = next((closer for opener, closer in p.foreign.items() if tail.endswith(opener)), "")
    return THINK if s.foreign_closer else now


def note_draft(s: State, p: Program, now: str) -> Scan[None]:
    """After a call in a message that began in a thought: notes that it is none if the thought is closed, and more follows."""
    if not all((now == THINK, p.unthink)):
        return
    closer = yield from at(s, *p.unthink, eat=False)
    size = (yield from ahead(s, 0, (closer,))) if closer else 0
    if size > 0 and (yield from following(s, size)):
        s.note("trailing-text", closer)


def thought(s: State, p: Program, attempt: Attempt) -> Scan[Match | None]:
    """Passes a thought on up to what ends it."""
    ends = _ends(p, s.foreign_closer)
    thinking = _apart(s, p)
    s.text_type = ThoughtDelta if all((p.split, not s.foreign_closer)) else TextDelta
    s.foreign_closer = ""
    if ends is None:
        yield from pass_all(s, s.emit_text)
        return None
    word = yield from _next_end(s, p, attempt, ends)
    if not word:
        return s.note("unclosed-thought") if all((thinking, word is None)) else None
    if word in ends.unthink:
        yield from _closed(s, word, thinking)
        return END, "", ""
    return _other_end(s, p, word, ends)


def _closed(s: State, word: str, thinking: Thinking | None) -> Scan[None]:
    """After the closer of a thought, which stays if the thought is a part of the text (`thinking` is None)."""
    if thinking is None:
        s.emit_text(word)
        return
    yield from skip(s, len(thinking.close) - len(thinking.close.rstrip()))
    close = thinking.close.strip()
    while close and (yield from at(s, close)):
        s.note("stray-closer", close)


def _other_end(s: State, p: Program, word: str, ends: Ends) -> Match:
    """After something else that ends a thought, such as the head of a message."""
    kind = p.inside[word]
    if ends.foreign:
        return kind, word, ""
    if kind in (CALL, HEAD):
        record_from(s, word)
    elif all((kind == END, not p.split)):
        s.emit_text(word)
    return END if kind == FRAME else kind, word, ""


def _next_end(s: State, p: Program, attempt: Attempt, ends: Ends) -> Scan[str | None]:
    """Passes on up to the next word that ends the thought, and consumes it. Returns None at the end of the text, "" after
    calls that count."""
    word = yield from _until_end(s, p, ends)
    while word in p.drafts:
        word = yield from _draft(s, p, str(word), attempt, ends)
    return word


def _until_end(s: State, p: Program, ends: Ends) -> Scan[str | None]:
    """Passes text on up to a mark that ends the thought or begins a call in it."""
    while True:
        word = yield from until(s, ends.opening, s.emit_text, s.text_type)
        if not (yield from _is_text(s, p, ends, word)):
            return word
        s.emit_text(str(word))


def _is_text(s: State, p: Program, ends: Ends, word: str | None) -> Scan[bool]:
    """Whether the mark that was consumed ends nothing: in tags that are none of the dialect, a frame is text, unless the
    reply ends with it."""
    kind = p.inside.get(word) if word else None
    return not (yield from turn_over(s, 0, ())) if all((ends.foreign, kind == FRAME)) else False


def _ends_reply(s: State, p: Program, ends: Ends, word: str | None) -> Scan[bool]:
    """Whether the reply is over after the mark that was consumed, None at its end: nothing but marks of an end follows."""
    if word is None:
        return True
    return (yield from turn_over(s, 0, ())) if word.strip() in (*p.frames, *ends.unthink) else False


def _draft(s: State, p: Program, word: str, attempt: Attempt, ends: Ends) -> Scan[str | None]:
    """Reads on after the beginning of a call in a thought, up to the word that ends the thought, or the next beginning.
    It is thought, unless only closers follow. Until that is known, everything up to a limit is held back."""
    record_from(s, word)
    start = s.offset + s.pos
    while True:
        end = yield from until_limit(s, ends.closers, start + DRAFT)
        if not (yield from _is_text(s, p, ends, end)):
            break
    size = s.offset + s.pos - start - (len(end) if end else 0)
    if all(((yield from _ends_reply(s, p, ends, end)), s.closed, size <= DRAFT)):
        s.give_back()
        return (yield from _last_calls(s, p, attempt, ends))
    if size <= DRAFT:
        text = s.recorded()
        s.commit()
        s.emit_text(text[: len(word) + size])
        return end
    s.give_back()
    s.note("long-draft", word)
    s.emit_text(s.text[s.pos : s.pos + DRAFT])
    s.pos += DRAFT
    return (yield from _until_end(s, p, ends))


def _last_calls(s: State, p: Program, attempt: Attempt, ends: Ends) -> Scan[str | None]:
    """Reads to the end of a reply that ends with a thought. Returns "" if calls come last: they count; else None."""
    wanted, text_type, closers = marks(p.drafts), s.text_type, (*p.frames, *ends.unthink, *TURN_ENDS)
    s.surroundings = None
    while (word := (yield from until(s, wanted, s.emit_text, text_type))) is not None:
        start, before, done = s.pos - len(word), s.snapshot(), True
        while all((word, done)):
            record_from(s, word)
            done = yield from attempt(s, p, word, True)
            word = yield from at(s, *closers, *p.openers, eat=False)
            opens = (yield from following(s, (yield from ahead(s, 0, (word,))))) if word in p.openers else ""
            word = (yield from at(s, word)) if opens else ""
        closed = False
        while done and (closer := (yield from at(s, *closers))):
            closed |= closer in ends.unthink
        if done and not (yield from following(s)):
            note = Note("call-in-thought" if closed else "unclosed-thought", "", s.offset + start)
            s.events.insert(before[0], Noted(note))
            s.end_complete_call()
            return ""
        text = s.text[start : s.pos]
        s.undo(before)
        s.emit_text(text)
    return None
