"""Repairs departures from the dialect around a call, such as a missing or an extra closer. Each repair leaves a note.

A repair never guesses at an argument. Repairs inside JSON values are in `json_reader` (rules single-quotes,
python-literal, trailing-comma, bare-key, raw-control, bad-escape, lone-surrogate), those of tags in `holes.tag_reader`
(other-tags, quoted-key, wrapped-arguments), those of a call's object in `holes.json_call_reader` (no-arguments,
unclosed-object, which `json_value` has as well, collapsed-call). The rest are here: missing-closer, stray-closer, fence,
list, ignored-item, no-calls, comment.

An incomplete call is reported with whole=False (rules cut, malformed). So is one of which a part was dropped, or that
is ambiguous (the rules in `doubtful`): a repair is only valid if it accounts for all the text of the call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ..dialect import Raw
from .cut_replies import leave_out_rest
from .doubtful import UNBALANCED
from .json_string import short_string
from .json_tokens import ENDS
from .lookahead import ahead
from .marks import marks
from .source import GAP, SPACE, Malformed, Scan, at, beginning, expect, following, literal_words, token, until
from .state import State
from .turn_over import turn_over

IDENTIFIER = re.compile(r"[^\W\d][\w.-]*").fullmatch
"""Matches names of tools that are not offered; any other word that begins a message is text."""
BRACKETS = ("}", "]", ")")
COMMA = (",", "]", "{")
"""What ends a word in a list."""
MOST = 8
"""The most closers in sequence that are taken for duplicates."""
COMMENT = 40
"""The most characters of a comment in a note."""


def missing(s: State, word: str, legal: tuple[str, ...], openers: tuple[str, ...] = ()) -> Scan[bool]:
    """Handles a closer that is not where it should be: there are extra brackets before it, one of the `openers` of calls
    is in its place, or it is missing (returns False). After a missing one, the end or one of `legal` must follow;
    otherwise the call has more than was read."""
    stray = ""
    half = _half(s, legal)
    openers = (*openers, word.replace("/", "", 1)) if "/" in word else openers
    while not (opener := (yield from _opens_nothing(s, openers))) and not half and len(stray) < MOST:
        bracket = yield from at(s, *(c for c in BRACKETS if c != word))
        if not bracket:
            break
        stray += bracket
    if stray:
        s.note("stray-closer", stray)
    if opener:
        s.note("missing-closer", word)
        s.note("stray-closer", opener)
        return bool((yield from at(s, opener)))
    if half or not (yield from at(s, word)):
        s.note("missing-closer", word)
        yield from trailing(s, legal)
        return False
    return True


def _opens_nothing(s: State, openers: tuple[str, ...]) -> Scan[str]:
    """One of these words, if the end of the turn or the same word comes right behind it; else "". Consumes nothing."""
    opener = yield from at(s, *openers, eat=False)
    end = (yield from ahead(s, 0, (opener,))) if opener else 0
    return opener if end > 0 and (yield from turn_over(s, end, (opener,))) else ""


def skip_scalars(s: State) -> Scan[None]:
    """Skips short texts and numbers before the first call of a list, with a note."""
    while (c := (yield from following(s))) in ENDS or c.isalnum():
        item = (yield from short_string(s)) if c in ENDS else (yield from token(s, marks(COMMA)))[0].strip()
        yield from expect(s, ",")
        s.note("ignored-item", item)


def skip_comments(s: State, ends: tuple[str, ...]) -> Scan[None]:
    """Skips comments of Python, each up to the end of its line or to one of `ends`, with a note. Without `ends`, a number
    sign begins none."""
    while (yield from at(s, "#")) if ends else False:
        pieces: list[str] = []
        hit = yield from until(s, marks(ends), pieces.append)
        s.pos -= len(hit) if hit else 0
        s.note("comment", "".join(pieces).strip()[:COMMENT])
        if s.ran_on:  # the end of a value may be in it
            s.note(UNBALANCED, "#")


@lru_cache(1024)
def behind(words: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the words that end a call's object or may follow it that nobody writes inside one by chance."""
    return tuple(word for word in (*words, *after) if len(word) > 2)


def trailing(s: State, legal: tuple[str, ...]) -> Scan[None]:
    """Checks whether a call is followed by more than its end, or one of `legal`; also behind the mark of an end. A bare
    object may be the next call, so that decision waits."""
    if s.end_checked_at == s.offset + s.pos:
        return
    c = yield from following(s)
    s.end_checked_at = s.offset + s.pos
    whole = not c or (s.truncated and s.closed) or (c in "{[" and c in legal) or _half(s, legal)
    if not whole and not (yield from follows(s, tuple(w for w in legal if len(w) > 1))):
        s.note("trailing-text", (yield from beginning(s)))


