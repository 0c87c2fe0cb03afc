"""Validates texts against a grammar in Lark notation: the keyword `x-lark` of a JSON Schema.

llguidance (extra `grammar`) parses the grammar, as engines do. If it is missing, or cannot parse a grammar, the
keyword is ignored; `readable` says so in advance.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

KEYWORD = "x-lark"
LONGEST = 65_536
"""The most characters of a grammar that are accepted."""


class Fits:
    """The keyword's implementation for the validator. It raises ValueError for a text that does not match."""

    def __init__(self, _schema: Any, grammar: Any, _path: Any) -> None:
        self._grammar: Any = grammar

    def validate(self, instance: Any) -> None:
        """Checks a value against the grammar."""
        if problem := misfit(self._grammar, instance):
            raise ValueError(problem)


def readable(grammar: Any) -> bool:
    """Whether texts can be checked against this grammar here."""
    return isinstance(grammar, str) and _matcher(grammar[: LONGEST + 1]) is not None


def misfit(grammar: Any, text: Any) -> str:
    """Where a text stops matching a grammar, in words; "" if it matches, or if it is no text."""
    if not isinstance(text, str):
        return ""
    if not readable(grammar):
        return ""
    matcher = _matcher(grammar).deep_copy()  # a matcher is stateful
    whole = text.encode("utf-8", "replace")
    read: int = matcher.try_consume_tokens([*whole])
    if read == len(whole):
        return "" if matcher.is_accepting() else "it ends too early: the grammar wants more"
    before = whole[:read].decode("utf-8", "ignore")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return f"at line {line}, column {column}, the grammar allows no {text[len(before) :][:20]!r}"


@lru_cache(64)
def _matcher(grammar: str) -> Any:
    """The matcher for a grammar; None if the grammar cannot be parsed or llguidance is missing."""
    if len(grammar) > LONGEST:
        return None
    try:
        import llguidance
    except ImportError:
        return None
    matcher = llguidance.LLMatcher(llguidance.LLTokenizer("byte"), grammar)
    return None if matcher.is_error() else matcher
