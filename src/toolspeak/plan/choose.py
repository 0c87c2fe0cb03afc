"""Which tool a request wants, if any: by how likely each tool makes the request, and by the words they share.

The score of a tool is log P(request | worked examples, the tool), the "noisy channel": a weak model
cannot say which tool a request wants, but it finds the request less surprising after the right one. Of many
tools those that share most words with the request are weighed. Two pseudo-tools stand for no tool at all: one
that replies in words, and one that looks facts up. A tool must beat both, by the more the longer the request is,
and by less where the words speak for it, or its arguments stand in the request. Measured: `docs/weak-models.md`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ..types import Note, Tool
from . import pieces, words
from .effects import Plan, score
from .filling import is_text, schemas_of
from .numbers import numbers
from .pieces import UNSPACED
from .signature import LOOK_UP, REPLY, framed

SHORT_LIST = 3
"""Tools that are weighed; more are thinned out by the words that they share with the request."""
LONGEST = 240
"""Characters of a request that are weighed, the last ones: they hold the question."""
UNSPACED_LETTER = re.compile(f"[{UNSPACED}]")
DIGITS = re.compile(r"(\d)\d+", re.ASCII)

# Set on examples 100 to 149 of each BFCL category, half of the paraphrases in benchmarks/cases and every second of
# the decisions there, in nats.
MARGIN = 10.0
"""By how much a tool must be likelier than no tool."""
MARGIN_A_WORD = 3.0
"""The same for each word of a short request: so little can only say so much."""
NAME_WORTH = 4.0
"""For each word of a tool's name that the request has."""
SHARE_WORTH = 4.0
"""For a request all of whose words a tool has."""
NUMBER_WANTED = 5.0
"""Against a tool, for each number that it needs and the request has not."""
NUMBERS_FIT = 8.0
"""For a tool that needs two numbers or more, which the request has."""
WORD_FOR_WORD = 4.0
"""For a tool that needs a text, where the request has one that is quoted, or a path or another code."""

FILLED_WORTH = 4.0
"""For a tool whose arguments all stand in the request."""
COPIED_WORTH = 2.0
"""Against a tool that an argument had to be guessed for, among the pieces of the request."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A tool, and by how many nats more than needed it is likelier than no tool."""

    tool: Tool[..., Any]
    surplus: float

    def stands(self, notes: Sequence[Note]) -> bool:
        """Whether it is wanted, by how well its arguments could be filled: `notes` tells of those that were copied."""
        copied = any(note.rule == "copied" for note in notes)
        return self.surplus + (-COPIED_WORTH if copied else FILLED_WORTH) > 0


def choose(tools: Sequence[Tool[..., Any]], text: str, *, may_reply: bool) -> Plan[Choice | None]:
    """The tool that `text` asks for; None when an answer in words is likelier (only where it `may_reply`), whatever
    its arguments."""
    candidates = short_list(tools, text)
    if len(candidates) == 1 and not may_reply:
        return Choice(candidates[0], math.inf)
    rivals = [REPLY, LOOK_UP] if may_reply else []
    scores = yield from _likely([*candidates, *rivals], text)
    best = max(range(len(candidates)), key=lambda i: scores[i])
    tool = candidates[best]
    if not may_reply:
        return Choice(tool, math.inf)
    choice = Choice(tool, surplus(tool, text, scores[best] - max(scores[len(candidates) :])))
    return choice if choice.surplus + FILLED_WORTH > 0 else None


def wanted(tools: Sequence[Tool[..., Any]], text: str) -> Plan[list[float]]:
    """The surplus of each tool: by how many nats more than needed it is likelier than no tool."""
    scores = yield from _likely([*tools, REPLY, LOOK_UP], text)
    least = max(scores[len(tools) :])
    return [surplus(tool, text, likely - least) for tool, likely in zip(tools, scores, strict=False)]


def _likely(tools: Sequence[Tool[..., Any]], text: str) -> Plan[list[float]]:
    """How likely each tool makes a request."""
    # Which number it is says nothing about the tool, but a long one outweighs all the words: one digit stands for it.
    asked = DIGITS.sub(r"\1", text[-LONGEST:].lstrip())
    return (yield from score([(f"{framed(tool)}\n# Request: ", f"{asked}\n") for tool in tools]))


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


def surplus(tool: Tool[..., Any], text: str, likelier: float) -> float:
    """By how much more than a request demands a tool is wanted that is `likelier`, in nats, than no tool."""
    asked = words.stems(text)
    name, description, arguments = _stems(tool)
    copies = _text_needed(tool)
    if copies and UNSPACED_LETTER.search(text) and not UNSPACED_LETTER.search(str(tool.parameters)):
        return -math.inf  # what is a word in such a request, and which of them is meant, a weak model cannot tell
    there, needed = len(numbers(text)), _numbers_needed(tool)
    worth = likelier + NAME_WORTH * len(asked & name)
    worth += SHARE_WORTH * len(asked & (name | description | arguments)) / max(1, len(asked))
    worth -= NUMBER_WANTED * max(0, needed - there)
    worth += NUMBERS_FIT * (2 <= needed <= there)
    worth += WORD_FOR_WORD * (copies and bool(pieces.marked(text)))
    return worth - min(MARGIN, MARGIN_A_WORD * max(1, len(asked)))


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


def _text_needed(tool: Tool[..., Any]) -> bool:
    """Whether a required argument is a text."""
    schemas = schemas_of(tool.parameters)
    return any(is_text(schemas.get(name, {})) for name in tool.parameters.get("required", ()))


def _takes_number(given: Any) -> bool:
    schema: Mapping[str, Any] = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}
    if not schema or "default" in schema or "enum" in schema:
        return False
    items: Any = schema.get("items")
    of = cast("Mapping[str, Any]", items).get("type") if isinstance(items, Mapping) else None
    kinds = ("integer", "number")
    return schema.get("type") in kinds or (schema.get("type") == "array" and of in kinds)
