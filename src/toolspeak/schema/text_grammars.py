"""Texts that must fit a grammar in Lark's notation: the keyword `x-lark` of a JSON Schema.

The grammar is read by llguidance (extra `grammar`), which is what engines read such grammars with. Without it, or where
it cannot read a grammar, the keyword asks for nothing; `readable` says so beforehand.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

KEYWORD = "x-lark"
LONGEST = 65_536
"""Characters of a grammar that is read."""


class Fits:
    """The keyword, for a validator. It raises ValueError for a text that does not fit."""

    def __init__(self, _schema: Any, grammar: Any, _path: Any) -> None:
        self._grammar: Any = grammar

    def validate(self, instance: Any) -> None:
        """Holds a value against the grammar."""
        if problem := misfit(self._grammar, instance):
            raise ValueError(problem)


def readable(grammar: Any) -> bool:
    """Whether texts can be held against a grammar here."""
    return isinstance(grammar, str) and _matcher(grammar[: LONGEST + 1]) is not None


def misfit(grammar: Any, text: Any) -> str:
    """Where a text leaves a grammar, in words; "" for one that fits, and for what is no text."""
    if not isinstance(text, str):
        return ""
    if not readable(grammar):
        return ""
    matcher = _matcher(grammar).deep_copy()  # one remembers what it has read
    whole = text.encode("utf-8", "replace")
    read: int = matcher.try_consume_tokens([*whole])
    if read == len(whole):
        return "" if matcher.is_accepting() else "it ends too early: the grammar wants more"
    before = whole[:read].decode("utf-8", "ignore")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return f"at line {line}, column {column}, the grammar allows no {text[len(before) :][:20]!r}"


@lru_cache(64)
def _matcher(grammar: str) -> Any:
    """What reads texts by a grammar; None where it cannot be read, or nothing is there to read it."""
    if len(grammar) > LONGEST:
        return None
    try:
        import llguidance
    except ImportError:
        return None
    made = llguidance.LLMatcher(llguidance.LLTokenizer("byte"), grammar)
    return None if made.is_error() else made
