"""Separates the thoughts that a model wrote between two tags from its answer."""

from __future__ import annotations

import re


def split_thoughts(text: str, opener: str, closer: str) -> tuple[str, str | None]:
    """Return the answer without its thoughts, and the thoughts, None if there are none.

    A thought without a closing tag extends to the end. White space is trimmed only where a thought was removed.
    """
    thought = re.compile(f"{re.escape(opener)}(.*?)(?:{re.escape(closer)}|$(?![\\s\\S]))", re.DOTALL)
    thoughts = [part for part in (m.strip() for m in thought.findall(text)) if part]
    answer, count = thought.subn("", text)
    if not count:
        return text, None
    return answer.strip(), "\n\n".join(thoughts) or None
