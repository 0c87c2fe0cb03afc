"""The leaderboard's conversations: played by a model that knows the ground truth, and by some that do not."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import json
from collections.abc import AsyncIterator, Sequence

import pytest

import toolspeak as ts
from toolspeak import evals
from toolspeak.evals import bfcl_package, bfcl_turns
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, TextDelta
from toolspeak.models.base import Capability
from toolspeak.types import Request

pytestmark = pytest.mark.skipif(
    not bfcl_package.present(),
    reason="bfcl-eval is not in the cache: make fetch, or python -m toolspeak.evals",
)
PART = "[137:143]"
"""Cases that calculate nothing, which would need mpmath."""


class Player:
    """Makes the calls of each turn, written as Python, in one reply, and then says that it is done."""

    name = "player"
    capabilities: frozenset[Capability] = frozenset({"tools", "required"})

    def __init__(self, turns: Sequence[Sequence[str]], for_ever: bool = False) -> None:
        self.turns, self.for_ever = turns, for_ever

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        turn = sum(message["role"] == "user" for message in request.messages) - 1
        due = self.for_ever or request.messages[-1]["role"] == "user"
        wanted = self.turns[turn] if due and request.tools else []
        for i, written in enumerate(wanted):
            node = ast.parse(written, mode="eval").body
            assert isinstance(node, ast.Call)
            assert isinstance(node.func, ast.Name)
            given = {str(word.arg): ast.literal_eval(word.value) for word in node.keywords}
            tool = next((tool for tool in request.tools or () if tool.name == node.func.id), None)
            names = tool.parameters["properties"] if tool else []
            given |= {name: ast.literal_eval(value) for name, value in zip(names, node.args, strict=False)}
            yield CallStart(node.func.id, f"c{turn}_{len(request.messages)}_{i}")
            yield ArgumentsDelta(json.dumps(given))
            yield CallEnd()
        if not wanted:
            yield TextDelta("Done.")
        yield Finished("tool_calls" if wanted else "stop")


def played(case: evals.Case, model: Player) -> evals.Record:
    return asyncio.run(evals.put(case, "player", evals.Contender(model).build(), evals.Settings()))


@pytest.mark.parametrize("category", bfcl_turns.CATEGORIES)
def test_the_ground_truth_is_right(category: str) -> None:
    for case in evals.load(f"bfcl:{category}{PART}"):
        record = played(case, Player(case.expected))
        assert (record.case, record.kind, record.detail) == (case.id, "", "")
        assert len(record.calls) == sum(map(len, case.expected))


def test_functions_that_come_later_are_offered_later() -> None:
    case = next(c for c in evals.load(f"bfcl:multi_turn_miss_func{PART}"))
    record = played(case, Player(case.expected))
    asked = [{tool["name"] for tool in step["ask"]["tools"]} for step in record.steps]
    assert asked[0] == {tool.name for tool in case.tools}
    assert len(asked[-1]) > len(asked[0])
    assert "more functions" in json.dumps(record.steps[-1]["ask"]["messages"])


def test_a_turn_without_its_calls_is_wrong() -> None:
    case = evals.load(f"bfcl:multi_turn_base{PART}")[0]
    assert played(case, Player([[], *case.expected[1:]])).kind == "no call"


def test_another_state_is_wrong() -> None:
    (case,) = evals.load("bfcl:multi_turn_base[120:121]")
    other = [[call.replace("amount=100", "amount=99") for call in turn] for turn in case.expected]
    record = played(case, Player(other))
    assert (record.kind, record.detail[:14]) == ("wrong value", "Model instance")
    assert played(case, Player(case.expected)).right, "nothing of an earlier play is left"
    assert not [name for name in bfcl_turns._programs() if name.startswith("play")]


def test_a_turn_that_never_ends_is_wrong() -> None:
    (case,) = evals.load("bfcl:multi_turn_base[120:121]")
    record = played(case, Player([[f"get_stock_info(symbol='{name}')"] for name in ("AAPL",) * 3], for_ever=True))
    assert not record.right


def test_text_in_arguments_stays_text() -> None:
    (case,) = evals.load("bfcl:multi_turn_base[120:121]")
    evil = "get_stock_info(symbol=\"'), __import__('os').abort(), print('\")"
    assert not played(case, Player([[evil], *case.expected[1:]])).right


@pytest.mark.skipif(importlib.util.find_spec("mpmath") is not None, reason="mpmath is here")
def test_without_mpmath_it_says_so() -> None:
    with pytest.raises(ts.MissingExtra, match="pip install mpmath"):
        evals.load("bfcl:multi_turn_base")
