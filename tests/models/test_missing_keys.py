"""A hosted provider without a key is refused before any request; a server of one's own is asked without one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

import toolspeak as ts
from toolspeak.errors import KeyRefused
from toolspeak.models.http.providers import PROVIDERS
from toolspeak.models.resolve import bare

HOSTED = [name for name, row in PROVIDERS.items() if row.url.startswith("https:")]


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in PROVIDERS.values():
        for variable in filter(None, (row.key_variable, row.url_variable)):
            monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize("name", HOSTED)
def test_a_hosted_provider_names_the_variable_that_is_not_set(name: str) -> None:
    variable = PROVIDERS[name].key_variable

    def weather(city: str) -> str:
        return city

    for attempt in (
        lambda: ts.generate(f"{name}:m", "Hi"),
        lambda: ts.run("Hi", tools=[weather], model=f"{name}:m"),
        lambda: ts.extract("Hi", int, model=f"{name}:m"),
        lambda: ts.generate(ts.model(f"{name}:m", key=""), "Hi"),
    ):
        with pytest.raises(KeyRefused, match=f"{name}:m: {variable} is not set, and no request was sent") as error:
            attempt()
        assert error.value.reason == f"{variable} is not set"


def test_without_a_key_the_request_can_still_be_explained() -> None:
    assert b"gpt-5" in ts.explain("Hi", model="openai:gpt-5").body


@pytest.mark.parametrize(
    ("name", "reply"),
    [
        ("openai", {"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}),
        ("anthropic", {"type": "message", "content": [{"type": "text", "text": "Hello"}], "stop_reason": "end_turn"}),
    ],
)
def test_another_address_is_asked_without_a_key(
    serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, name: str, reply: dict[str, Any]
) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response(reply)

    async def main() -> str:
        async with serve(answer) as server:
            monkeypatch.setenv(PROVIDERS[name].url_variable, server.url)
            return await ts.agenerate(bare(f"{name}:m"), "Hi")

    assert asyncio.run(main()) == "Hello"
