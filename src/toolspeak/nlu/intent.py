"""Chooses the tool that a request wants, if any, by the likelihood of the request given each tool and by shared words.

The score of a tool is log P(request | worked examples, the tool), the "noisy channel": a weak model
cannot say which tool a request wants, but it finds the request less surprising after the right one. Of many
tools those that share most words with the request are weighed, and what they share counts along with the score.
Two pseudo-tools stand for no tool at all: one that replies in words, and one that looks facts up. A tool must beat
both, by the more the longer the request is, and by less where the words speak for it, or where its arguments stand in
the request. Measured: `docs/explanation/weak-models.md`.
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
"""Tools that are weighed; more are thinned out by how they are ranked, or by the words that they share with the
request."""
LONGEST = 240
"""Characters of a request that are weighed, the last ones: they hold the question."""
NOT_RANKED: Mapping[str, float] = {}
UNSPACED_LETTER = re.compile(f"[{UNSPACED}]")
DIGITS = re.compile(r"(\d)\d+", re.ASCII)
FACT = re.compile(r"\W*(?:(?:and|so|hi|hey|please|ok|okay)\W+)*(?:who|what|which|why)\b", re.IGNORECASE)
"""How a question begins that may ask for a fact; how, when and where as often ask for what a tool finds out."""

# Set on examples 100 to 149 of each BFCL category, cases of our own in its form, half of the paraphrases in
# benchmarks/cases and the decisions there, and against tools that were none of the request's own: the right one
# taken away, or another request's put in its place. In nats.
MARGIN = 2.0
"""By how much a tool must be likelier than no tool."""
MARGIN_A_WORD = 2.4
"""The same for each word of a short request: so little can only say so much."""
WORDS_COUNTED = 5
"""Words of a request that the margin grows with."""
ENOUGH = 15.0
"""A tool that is likelier than that gains nothing by it: a long request on a tool's subject may want another thing."""
NAME_WORTH = 9.0
"""For a tool all of whose name's words a request has, without the group that a name tells before its last point."""
SHARE_WORTH = 10.0
"""For a request all of whose words a tool has."""
NUMBER_WANTED = 7.0
"""Against a tool, for each number that it needs and the request has not."""
NUMBERS_FIT = 6.0
"""For a tool that needs two numbers or more, which the request has."""
NUMBERS_EXACT = 4.0
"""The same where the request has no others."""
EVIDENCE_WORTH = 4.0
"""For a tool that needs a text, where the request has one that is quoted, or a path or another code; and for one of
whose options the request speaks."""
FACT_WORTH = 4.0
"""Against a tool, where a request may ask for a fact."""
SOUGHT_WORTH = 3.0
"""For a tool that has a word for everything that is asked for."""
UNSOUGHT = 10.0
"""Against a tool that has no word for anything that is asked for."""
TERSE = 5
"""Words with which a tool says so much of itself that one it lacks tells something."""
UNSOUGHT_OF_TERSE = 2.0
"""The same against a tool that says less."""
OTHER_DEED = 8.0
"""Against a tool among others that does another thing than is asked for: that adds where something is to be shown."""
RANKED_WORTH = 20.0
"""For a tool among others by its score where it was found among many: a model that finds two of them equally likely is
right more often with the better found. Anything from 10 to 40 does as well."""

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


def choose(
    tools: Sequence[Tool[..., Any]], text: str, *, may_reply: bool, ranked: Mapping[str, float] = NOT_RANKED
) -> Plan[Choice | None]:
    """The tool that `text` asks for; None when an answer in words is likelier (only where it `may_reply`), whatever
    its arguments. `ranked` names tools that were found to fit it, best first, with their scores from 0 to 1."""
    candidates = short_list(tools, text, ranked)
    if len(candidates) == 1 and not may_reply:
        return Choice(candidates[0], math.inf)
    if may_reply and all(surplus(tool, text, ENOUGH) + FILLED_WORTH <= 0 for tool in candidates):
        return None  # however likely they are
    rivals = [REPLY, LOOK_UP] if may_reply else []
    scores = yield from _likely([*candidates, *rivals], text)
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
    """For each tool what speaks for it among others, and its surplus: by how much more than needed it beats no tool."""
    scores = yield from _likely([*tools, REPLY, LOOK_UP], text)
    likelier = [one - max(scores[len(tools) :]) for one in scores[: len(tools)]]
    return [(one + _fitness(tool, text), surplus(tool, text, one)) for tool, one in zip(tools, likelier, strict=True)]


def _likely(tools: Sequence[Tool[..., Any]], text: str) -> Plan[list[float]]:
    """How likely each tool makes a request."""
    # Which number it is says nothing about the tool, but a long one outweighs all the words: one digit stands for it.
    asked = DIGITS.sub(r"\1", text[-LONGEST:].lstrip())
    return (yield from score([(f"{framed(tool)}\n# Request: ", f"{asked}\n") for tool in tools]))


