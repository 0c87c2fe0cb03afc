"""Probes a chat template by rendering conversations that differ in one thing: a call, a text or a thought."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from ...errors import TemplateError
from ...types import Tool, ToolCall
from ..prompt.jinja import render_template
from ..prompt.template_capabilities import abilities

NAMES = ("alpha_tool", "omega_tool")
IDS = ("abcdefg01", "uvwxyzt02")
KEYS = ("first_key", "second_key")
VALUES = ("red_value", "tan_value")
QUESTION = "Probe the question."
TEXT = "Probe the text."
THOUGHT = "Ponder the thought."
NAME, ID, KEY, VALUE = "\ue000", "\ue001", "\ue002", "\ue003"
"""Characters that replace a name, an id, a key and a string value in rendered text."""
LONGEST = 300_000
"""The most characters of a rendering that are analyzed; a normal template writes less."""

SAMPLES: Mapping[str, Any] = {"number": 40961, "boolean": True, "array": ["in_list"], "object": {"in_key": 7}}
"""A value of each JSON type except null, which occurs in no other text."""
PIECE = re.compile(r"<[^<>\n]*(?:>|\Z)|\[/?[A-Z][A-Z_]*\]|\w+|.", re.DOTALL)
"""A unit of comparison: a mark, a word, or any other character."""

TOOLS: tuple[Tool[..., Any], ...] = tuple(
    Tool(
        name,
        "probe",
        {
            "type": "object",
            "properties": {key: {"type": "string", "description": "probe"} for key in KEYS},
            "required": [KEYS[0]],
        },
    )
    for name in NAMES
)


def call(n: int = 0, **arguments: Any) -> ToolCall:
    """The nth call, with these arguments instead of the usual string."""
    return ToolCall(IDS[n], NAMES[n], arguments or {KEYS[0]: VALUES[n]})


BOTH = ToolCall(IDS[0], NAMES[0], dict(zip(KEYS, VALUES, strict=True)))
"""A call with two arguments."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A template under test: `show` renders a conversation, `calls` gives only what is written for the calls."""

    template: str
    objects: bool = True
    blank: str | None = ""
    seen: dict[str, str] = field(default_factory=dict[str, str], compare=False, repr=False)

    def show(self, *calls: ToolCall, text: str = "", thought: str = "", **more: Any) -> str:
        """A rendered question with its answer; "" if the template rejects it. `more` are variables of the template."""
        answer: dict[str, Any] = {"role": "assistant", "content": text or (self.blank if calls else "")}
        if calls:
            answer["tool_calls"] = [self._call(c) for c in calls]
        if thought:
            answer |= dict.fromkeys(("reasoning_content", "reasoning", "thinking", "tool_plan"), thought)
        return self.render([answer], False, more)

    def render(self, answer: list[dict[str, Any]], generate: bool, variables: Mapping[str, Any]) -> str:
        key = json.dumps([answer, generate, dict(variables)])
        if key not in self.seen:
            self.seen[key] = self._rendered(answer, generate, variables)
        return self.seen[key]

    def _rendered(self, answer: list[dict[str, Any]], generate: bool, variables: Mapping[str, Any]) -> str:
        messages = [{"role": "user", "content": QUESTION}, *answer]
        tools = [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
            for t in TOOLS
        ]
        now = datetime(2024, 7, 26)
        try:
            prompt = render_template(self.template, messages, tools, now=now, variables=variables, generate=generate)
        except TemplateError:
            return ""
        return prompt if len(prompt) <= LONGEST else ""

    def _call(self, c: ToolCall) -> dict[str, Any]:
        arguments = c.arguments if self.objects else json.dumps(c.arguments)
        return {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": arguments}}

    def reply(self, *calls: ToolCall) -> tuple[str, str]:
        """How the answer begins in the prompt, as far as that is known, and the rest of it."""
        prompt, head = self.show(*calls).rpartition(QUESTION)[2], self.head()
        return (head, prompt.partition(head)[2]) if head and head in prompt else ("", prompt)

    def head(self) -> str:
        """The text of the prompt right before a reply."""
        ended = self.render([], False, {})
        begun = self.render([], True, {})
        return begun[len(ended) :] if begun.startswith(ended) else ""

    def calls(self, *calls: ToolCall, alone: bool = False) -> str:
        """The text that is rendered only because of these calls, with names, ids, keys and string values replaced by
        their characters; "" if the template does not write all of them.

        It is the difference from a conversation with only a text: after the text, or instead of it (`alone`).
        """
        plain, name = self.show(text=TEXT), calls[0].name
        if alone:
            prompt = self.show(*calls)
            written = between(plain, prompt)
            if written.startswith(name):  # an earlier text has the same words, so count from the reply's head
                start = prompt.rfind(self.head(), 0, prompt.find(written)) + len(self.head())
                written = prompt[start : prompt.find(written)] + written
        else:
            _, _, rest = self.show(*calls, text=TEXT).partition(TEXT)
            written = between(plain.partition(TEXT)[2], rest)
        return marked(written) if all(c.name in written for c in calls) else ""


def marked(text: str) -> str:
    """The text with the probe's names, ids, keys and values replaced by their characters."""
    for words, mark in ((NAMES, NAME), (IDS, ID), (KEYS, KEY), (VALUES, VALUE)):
        for word in words:
            text = text.replace(word, mark)
    return text


def pieces(text: str) -> list[str]:
    """The text split into units of comparison."""
    return PIECE.findall(text)


def common_start(a: str, b: str) -> str:
    """The longest common prefix in whole pieces."""
    left, right = pieces(a), pieces(b)
    n = next((i for i, (x, y) in enumerate(zip(left, right, strict=False)) if x != y), min(len(left), len(right)))
    return "".join(left[:n])


def common_end(a: str, b: str) -> str:
    """The longest common suffix in whole pieces."""
    left, right = pieces(a)[::-1], pieces(b)[::-1]
    n = next((i for i, (x, y) in enumerate(zip(left, right, strict=False)) if x != y), min(len(left), len(right)))
    return "".join(left[:n][::-1])


def between(plain: str, more: str) -> str:
    """The part of `more` that differs from `plain`, between their common prefix and suffix."""
    start = common_start(plain, more)
    end = common_end(plain[len(start) :], more[len(start) :])
    return more[len(start) : len(more) - len(end)]


@lru_cache(2)
def probe(template: str) -> Probe | None:
    """The template as a probe; None if it writes no calls."""
    known = abilities(template)
    return Probe(template, known.objects, known.blank) if known.calls else None
