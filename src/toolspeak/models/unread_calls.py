"""Recognizes text that looks like a call in a form that no dialect reads.

Models write calls in forms of their own, and replies are cut. Nothing of that is run, for it would be guessed; but whoever
takes the text for an answer should be told. So signs are looked for that an answer in words rarely has: the name of an
offered tool where such forms have it, with the name of one of its parameters where an argument would be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..types import Note, Tool

KEYS = r"name|tool|tool_name|toolName|function|function_name|functionName|action"
"""Keys of a JSON object that hold the name of a tool."""
NEAR = 1_000
"""Characters between the name of a tool and that of an argument, at most."""
TAGS = r"function|function_call|invoke|tool|tool_call|tool_name|call|action|name"
"""Tags that hold the name of a tool, or begin with it."""


def unread_call(text: str, tools: Sequence[Tool[..., Any]]) -> Note | None:
    """A note of the first offered tool that the text seems to call; None where it calls none."""
    for tool in (one for one in tools if one.name in text):
        if any(re.search(pattern, text) for pattern in _signs(tool)):
            looks = f"a part of the text looks like a call of {tool.name} that is not whole, or in a form that no dialect has"
            return Note("like-a-call", f"{looks}, and stays text. Where it is one, try other forms: `toolspeak tune`")
    return None


def _signs(tool: Tool[..., Any]) -> Iterator[str]:
    """Patterns of what seems to call a tool."""
    name = re.escape(tool.name)
    yield rf"<(?:{TAGS})\b[^<>\n]{{0,40}}[=>\"'\s]{name}(?![\w-])"  # <function=f>, <invoke name="f">
    yield rf"<(?:{TAGS})>\s*{name}(?![\w-])"  # <tool_name>f
    yield rf"(?m)^\W{{0,4}}(?:Action|Tool|Function)\s{{0,4}}:\s{{0,4}}`?{name}(?:`|\s*[\[({{]|\s*$)"  # Action: f[..]
    keys = "|".join(map(re.escape, tool.parameters.get("properties", {})))
    if not keys:
        return
    yield rf"(?<![\w.]){name}\(\s*(?:{keys})\s*=(?!=)"  # f(k=..)
    yield rf"(?<![\w.]){name}\(\s*\{{\s*[\"']?(?:{keys})\b"  # f({k: ..})
    yield rf"[\"']{name}[\"']\s*:\s*\{{\s*[\"'](?:{keys})[\"']"  # {"f": {"k": ..}}
    yield rf"[\"'](?:{KEYS})[\"']\s*:\s*[\"']{name}[\"'][\s\S]{{0,{NEAR}}}?[\"'](?:{keys})\\?[\"']\s*:"
