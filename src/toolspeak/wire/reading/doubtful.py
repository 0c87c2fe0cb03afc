"""The rules of notes that say that a part of a call was dropped, or that it is ambiguous: such a call is never whole."""

from __future__ import annotations

UNBALANCED = "unbalanced-closers"
"""This rule is about all calls before it, which have ended already (`unbalanced_closers`)."""
DOUBTFUL = frozenset(
    [
        "doubled-key",
        "expression",
        "half-escaped",
        "misplaced-key",
        "missing-quote",
        "other-name",
        "trailing-text",
        UNBALANCED,
        "unknown-key",
    ]
)
