"""What the strings of a conversation hold is parsed again: arguments of calls and results, also encoded ones. They may contain as
many values as a body, and what is parsed in a long conversation is parsed beside the event loop."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from toolspeak.api.base64_text import seal
from toolspeak.api.openai_responses.gateway_calls import opened_run
from toolspeak.gateway.config.settings import GatewayLimits
from toolspeak.models.scripted import Scripted
from toolspeak.plan import repeats

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
LIMIT = 1_000
MANY = "[" + "[]," * 600 + "[]]"
ARGUMENTS = f'{{"a": {MANY}}}'
CSV = "a,b,c\n" * 1_000


def chat(arguments: str, result: str) -> dict[str, Any]:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    answered = {"role": "tool", "tool_call_id": "c", "content": result}
    return {
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            answered,
        ]
    }


def items(*several: dict[str, Any]) -> dict[str, Any]:
    return {"input": [{"role": "user", "content": "Hi"}, *several, {"role": "user", "content": "Go on"}]}


def sealed(**fields: Any) -> dict[str, Any]:
    run = {"item": "mcp_1", "name": "f", "arguments": "{}", "result": "ok", **fields}
    return {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": seal(json.dumps(run).encode())}


def call(arguments: str, output: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return (
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": arguments},
        {"type": "function_call_output", "call_id": "c", "output": output},
    )


def blocks(result: str) -> dict[str, Any]:
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    answered = {"type": "tool_result", "tool_use_id": "t", "content": result}
    turns = [("user", "Hi"), ("assistant", [use]), ("user", [answered])]
    return {"max_tokens": 9, "messages": [{"role": role, "content": content} for role, content in turns]}


REFUSED = {
    "arguments": (CHAT, chat(ARGUMENTS, "ok")),
    "a result": (CHAT, chat("{}", f" {MANY}")),
    "a result in parts": (CHAT, chat("{}", [{"type": "text", "text": MANY}])),  # type: ignore[arg-type]
    "arguments of an item": (RESPONSES, items(*call(ARGUMENTS, "ok"))),
    "the output of an item": (RESPONSES, items(*call("{}", MANY))),
    "arguments of a run": (RESPONSES, items({"type": "mcp_call", "id": "m", "name": "f", "arguments": ARGUMENTS, "output": "ok"})),
    "sealed arguments": (RESPONSES, items(sealed(arguments=ARGUMENTS))),
    "a sealed result": (RESPONSES, items(sealed(result=MANY))),
    "many sealed runs": (RESPONSES, items(*(sealed(item=f"m{i}", result=MANY[:100] + "[]]") for i in range(50)))),
    "a result of a message": (MESSAGES, blocks(MANY)),
    "a count": (f"{MESSAGES}/count_tokens", {key: value for key, value in blocks(MANY).items() if key != "max_tokens"}),
}  # fmt: skip
PASSED = {
    "commas in texts": (CHAT, chat(json.dumps({"a": CSV}), CSV)),
    "sealed texts": (RESPONSES, items(sealed(arguments=json.dumps({"a": CSV}), result=CSV))),
    "few values": (RESPONSES, items(*call('{"a": [1, 2]}', "[1, 2]"))),
}


def statuses(
    serve_models: Callable[..., Any],
    cases: dict[str, tuple[str, dict[str, Any]]],
    limits: GatewayLimits = GatewayLimits(),  # noqa: B008 - frozen
) -> dict[str, tuple[int, str]]:
    async def go() -> dict[str, tuple[int, str]]:
        seen: dict[str, tuple[int, str]] = {}
        model = Scripted("Hello", capabilities=["tools"], repeat=True)
        async with (
            serve_models(m=model, settings={"limits": limits}) as running,
            aiohttp.ClientSession() as session,
        ):
            for name, (path, body) in cases.items():
                async with session.post(running.url + path, json={"model": "m", **body}) as answer:
                    seen[name] = (answer.status, await answer.text())
        return seen

    return asyncio.run(go())


def test_values_in_the_strings_of_a_conversation_count(serve_models: Callable[..., Any]) -> None:
    for name, (status, text) in statuses(serve_models, REFUSED, GatewayLimits(values=LIMIT)).items():
        assert status == 400, name
        assert "results of earlier calls contain more than 1,000 values" in text, name


def test_texts_may_have_any_number_of_commas(serve_models: Callable[..., Any]) -> None:
    for name, (status, text) in statuses(serve_models, PASSED, GatewayLimits(values=LIMIT)).items():
        assert status == 200, (name, text)


def test_a_sealed_value_of_something_else_is_not_parsed() -> None:
    assert (
        opened_run(seal(json.dumps({"item": "m", "name": "f", "arguments": "{}", "result": "ok"}).encode())) is not None
    )
    assert (
        opened_run(
            seal(json.dumps({"item": "m", "name": "f", "arguments": "{}", "result": "ok", "x": [[]] * 9}).encode())
        )
        is None
    )


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each text that is parsed in search of repeated turns, whether that is in this thread."""
    here, seen, real = threading.get_ident(), list[bool](), repeats.loads_or

    def noted(text: str, default: Any) -> Any:
        seen.append(threading.get_ident() == here)
        return real(text, default)

    monkeypatch.setattr(repeats, "loads_or", noted)
    return seen


def turns(count: int, result: str, filler: str = "") -> dict[str, Any]:
    rows: list[Any] = [{"role": "user", "content": "Hi"}]
    for i in range(count):
        rows += chat(json.dumps({"i": i, "text": filler}), result.format(i))["messages"][1:]
    return {"messages": rows}


def test_arguments_are_parsed_only_where_all_else_repeats(serve_models: Callable[..., Any], parsed: list[bool]) -> None:
    assert statuses(serve_models, {"different": (CHAT, turns(30, "result {}"))})["different"][0] == 200
    assert not parsed
    statuses(serve_models, {"same": (CHAT, turns(30, "ok"))})
    assert len(parsed) == 2 * 29
    assert all(parsed)
    parsed.clear()
    statuses(serve_models, {"long": (CHAT, turns(30, "ok", "x" * 7_000))})
    assert len(parsed) == 2 * 29
    assert not any(parsed)
