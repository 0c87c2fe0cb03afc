"""Reads one JSON value with the streaming reader, and closes one that ends before its last brackets."""

from __future__ import annotations

from .json_reader import AFTER, NESTED, NUMBER, JsonReader
from .json_tokens import AddNote, Emit
from .run_on_strings import RunsOn
from .source import Delta, Malformed, Scan, Source, Words, at


def json_value(
    s: Source, emit: Emit, note: AddNote | None, delta: Delta | None = None, beyond: Words = ()
) -> Scan[None]:
    """Passes one JSON value on. Raises Malformed if it cannot be one; the offending text is not consumed.

    Repaired, each with a note: single and typographic quotes, quotes inside strings, Python's constants, trailing
    commas, unquoted keys, raw control characters, unknown escapes, lone surrogates, and closers that are missing before
    one of the words `beyond`, which may follow the value. Without `note` nothing is repaired: only valid JSON passes.
    """
    reader = JsonReader(s, emit, note, delta, beyond)
    try:
        yield from reader.run()
    except RunsOn:
        raise
    except Malformed:
        closers = (yield from _missing_closers(s, reader)) if beyond else ""
        if not closers or note is None:
            raise
        note("unclosed-object", closers)
        emit(closers)


def _missing_closers(s: Source, reader: JsonReader) -> Scan[str]:
    """The closers that a value lacks, if one of the words comes that may follow it, and the value can only have ended
    here; otherwise "". Within brackets of one kind, a missing closer could belong to either of two. A number directly before the mark of an end
    may be incomplete."""
    closers = last_closers(reader)
    word = (yield from at(s, *reader.beyond, eat=False)) if closers else ""
    return "" if not word or (word in s.ends and reader.unsure & NUMBER) else closers


def last_closers(reader: JsonReader) -> str:
    """The closers that complete the value where the reader stopped; "" if it was not at their place."""
    unsure = any((reader.want != AFTER, reader.unsure & NESTED, reader.comma))
    return "" if unsure else "".join(reversed(reader.stack))
