"""Calls whose ids a server doubles, leaves out or sends as something else: results and approvals refer to unique ids."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import toolspeak as ts
from models.conftest import serving
from replies import answered, delta, frames, native
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Noted
from toolspeak.models.bounded_stream import within_bounds
from toolspeak.types import Note

CALLS = [("remove", {"path": "a"}), ("remove", {"path": "b"}), ("look", {"path": "c"})]
IDS: list[list[Any]] = [["x", "x", "x"], ["x", "", "x"], ["", "", ""], [None, 1, {"a": 1}]]
removed: list[str] = []


def remove(path: str) -> str:
    """Remove a file."""
    removed.append(path)
    return f"removed {path}"


def look(path: str) -> str:
    """Look."""
    return f"saw {path}"


def chat(ids: Sequence[Any]) -> list[bytes]:
    calls = [
        {"id": key, "function": {"name": name, "arguments": json.dumps(arguments)}}
        for (name, arguments), key in zip(CALLS, ids, strict=True)
    ]
    indexed = [{**call, "index": at} for at, call in enumerate(calls)]
    whole = {"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}
    end = delta("tool_calls")
    return [
        json.dumps(whole).encode(),
        frames(delta(tool_calls=calls), end),
        frames(*(delta(tool_calls=[call]) for call in indexed), end),
    ]


def responses(ids: Sequence[Any]) -> list[bytes]:
    items = [
        {"type": "function_call", "id": f"i{at}", "call_id": key, "name": name, "arguments": json.dumps(arguments)}
        for at, ((name, arguments), key) in enumerate(zip(CALLS, ids, strict=True))
    ]
    whole = {"status": "completed", "output": items}
    added = [{"type": "response.output_item.added", "output_index": at, "item": x} for at, x in enumerate(items)]
    done = [{"type": "response.output_item.done", "output_index": at, "item": x} for at, x in enumerate(items)]
    return [json.dumps(whole).encode(), frames(*added, *done, {"type": "response.completed", "response": whole})]


def anthropic(ids: Sequence[Any]) -> list[bytes]:
    blocks = [
        {"type": "tool_use", "id": key, "name": name, "input": arguments}
        for (name, arguments), key in zip(CALLS, ids, strict=True)
    ]
    whole = {"type": "message", "content": blocks, "stop_reason": "tool_use"}
    starts = [{"type": "content_block_start", "index": at, "content_block": x} for at, x in enumerate(blocks)]
    end = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}
    return [json.dumps(whole).encode(), frames(*starts, end, {"type": "message_stop"})]


def ollama(ids: Sequence[Any]) -> list[bytes]:
    calls = [
        {"id": key, "function": {"name": name, "arguments": arguments}}
        for (name, arguments), key in zip(CALLS, ids, strict=True)
    ]
    rows = [{"message": {"tool_calls": [call]}} for call in calls]
    end = {"message": {"content": ""}, "done": True, "done_reason": "stop"}
    return [
        json.dumps({"message": {"tool_calls": calls}, "done": True}).encode() + b"\n",
        "".join(json.dumps(row) + "\n" for row in [*rows, end]).encode(),
    ]


APIS: dict[str, Callable[[Sequence[Any]], list[bytes]]] = {
    "openai": chat, "responses": responses, "anthropic": anthropic, "ollama": ollama,
}  # fmt: skip


@pytest.mark.parametrize("api", APIS)
def test_each_call_of_a_server_can_be_approved(api: str, tmp_path: Path) -> None:
    async def main(body: bytes, ids: Sequence[Any]) -> None:
        removed.clear()
        policy, tools = ts.Policy(allow=["look"]), [remove, look]
        async with serving(body) as server:
            model = ts.model(f"{server.url}#m", api=api)
            paused = await ts.arun("go", tools=tools, model=model, policy=policy)
        first, second = paused.pending
        assert [one.arguments["path"] for one in paused.pending] == ["a", "b"]
        options: Any = {"tools": tools, "policy": policy, "store": tmp_path / "approvals.sqlite"}
        half = await ts.aresume(paused, {second.id: True}, model=native("Done."), **options)
        assert (removed, half.pending) == (["b"], (first,))
        after = await ts.aresume(half.to_json(), {first.id: "no"}, model=native("Done."), **options)
        texts = [str(message.get("content")) for message in after.messages if message.get("role") == "tool"]
        assert (removed, after.text, answered(after.messages)) == (["b"], "Done.", True)
        assert ["not approved: no" in texts[0], *texts[1:]] == [True, "removed b", "saw c"]
        if ids[0] == "x":
            assert first.id == "x"  # the server's own id stays where it can

    for ids in IDS:
        for body in APIS[api](ids):
            asyncio.run(main(body, ids))


def test_no_two_calls_of_a_model_have_one_id() -> None:
    """Also those of a model that a program makes itself, and where an id comes behind the arguments."""

    def passed(*events: Event) -> list[Event]:
        async def main() -> list[Event]:
            return [event async for event in within_bounds(ts.Scripted([events]).stream(ts.Request()))]

        return asyncio.run(main())

    def call(key: str, late: str | None = None) -> list[Event]:
        return [CallStart("look", key), ArgumentsDelta("{}"), CallEnd(id=late)]

    events = [*call("x"), *call("y", late="z"), *call("v", late="v"), *call("w", late="x"), *call("z"), Finished()]
    changed = passed(*events)
    new = changed[-4]
    assert isinstance(new, Noted)
    start = changed[-5]
    assert isinstance(start, CallStart)
    assert start.id not in {"", "x", "y", "z", "v", "w"}
    assert changed == [
        *call("x"), *call("y", late="z"), *call("v", late="v"),
        CallStart("look", "w"), ArgumentsDelta("{}"), Noted(Note("doubled-id", "x")), CallEnd(),
        start, Noted(Note("doubled-id", "z")), ArgumentsDelta("{}"), CallEnd(), Finished(),
    ]  # fmt: skip
    assert passed(*call("x"), *call("y"), Finished()) == [*call("x"), *call("y"), Finished()]
