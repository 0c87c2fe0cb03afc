"""Chooses the tool that a request needs, if any, by the likelihood of the request given each tool and by shared words.

A tool's score is log P(request | worked examples, the tool), a "noisy channel": a weak model cannot name the right
tool, but it finds the request less surprising after it. If there are many tools, only those that share the most words
with the request are scored, and shared words add to the score.

Two pseudo-tools stand for "no tool": one replies in words, one looks up facts. A tool must beat both by a margin. The
margin grows with the length of the request, and shrinks if words support the tool, or if its arguments are in the
request. Measurements: `docs/explanation/weak-models.md`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, cast

from .. import stems
from ..plan.effects import Plan, score
from ..stems import UNSPACED
from ..types import Note, Tool
from . import action_verbs
from .entities import spans
from .entities.numbers import numbers
from .partial_call import is_text, schemas_of
from .prompt import LOOK_UP, REPLY, framed
from .requested_nouns import sought

SHORT_LIST = 3
"""The number of tools that are scored. If there are more, they are ranked first, by the search or by shared words."""
LONGEST = 240
"""Characters of a request that are scored: the last ones, which have the question."""
NOT_RANKED: Mapping[str, float] = {}
UNSPACED_LETTER = re.compile(f"[{UNSPACED}]")
DIGITS = re.compile(r"(\d)\d+", re.ASCII)
FACT = re.compile(r"\W*(?:(?:and|so|hi|hey|please|ok|okay)\W+)*(?:who|what|which|why)\b", re.IGNORECASE)
"""The start of a question that may ask for a fact. "How", "when" and "where" ask as often for something that a tool
finds."""

# Set on examples 100 to 149 of each BFCL category, cases of our own in its form, half of the paraphrases in
# benchmarks/cases and the decisions there, and against tools that were none of the request's own: the right one
# taken away, or another request's put in its place. In nats.
MARGIN = 2.0
"""The margin in nats by which a tool must be likelier than no tool."""
MARGIN_A_WORD = 2.4
"""The additional margin for each word of a short request: few words carry little evidence."""
WORDS_COUNTED = 5
"""The most words that add to the margin."""
ENOUGH = 15.0
"""A larger lead over "no tool" adds nothing: a long request about a tool's subject may want something else."""
NAME_WORTH = 9.0
"""Added if the request has every word of the tool's name (without the group before the last point)."""
SHARE_WORTH = 10.0
"""Added if the tool has every word of the request."""
NUMBER_WANTED = 7.0
"""Subtracted for each number that the tool requires and the request lacks."""
NUMBERS_FIT = 6.0
"""Added if the tool requires two numbers or more, and the request has them."""
NUMBERS_EXACT = 4.0
"""Added on top if the request has no other numbers."""
EVIDENCE_WORTH = 4.0
"""Added if the tool requires a string and the request has a quotation, a path or another code; and if the request
mentions one of the tool's options."""
FACT_WORTH = 4.0
"""Subtracted if the request may ask for a fact."""
NOUN_WORTH = 3.0
"""Added if the tool has a word for everything that the request asks for."""
UNSOUGHT = 10.0
"""Subtracted if the tool has no word for anything that the request asks for."""
TERSE = 5
"""With so many words a tool's description is complete enough that a missing word means something."""
UNSOUGHT_OF_TERSE = 2.0
"""Subtracted instead of UNSOUGHT for a tool with fewer words."""
OTHER_DEED = 8.0
"""Subtracted if the tool's verb is of another class than the request's, such as adding instead of showing."""
RANKED_WORTH = 20.0
"""The weight of the search score of a tool that was selected from many. If a model finds two tools equally likely, it
is right more often with the better search result. Anything from 10 to 40 works as well."""

FILLED_WORTH = 4.0
"""Added if all the tool's arguments are in the request."""
COPIED_WORTH = 2.0
"""Subtracted if an argument had to be guessed from the spans of the request."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A tool, and its surplus: the nats by which it beats "no tool" beyond the margin."""

    tool: Tool[..., Any]
    surplus: float

    @property
    def clear(self) -> bool:
        """Whether the request needs the tool although its arguments are not in the request."""
        return self.surplus > FILLED_WORTH

    def stands(self, notes: Sequence[Note]) -> bool:
        """Whether the tool is called, given how well its arguments could be filled: `notes` mention those that were
        copied."""
        copied = any(note.rule == "copied" for note in notes)
        return self.surplus + (-COPIED_WORTH if copied else FILLED_WORTH) > 0


