"""Ends a call in whose arguments a string ran into the next call (`run_on_strings`), so that the next one is read."""

from __future__ import annotations

from ..dialect import Dialect, JsonCall, Part
from .call import Call
from .json_string import short_string
from .json_value import json_value
from .run_on_strings import WHY
from .seams import value_ends
from .source import Malformed, Scan, at, expect
from .state import State


def to_the_next(s: State, d: Dialect, part: Part, call: Call) -> Scan[None]:
    """A string in the arguments, which this part has, ran into the next call: this call ends, and is not whole."""
    if not call.started:
        raise Malformed(WHY)
    s.note("malformed", WHY)
    s.call_inside, call.filled, s.ran_on = -1, True, True
    s.end_call(call, whole=False)
    s.unbalanced = value_ends(d)
    if isinstance(part, JsonCall):
        yield from _rest_of_object(s)


def _rest_of_object(s: State) -> Scan[None]:
    """Skips the keys behind the arguments of a call that has ended, and the bracket of its object."""
    while (yield from at(s, ",")):
        yield from short_string(s)
        yield from expect(s, ":")
        yield from json_value(s, list[str]().append, None)
    yield from expect(s, "}")