def short_list(tools: Sequence[Tool[..., Any]], text: str, ranked: Iterable[str] = ()) -> list[Tool[..., Any]]:
    """The tools that are weighed, in their own order: the first of those that are `ranked`, since who found them among
    many knows which words are rare, then those that share most words with a request."""
    if len(tools) <= SHORT_LIST:
        return list(tools)
    asked = stems.stems(text)
    ranks = {name: rank for rank, name in enumerate(ranked)}

    def order(i: int) -> tuple[int, int]:
        return ranks.get(tools[i].name, len(ranks)), -shared(tools[i], asked)

    chosen = sorted(range(len(tools)), key=order)[:SHORT_LIST]
    return [tools[i] for i in sorted(chosen)]


def shared(tool: Tool[..., Any], asked: Set[str]) -> int:
    """How many words of a request a tool has; more for its description, most for its name."""
    told = _tool_words(tool)
    described = told.name | told.description
    return 2 * len(asked & told.name) + len(asked & described) + len(asked & (described | told.arguments))


def _fitness(tool: Tool[..., Any], text: str) -> float:
    """What speaks for a tool among others besides its likelihood."""
    another = OTHER_DEED * action_verbs.differ(tool.name, text)
    return shared(tool, stems.stems(text)) + _numbers_fit(tool, text) - _lacking(tool, text) - another


def surplus(tool: Tool[..., Any], text: str, likelier: float) -> float:
    """By how much more than a request demands a tool is wanted that is `likelier`, in nats, than no tool."""
    copies = _text_needed(tool)
    if copies and UNSPACED_LETTER.search(text) and not UNSPACED_LETTER.search(str(tool.parameters)):
        return -math.inf  # what is a word in such a request, and which of them is meant, a weak model cannot tell
    asked, told = stems.stems(text), _tool_words(tool)
    every = told.name | told.description | told.arguments
    fitting = _numbers_fit(tool, text)
    worth = min(ENOUGH, likelier) - _lacking(tool, text)
    worth += NAME_WORTH * len(asked & told.last) / max(1, len(told.last))
    worth += SHARE_WORTH * len(asked & every) / max(1, len(asked))
    worth += fitting
    worth += EVIDENCE_WORTH * ((copies and bool(spans.marked(text))) + bool(asked & told.options))
    worth -= FACT_WORTH * (not fitting and len(every) >= TERSE and bool(FACT.match(text)))
    worth += _answers(every, text)
    return worth - MARGIN - MARGIN_A_WORD * min(WORDS_COUNTED, max(1, len(asked)))


def _answers(told: Set[str], text: str) -> float:
    """What speaks for or against a tool of those words by what is asked for."""
    found = [bool(one & told) for one in sought(text[-LONGEST:])]
    if not found:
        return 0.0
    if any(found):
        return SOUGHT_WORTH * all(found)
    return -UNSOUGHT if len(told) >= TERSE else -UNSOUGHT_OF_TERSE


def _numbers_fit(tool: Tool[..., Any], text: str) -> float:
    """What speaks for a tool whose numbers a request tells, two or more; more where it tells no others."""
    needed, told = _numbers_needed(tool), len(numbers(text))
    return (NUMBERS_FIT + NUMBERS_EXACT * (needed == told)) * (2 <= needed <= told)


def _lacking(tool: Tool[..., Any], text: str) -> float:
    """What speaks against a tool that needs more numbers than a request tells."""
    return NUMBER_WANTED * max(0, _numbers_needed(tool) - len(numbers(text)))


@dataclass(frozen=True, slots=True)
class ToolWords:
    """What the words of a tool are compared by: of its name, of that without its group, of its description, of its
    arguments, and of their options alone."""

    name: Set[str]
    last: Set[str]
    description: Set[str]
    arguments: Set[str]
    options: Set[str]


def _tool_words(tool: Tool[..., Any]) -> ToolWords:
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    told, options = [" ".join(stems.parts(name)) for name in properties], list[str]()
    for given in properties.values():
        if isinstance(given, Mapping):
            schema = cast("Mapping[str, Any]", given)
            items: Any = schema.get("items")
            within = cast("Mapping[str, Any]", items).get("enum", ()) if isinstance(items, Mapping) else ()
            told.append(str(schema.get("description", "")))
            options += map(str, (*schema.get("enum", ()), *within))
    return ToolWords(
        stems.stems(" ".join(stems.parts(tool.name))),
        stems.stems(" ".join(stems.parts(tool.name.rpartition(".")[2]))),
        stems.stems(tool.description),
        stems.stems(" ".join([*told, *options])),
        stems.stems(" ".join(options)),
    )


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