def choose(
    tools: Sequence[Tool[..., Any]], text: str, *, may_reply: bool, ranked: Mapping[str, float] = NOT_RANKED
) -> Plan[Choice | None]:
    """The tool that `text` needs; None if a text answer is likelier (only if it `may_reply`).

    `ranked` are names of tools that the search found, best first, with scores from 0 to 1.
    """
    candidates = short_list(tools, text, ranked)
    if len(candidates) == 1 and not may_reply:
        return Choice(candidates[0], math.inf)
    if may_reply and all(surplus(tool, text, ENOUGH) + FILLED_WORTH <= 0 for tool in candidates):
        return None  # whatever their likelihood
    rivals = [REPLY, LOOK_UP] if may_reply else []
    scores = yield from _likelihoods([*candidates, *rivals], text)
    worth = [
        one + _fitness(tool, text) + RANKED_WORTH * ranked.get(tool.name, 0.0)
        for tool, one in zip(candidates, scores, strict=False)
    ]
    best = worth.index(max(worth))
    tool = candidates[best]
    if not may_reply:
        return Choice(tool, math.inf)
    choice = Choice(tool, surplus(tool, text, scores[best] - max(scores[len(candidates) :])))
    return choice if choice.surplus + FILLED_WORTH > 0 else None


def wanted(tools: Sequence[Tool[..., Any]], text: str) -> Plan[list[tuple[float, float]]]:
    """For each tool its score among the tools, and its surplus: by how much it beats "no tool" beyond the margin."""
    scores = yield from _likelihoods([*tools, REPLY, LOOK_UP], text)
    likelier = [one - max(scores[len(tools) :]) for one in scores[: len(tools)]]
    return [(one + _fitness(tool, text), surplus(tool, text, one)) for tool, one in zip(tools, likelier, strict=True)]


def _likelihoods(tools: Sequence[Tool[..., Any]], text: str) -> Plan[list[float]]:
    """The log-likelihood of the request after each tool."""
    # A number's value says nothing about the tool, but a long one would outweigh the words. One digit replaces it.
    question = DIGITS.sub(r"\1", text[-LONGEST:].lstrip())
    return (yield from score([(f"{framed(tool)}\n# Request: ", f"{question}\n") for tool in tools]))


def short_list(tools: Sequence[Tool[..., Any]], text: str, ranked: Iterable[str] = ()) -> list[Tool[..., Any]]:
    """The tools that are scored, in their own order: the first of the `ranked` ones, since the search knows which
    words are rare, then those that share the most words with the request."""
    if len(tools) <= SHORT_LIST:
        return list(tools)
    words = stems.stems(text)
    ranks = {name: rank for rank, name in enumerate(ranked)}

    def order(i: int) -> tuple[int, int]:
        return ranks.get(tools[i].name, len(ranks)), -shared(tools[i], words)

    chosen = sorted(range(len(tools)), key=order)[:SHORT_LIST]
    return [tools[i] for i in sorted(chosen)]


def shared(tool: Tool[..., Any], words: Set[str]) -> int:
    """The number of the request's words that a tool has. Words in its description count more, those in its name most."""
    known = _tool_words(tool)
    described = known.name | known.description
    return 2 * len(words & known.name) + len(words & described) + len(words & (described | known.arguments))


def _fitness(tool: Tool[..., Any], text: str) -> float:
    """The score of a tool among others apart from its likelihood."""
    another = OTHER_DEED * action_verbs.differ(tool.name, text)
    return shared(tool, stems.stems(text)) + _numbers_fit(tool, text) - _missing_numbers(tool, text) - another


