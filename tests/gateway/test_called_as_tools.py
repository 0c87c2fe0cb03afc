"""A gateway's own document as tools: what it says of itself is enough to call it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import toolspeak as ts
from toolspeak.gateway.access.keys import digest
from toolspeak.gateway.config.settings import Key


def test_a_gateway_is_called_by_its_own_document(serve_models: Callable[..., Any]) -> None:
    key = "a-key-of-twenty-letters-and-more"

    async def run() -> None:
        keys = (Key("me", digest(key)),)
        async with serve_models(m=ts.Scripted("Hello.", repeat=True), settings={"keys": keys}) as gateway:
            url = f"{gateway.url}/openapi.json"
            with pytest.raises(ts.UsageError, match="answered 401"):
                await asyncio.to_thread(ts.openapi, url)
            box = await asyncio.to_thread(ts.openapi, url, headers={"x-api-key": key})
            models = await box.acall({"name": "get_v1_models", "arguments": {}})
            assert [one["id"] for one in models["data"]] == ["m"]
            messages = [{"role": "user", "content": "Hi"}]
            asked = {"name": "post_v1_chat_completions", "arguments": {"model": "m", "messages": messages}}
            assert (await box.acall(asked))["choices"][0]["message"]["content"] == "Hello."

    asyncio.run(run())
