"""How a real llama.cpp server is asked: with a template that drops tools, with one of hermes, and as other servers are."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import toolspeak as ts
from llama import served
from strategies import CHATML, HERMES
from toolspeak.models import servers as looking
from toolspeak.models.adaptive import Adaptive

KEY = "k"
QUESTION = "What is 12 plus 7?"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def looked(model: Any) -> Adaptive:
    async def main() -> None:
        try:
            await model.look()
        finally:
            await model.aclose()

    asyncio.run(main())
    assert isinstance(model, Adaptive)
    return model


@pytest.fixture(autouse=True)
def not_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has probed these servers."""
    monkeypatch.setattr("toolspeak.models.adaptive.recall", lambda *_: None)


def test_a_template_that_drops_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a model of three billion parameters: what is served here is small."""
    server = served(KEY, template=CHATML)
    name = f"{server.listening_address}/v1#any"
    told = ts.explain(QUESTION, tools=[add], model=ts.model(name, key=KEY))
    assert told.strategy == "native: its API has tools; not looked yet whether the model gets them"
    assert looked(ts.model(name, key=KEY, look=False)).strategy.way == "native"

    async def larger(_: Any) -> int:
        return 3_000_000_000

    monkeypatch.setattr(looking, "parameters_of", larger)
    large = looked(ts.model(name, key=KEY))
    assert large.strategy.line.startswith("prompted in tool-json in messages: nothing tells its dialect; tools go")
    assert {"grammar", "free", "prompt"} <= large.capabilities
    body = ts.explain(QUESTION, tools=[add], model=large, choice="required").body
    assert b"root ::=" in body  # the grammar holds it to a call, in the dialect for any model
    named = looked(ts.model(name.replace("#any", "#Qwen2.5-7B"), key=KEY))
    assert named.strategy.line.startswith("prompted in hermes in messages: its name, Qwen2.5-7B, tells the dialect")


def test_a_template_of_hermes() -> None:
    server = served(KEY, template=HERMES)
    name = f"{server.listening_address}/v1#any"
    model = looked(ts.model(name, key=KEY))
    assert model.strategy.line == "native: its llama.cpp lays them out in the prompt"
    told = ts.explain(QUESTION, tools=[add], model=model)
    assert b'"tools"' in told.body


def test_without_a_template_of_its_own() -> None:
    """The file's own template knows no tools: llama.cpp takes them for it, and says that it would drop them."""
    server = served(KEY)
    model = looked(ts.model(f"{server.listening_address}/v1", key=KEY))
    assert model.strategy.way == "scored"  # by the number of parameters that the server tells
    assert "135 million" in model.strategy.why
