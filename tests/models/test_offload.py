"""Where a reply is checked depends on what its schema makes of it, not only on its length."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

import toolspeak as ts
from toolspeak import toolbox
from toolspeak.drive import run_sync
from toolspeak.models import offload
from toolspeak.models.http import client
from toolspeak.models.http.client import Http
from toolspeak.models.offload import LARGE, LONG, PlanEnd, next_effect, offloaded
from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker
from toolspeak.plan import prompted
from toolspeak.plan.effects import Ask, Plan
from toolspeak.schema import nonblocking_json
from toolspeak.schema.check import check
from toolspeak.schema.infer import as_tool
from toolspeak.types import Reply, Request, ToolCall


def _kinds(count: int) -> list[dict[str, Any]]:
    return [{"type": "object", "properties": {"k": {"const": i}}, "required": ["k"]} for i in range(count)]


TREE = {
    "anyOf": [
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/tree"}, "b": {"type": "integer"}}, "required": ["b"]},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/tree"}}},
        {"type": "array", "items": {"$ref": "#/$defs/tree"}},
        {"type": "integer"},
    ]
}


def _checking() -> Plan[int]:
    """Ends with the thread that it ran in after the reply."""
    yield Ask(Request())
    return threading.get_ident()


@pytest.mark.parametrize("used", [False, True], ids=["compiled first", "compiled before"])
@pytest.mark.parametrize(
    ("schema", "argument", "beside"),
    [
        ({"anyOf": _kinds(1_500)}, {"k": "q"}, True),
        ({"type": "array", "items": {"anyOf": _kinds(300)}}, [{"k": 1}] * 500, True),
        ({"$ref": "#/$defs/tree"}, [[["5"] * 10] * 10] * 30, True),
        ({"type": "string", "pattern": "(?=a)(a*)*b"}, "a" * 6_900, True),
        ({"type": "string", "pattern": "(?=a)(a*)*b"}, "a" * 690, False),
        ({"anyOf": _kinds(3)}, {"k": 1}, False),
        ({"type": "array", "items": {"type": "integer"}}, [1] * 5_000, False),
    ],
    ids=["many alternatives", "many items", "recursive", "lookahead", "a short text", "few", "none"],
)
def test_a_short_call_of_a_schema_with_many_alternatives_is_checked_beside_the_loop(
    schema: dict[str, Any], argument: Any, beside: bool, used: bool
) -> None:
    definitions = {"$defs": {"tree": TREE}} if "$ref" in schema else {}
    tool = as_tool({"name": "f", "parameters": {"type": "object", "properties": {"x": schema}, **definitions}})
    arguments = {"x": argument}
    if used:
        check(tool, arguments)
    reply = Reply(calls=(ToolCall("1", "f", arguments, json=json.dumps(arguments)),))
    plan = _checking()
    next(plan)
    with pytest.raises(PlanEnd) as end:
        asyncio.run(next_effect(plan, reply, None, Ask(Request(tools=(tool,)))))
    assert (end.value.value != threading.get_ident()) is beside


def test_the_event_loop_shares_the_interpreter_with_two_threads_at_most() -> None:
    """It waits for a turn of each thread, several times in one request."""

    async def go() -> tuple[set[int], set[int]]:
        begun = threading.Event()

        def work() -> int:
            begun.wait()
            return threading.get_ident()

        works = [[asyncio.create_task(offloaded(size, work)) for _ in range(6)] for size in (LARGE, LONG)]
        await asyncio.sleep(0)  # all are waiting for a thread
        begun.set()
        short, long = [set(await asyncio.gather(*some)) for some in works]
        return short, long

    short, long = asyncio.run(go())
    assert len(short) == len(long) == 1
    assert short != long


@pytest.mark.parametrize("size", [LARGE, LONG])
def test_work_may_wait_for_other_work(size: int) -> None:
    """A validator of the user's may ask a model, and the plan that it is called in runs in one of the threads."""
    assert asyncio.run(offloaded(size, lambda: run_sync(offloaded(size, lambda: 1)))) == 1


