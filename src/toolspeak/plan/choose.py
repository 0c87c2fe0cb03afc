"""Which tool a request wants, if any: by how likely each tool makes the request, and by the words they share.

The score of a tool is log P(request | worked examples, the tool), the "noisy channel": a weak model
cannot say which tool a request wants, but it finds the request less surprising after the right one. Of many
tools those that share most words with the request are weighed. Two pseudo-tools stand for no tool at all: one
that replies in words, and one that looks facts up. A tool must beat both, by the more the longer the request is,
and less where the words, or the numbers that it needs, speak for it. Measured: `docs/weak-models.md`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..types import Tool
from . import words
from .effects import Plan, score
from .numbers import numbers
from .signature import LOOK_UP, REPLY, framed

SHORT_LIST = 4
"""Tools that are weighed; more are thinned out by the words that they share with the request."""
LONGEST = 300
"""Characters of a request that are weighed, the last ones: they hold the question."""
DIGITS = re.compile(r"(\d)\d+", re.ASCII)

# Set on examples 100 to 149 of each BFCL category and half of the paraphrases in benchmarks/cases, in nats.
MARGIN = 12.0
"""By how much a tool must be likelier than no tool."""
MARGIN_A_WORD = 2.5
"""The same for each word of a short request: so little can only say so much."""
NAME_WORTH = 4.0
"""For each word of a tool's name that the request has."""
SHARE_WORTH = 4.0
"""For a request all of whose words a tool has."""
NUMBER_WANTED = 5.0
"""Against a tool, for each number that it needs and the request has not."""
NUMBERS_FIT = 8.0
"""For a tool that needs two numbers or more, which the request has."""


def choose(tools: Sequence[Tool[..., Any]], text: str, *, may_reply: bool) -> Plan[Tool[..., Any] | None]:
    """The tool that `text` asks for; None when an answer in words is likelier (only where it `may_reply`)."""
    candidates = short_list(tools, text)
    if len(candidates) == 1 and not may_reply:
        return candidates[0]
    # Which number it is says nothing about the tool, but a long one outweighs all the words: one digit stands for it.
    asked = DIGITS.sub(r"\1", text[-LONGEST:].lstrip())
    rivals = [REPLY, LOOK_UP] if may_reply else []
    scores = yield from score([(f"{framed(tool)}\n# Request: ", f"{asked}\n") for tool in (*candidates, *rivals)])
    best = max(range(len(candidates)), key=lambda i: scores[i])
    tool = candidates[best]
    if may_reply and not wanted(tool, text, scores[best] - max(scores[len(candidates) :])):
        return None
    return tool


def short_list(tools: Sequence[Tool[..., Any]], text: str) -> list[Tool[..., Any]]:
    """The tools that share most words with a request, in their own order."""
    if len(tools) <= SHORT_LIST:
        return list(tools)
    asked = words.stems(text)

    def shared(tool: Tool[..., Any]) -> int:
        name, description, arguments = _stems(tool)
        told = name | description
        return 2 * len(asked & name) + len(asked & told) + len(asked & (told | arguments))

    chosen = sorted(range(len(tools)), key=lambda i: -shared(tools[i]))[:SHORT_LIST]
    return [tools[i] for i in sorted(chosen)]


def wanted(tool: Tool[..., Any], text: str, likelier: float) -> bool:
    """Whether a request wants a tool that is `likelier`, in nats, than no tool."""
    asked = words.stems(text)
    name, description, arguments = _stems(tool)
    there, needed = len(numbers(text)), _numbers_needed(tool)
    worth = likelier + NAME_WORTH * len(asked & name)
    worth += SHARE_WORTH * len(asked & (name | description | arguments)) / max(1, len(asked))
    worth -= NUMBER_WANTED * max(0, needed - there)
    worth += NUMBERS_FIT * (2 <= needed <= there)
    return worth > min(MARGIN, MARGIN_A_WORD * max(1, len(asked)))


def _stems(tool: Tool[..., Any]) -> tuple[set[str], set[str], set[str]]:
    """What the words of a tool's name, of its description and of its arguments are compared by."""
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    told: list[str] = []
    for name, schema in properties.items():
        told.append(" ".join(words.parts(name)))
        if isinstance(schema, Mapping):
            told += [str(schema.get("description", "")), *map(str, schema.get("enum", ()))]  # pyright: ignore[reportUnknownMemberType,reportUnknownArgumentType]
    name = words.stems(" ".join(words.parts(tool.name)))
    return name, words.stems(tool.description), words.stems(" ".join(told))


def _numbers_needed(tool: Tool[..., Any]) -> int:
    """How many numbers the required arguments take; a list of numbers is one."""
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    schemas = [properties.get(name) for name in tool.parameters.get("required", ())]
    return sum(_takes_number(schema) for schema in schemas)


def _takes_number(schema: Any) -> bool:
    if not isinstance(schema, Mapping) or "default" in schema or "enum" in schema:
        return False
    kinds = ("integer", "number")
    items: Any = schema.get("items")  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
    of = items.get("type") if isinstance(items, Mapping) else None  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
    return schema.get("type") in kinds or (schema.get("type") == "array" and of in kinds)  # pyright: ignore[reportUnknownMemberType]
