"""What a stream repeats, or held back, is written in small steps, however much it is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any

import aiohttp
import pytest

from toolspeak.api import json_stream
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Logprobs, TextDelta, ThoughtDelta
from toolspeak.models.base import Capability
from toolspeak.models.offload import LARGE
from toolspeak.schema import nonblocking_json
from toolspeak.types import Request

HI = [{"role": "user", "content": "Hi"}]
FUNCTION = {"name": "f", "parameters": {"type": "object", "properties": {"x": {}}}}
TOOLS = [{"type": "function", "function": FUNCTION}]
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": HI, "tools": TOOLS},
    "/v1/completions": {"prompt": "Hi"},
    "/v1/responses": {"input": "Hi", "tools": [{"type": "function", **FUNCTION}]},
    "/v1/messages": {
        "messages": HI, "max_tokens": 9, "tools": [{"name": "f", "input_schema": FUNCTION["parameters"]}]
    },
    "/api/chat": {"messages": HI, "tools": TOOLS},
    "/api/generate": {"prompt": "Hi"},
}  # fmt: skip
LISTS = json.dumps({"x": [[]] * 45_000})
REPLIES: dict[str, list[Event]] = {
    "likelihoods without text": [Logprobs([{"token": "x", "logprob": -1.0}] * 500)] * 10,
    "likelihoods before text": [*[Logprobs([{"token": "x", "logprob": -1.0}] * 500)] * 10, TextDelta("x")],
    "text": [TextDelta("x" * 4_000)] * 100,
    "a thought, then text": [*[ThoughtDelta("x" * 4_000)] * 100, TextDelta("x")],
    "a call": [CallStart("f", "c"), ArgumentsDelta(LISTS), CallEnd()],
}


class Replying:
    """A model with one reply."""

    name = "replying"
    capabilities: frozenset[Capability] = frozenset({"tools", "prompt"})

    def __init__(self, events: list[Event]) -> None:
        self.events = events

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        for event in self.events:
            yield event
        yield Finished("tool_calls" if CallEnd() in self.events else "stop")


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("kind", REPLIES)
def test_no_step_writes_much(
    serve_models: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, kind: str, path: str
) -> None:
    if kind == "a call" and path in ("/v1/completions", "/api/generate"):
        pytest.skip("the API has no calls")
    steps: list[int] = []
    for module in (json_stream, nonblocking_json):

        def encode(value: Any, real: Callable[[Any], str] = module._encode) -> str:
            text = real(value)
            steps.append(len(text))
            return text

        monkeypatch.setattr(module, "_encode", encode)

    async def go() -> bytes:
        async with serve_models(m=Replying(REPLIES[kind])) as running, aiohttp.ClientSession() as session:
            body = {"model": "m", "stream": True, **BODIES[path]}
            async with session.post(running.url + path, json=body) as reply:
                assert reply.status == 200
                return await reply.read()

    written = asyncio.run(go())
    assert b'"error":{' not in written
    assert max(steps) < LARGE
    if kind.startswith("likelihoods"):
        shows = {"/v1/messages": 0, "/v1/responses": 0 if kind == "likelihoods without text" else 5_000}
        assert written.count(b'"logprob":-1.0') + written.count(b'"logprob": -1.0') >= shows.get(path, 0)