def surplus(tool: Tool[..., Any], text: str, likelier: float) -> float:
    """By how much a tool beats "no tool" beyond the margin; `likelier` is its lead in nats."""
    copies = _text_needed(tool)
    if copies and UNSPACED_LETTER.search(text) and not UNSPACED_LETTER.search(str(tool.parameters)):
        return -math.inf  # a script without spaces: a weak model cannot tell where a text to copy begins and ends
    words, known = stems.stems(text), _tool_words(tool)
    every = known.name | known.description | known.arguments
    fitting = _numbers_fit(tool, text)
    worth = min(ENOUGH, likelier) - _missing_numbers(tool, text)
    worth += NAME_WORTH * len(words & known.last) / max(1, len(known.last))
    worth += SHARE_WORTH * len(words & every) / max(1, len(words))
    worth += fitting
    worth += EVIDENCE_WORTH * ((copies and bool(spans.marked(text))) + bool(words & known.options))
    worth -= FACT_WORTH * (not fitting and len(every) >= TERSE and bool(FACT.match(text)))
    worth += _noun_support(every, text)
    return worth - MARGIN - MARGIN_A_WORD * min(WORDS_COUNTED, max(1, len(words)))


def _noun_support(words: Set[str], text: str) -> float:
    """The score of a tool with these words for the nouns that the request asks for."""
    matches = [bool(one & words) for one in sought(text[-LONGEST:])]
    if not matches:
        return 0.0
    if any(matches):
        return NOUN_WORTH * all(matches)
    return -UNSOUGHT if len(words) >= TERSE else -UNSOUGHT_OF_TERSE


def _numbers_fit(tool: Tool[..., Any], text: str) -> float:
    """The score of a tool that requires two numbers or more which the request has; higher if it has no others."""
    needed, count = _numbers_needed(tool), len(numbers(text))
    return (NUMBERS_FIT + NUMBERS_EXACT * (needed == count)) * (2 <= needed <= count)


def _missing_numbers(tool: Tool[..., Any], text: str) -> float:
    """The penalty of a tool that requires more numbers than the request has."""
    return NUMBER_WANTED * max(0, _numbers_needed(tool) - len(numbers(text)))


@dataclass(frozen=True, slots=True)
class ToolWords:
    """The stems of a tool: of its name, its name without the group, its description, its arguments, and only their
    options."""

    name: Set[str]
    last: Set[str]
    description: Set[str]
    arguments: Set[str]
    options: Set[str]


def _tool_words(tool: Tool[..., Any]) -> ToolWords:
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    texts, options = [" ".join(stems.parts(name)) for name in properties], list[str]()
    for property_schema in properties.values():
        if isinstance(property_schema, Mapping):
            schema = cast("Mapping[str, Any]", property_schema)
            items: Any = schema.get("items")
            within = cast("Mapping[str, Any]", items).get("enum", ()) if isinstance(items, Mapping) else ()
            texts.append(str(schema.get("description", "")))
            options += map(str, (*schema.get("enum", ()), *within))
    return ToolWords(
        stems.stems(" ".join(stems.parts(tool.name))),
        stems.stems(" ".join(stems.parts(tool.name.rpartition(".")[2]))),
        stems.stems(tool.description),
        stems.stems(" ".join([*texts, *options])),
        stems.stems(" ".join(options)),
    )


def _numbers_needed(tool: Tool[..., Any]) -> int:
    """The number of numbers in the required arguments; a list of numbers counts as one."""
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    schemas = [properties.get(name) for name in tool.parameters.get("required", ())]
    return sum(_takes_number(schema) for schema in schemas)


def _text_needed(tool: Tool[..., Any]) -> bool:
    """Whether a required argument is a string."""
    schemas = schemas_of(tool.parameters)
    return any(is_text(schemas.get(name, {})) for name in tool.parameters.get("required", ()))


def _takes_number(value: Any) -> bool:
    schema: Mapping[str, Any] = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
    if not schema or "default" in schema or "enum" in schema:
        return False
    items: Any = schema.get("items")
    of = cast("Mapping[str, Any]", items).get("type") if isinstance(items, Mapping) else None
    kinds = ("integer", "number")
    return schema.get("type") in kinds or (schema.get("type") == "array" and of in kinds)
