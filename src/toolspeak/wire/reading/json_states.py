"""The states of the streaming reader of JSON (`json_reader`), and the tokens that are legal in each."""

from __future__ import annotations

from .json_tokens import ENDS

# What may come next: a value (V: or the end of its list), a key (K: or the end of its object), a colon, or what
# follows a value. A word is any run of other characters.
VALUE, FIRST_VALUE, KEY, FIRST_KEY, COLON, AFTER = "vVkKca"
WORD = "w"
LEGAL = frozenset(
    want + kind
    for wants, kinds in (
        *(("vV", ["{", "[", "w", *ENDS]), ("kK", ["w", *ENDS]), ("c", ":")),
        *(("a", ",}]"), ("V", "]"), ("K", "}")),
    )
    for want in wants
    for kind in kinds
)
OPENER, CLOSER, COMMA, NAME, HALF_TEXT, HALF_WORD, LAST_COMMA = 1, 2, 3, 6, 7, 8, 9
PLACES = ("", "vV", "aVK", "a", "vV", "vV", "kK", "", "", "")
"""By group of SURE: the states in which such a token is legal. LATER has the state after it."""
LATER = ("", "", AFTER, "", AFTER, AFTER, VALUE)
OPENS = {"{": ("}", FIRST_KEY), "[": ("]", FIRST_VALUE)}
"""By opening bracket: its closer, and the state after it."""
AFTER_STRING = {VALUE: AFTER, FIRST_VALUE: AFTER, KEY: COLON, FIRST_KEY: COLON}
