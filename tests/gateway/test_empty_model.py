"""An empty model name is the only model there is: scripts that name none are answered, and others are told the names."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

import toolspeak as ts
from toolspeak.gateway.config.settings import Key

Serve = Callable[..., Any]
HI: Any = [{"role": "user", "content": "Hi"}]
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": HI},
    "/v1/responses": {"input": "Hi"},
    "/v1/messages": {"messages": HI, "max_tokens": 9},
    "/v1/messages/count_tokens": {"messages": HI},
}


def post(serve: Serve, path: str, body: dict[str, Any], *, key: str = "", **models: Any) -> tuple[int, Any]:
    async def main() -> tuple[int, Any]:
        async with serve(**models) as running, aiohttp.ClientSession() as session:
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            async with session.post(running.url + path, json=body, headers=headers) as answer:
                text = await answer.text()
                return answer.status, text if text.startswith(("data:", "event:")) else json.loads(text)

    return asyncio.run(main())


@pytest.mark.parametrize("path", BODIES)
def test_it_is_the_only_model(serve_models: Serve, path: str) -> None:
    status, told = post(serve_models, path, {"model": "", **BODIES[path]}, m=ts.Scripted("Hello.", repeat=True))
    assert status == 200
    assert told.get("model", "m") == "m"


@pytest.mark.parametrize("path", BODIES)
def test_of_several_the_names_are_listed(serve_models: Serve, path: str) -> None:
    models = {"one": ts.Scripted("1", repeat=True), "two": ts.Scripted("2", repeat=True)}
    status, told = post(serve_models, path, {"model": "", **BODIES[path]}, **models)
    assert status == 404
    assert told["error"]["message"].startswith("name a model: there are one, two")


def test_it_streams(serve_models: Serve) -> None:
    body = {"model": "", "messages": HI, "stream": True}
    status, told = post(serve_models, "/v1/chat/completions", body, m=ts.Scripted("Hello."))
    assert status == 200
    assert '"model":"m"' in told.replace(" ", "")


def test_a_key_that_opens_one_of_several_has_one(serve_models: Serve) -> None:
    models = {"one": ts.Scripted("1", repeat=True), "two": ts.Scripted("2", repeat=True)}
    settings = {"keys": (Key("k", hashlib.sha256(b"sk-some-key-of-ours").digest(), ("two",)),)}
    body = {"model": "", **BODIES["/v1/chat/completions"]}
    status, told = post(
        serve_models, "/v1/chat/completions", body, key="sk-some-key-of-ours", settings=settings, **models
    )
    assert (status, told["choices"][0]["message"]["content"]) == (200, "2")
