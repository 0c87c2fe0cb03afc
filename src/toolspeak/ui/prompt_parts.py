"""Tells the parts of a prompt: whose text each stretch is, where the tools stand, and which tokens control the model.

A prompt is one text. The texts of the messages are looked for in it, in their order; what stands between them was written
by the dialect or by the chat template.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..types import Message, Request, Tool
from ..wire.dialect import Dialect
from ..wire.prompt.control_markers import SHAPES, Clean, cleaner, control_markers

Part = tuple[str, str]
"""A kind, and the text: system, user, assistant, tool (a result), tools (their definitions), control or frame."""
ROLES = {"developer": "system", "function": "tool"}


class Conversation:
    """A request as its user made it, by which the parts of what a model is asked are told."""

    def __init__(self, messages: Sequence[Message], tools: Sequence[Tool[..., Any]], d: Dialect | None) -> None:
        markers = control_markers(d)
        self._clean: Clean = cleaner(markers, [])
        self._markers = re.compile("|".join((*map(re.escape, sorted(markers, key=len, reverse=True)), *SHAPES)))
        self._texts = list(_texts(messages))
        names = "|".join(map(re.escape, sorted((tool.name for tool in tools), key=len, reverse=True)))
        self._names = re.compile(rf"(?<!\w)(?:{names})(?!\w)" if names else r"(?!)")

    def result(self, text: str) -> None:
        """Adds a result that the model will read."""
        self._texts.append(("tool", text))

    def parts(self, prompt: str, kind: str = "frame", calls: str = "tools") -> list[Part]:
        """The parts of a prompt, all of it in its order. `kind` is what it is where nothing else tells, `calls` what names a
        tool at its beginning."""
        found: list[Part] = []
        end = 0
        for role, text in self._texts:
            start, text = self._place(prompt, text, end)
            if start < 0:
                continue
            found += self._between(prompt[end:start], calls, kind)
            found.append((role, text))
            end = start + len(text)
            calls = "tools" if role == "system" else "assistant"
        return [part for part in (*found, *self._between(prompt[end:], calls, kind)) if part[1]]

    def question(self, request: Request) -> dict[str, Any]:
        """What a model is asked, as JSON data: its prompt in parts, or messages whose texts are."""
        if request.prompt is not None:
            return {"prompt": self.parts(request.prompt)}
        rows: list[dict[str, Any]] = []
        for message in request.messages:
            is_answered = any(row["role"] == "user" for row in rows)
            rows.append(self._message(message, is_answered))
        return {"messages": rows}

    def _message(self, message: Message, is_answered: bool) -> dict[str, Any]:
        """A message in parts. `is_answered`: it stands behind the first question, so that a user's turn that names a tool
        holds a result."""
        role = str(message.get("role", ""))
        text = "\n".join(text for _, text in _texts([message]))
        kind = ROLES.get(role, role)
        calls = {"system": "tools", "assistant": "assistant"}.get(kind, "tool" if is_answered else "tools")
        if calls == "tools" and self._names.search(text):  # what the user did not write there are definitions
            kind = "tools"
        row: dict[str, Any] = {"role": role, "parts": self.parts(text, kind, calls)}
        if calls := message.get("tool_calls"):
            row["calls"] = calls
        return row

    def _place(self, prompt: str, text: str, begin: int) -> tuple[int, str]:
        """Where the text of a message stands, and how it is written there: its markers broken, or trimmed."""
        for written in dict.fromkeys((text, self._clean(text), text.strip(), self._clean(text.strip()))):
            if written and (start := prompt.find(written, begin)) >= 0:
                return start, written
        return -1, ""

    def _between(self, text: str, calls: str, kind: str) -> Iterator[Part]:
        """What the dialect wrote: control tokens, and what stands between them."""
        end = 0
        for marker in self._markers.finditer(text):
            yield self._plain(text[end : marker.start()], calls, kind)
            yield "control", marker[0]
            end = marker.end()
        yield self._plain(text[end:], calls, kind)

    def _plain(self, text: str, calls: str, kind: str) -> Part:
        """A stretch that names a tool tells of the tools, or behind the first question is a call."""
        return (calls if self._names.search(text) else kind), text


def _texts(messages: Sequence[Message]) -> Iterator[Part]:
    """The texts of messages, each with its kind."""
    for message in messages:
        role = str(message.get("role", ""))
        content = message.get("content")
        rows = [content] if isinstance(content, str) else [part.get("text") for part in content or () if _is_text(part)]
        for text in rows:
            if isinstance(text, str) and text:
                yield ROLES.get(role, role), text


def _is_text(part: object) -> bool:
    return isinstance(part, Mapping)
