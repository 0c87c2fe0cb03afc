"""Skips the tags before a call's arguments that a model writes twice."""

from __future__ import annotations

from ..dialect import Slot
from .call import Call
from .call_form_words import Form, words_of
from .lookahead import ahead
from .source import Scan
from .state import State


def skip_repeated(s: State, before: Form, call: Call) -> Scan[None]:
    """Skips the words and the name before the arguments if they stand there twice."""
    if [type(part) for part in before] != [str, Slot, str] or call.name is None:
        return
    place = 0
    for word in (*words_of(before[:1]), call.name, *words_of(before[2:])):
        place = yield from ahead(s, place, (word,))
        if place <= 0:
            return
    s.note("repeated-tag", call.name)
    s.pos += place
