"""Leaves out what remains of a call at the end of a reply that its model's server cut.

Only the server knows that it cut the reply. Without its word, the beginning of a call may be what the model wrote, and
stays text. So does half of an opener in any case, because it may be the beginning of any other text. Half of a closer
behind a call is left out: there is nothing else that it may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .state import State

if TYPE_CHECKING:
    from .lexicon import Program

CUT_CALL = "cut-call"
"""The rule of the note on a call that was cut and left out."""


def leave_out(s: State, p: Program, word: str, marked: bool) -> bool:
    """Leaves out the beginning of a call from its opener `word` on, which is all that is not passed on yet, with a note at
    its place. Returns False if the reply was not cut, or if that may be an answer in words: `marked` says whether the
    opener is regular."""
    if any((not s.cut, s.other_turn, not marked, p.d.guard and word not in p.markers_of_calls)):
        return False
    s.truncated = True
    s.give_back()
    s.pos += s.prompt_length
    s.prompt_length = 0
    s.note(CUT_CALL, "the reply ended with the beginning of a call")
    s.pos = len(s.text)
    return True


def leave_out_rest(s: State, inside: bool) -> None:
    """Leaves out what follows a call that was emitted in part; `inside`: the reply ended in that call."""
    if inside and s.cut:
        s.pos = len(s.text)


def drop_half_closer(s: State, closers: Sequence[str]) -> None:
    """Drops the beginning of one of `closers`, if nothing else stands behind the arguments of the last call."""
    if any((not s.call_count, s.open_call and not s.open_call.filled, s.text_behind.visible)):
        return
    half = s.text[s.pos :].lstrip()
    if half and any(closer.strip().startswith(half) and closer.strip() != half for closer in closers):
        s.text = s.text[: len(s.text) - len(half)]
