"""Old results are cleared from a conversation that grows beyond what the operator lets it hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from toolspeak.errors import UsageError
from toolspeak.gateway.config.load import parse_config
from toolspeak.gateway.config.settings import ModelSettings
from toolspeak.models.scripted import Scripted
from toolspeak.plan.clearing import NOTE, clear_results

CLEARED = "(This result was cleared to make room: read_more("
ASKED: Any = {"role": "user", "content": "Read them all."}


def turn(number: int) -> list[Any]:
    call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": f'{{"at": {number}}}'}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": f"{number}: " + "words " * 200},
    ]


def grown(count: int) -> list[Any]:
    return [ASKED, *(row for i in range(count) for row in turn(i))]


def test_a_session_breaks_its_beginning_seldom_and_stays_short() -> None:
    breaks, before = 0, list[Any]()
    for count in range(1, 60):
        rows, _ = clear_results(grown(count), tokens=2_000, last=3)
        breaks += list(rows[: len(before)]) != before
        before = list(rows)
        whole = [row for row in rows if row["role"] == "tool" and row["content"] != NOTE]
        assert 3 <= len(whole) <= 7 or count < 3
        assert len(rows) == 1 + 2 * count
        assert [row.get("tool_call_id") for row in rows] == [row.get("tool_call_id") for row in grown(count)]
    assert breaks <= 60 / 3


def test_what_fits_stays() -> None:
    assert clear_results(grown(20), tokens=100_000, last=3) == (grown(20), [])


def test_the_operators_rule_holds_at_the_gateway(serve_models: Callable[..., Any]) -> None:
    lines = '[models.m]\nupstream = "scripted:Well."\nclear_results = 2_000\nkeep_results = 2\n'
    settings = parse_config(lines).models["m"]
    assert (settings.clear_results, settings.keep_results) == (2_000, 2)
    with pytest.raises(UsageError, match="keep_results"):
        parse_config(lines.replace("= 2\n", "= 0\n"))
    tools = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]

    async def scene() -> None:
        model = Scripted("Well.", capabilities=["tools"], repeat=True)
        async with serve_models(m=model) as running, aiohttp.ClientSession() as session:
            served = running.gateway.models.served
            for rule, cleared in ((settings, 9), (ModelSettings("m", ("scripted:",)), 0)):
                served["m"] = type(served["m"])(rule, model)
                body = {"model": "m", "messages": grown(12), "tools": tools}
                async with session.post(running.url + "/v1/chat/completions", json=body) as answer:
                    assert answer.status == 200
                    assert answer.headers.get("x-toolspeak-notes", "") == ("results-cleared" if cleared else "")
                asked = [row["content"] for row in model.requests[-1].messages]
                assert len([text for text in asked if str(text).startswith(CLEARED)]) == cleared

    asyncio.run(scene())
