"""How a real llama.cpp server is asked: with a template that drops tools, with one of hermes, and as other servers are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import toolspeak as ts
from llama import served
from strategies import CHATML, HERMES
from toolspeak.gateway.config.settings import ModelSettings
from toolspeak.gateway.registry import build
from toolspeak.models.embedded import gguf_header, weights
from toolspeak.models.fallback import Adaptive
from toolspeak.models.servers import self_description as looking

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
    monkeypatch.setattr("toolspeak.models.fallback.recall", lambda *_: None)


def test_a_template_that_drops_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a model of three billion parameters: what is served here is small."""
    server = served(KEY, template=CHATML)
    name = f"{server.listening_address}/v1#any"
    told = ts.explain(QUESTION, tools=[add], model=ts.model(name, key=KEY))
    assert told.strategy == "native: its API has tools; whether the model gets them was not checked yet"
    assert looked(ts.model(name, key=KEY, look=False)).strategy.way == "native"

    monkeypatch.setattr(looking, "parameters_of", lambda _: 3_000_000_000)
    large = looked(ts.model(name, key=KEY))
    assert large.strategy.line.startswith("prompted in tool-json in messages: its dialect is unknown; tools go")
    assert {"grammar", "free", "prompt"} <= large.capabilities
    body = ts.explain(QUESTION, tools=[add], model=large, choice="required").body
    assert b"root ::=" in body  # the grammar holds it to a call, in the dialect for any model
    named = looked(ts.model(name.replace("#any", "#Qwen2.5-7B"), key=KEY))
    assert named.strategy.line.startswith(
        "prompted in hermes in messages: its name, Qwen2.5-7B, identifies the dialect"
    )


def test_a_template_of_hermes() -> None:
    server = served(KEY, template=HERMES)
    name = f"{server.listening_address}/v1#any"
    model = looked(ts.model(name, key=KEY))
    assert model.strategy.line == "native: its llama.cpp lays them out in the prompt"
    told = ts.explain(QUESTION, tools=[add], model=model)
    assert b'"tools"' in told.body
    # Native tools do not hold it to a call: where one must come it is asked in its template's dialect, by a grammar.
    held = ts.explain(QUESTION, tools=[add], model=model, choice="required")
    assert b"root ::=" in held.body
    assert b"<tool_call>" in held.body
    call = ts.call(QUESTION, tools=[add], model=model, tries=1, max_tokens=48)
    assert (call.name, set(call.arguments)) == ("add", {"a", "b"})


DOORS: dict[str, Callable[[str], Any]] = {
    "the library": lambda name: ts.model(name, key=KEY, dialect="hermes"),
    "the gateway": lambda name: build(ModelSettings("m", (name,), key=KEY, dialect="hermes")).model,
}


@pytest.fixture(scope="module")
def plain() -> Iterator[str]:
    """The name of a model behind a llama.cpp whose template drops tools."""
    server = served(KEY, template=CHATML)
    yield f"{server.listening_address}/v1#any"  # noqa: PT022 - the server lives as long as this frame


@pytest.mark.parametrize("door", DOORS)
def test_a_dialect_is_held_to_by_a_grammar(plain: str, door: str) -> None:
    """Tools stand in the prompt in that dialect, and where a call must come nothing else can."""

    def ping() -> str:
        """Ping."""
        return "pong"

    asked = ts.Request([{"role": "user", "content": "Hello"}], (ts.tool(ping),), choice="required", parallel=False)

    async def main() -> list[ts.Event]:
        model = DOORS[door](plain)
        try:
            return [event async for event in model.stream(replace(asked, max_tokens=64, temperature=0.0))]
        finally:
            await model.aclose()

    reply = ts.collect(asyncio.run(main()))
    assert [(call.name, call.arguments) for call in reply.calls] == [("ping", {})]
    assert "<tool_call>" not in reply.text


def test_without_a_template_of_its_own() -> None:
    """The file's own template knows no tools: llama.cpp takes them for it, and says that it would drop them."""
    server = served(KEY)
    model = looked(ts.model(f"{server.listening_address}/v1", key=KEY, timeout=600))
    assert model.strategy.way == "scored"  # by the number of parameters that the server tells
    assert "135 million" in model.strategy.why


@pytest.mark.costly
def test_a_file_without_a_template(tmp_path: Path) -> None:
    """llama.cpp lays conversations out in ChatML then, and drops tools."""
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    if not weights.present():
        pytest.skip("the embedded model's weights are not here")
    path = tmp_path / "m.gguf"
    path.write_bytes(weights.path_of().read_bytes().replace(b"tokenizer.chat_template", b"tokenizer.chat_templatX"))
    assert gguf_header.known(path).template == ""
    server = served(KEY, path=path)
    name = f"{server.listening_address}/v1"
    model = looked(ts.model(name, key=KEY))
    assert model.strategy.way == "scored"
    call = ts.call(QUESTION, tools=[add], model=model)
    assert (call.name, call.arguments) == ("add", {"a": 12, "b": 7})


def test_a_server_that_refuses_tools_is_not_offered_any() -> None:
    """As llama.cpp does where it is started without --jinja."""
    server = served(KEY, jinja=False)
    model = looked(ts.model(f"{server.listening_address}/v1", key=KEY, timeout=600))
    assert model.strategy.way == "scored"
    assert model.server_capabilities is not None
    assert "its llama.cpp refuses them" in model.server_capabilities.findings["tools"].evidence
    assert "--jinja" in model.server_capabilities.findings["tools"].evidence
