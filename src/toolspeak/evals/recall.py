"""Measures whether an index finds the tools that questions need: recall, missed tools, and a report page."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ..errors import UsageError
from ..files import read_text
from ..models.base import Model
from ..schema.infer import AnyTool
from ..schema.suggestions import did_you_mean, near
from ..search import ToolIndex
from ..search.conversation_queries import AnsweredCalls, questions, ranked
from ..search.index_memory_cache import Indexes
from ..search.router import ToolRouter
from ..types import Message, Request
from .case import short
from .jsonl_cases import FIELDS, line_of, messages_of
from .stats import Estimate, wilson

KS = (1, 3, 5, 10, 20)
"""The values of k for which recall@k is reported."""
DEPTH = 100
"""The rank down to which a tool is looked for."""
INSTEAD = 3
"""For a missed tool, how many of the tools that ranked before it are shown."""


@dataclass(frozen=True, slots=True)
class Example:
    """A conversation, and the names of the tools that it needs. `line` is its line number in the file."""

    line: int
    messages: tuple[Message, ...]
    needed: tuple[str, ...]

    @property
    def question(self) -> str:
        """The main search query: the last message of the user."""
        return questions(self.messages)[0].text


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The search result for an example: the rank of each needed tool (from 1, or 0 beyond DEPTH), whether the model
    would be shown it, and the top of the ranking."""

    example: Example
    ranks: tuple[int, ...]
    in_view: tuple[bool, ...]
    first: tuple[str, ...]

    def within(self, k: int) -> float:
        """The fraction of the needed tools among the first `k`."""
        return sum(0 < rank <= k for rank in self.ranks) / len(self.ranks)

    def instead(self, k: int) -> dict[str, int]:
        """The ranks of the needed tools that are not among the first `k`."""
        pairs = zip(self.example.needed, self.ranks, strict=True)
        return {name: rank for name, rank in pairs if not 0 < rank <= k}


@dataclass(frozen=True, slots=True)
class Recall:
    """How well the needed tools are found. An example that needs several tools counts by the fraction that is found.

    `by` says how the index searches.
    """

    by: str
    results: tuple[Retrieval, ...]

    def at(self, k: int) -> Estimate:
        """Recall@k: the fraction of the needed tools among the first `k`, with its 95 % interval."""
        return wilson(sum(one.within(k) for one in self.results), len(self.results))

    @property
    def reciprocal(self) -> Estimate:
        """The mean reciprocal rank (MRR) of the first needed tool, with its 95 % interval."""
        best = [min(filter(None, one.ranks), default=0) for one in self.results]
        return wilson(sum(1 / rank for rank in best if rank), len(best))

    @property
    def in_view(self) -> Estimate:
        """The fraction of the needed tools that the model would be shown, with its 95 % interval."""
        return wilson(sum(sum(one.in_view) / len(one.in_view) for one in self.results), len(self.results))

    def misses(self, k: int) -> list[Retrieval]:
        """The examples with a needed tool that is not among the first `k`."""
        return [one for one in self.results if one.within(k) < 1]


class _MemoIndex:
    """An index that caches the results of its last two questions, so that no question is embedded twice."""

    def __init__(self, index: ToolIndex) -> None:
        self.index = index
        self._results: dict[str, list[tuple[AnyTool, float]]] = {}

    def __len__(self) -> int:
        return len(self.index)

    def __contains__(self, name: object) -> bool:
        return name in self.index

    def search(self, question: str, k: int = 10) -> list[tuple[AnyTool, float]]:
        if k > DEPTH:
            return self.index.search(question, k)
        if question not in self._results:
            self._results = dict([*self._results.items()][-1:]) | {question: self.index.search(question, DEPTH)}
        return self._results[question][:k]


def measure(examples: Sequence[Example], index: ToolIndex, model: Model, by: str) -> Recall:
    """Searches the index for each example, and determines what the model would be shown. The model is not called."""
    indexes, finder, tools = Indexes(), _MemoIndex(index), tuple(index)
    routed = ToolRouter(model, finder, indexes=indexes, finds=AnsweredCalls())
    indexed = indexes.now(tools, finder)
    retrievals: list[Retrieval] = []
    for example in examples:
        order = [tools[place].name for place, _ in ranked(indexed.search, example.messages, DEPTH)]
        ranks = {name: rank for rank, name in enumerate(order, 1)}
        request = routed.narrowed_now(Request(example.messages, tools))
        offered = {tool.name for tool in request.tools or ()}
        retrievals.append(
            Retrieval(
                example,
                tuple(ranks.get(name, 0) for name in example.needed),
                tuple(name in offered for name in example.needed),
                tuple(order[:INSTEAD]),
            )
        )
    return Recall(by, tuple(retrievals))


# ------------------------------------------------------------------ examples in a file


def load(path: Path, names: Collection[str]) -> tuple[list[Example], int]:
    """The examples of a JSON Lines file, and the number of lines that were skipped because they need no tool.

    A line has a question (or messages) and the names of its `tools`, or is a case of `toolspeak eval`: then the needed
    tools are those that its `calls` name. Raises UsageError, which names the line and what is wrong with it.
    """
    examples: list[Example] = []
    left = 0
    for number, text in enumerate(read_text(path).split("\n"), 1):
        if not text.strip():
            continue
        try:
            line = line_of(text)
            needed = _needed(line, names)
            example = Example(number, messages_of(line), needed)
            if not questions(example.messages):
                raise UsageError("messages: the user says nothing")
        except UsageError as error:
            raise UsageError(f"{path}, line {number}: {error}") from None
        if needed:
            examples.append(example)
        left += not needed
    if not examples:
        what = "no line of it needs a tool" if left else "it is empty"
        raise UsageError(
            f'{path} holds no example, {what}: expected JSON lines, each {{"question": …, "tools": [the names it needs]}}'
        )
    return examples, left


def _check_fields(line: Mapping[str, Any]) -> None:
    for field in line:
        if field not in FIELDS:
            raise UsageError(
                f"no field is called {field!r}.{did_you_mean(near(field, FIELDS))} There are: {', '.join(FIELDS)}"
            )


def _needed(line: Mapping[str, Any], names: Collection[str]) -> tuple[str, ...]:
    """The names of the tools that a line needs."""
    _check_fields(line)
    field = "calls" if "calls" in line or "match" in line else "tools"
    value: Any = line.get(field, [] if "match" in line else None)
    if not isinstance(value, list):
        what = "nothing" if value is None else short(value, 60)
        raise UsageError(
            f"{field}: expected a list with the names of the tools that the question needs, received {what}"
        )
    names_needed = [_name(one, field) for one in cast("list[Any]", value)]
    for name in names_needed:
        if name not in names:
            hint = did_you_mean(near(name, names)) or " See them all: toolspeak tools FILE"
            raise UsageError(f"{field}: no tool is called {name!r}.{hint}")
    return tuple(dict.fromkeys(names_needed))


def _name(value: Any, field: str) -> str:
    name: Any = cast("dict[str, Any]", value).get("name") if field == "calls" and isinstance(value, dict) else value
    if not isinstance(name, str):
        expected = '{"name": …, "arguments": {…}}' if field == "calls" else "the name of a tool"
        raise UsageError(f"{field}: expected {expected}, received {short(value, 80)}")
    return name