def test_each_process_has_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    async def both() -> tuple[int, int]:
        parent = await offloaded(LARGE, threading.get_ident)
        monkeypatch.setattr(offload.os, "getpid", lambda: -1)
        return parent, await offloaded(LARGE, threading.get_ident)

    parent, child = asyncio.run(both())
    assert parent != child


@pytest.mark.parametrize("form", [lambda text: ToolCall("1", "f", json.loads(text), text), lambda text: {"name": "f", "arguments": json.loads(text)}])  # fmt: skip
def test_a_toolbox_checks_large_calls_in_a_thread(monkeypatch: pytest.MonkeyPatch, form: Callable[[str], Any]) -> None:
    threads: list[bool] = []
    here, real = threading.get_ident(), toolbox.judged

    def noted(*args: Any) -> Any:
        threads.append(threading.get_ident() == here)
        return real(*args)

    monkeypatch.setattr(toolbox, "judged", noted)

    async def f(x: list[str]) -> int:
        return len(x)

    box = ts.Toolbox(f)
    calls = [form(json.dumps({"x": ["a"] * count})) for count in (3, 60_000)]
    results = asyncio.run(box.arun(calls, approve=lambda _: True))
    assert [result.value for result in results] == [3, 60_000]
    assert sorted(threads) == [False, True]


@pytest.mark.parametrize("api", ["openai", "responses", "anthropic", "ollama"])
@pytest.mark.parametrize(
    "input_", ['a "word" \n\U0001f600\ud800' * 60_000, [1.5] * 60_000, {"a": {1: [2]}, "b": [[]] * 60_000}]
)
def test_a_large_body_is_written_in_small_steps(monkeypatch: pytest.MonkeyPatch, api: Any, input_: Any) -> None:
    steps: list[int] = []
    real = client._in_json

    def counted(value: Any) -> str:
        steps.append(len(text := real(value)))
        return text

    monkeypatch.setattr(client, "_in_json", counted)
    arguments = {"x": input_}
    call = {"type": "function", "id": "1", "function": {"name": "f", "arguments": json.dumps(arguments)}}
    words = {"role": "user", "content": input_ if isinstance(input_, str) else json.dumps(input_)}
    messages = [words, {"role": "assistant", "content": "", "tool_calls": [call]}]
    body = Http("http://localhost:1/v1", "m", api=api).body(Request(messages=messages))
    assert json.dumps(json.loads(body)).encode() == body
    assert len(body) > 4 * nonblocking_json.PIECE
    assert max(steps) <= 13 * nonblocking_json.PIECE  # of an escaped character beyond the first plane: twelve


def test_names_are_written_as_the_standard_library_writes_them() -> None:
    value = {1: [], None: {}, False: {"a": 1.5}, 2.5: [1]}
    assert "".join(nonblocking_json.written(value, json.dumps)) == json.dumps(value)


@pytest.mark.parametrize("properties", [10, 3_000])
def test_a_prompt_with_a_large_schema_is_rendered_in_a_thread(properties: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[int] = set()
    real = prompted.render

    def noted(*arguments: Any, **options: Any) -> Any:
        seen.add(threading.get_ident())
        return real(*arguments, **options)

    monkeypatch.setattr(prompted, "render", noted)
    schema = {
        "type": "object",
        "properties": {f"p{i}": {"type": "string", "title": "x" * 20} for i in range(properties)},
    }
    model = Speaker(Scripted(["Hi"]), "hermes")

    async def go() -> bool:
        request = Request([{"role": "user", "content": "Hi"}], tools=(as_tool({"name": "f", "parameters": schema}),))
        async for _ in model.stream(request):
            pass
        return threading.get_ident() in seen

    assert asyncio.run(go()) == (properties == 10)
