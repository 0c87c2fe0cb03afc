"""The words that close a call and its section: those that a model may write once too often, and those that stay text."""

from __future__ import annotations

from ..dialect import Dialect, Json, JsonCall, Keywords
from .source import literal_words


def stray_closers(d: Dialect) -> tuple[str, ...]:
    """The closers that a model may write once too often after a call."""
    last = d.call[-1]
    bracket = ["}"] if isinstance(last, JsonCall | Json) else [last.close] if isinstance(last, Keywords) else []
    ends = literal_words(last)[-1:] if isinstance(last, str) else bracket
    words = (*ends, *literal_words(d.close)[-1:])
    return (*words, d.items[2].strip()) if d.items else (*words, "]") if d.guard else words


def call_closers(d: Dialect) -> tuple[str, ...]:
    """What closes a call and its section, without brackets alone."""
    last = d.call[-1]
    words = (*(literal_words(last) if isinstance(last, str) else ()), *literal_words(d.close), *d.stop)
    return tuple(word for word in words if len(word) > 2)


def visible_closers(d: Dialect) -> tuple[str, ...]:
    """The closers of calls that are text where they close none; () if they are all marks of an end, which are dropped."""
    last = literal_words(d.close) or (literal_words(d.call[-1]) if isinstance(d.call[-1], str) else ())
    return () if {*last[-1:]} & {*d.stop} else tuple(word for word in call_closers(d) if word not in d.stop)
