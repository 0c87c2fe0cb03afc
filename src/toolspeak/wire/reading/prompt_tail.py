"""The end of a prompt from which a reply goes on: an open thought, or a word that the reply completes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..dialect import Dialect, Thinking

LEADS = ("", "\n", ">", "]")
"""What may stand before the opener of a thought."""
CONTROL = re.compile(r"<\|[^\s<>|]{1,60}\|>|</s>|<[a-z]+_of_turn>|\[/?[A-Z_]{3,}\]|\n(?i:user|assistant|human):")
"""What ends or begins a turn in some layout."""


def within_thought(d: Dialect, thinking: Thinking, prompt: str) -> bool:
    """Does the prompt, which goes on from a message, end within a thought?"""
    before, word, behind = prompt.rpartition(thinking.open.strip())
    if not d.stop and (before[-1:] not in LEADS or CONTROL.search(behind)):
        return False  # whose turns end nobody knows how: the words may be a user's
    ends = (thinking.close.strip() or thinking.close, *d.stop, *d.control, d.layout.end.strip() if d.layout else "")
    return bool(word) and not any(end and end in behind for end in ends)


def ending(text: str, words: Sequence[str]) -> str:
    """The end of the text, where it is these words with white space between."""
    rest = text
    for word in reversed(words):
        rest = rest.rstrip()
        if not rest.endswith(word):
            return ""
        rest = rest.removesuffix(word)
    return text[len(rest) :]
