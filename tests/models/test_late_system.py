"""System turns in the middle of a conversation: coding agents send them, many chat templates refuse them."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pytest
from aiohttp import web

from listening import listening
from toolspeak.errors import ModelError
from toolspeak.events import TextDelta
from toolspeak.models.fallback import Adaptive
from toolspeak.models.http import Http
from toolspeak.models.strategy import Preferences
from toolspeak.plan.late_system import with_one_system_turn
from toolspeak.types import Request, Tool

NOTE: Tool[..., Any] = Tool("note", "Writes a note.", {"type": "object", "properties": {}})
CALL = {"id": "a", "type": "function", "function": {"name": "note", "arguments": "{}"}}
PART = {"type": "image_url", "image_url": {"url": "data:,"}}
TALK: Any = [
    {"role": "system", "content": "A"},
    {"role": "developer", "content": "B"},
    {"role": "user", "content": [PART]},
    {"role": "system", "content": "C"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "a", "content": "done"},
    {"role": "system", "content": "D"},
]
REFUSALS = [(400, "System message must be at the beginning."), (500, "Jinja Exception: roles must alternate")]


def test_late_system_turns_join_what_stands_before_them() -> None:
    moved = with_one_system_turn(Request(TALK, (NOTE,), late={"note": 6, "other": 3}))
    assert moved.messages == [
        {"role": "system", "content": "A\n\nB"},
        {"role": "user", "content": [PART, {"type": "text", "text": "C"}]},
        *TALK[4:6],
        {"role": "user", "content": "D"},
    ]
    assert moved.late == {"note": 4, "other": 1}
    plain = Request([TALK[0], *TALK[4:6]])
    assert with_one_system_turn(plain) is plain
    assert with_one_system_turn(Request()).messages == ()


@pytest.mark.parametrize(("status", "words"), REFUSALS)
@pytest.mark.parametrize("preferred", [Preferences(), Preferences(way="prompted", dialect="hermes")])
def test_a_server_that_refuses_them_gets_their_text_as_the_users(status: int, words: str, preferred: Any) -> None:
    async def scene(model: Adaptive, asked: list[list[str]]) -> None:
        request = Request(TALK[1:2] + TALK[3:], (NOTE,))
        for _ in range(2):
            events = [event async for event in model.stream(request)]
            assert any(isinstance(event, TextDelta) and event.text == "Hi" for event in events)
        assert len(asked) == 3  # it is refused once
        assert "system" in asked[0][1:]
        assert all("system" not in roles[1:] for roles in asked[1:])

    asyncio.run(served(status, words, preferred, scene))


def test_a_refusal_for_another_reason_is_told_and_changes_nothing() -> None:
    async def scene(model: Adaptive, asked: list[list[str]]) -> None:
        for count in (2, 4):
            with pytest.raises(ModelError, match="no such model"):
                [event async for event in model.stream(Request(TALK, (NOTE,)))]
            assert len(asked) == count
        assert not model.one_system_turn

    asyncio.run(served(400, "no such model", Preferences(), scene, always=True))


async def served(status: int, words: str, preferred: Preferences, scene: Any, *, always: bool = False) -> None:
    """Plays a scene with a model whose server refuses conversations with late system turns, or all."""
    asked: list[list[str]] = []

    async def chat(request: web.Request) -> web.Response:
        roles = [message["role"] for message in (await request.json())["messages"]]
        asked.append(roles)
        if always or {"system", "developer"} & {*roles[1:]}:
            return web.json_response({"error": {"message": words}}, status=status)
        chunk = {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}
        return web.Response(text=f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n", content_type="text/event-stream")

    async with listening(chat, "/v1/chat/completions") as url:
        async with aclosing(Adaptive(Http(f"{url}/v1", "m"), preferred, look=False)) as model:
            await scene(model, asked)
