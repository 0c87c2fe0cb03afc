"""What the gateway answers beside chat: paths and methods, models, raw completions, embeddings."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import openai
import pytest
from yarl import URL

from toolspeak.gateway.routes import ROUTES, find
from toolspeak.models.scripted import Scripted

Ask = Callable[[aiohttp.ClientSession, str], Awaitable[Any]]


def asked(serve_models: Callable[..., Any], ask: Ask, **models: Any) -> Any:
    """What `ask` gives, of a session with a gateway in front of `models`."""

    async def go() -> Any:
        async with serve_models(**models) as running, aiohttp.ClientSession() as session:
            return await ask(session, running.url)

    return asyncio.run(go())


def sent(serve_models: Callable[..., Any], method: str, path: str, **models: Any) -> tuple[int, Any, Any]:
    """Status, headers and JSON of one request."""

    async def ask(session: aiohttp.ClientSession, url: str) -> tuple[int, Any, Any]:
        async with session.request(method, URL(url + path, encoded=True)) as response:
            text = await response.text()
            return response.status, response.headers, await response.json() if text else None

    return asked(serve_models, ask, **(models or {"m": Scripted("Hi", repeat=True)}))


def sdk(running: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=running.url + "/v1", api_key="none", max_retries=0)


# ------------------------------------------------------------------ paths


def test_every_route_is_found_by_its_own_path() -> None:
    for route in ROUTES:
        routes, rest = find(route.path.replace("{model}", "a/b:c"))
        assert routes[route.method] is route
        assert rest == ("a/b:c" if "{model}" in route.path else "")


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/", "/v1/models/", "//v1/models", "/v1/models/../chat", "/v1/models{model}"]
)
def test_a_path_that_is_none_is_told(path: str, serve_models: Callable[..., Any]) -> None:
    status, _, body = sent(serve_models, "GET", path)
    assert status == 404
    assert set(body["error"]) == {"message", "type", "param", "code"}


def test_a_path_that_is_nearly_one_says_which(serve_models: Callable[..., Any]) -> None:
    _, _, body = sent(serve_models, "POST", "/chat/completions")
    assert "Did you mean '/v1/chat/completions'" in body["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/chat/completions", "POST"),
        ("HEAD", "/v1/chat/completions", "POST"),
        ("POST", "/v1/models", "GET, HEAD"),
        ("DELETE", "/v1/models/m", "GET, HEAD"),
    ],
)
def test_another_method_is_told_which_there_are(
    method: str, path: str, allowed: str, serve_models: Callable[..., Any]
) -> None:
    status, headers, _ = sent(serve_models, method, path)
    assert (status, headers["allow"]) == (405, allowed)


def test_head_is_get_without_its_body(serve_models: Callable[..., Any]) -> None:
    status, headers, body = sent(serve_models, "HEAD", "/v1/models")
    assert (status, body) == (200, None)
    assert int(headers["content-length"]) > 50


# ------------------------------------------------------------------ models


def test_models_are_listed_and_shown(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        models = {"m": Scripted("Hi"), "org/name:7b": Scripted("Hi")}
        async with serve_models(**models) as running, sdk(running) as client:
            listed = await client.models.list()
            assert [model.id for model in listed.data] == ["m", "org/name:7b"]
            shown = await client.models.retrieve("org/name:7b")
            assert shown == listed.data[1]
            with pytest.raises(openai.NotFoundError, match="Did you mean 'org/name:7b'"):
                await client.models.retrieve("org/name")

    asyncio.run(go())
