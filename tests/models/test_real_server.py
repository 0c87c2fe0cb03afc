"""Models over HTTP against a real server of the kind people run: llama.cpp, here in this process."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from llama import served
from toolspeak.errors import BadRequest, KeyRefused
from toolspeak.events import Event, Finished, TextDelta
from toolspeak.models.http import Http
from toolspeak.types import Request

KEY = "sk-real-0123456789abcdef"
FRANCE = [{"role": "user", "content": "What is the capital of France? One word."}]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = served(KEY, 512)
    yield server.listening_address  # noqa: PT022 - the server lives as long as this frame


def ask(model: Http, request: Request) -> list[Event]:
    async def main() -> list[Event]:
        return [event async for event in model.stream(request)]

    return asyncio.run(main())


def text(events: list[Event]) -> str:
    assert len(events) > 3  # it streamed
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def test_a_chat(url: str) -> None:
    events = ask(Http(url, key=KEY), Request(FRANCE, max_tokens=20, temperature=0.0))  # type: ignore[arg-type]
    assert "Paris" in text(events)
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.finish in ("stop", "length")
    assert last.usage.prompt_tokens > 10
    assert last.usage.completion_tokens > 3


def test_a_reply_held_to_a_schema(url: str) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"city": {"enum": ["Rome", "Oslo"]}},
        "required": ["city"],
    }
    events = ask(Http(url, key=KEY), Request(FRANCE, schema=schema | {"additionalProperties": False}, temperature=0.0))  # type: ignore[arg-type]
    assert json.loads(text(events))["city"] in ("Rome", "Oslo")


def test_a_prompt_continued(url: str) -> None:
    request = Request(prompt="The capital of France is", max_tokens=5, temperature=0.0)
    events = ask(Http(url, key=KEY, api="completions"), request)
    assert text(events).startswith(" Paris")
    assert isinstance(events[-1], Finished)
    assert events[-1].finish == "length"


def test_its_refusals(url: str) -> None:
    with pytest.raises(KeyRefused, match="no key was sent"):
        ask(Http(url, "m"), Request(FRANCE))  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="exceeds the available context"):
        ask(Http(url, key=KEY), Request([{"role": "user", "content": "x " * 2000}]))
    with pytest.raises(BadRequest, match="are the address and the model's name right"):
        ask(Http(f"{url}/nowhere", "m", key=KEY), Request(FRANCE))  # type: ignore[arg-type]


def test_a_client_that_leaves_frees_the_server(url: str) -> None:
    async def main() -> None:
        model = Http(url, key=KEY)
        stream = model.stream(Request(FRANCE, max_tokens=400, temperature=1.5, seed=1))  # type: ignore[arg-type]
        await anext(stream)
        await stream.aclose()
        async with asyncio.timeout(120):
            assert [event async for event in model.stream(Request(FRANCE, max_tokens=2))]  # type: ignore[arg-type]

    asyncio.run(main())


def test_the_messages_api(url: str) -> None:
    model = Http(url + "/v1", "m", api="anthropic", key=KEY)
    events = ask(model, Request(FRANCE, max_tokens=20, temperature=0.0))  # type: ignore[arg-type]
    assert "Paris" in text(events)
    last = events[-1]
    assert isinstance(last, Finished)
    assert asyncio.run(model.count(Request(FRANCE))) == last.usage.prompt_tokens  # type: ignore[arg-type]


def test_tokens_are_counted(url: str) -> None:
    chat = Http(url, "m", key=KEY)
    (*_, last) = ask(chat, Request(FRANCE, max_tokens=2))  # type: ignore[arg-type]
    assert isinstance(last, Finished)
    assert asyncio.run(chat.count(Request(FRANCE))) == last.usage.prompt_tokens  # type: ignore[arg-type]
    assert asyncio.run(chat.count(Request(prompt="one two three"))) == 3