def follows(s: State, legal: tuple[str, ...]) -> Scan[bool]:
    """Whether one of `legal` comes next, or the end. The mark of an end counts only if nothing else follows it. Consumes
    nothing."""
    word = yield from at(s, *legal, eat=False)
    if word in s.stops:
        end = yield from ahead(s, 0, (word,))
        return end <= 0 or (yield from ahead(s, end, legal)) != 0 or (yield from turn_over(s, 0, ()))
    return True if word else (yield from turn_over(s, 0, ()))


def only(s: State, words: tuple[str, ...]) -> Scan[bool]:
    """Whether nothing but such words comes next, up to the end of the text. Consumes nothing."""
    end = offset = 0
    while (offset := (yield from ahead(s, end, words))) > 0:
        end = offset
    return offset < 0


def _half(s: State, words: tuple[str, ...]) -> bool:
    """Whether the text ends inside one of these words."""
    i = SPACE(s.text, s.pos).end()
    return s.closed and i < len(s.text) < i + GAP and any(word.startswith(s.text[i:]) for word in words)


def closing(s: State, closers: Sequence[str], legal: tuple[str, ...], openers: tuple[str, ...] = ()) -> Scan[None]:
    """Reads what closes a section: the list, the section itself, the fence around it."""
    words = [word for closer in closers for word in literal_words(closer)]
    for word in words:
        present = bool((yield from at(s, word)))
        if not present:
            present = yield from missing(s, word, (*words, *legal), openers)
        if s.complete_call:
            s.complete_call.open_ended = not present


def after_call(s: State, strays: tuple[str, ...], openers: tuple[str, ...]) -> Scan[None]:
    """Reads duplicate closers after a section, and whitespace at the end of the reply."""
    yield from drop_strays(s, strays, openers)
    yield from following(s)
    end = SPACE(s.text, s.pos).end()
    if s.closed and end == len(s.text) and end - s.pos <= GAP:
        s.pos = end


def drop_strays(s: State, strays: tuple[str, ...], openers: tuple[str, ...] = ()) -> Scan[None]:
    """Drops duplicate closers, with a note for each. One that begins one of `openers` is none."""
    for _ in range(MOST):
        word = yield from at(s, *strays, *openers, eat=False)
        if word not in strays:
            break
        yield from at(s, word)
        s.note("stray-closer", word)


def ends_inside(s: State, closers: tuple[str, ...]) -> bool:
    """Whether the text is over, and its part that is not read yet, or may be read again, does not end with a closer of
    calls: then it was cut."""
    if not s.closed:
        return False
    start = s.pos if s.recording is None else s.recorded_from
    return not s.text[max(start, len(s.text) - GAP) :].rstrip().endswith(closers)


def note_unknown(s: State, why: Malformed) -> None:
    """Notes why a text is no call: a tool that is not offered, or the turn of another role around it."""
    if why.unknown:
        s.note("unknown-tool", why.unknown)
    if (turn := s.other_turn) and s.calls_in_turn:
        if (name := next(filter(s.offered, s.calls_in_turn), "")) and not s.reply_over:
            s.note("call-in-turn", name)
        s.note(turn.rule, turn.detail, turn.at)


def note_cut(s: State) -> None:
    """Notes that the reply ended with the beginning of a call, which stays text. In the middle of a line it is talk."""
    s.truncated = True
    if not s.text_before_call:
        s.note("cut-opener")


def note_half_name(s: State, form: tuple[object, ...]) -> None:
    """Notes that the code of a call in this form, which is all that is left, may be the beginning of a tool's name."""
    text = s.text[s.pos :].strip()
    begins = s.tools is None or s.begins_tool(text)
    if all((begins, s.closed, isinstance(form[-1], Raw), IDENTIFIER(text))):
        s.truncated = s.doubtful = True
        s.note("cut", "an unfinished name")


def note_broken(s: State, rule: str, why: str) -> None:
    """Notes why a call is broken. If a string ran into it, all calls may be in one value."""
    s.note(rule, why)
    if s.ran_on:
        s.note(UNBALANCED, why)


def break_off(s: State, closers: tuple[str, ...], openers: tuple[str, ...], why: Malformed) -> Scan[None]:
    """Ends a call that was emitted in part: it stays, with whole=False. The rest of its line is text, but its closers
    and the brackets before them are not."""
    s.prompt_length = 0
    cut = ends_inside(s, closers)
    s.truncated |= cut
    note_broken(s, "cut" if cut else "malformed", str(why))
    if s.open_call:
        s.end_call(s.open_call, whole=False)
    s.doubtful |= s.complete_call is not None and not cut
    s.end_complete_call()
    leave_out_rest(s, cut)
    if not closers:
        return
    s.start_recording()
    for _ in range(MOST):
        if not (yield from at(s, *BRACKETS)):
            break
    if (yield from at(s, *closers)):
        s.commit()
    else:
        s.give_back()
        hit = yield from until(s, marks((*closers, *openers, "\n")), s.emit_text)
        s.within_line = hit in openers
        s.pos -= 0 if hit is None or hit in closers else len(hit)
    for _ in range(MOST):
        if not (yield from at(s, *closers)):
            break
