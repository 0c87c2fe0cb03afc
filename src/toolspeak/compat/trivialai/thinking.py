"""The thoughts that a model wrote between two tags, apart from its answer."""

from __future__ import annotations

import re


def split_thoughts(text: str, opener: str, closer: str) -> tuple[str, str | None]:
    """The answer without any of its thoughts, and the thoughts, None where there are none.

    A thought that was never closed reaches to the end. White space around the parts goes only where a
    thought was taken out.
    """
    thought = re.compile(f"{re.escape(opener)}(.*?)(?:{re.escape(closer)}|$(?![\\s\\S]))", re.DOTALL)
    thoughts = [part for part in (m.strip() for m in thought.findall(text)) if part]
    answer, count = thought.subn("", text)
    if not count:
        return text, None
    return answer.strip(), "\n\n".join(thoughts) or None
