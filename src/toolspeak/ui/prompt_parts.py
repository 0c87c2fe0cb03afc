"""Splits a prompt into parts: whose text each part is, where the tools are, and which tokens are control tokens.

A prompt is one text. The texts of the messages are searched in it in order; everything between them was written by the
dialect or the chat template.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..types import Message, Request, Tool
from ..wire.dialect import Dialect
from ..wire.prompt.control_markers import Clean, cleaner
from ..wire.prompt.known_markers import SHAPES, control_markers

Part = tuple[str, str]
"""A kind, and the text: system, user, assistant, tool (a result), tools (their definitions), control or frame."""
ROLES = {"developer": "system", "function": "tool"}


class RequestParts:
    """A request as its user wrote it, with which the parts of a prompt are recognized."""

    def __init__(self, messages: Sequence[Message], tools: Sequence[Tool[..., Any]], d: Dialect | None) -> None:
        markers = control_markers(d)
        self._clean: Clean = cleaner(markers, [])
        self._markers = re.compile("|".join((*map(re.escape, sorted(markers, key=len, reverse=True)), *SHAPES)))
        self._texts = list(_texts(messages))
        names = "|".join(map(re.escape, sorted((tool.name for tool in tools), key=len, reverse=True)))
        self._names = re.compile(rf"(?<!\w)(?:{names})(?!\w)" if names else r"(?!)")

    def result(self, text: str) -> None:
        """Add a result that the model will read."""
        self._texts.append(("tool", text))

    def parts(self, prompt: str, kind: str = "frame", calls: str = "tools") -> list[Part]:
        """Return all parts of a prompt in order. `kind` is the kind of text that is not recognized; `calls` is the kind
        of text that starts by naming a tool."""
        results: list[Part] = []
        end = 0
        for role, text in self._texts:
            start, text = self._place(prompt, text, end)
            if start < 0:
                continue
            results += self._between(prompt[end:start], calls, kind)
            results.append((role, text))
            end = start + len(text)
            calls = "tools" if role == "system" else "assistant"
        return [part for part in (*results, *self._between(prompt[end:], calls, kind)) if part[1]]

    def question(self, request: Request) -> dict[str, Any]:
        """Return a model request as JSON data: its prompt in parts, or its messages with their texts in parts."""
        if request.prompt is not None:
            return {"prompt": self.parts(request.prompt)}
        rows: list[dict[str, Any]] = []
        for message in request.messages:
            is_answered = any(row["role"] == "user" for row in rows)
            rows.append(self._message(message, is_answered))
        return {"messages": rows}

    def _message(self, message: Message, is_answered: bool) -> dict[str, Any]:
        """Return a message in parts. `is_answered`: it comes after the first question, so a user's turn that names a
        tool is a result."""
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
        """Return the position of a message's text in the prompt, and its form there: with broken markers, or trimmed."""
        for written in dict.fromkeys((text, self._clean(text), text.strip(), self._clean(text.strip()))):
            if written and (start := prompt.find(written, begin)) >= 0:
                return start, written
        return -1, ""

    def _between(self, text: str, calls: str, kind: str) -> Iterator[Part]:
        """Yield what the dialect wrote: control tokens, and the texts between them."""
        end = 0
        for marker in self._markers.finditer(text):
            yield self._plain(text[end : marker.start()], calls, kind)
            yield "control", marker[0]
            end = marker.end()
        yield self._plain(text[end:], calls, kind)

    def _plain(self, text: str, calls: str, kind: str) -> Part:
        """Return a part whose text names a tool: a definition, or a call after the first question."""
        return (calls if self._names.search(text) else kind), text


def _texts(messages: Sequence[Message]) -> Iterator[Part]:
    """Yield the texts of messages, each with its kind."""
    for message in messages:
        role = str(message.get("role", ""))
        content = message.get("content")
        rows = [content] if isinstance(content, str) else [part.get("text") for part in content or () if _is_text(part)]
        for text in rows:
            if isinstance(text, str) and text:
                yield ROLES.get(role, role), text


def _is_text(part: object) -> bool:
    return isinstance(part, Mapping)
