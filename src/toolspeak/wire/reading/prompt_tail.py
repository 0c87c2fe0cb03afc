"""Examines the end of a prompt that a reply continues: an open thought, or a word that the reply completes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..dialect import Dialect, Thinking
from ..thought_tags import thought_tags

LEAD = re.compile(r"[\n>\]](?i:assistant|model)?:?[ \t]*\Z")
"""What may come before the opener of a thought: the beginning of a line, or the head of a turn."""
NEAR = 24
"""Characters before the opener in which that is looked for."""
CONTROL = re.compile(r"<\|[^\s<>|]{1,60}\|>|</s>|<[a-z]+_of_turn>|\[/?[A-Z_]{3,}\]|\n(?i:user|assistant|human):")
"""Ends or beginnings of a turn in some layout."""


def within_thought(d: Dialect, thinking: Thinking, prompt: str) -> bool:
    """Whether the prompt, which continues a message, ends inside a thought."""
    tags = thought_tags(thinking)
    opener = max(filter(None, tags), key=prompt.rfind, default="")
    if not opener:
        return False
    before, word, behind = prompt.rpartition(opener)
    near = before[-NEAR:] if len(before) > NEAR else f"\n{before}"
    if not d.stop and (not LEAD.search(near) or CONTROL.search(behind)):
        return False  # the ends of turns are unknown, so the words may be in a user's turn
    closers = (close or thinking.close for close in tags.values())
    ends = (*closers, *d.stop, *d.control, d.layout.end.strip() if d.layout else "")
    return bool(word) and not any(end and end in behind for end in ends)


def ending(text: str, words: Sequence[str]) -> str:
    """The end of the text that consists of these words with whitespace between them."""
    rest = text
    for word in reversed(words):
        rest = rest.rstrip()
        if not rest.endswith(word):
            return ""
        rest = rest.removesuffix(word)
    return text[len(rest) :]
