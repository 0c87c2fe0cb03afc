"""Leaves out what remains of a call at the end of a reply that its model's server cut.

Only the server knows that it cut the reply. Without its word, the beginning of a call may be what the model wrote, and
stays text. So does half of an opener in any case, because it may be the beginning of any other text. Half of a closer
behind a call is left out: there is nothing else that it may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from .head_words import head_words
from .source import Scan
from .state import State

if TYPE_CHECKING:
    from .lexicon import Program

Result = TypeVar("Result")
CUT_CALL = "cut-call"
"""The rule of the note on a call that was cut and left out."""

HEAD_NAMES = 2
"""Words of a head that the dialect does not know, at most: the name of a tool, and the last one, of which a part came."""


def is_regular(p: Program, word: str) -> bool:
    """Whether this is an opener of calls as the dialect has it."""
    entry = p.entries.get(word)
    return entry.formal if entry else word not in ("", *p.fences)


def leave_out(s: State, p: Program, word: str) -> bool:
    """Leaves out the beginning of a call from its regular opener `word` on, which is all that is not passed on yet, with a
    note at its place. Returns False if the reply was not cut, or if that may be an answer in words."""
    if any((not s.cut, not s.waited, s.other_turn, not is_regular(p, word))):
        return False
    if all((p.d.guard, word not in p.markers_of_calls)):
        return False
    if _are_words(p, word, (s.recorded() + s.text[s.pos :]).strip()):
        return False
    s.truncated = True
    s.give_back()
    s.pos += s.prompt_length
    s.prompt_length = 0
    s.note(CUT_CALL, "the reply ended with the beginning of a call")
    s.pos = len(s.text)
    return True


def _are_words(p: Program, word: str, text: str) -> bool:
    """Whether the text from an opener on is words that an answer may have: the opener is one (`functools`, `call:`), and
    alone, or it is the marker of a message, with a sentence behind it in place of a head."""
    header = None if word in p.entries else p.d.header
    if header is None:
        return all((word.strip("*")[:1].isalpha(), text == word))
    if text == word:
        return word[:1].isalpha()
    head = text.partition(header.stop.strip() or header.stop)[0]
    return len({*head_words(head)} - p.vocabulary) > HEAD_NAMES


def as_if_open(s: State, reading: Scan[Result]) -> Scan[Result]:
    """Reads what may be a call. After the end of a reply that was cut nothing waits, so it is read first as if more could
    come: `s.waited` says later whether the text came to its end as the beginning of a call."""
    if not s.cut:
        return (yield from reading)
    s.waited = s.closed = False
    try:
        next(reading)
    except StopIteration as stop:
        return stop.value
    finally:
        s.closed = True
    s.waited = True
    return (yield from reading)


def leave_out_rest(s: State, inside: bool) -> None:
    """Leaves out what follows a call that was emitted in part; `inside`: the reply ended in that call."""
    if all((inside, s.cut, s.waited)):
        s.pos = len(s.text)


def drop_half_closer(s: State, closers: Sequence[str]) -> None:
    """Drops the beginning of one of `closers`, if nothing else stands behind the arguments of the last call."""
    if any((not s.call_count, s.open_call and not s.open_call.filled, s.text_behind.visible)):
        return
    half = s.text[s.pos :].lstrip()
    if half and any(closer.strip()[: len(half)] == half != closer.strip() for closer in closers):
        s.text = s.text[: len(s.text) - len(half)]
