"""What a request has needed is freed when it has ended: nothing of it waits for a garbage collection, which comes late, since
long texts do not count for it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from replies import hermes_call
from toolspeak import Toolbox
from toolspeak.errors import ServerFailed
from toolspeak.events import Event, TextDelta
from toolspeak.gateway.call_policy import CallPolicy
from toolspeak.gateway.config.settings import StoreSettings
from toolspeak.gateway.limits import memory_trimming
from toolspeak.gateway.limits.memory_trimming import Trimmer
from toolspeak.gateway.mcp_sources import ToolSource
from toolspeak.models.pool import Pool
from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker
from toolspeak.policy.policy import Policy
from toolspeak.types import Request, ToolCall

PARAMETERS = {"type": "object", "properties": {"x": {"type": "integer"}}}
CHAT_TOOLS = [{"type": "function", "function": {"name": "f", "parameters": PARAMETERS}}]
MESSAGES_TOOLS = [{"name": "f", "input_schema": PARAMETERS}]
RESPONSES_TOOLS = [{"type": "function", "name": "f", "parameters": PARAMETERS}]
HI = [{"role": "user", "content": "Hi"}]
LONG = [{"role": "user", "content": "word " * 30_000}]
SCHEMA = {"type": "json_schema", "json_schema": {"name": "r", "schema": {**PARAMETERS, "required": ["x"]}}}
REPLIES = {
    "text": "Hello",
    "call": hermes_call("f", x=1),
    "wrong": hermes_call("f", x="q"),
    "thought": "<think>so</think>b",
}


def requests() -> Iterator[tuple[str, dict[str, Any]]]:
    """Requests in every API, each to all models."""
    for messages in (HI, LONG):
        yield "/v1/chat/completions", {"messages": messages, "tools": CHAT_TOOLS}
        yield "/v1/messages", {"messages": messages, "tools": MESSAGES_TOOLS, "max_tokens": 99}
        yield "/v1/responses", {"input": messages, "tools": RESPONSES_TOOLS}
        yield "/api/chat", {"messages": messages, "tools": CHAT_TOOLS}
    yield "/v1/chat/completions", {"messages": HI, "n": 2}
    yield "/v1/chat/completions", {"messages": HI, "response_format": SCHEMA}
    yield "/v1/completions", {"prompt": "Hi"}


ALL = [(path, {**body, "stream": stream}) for path, body in requests() for stream in (False, True)]
REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", {"messages": [{"role": 1}] * 5}),
    ("/v1/messages", {"messages": HI, "max_tokens": "q"}),
    ("/v1/responses", {"input": [{"type": "message", "role": "nobody", "content": "x"}]}),
    ("/v1/responses", {"input": HI, "previous_response_id": "resp_none"}),
    ("/v1/embeddings", {"input": "a"}),
]


def _session() -> aiohttp.ClientSession:
    """Asks on a new connection each time: the gateway may close one that waits just when it is asked."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True))


def cycles() -> list[str]:
    """The objects of ours, and the frames, that only a garbage collection frees."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        kinds = {type(one) for one in gc.garbage}
        names = [f"{kind.__module__}.{kind.__qualname__}" for kind in kinds]
        return sorted(
            name for name in names if name.startswith("toolspeak.") or name.endswith((".frame", ".traceback"))
        )
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.unfreeze()
    gc.enable()
    gc.collect()
    gc.freeze()  # as it was: what is loaded stays


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("reply", REPLIES)
def test_no_request_leaves_a_reference_cycle(serve_models: Callable[..., Any], tmp_path: Path, reply: str) -> None:
    async def go() -> dict[str, list[str]]:
        settings = {
            "store": StoreSettings(str(tmp_path / "store.sqlite"), responses=True),
            "policy": CallPolicy(Policy(allow=["*"])),
        }
        model = Speaker(Scripted([REPLIES[reply]], repeat=True), "hermes")
        left: dict[str, list[str]] = {}
        async with serve_models(settings=settings, m=model) as running, _session() as session:
            for path, body in (*ALL, *REFUSED):
                for _ in range(2):  # what is loaded once is none of the request's
                    gc.freeze()  # nothing from before the request is looked at, which took most of the time
                    async with session.post(running.url + path, json={"model": "m", **body}) as answer:
                        await answer.read()
                    while running.gateway.open:
                        await asyncio.sleep(0)
                left[f"{path} {str(body)[:60]}"] = cycles()
        return left

    assert not {name: found for name, found in asyncio.run(go()).items() if found}


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("fails", [False, True])
def test_a_stream_that_ends_early_leaves_none(fails: bool) -> None:
    """The error of a stream, such as that of its end, has the frames of those who saw it."""

    class Failing(Scripted):
        async def stream(self, request: Request) -> Any:
            yield TextDelta("Hello")
            if fails:
                raise ServerFailed("down")
            yield TextDelta("Hello")

    async def go() -> None:
        events = Pool([Failing("x")]).stream(Request(messages=[{"role": "user", "content": "Hi"}]))
        first: Event = await anext(events)
        assert first == TextDelta("Hello")
        try:
            if fails:
                await anext(events)
        except ServerFailed:
            pass
        await events.aclose()

    asyncio.run(go())
    assert not cycles()


@pytest.mark.usefixtures("no_collection")
def test_a_tool_that_fails_in_the_gateway_leaves_none() -> None:
    """Its result has the error, whose frames have the result, and what the tool's server sent."""

    async def fail() -> None:
        raise ValueError("no")

    box: Any = Toolbox(fail)
    gc.collect()

    async def go() -> None:
        result = await ToolSource(box).run(ToolCall("c", "x_fail", {}), "fail", 1000)
        assert "no" in result.text

    asyncio.run(go())
    assert not cycles()


def test_memory_is_given_back_after_a_long_stored_conversation(
    serve_models: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a request continues may be far larger than the request."""
    monkeypatch.setattr(memory_trimming, "SOON", 0)
    sizes: list[int] = []

    class Noted(Trimmer):
        def ended(self, size: int, *, ran: int = 0) -> None:
            sizes.append(size)

    async def go() -> None:
        settings = {"store": StoreSettings(str(tmp_path / "store.sqlite"), responses=True)}
        model = Scripted("Hello", repeat=True)
        async with serve_models(settings=settings, m=model) as running, _session() as session:
            running.gateway._trimmer = Noted()
            previous: dict[str, str] = {}
            for text in ("x" * 500_000, "Hi"):
                body = {"model": "m", "input": text, **previous}
                async with session.post(running.url + "/v1/responses", json=body) as answer:
                    previous = {"previous_response_id": (await answer.json())["id"]}
            key = previous["previous_response_id"]
            async with session.get(running.url + f"/v1/responses/{key}/input_items?limit=1&order=desc") as answer:
                await answer.read()

    asyncio.run(go())
    assert len(sizes) == 3
    assert min(sizes) >= 500_000
