"""Collects the literal words in the form of a call: the words that come first, that end a name, that may follow a value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from ..dialect import NAME, JsonCall, Maybe, NumberedName, Part, Slot, Tagged
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
    if isinstance(first, Maybe):
        return (*first_words(first.parts), *name_ends(parts[parts.index(first) + 1 :], beyond))
    ends = first_words(parts, beyond)
    if isinstance(first, str):  # a tag may be self-closing
        alone = first[0] == "\n" and ends[0][0].isalnum()
        return ("\n" + ends[0],) if alone else (*ends, '"/>', '" />') if ends[0] == '">' else ends
    hole = ARGUMENTS.get(cast("Any", type(first)))
    return hole.name_ends(first, ends) if hole else ends


def words_of(parts: Form) -> tuple[str, ...]:
    """Every literal word in the parts: what may follow a value that has ended."""
    return tuple(w for part in parts if isinstance(part, str) for w in literal_words(part))


def words_before_names(forms: Iterable[Form], other: tuple[str, ...]) -> dict[Form, tuple[str, ...]]:
    """The words right before a call's name, for each form; `other` if it does not begin with words and its name."""
    return {form: _before_name(form, other) for form in forms}


def _before_name(parts: Form, other: tuple[str, ...]) -> tuple[str, ...]:
    before = parts[parts.index(NAME) - 1] if NAME in parts[1:] else None
    return literal_words(before) if isinstance(before, str) else other


def value_closers(parts: Form) -> tuple[str, ...]:
    """What closes a value between tags."""
    return tuple({part.close.strip() for part in parts if isinstance(part, Tagged)})
