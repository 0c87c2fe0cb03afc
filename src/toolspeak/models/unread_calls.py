"""Recognizes text that looks like a call and was not read as one.

A model may write a call in another dialect than the one that is read, in a form of its own, or not to its end. Such a call
is not run, because it would be guessed. But whoever takes the text for an answer should know. In a form that no dialect
reads, the signs are what an answer in words rarely has: the name of an offered tool where such forms have it, with the name
of one of its parameters where an argument would be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from ..schema.suggestions import did_you_mean, near
from ..types import Note, Reply, Tool
from ..wire.decode import parse
from ..wire.dialect import Dialect
from ..wire.finding.model_names import known
from ..wire.prompt.template_capabilities import literals
from .any_dialect import markers, rank

LONGEST = 20_000
"""Characters of the longest text that is looked through."""
KEYS = r"name|tool|tool_name|toolName|function|function_name|functionName|action"
"""Keys of a JSON object that hold the name of a tool."""
NEAR = 1_000
"""Characters between the name of a tool and that of an argument, at most."""
TAGS = r"function|function_call|invoke|tool|tool_call|tool_name|call|action|name"
"""Tags that hold the name of a tool, or begin with it."""


def like_a_call(text: str, tools: Sequence[Tool[..., Any]]) -> Note | None:
    """What to say of a text in which something looks like a call, of a tool or of one that is nearly named so, and was
    not taken for one; None where nothing does."""
    if not 0 < len(text) <= LONGEST:
        return None
    offered = [tool.name for tool in tools]
    words = markers if any(name in text for name in offered) else literals
    found: list[tuple[tuple[int, ...], Dialect, str]] = []
    for dialect in known():
        if all(word in text for word in words(dialect)):
            reply = parse(text, dialect, None, "")
            if name := _nearly(reply, offered):
                found.append(((name in offered, -len(reply.text.strip()), *rank(dialect, reply, text)), dialect, name))
    if not found:
        return _in_no_dialect(text, tools)
    _, dialect, name = max(found, key=lambda one: one[0])
    looks = f"a part of the text looks like a call of {name} in the dialect {dialect.name}, and stays text."
    if name in offered:
        return Note("like-a-call", f"{looks} Where it is one, give dialect={dialect.name!r}")
    return Note("like-a-call", f"{looks} No tool has that name.{did_you_mean(near(name, offered))}")


def _nearly(reply: Reply, offered: Sequence[str]) -> str:
    """The name of the first call of a tool that is offered, else of one that is nearly named so, else ""."""
    names = [call.name for call in reply.calls]
    exact, close = (n for n in names if n in offered), (n for n in names if near(n, offered))
    return next(chain(exact, close), "")


def _in_no_dialect(text: str, tools: Sequence[Tool[..., Any]]) -> Note | None:
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
