"""Arguments that come as an object, however large, are written in small steps: in replies of servers and in histories of clients."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from toolspeak.api import anthropic, ollama, openai_chat, openai_responses
from toolspeak.api.upstream_errors import failure, words
from toolspeak.errors import ServerFailed
from toolspeak.events import ArgumentsDelta
from toolspeak.plan.calls import written
from toolspeak.schema import nonblocking_json
from toolspeak.types import ToolCall

MANY = {f"name{at}": at for at in range(30_000)}
HI = {"role": "user", "content": "Hi"}


def _event(payload: Any) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def _delta(**delta: Any) -> bytes:
    return _event({"choices": [{"index": 0, "delta": delta}]})


def _block() -> bytes:
    block = {"type": "tool_use", "id": "t", "name": "f", "input": MANY}
    return _event({"type": "content_block_start", "index": 0, "content_block": block})


READERS: dict[str, tuple[Any, Callable[[], bytes]]] = {
    "chat": (openai_chat, lambda: _delta(tool_calls=[{"id": "c", "function": {"name": "f", "arguments": MANY}}])),
    "anthropic": (anthropic, _block),
    "ollama": (
        ollama,
        lambda: (
            json.dumps({"message": {"tool_calls": [{"function": {"name": "f", "arguments": MANY}}]}}).encode() + b"\n"
        ),
    ),
}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": MANY}}
REQUESTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "anthropic": (
        anthropic,
        {
            "max_tokens": 9,
            "messages": [HI, {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": MANY}]}],
        },
    ),
    "ollama": (ollama, {"messages": [HI, {"role": "assistant", "content": "", "tool_calls": [CALL]}]}),
}  # fmt: skip


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The characters of each JSON text that is written in one step."""
    lengths = [0]
    for module, name in ((json, "dumps"), (nonblocking_json, "_encode")):
        real = getattr(module, name)

        def noted(value: Any, *, real: Callable[..., str] = real, **options: Any) -> str:
            lengths.append(len(text := real(value, **options)))
            return text

        monkeypatch.setattr(module, name, noted)
    return lengths


@pytest.mark.parametrize("api", READERS)
def test_of_a_server(steps: list[int], api: str) -> None:
    module, sent = READERS[api]
    reply = sent()
    steps.clear()
    reader = module.ReplyReader(lambda: "c")
    events = [event for event in reader.feed(reply) if isinstance(event, ArgumentsDelta)]
    assert json.loads("".join(event.json for event in events)) == MANY
    assert max(steps) < nonblocking_json.LARGE


@pytest.mark.parametrize("api", REQUESTS)
def test_of_a_history(steps: list[int], api: str) -> None:
    module, body = REQUESTS[api]
    incoming = module.read_request({"model": "m", **body})
    (call,) = incoming.request.messages[1]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == MANY
    assert max(steps) < nonblocking_json.LARGE


def test_of_a_call_that_is_compared(steps: list[int]) -> None:
    text = json.dumps(MANY)
    steps.clear()
    assert written(ToolCall("c", "f", MANY, text)) == written(ToolCall("d", "f", MANY, text))
    assert max(steps, default=0) < nonblocking_json.LARGE


def test_what_an_error_repeats(steps: list[int]) -> None:
    for body in ({"error": MANY}, {"error": {"message": MANY}}, {"error": {"message": list(MANY)}}, list(MANY)):
        assert len(words(body)) <= 600
        assert len(str(failure(0, body))) < 700
    for module, kind in (
        (openai_chat, "a chat completion"),
        (openai_responses, "a response"),
        (anthropic, "a message"),
    ):
        body = json.dumps(MANY).encode()
        steps.clear()
        reader = module.ReplyReader()
        reader.feed(body)
        with pytest.raises(ServerFailed, match=f"expected {kind}, got: "):
            reader.close()
        assert max(steps, default=0) < nonblocking_json.LARGE


@pytest.mark.parametrize("value", [MANY, {"a": [MANY, 1]}, "x" * 100_000, [1, "é\ud800"], {}, None])
def test_the_first_characters_of_a_value(steps: list[int], value: Any) -> None:
    whole = json.dumps(value, ensure_ascii=False)
    steps.clear()
    assert nonblocking_json.first_characters(value, 2_000) == whole[:2_000]
    assert sum(steps) < nonblocking_json.LARGE
