"""The literal words in a dialect's form of a call: those that can come first, that can end a function's name, and that
can follow a value."""

from __future__ import annotations

from typing import Any, cast

from ..dialect import JsonCall, Maybe, NumberedName, Part, Slot
from ..holes import ARGUMENTS
from .source import literal_words

Form = tuple[Part, ...]


def first_words(parts: Form, beyond: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The words that may come first in the parts, or after them."""
    for i, part in enumerate(parts):
        rest = parts[i + 1 :]
        match part:
            case str():
                if part.strip():
                    return (literal_words(part)[0],)
            case Maybe():
                return (*first_words(part.parts), *first_words(rest, beyond))
            case Slot():
                return ()
            case JsonCall() | NumberedName():
                return ("{",)
            case _:
                hole = ARGUMENTS[type(part)]
                return (*hole.openers(part), *(first_words(rest, beyond) if hole.optional else ()))
    return beyond


def name_ends(parts: Form, beyond: tuple[str, ...]) -> tuple[str, ...]:
    """The words that end a name before the parts. A word of letters ends it only on its own line."""
    first = next((part for part in parts if not isinstance(part, str) or part.strip()), None)
    ends = first_words(parts, beyond)
    if isinstance(first, str) and first[0] == "\n" and ends[0][0].isalnum():
        return ("\n" + ends[0],)
    if isinstance(first, str) and ends[0] == '">':
        return (*ends, '"/>', '" />')  # a tag may be self-closing
    hole = ARGUMENTS.get(cast("Any", type(first)))
    return hole.name_ends(first, ends) if hole else ends


def words_of(parts: Form) -> tuple[str, ...]:
    """Every literal word in the parts: what may follow a value that has ended."""
    return tuple(w for part in parts if isinstance(part, str) for w in literal_words(part))
