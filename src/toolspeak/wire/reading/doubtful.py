"""The rules of notes that say that a part of a call was dropped, or that it is ambiguous: such a call is never whole."""

from __future__ import annotations

UNBALANCED = "unbalanced-closers"
DRAFTED = "drafted-call"
TRAILING = "trailing-text"
TWO_READINGS = "two-readings"
SUPERSEDED = "superseded-call"
"""The rule of the note that takes back an earlier call, of which a better reading came; its detail is the id."""
EARLIER_CALLS = frozenset((UNBALANCED, DRAFTED, TWO_READINGS))
"""These rules are about all calls before them, which have ended already (`unbalanced_closers`, `lone_closers`,
`plan.doubled_calls`)."""
DOUBTFUL = frozenset(
    [
        "doubled-key",
        "expression",
        "half-escaped",
        "misplaced-key",
        "missing-quote",
        "other-name",
        TRAILING,
        TWO_READINGS,
        UNBALANCED,
        "unknown-key",
    ]
)
