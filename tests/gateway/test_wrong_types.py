"""A value of the wrong type anywhere in a body is the client's mistake: a 4xx, or an answer without it, never a 500."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fuzz"))

from bodies import SEEDS, Body, changed, changes, problems, put, settings, upstreams

from properties import is_fast
from toolspeak.errors import UsageError
from toolspeak.gateway.endpoints.openapi import OPERATIONS
from toolspeak.models.http import Http
from toolspeak.types import Request

EACH = 20 if is_fast() else 60
"""Changes of each API's bodies that each model is asked with; `make fuzz` tries all there are, two and three at a time."""


async def _asked(serve_models: Callable[..., Any], folder: Path, cases: Callable[[list[str]], Iterator[Body]]) -> Any:
    async with upstreams() as models, serve_models(settings=settings(str(folder)), **models) as running:
        async with aiohttp.ClientSession() as session:
            return await problems(session, running.url, cases(list(models)))


def test_every_endpoint_that_takes_a_body_is_asked() -> None:
    bodies = {path for (_, path), operation in OPERATIONS.items() if operation.body is not None}
    assert bodies == set(SEEDS)


def test_a_wrong_value_in_any_place_is_never_a_500(serve_models: Callable[..., Any], tmp_path: Path) -> None:
    rng = random.Random(15)
    by_path = {path: list(changes(path, "")) for path in SEEDS}

    def cases(models: list[str]) -> Iterator[Body]:
        for path, every in by_path.items():
            for model in models:
                for case in rng.sample(every, EACH):
                    known = isinstance(case.body, dict) and "model" in case.body and case.body["model"] == ""
                    yield Body(path, put(case.body, ("model",), model) if known else case.body, case.change)
        yield from (changed(rng, models) for _ in range(5 * EACH))

    assert asyncio.run(_asked(serve_models, tmp_path, cases)) == []


FOUND: list[tuple[str, str, dict[str, Any]]] = [
    ("prompted", "/v1/responses", {"input": [{"type": ["message"]}]}),
    ("prompted", "/v1/responses", {"input": [{"type": {}, "role": "user", "content": "Hi"}]}),
    ("responses", "/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "text"}]}]}),
    ("responses", "/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
    ("responses", "/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "file"}]}]}),
    ("prompted", "/v1/chat/completions", {"messages": [{"role": "system", "content": None}]}),
    ("prompted", "/v1/chat/completions", {"messages": [{"role": "system"}], "tools": [
        {"type": "function", "function": {"name": "f"}}]}),
    ("ollama", "/v1/chat/completions", {"messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "[" * 100_000}}]}]}),
    ("prompted", "/api/chat", {"messages": [{"role": "user", "content": "Hi", "images": ["\u00e9"]}]}),
    ("prompted", "/api/chat", {"messages": [{"role": "user", "content": "Hi", "images": ["\ud800"]}]}),
    ("prompted", "/api/generate", {"prompt": "Hi", "images": ["\u00e9"]}),
    ("prompted", "/v1/messages", {"max_tokens": 5, "messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [
            {"type": "server_tool_use", "id": "c", "name": "web_search", "input": {"query": "x"}},
            {"type": "web_search_tool_result", "tool_use_id": "c", "content": [
                {"type": "web_search_result", "title": "t", "url": "", "encrypted_content": "toolspeak:\u00e9"}]}]},
        {"role": "user", "content": "And?"}]}),
]  # fmt: skip


def test_what_was_a_500_says_where_it_is_wrong(serve_models: Callable[..., Any], tmp_path: Path) -> None:
    def cases(_: list[str]) -> Iterator[Body]:
        return (Body(path, {"model": model, **body}) for model, path, body in FOUND)

    assert asyncio.run(_asked(serve_models, tmp_path, cases)) == []

    async def go() -> str:
        async with upstreams() as models, serve_models(**models) as running, aiohttp.ClientSession() as session:
            body = {"model": "prompted", "input": [{"type": ["message"]}]}
            async with session.post(running.url + "/v1/responses", json=body) as response:
                assert response.status == 400
                return (await response.json())["error"]["message"]

    assert asyncio.run(go()) == 'input.0.type: expected null or string, got ["message"]'


def test_a_search_result_names_its_source_in_a_text(serve_models: Callable[..., Any]) -> None:
    """As Anthropic's API has it: the schema wanted an object, so that every search result was refused."""
    part = {
        "type": "search_result",
        "title": "Rome",
        "source": "a page",
        "content": [{"type": "text", "text": "sunny"}],
    }
    body = {"model": "prompted", "max_tokens": 5, "messages": [{"role": "user", "content": [part]}]}

    async def go() -> int:
        async with upstreams() as models, serve_models(**models) as running, aiohttp.ClientSession() as session:
            async with session.post(running.url + "/v1/messages", json=body) as response:
                return response.status

    assert asyncio.run(go()) == 200


@pytest.mark.parametrize("kind", ["text", "image_url", "file", "input_audio"])
def test_a_part_without_what_it_holds_is_a_usage_error(kind: str) -> None:
    model = Http("http://127.0.0.1:9/v1", "up", api="responses")
    with pytest.raises(UsageError, match=f"'{kind}' needs the field {kind}"):
        model.body(Request([{"role": "user", "content": [{"type": kind}]}]))
