"""How often the right tool is chosen out of the leaderboard's 1,096, by levels and by a search, and what each costs.

    python benchmarks/bench_levels.py --questions 60
    python benchmarks/bench_levels.py --questions 400 --words

The groups are made: nobody gave any. Questions are BFCL's single-turn ones from the hundredth of each category on, evenly
spread. A model that decides by likelihood weighs the members of a list; tokens are those that are weighed beside the
worked examples, which stay warm. With `--most` the members of a list are others than 8. `--words` asks no model: a
branch is taken by how near its words are to the question's.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import itertools
import json
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import toolspeak as ts
from toolspeak import drive
from toolspeak.evals import bfcl
from toolspeak.events import Event, Finished, Noted
from toolspeak.models.base import Capability, Scorer
from toolspeak.nlu.intent import choose
from toolspeak.nlu.prompt import EXAMPLES
from toolspeak.plan.token_estimate import about
from toolspeak.search import word_groups
from toolspeak.search.group_tree import Group, tools_in, tree
from toolspeak.search.hierarchy import HierarchyRouter
from toolspeak.search.router import ToolRouter
from toolspeak.types import Request

FIRST = 100


class Chooser:
    """Weighs by another model, and ends where the tool is chosen: no arguments are filled."""

    name = "chooser"
    capabilities: frozenset[Capability] = frozenset({"score", "scored", "tools"})

    def __init__(self, model: Any) -> None:
        self.scorer: Scorer = getattr(model, "model", model)
        self.chosen = ""
        self.offered: list[str] = []
        self.texts = self.tokens = 0

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        tools = request.tools or ()
        self.offered = [tool.name for tool in tools]
        question = str(request.messages[-1].get("content"))
        choice = await drive.arun(choose(tools, question, may_reply=False), self) if tools else None
        self.chosen = choice.tool.name if choice else ""
        yield Finished()

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        self.texts += len(continuations)
        self.tokens += sum(about(prompt.removeprefix(EXAMPLES) + text) for text in continuations)
        return await self.scorer.score(prompt, continuations)


def pool(count: int) -> tuple[list[Any], list[tuple[str, str]]]:
    """The leaderboard's tools, one of each name, and questions with the name of the tool that is right."""
    tools: dict[str, Any] = {}
    asked: list[tuple[str, str]] = []
    for category in ("simple_python", "multiple", "live_simple", "live_multiple"):
        for place, case in enumerate(bfcl.load(category)):
            for tool in case.tools:
                tools.setdefault(tool.name, tool)
            question = next((str(m["content"]) for m in reversed(case.messages) if m["role"] == "user"), "")
            if place >= FIRST and question:
                asked.append((question, next(iter(case.expected[0]))))
    step = max(1, len(asked) // count)
    return list(tools.values()), asked[::step][:count]


async def measured(
    model: Any, chooser: Chooser, tools: Sequence[Any], asked: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    right = reached = searched = lists = 0
    chooser.texts = chooser.tokens = 0
    begun = time.perf_counter()
    for question, truth in asked:
        messages: list[Any] = [{"role": "user", "content": question}]
        notes = [
            event.note
            async for event in model.stream(Request(messages, tuple(tools), choice="required"))
            if isinstance(event, Noted)
        ]
        right += chooser.chosen == truth
        reached += truth in chooser.offered
        searched += any(note.rule == "groups-left" for note in notes)
        lists += sum(note.rule == "group-opened" for note in notes)
    count = len(asked)
    return {
        "questions": count,
        "right tool %": round(100 * right / count, 1),
        "reached %": round(100 * reached / count, 1),
        "ended in a search %": round(100 * searched / count, 1),
        "groups opened": round(lists / count, 2),
        "texts weighed": round(chooser.texts / count, 1),
        "tokens weighed": round(chooser.tokens / count),
        "seconds": round((time.perf_counter() - begun) / count, 2),
    }


def by_words(tools: Sequence[Any], asked: Sequence[tuple[str, str]], most: int, looks: int) -> dict[str, Any]:
    """How often the list with the right tool is opened by words alone: going down one branch, and by the best seen."""
    known = word_groups.Words(tools)
    root = tree(Group(""), tools, word_groups.by_words(tools), most)
    vectors: dict[int, Any] = {}

    def near(member: Any, question: Any) -> float:
        if id(member) not in vectors:
            vectors[id(member)] = known.vector(list(tools_in(member)) if isinstance(member, Group) else [member])
        return float(vectors[id(member)] @ question)

    order = itertools.count(1)
    straight = seen = 0
    for text, truth in asked:
        question = known.question(text)
        at: Any = root
        while isinstance(at, Group):
            straight += any(tool.name == truth for tool in at.members if not isinstance(tool, Group))
            inner = [member for member in at.members if isinstance(member, Group)]
            at = max(inner, key=lambda member: near(member, question)) if inner else None
        branches: list[tuple[float, int, Any]] = [(0.0, 0, root)]
        found: set[str] = set()
        for _ in range(looks + 1):
            if branches:
                for member in heapq.heappop(branches)[2].members:
                    if isinstance(member, Group):
                        heapq.heappush(branches, (-near(member, question), next(order), member))
                    else:
                        found.add(member.name)
        seen += truth in found
    return {"one branch %": round(100 * straight / len(asked), 1), "best seen %": round(100 * seen / len(asked), 1)}


async def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--questions", type=int, default=60)
    options.add_argument("--model", default="local")
    options.add_argument("--most", type=int, default=8)
    options.add_argument("--looks", type=int, default=6)
    options.add_argument("--words", action="store_true")
    given = options.parse_args()
    tools, asked = pool(given.questions)
    index = ts.ToolIndex(tools)
    if given.words:
        found = sum(truth in {tool.name for tool, _ in index.search(question, 10)} for question, truth in asked)
        told = by_words(tools, asked, given.most, given.looks)
        print(json.dumps({"questions": len(asked), **told, "search, of 10 %": round(100 * found / len(asked), 1)}))
        return
    chooser = Chooser(ts.model(given.model))
    ways = {
        "search": ToolRouter(chooser, index, max_tools=10),
        "levels": HierarchyRouter(chooser, index=index, most=given.most, looks=given.looks),
    }
    for way, model in ways.items():
        print(json.dumps({"way": way, "tools": len(tools), **await measured(model, chooser, tools, asked)}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
