"""What takes long is not done on the event loop, and what is done there comes in small steps: nobody waits behind a request.

Nothing here looks at a clock: what counts is in which thread work is done, and how much of it comes between two turns.
"""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import aiohttp
import pytest
from aiohttp import web

import endless
from listening import listening
from toolspeak.api import openai_chat
from toolspeak.events import CallEnd, CallStart, Finished, Logprobs, TextDelta
from toolspeak.gateway import app, body, generation, tool_cache
from toolspeak.gateway.limits import memory_trimming
from toolspeak.models import native
from toolspeak.models.bounded_stream import IN_A_ROW, PIECE, TOKENS, within_bounds
from toolspeak.models.http import Http, read_timeout
from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker
from toolspeak.plan import decide, prompted
from toolspeak.plan.stray_markers import LONGEST, StrayMarkers
from toolspeak.types import Request
from toolspeak.wire.reading import collect

CHAT = "/v1/chat/completions"
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"x": {}}}}}]


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[bool]]:
    """For each work that can take long, whether it was done in this thread."""
    here = threading.get_ident()
    seen: dict[str, set[bool]] = {}

    def noting(where: Any, name: str) -> None:
        real = getattr(where, name)

        def noted(*args: Any, **options: Any) -> Any:
            seen.setdefault(name, set()).add(threading.get_ident() == here)
            return real(*args, **options)

        monkeypatch.setattr(where, name, noted)

    for where, name in (
        (prompted, "render"),
        (decide, "json_text"),
        (generation, "with_estimate"),
        (Http, "_written"),
        (collect, "_call"),
        (native, "cleaned_request"),
    ):
        noting(where, name)
    return seen


def posted(serve_models: Callable[..., Any], model: Any, *sent: dict[str, Any]) -> list[int]:
    async def go() -> list[int]:
        async with serve_models(m=model) as running, aiohttp.ClientSession() as session:
            told: list[int] = []
            for one in sent:
                async with session.post(running.url + CHAT, json={"model": "m", **one}) as reply:
                    await reply.read()
                    told.append(reply.status)
            return told

    return asyncio.run(go())


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


PARTS = {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}] * 3000}]}


def test_a_long_prompt_is_rendered_and_counted_in_a_thread(
    serve_models: Callable[..., Any], threads: dict[str, set[bool]]
) -> None:
    for sent, here in ((said("Hi"), True), (said("<s> " * 50_000), False), (PARTS, False)):
        threads.clear()
        assert posted(serve_models, Speaker(Scripted("Hello"), "hermes"), {**sent, "tools": TOOLS}) == [200]
        assert threads == {"render": {here}, "with_estimate": {here}}


@pytest.mark.parametrize("count", [10, 45_000])
def test_long_arguments_are_parsed_in_a_thread(
    serve_models: Callable[..., Any], threads: dict[str, set[bool]], count: int
) -> None:
    model = Speaker(
        Scripted(
            json.dumps({"name": "f", "arguments": {"x": [[]] * count}}).join(("<tool_call>", "</tool_call>")),
            chunk=1000,
        ),
        "hermes",
    )
    assert posted(serve_models, model, {**said("Hi"), "tools": TOOLS}) == [200]
    assert threads["_call"] == {count == 10}


def test_the_markers_of_a_long_conversation_are_broken_in_a_thread(
    serve_models: Callable[..., Any], threads: dict[str, set[bool]]
) -> None:
    async def go() -> None:
        async with serve_models(m=Scripted("Hello", repeat=True)) as behind:
            for text, here in (("Hi", True), ("x" * 200_000, False)):
                threads.clear()
                server = native.Native(Http(behind.url + "/v1", "m"))
                async for _ in server.stream(Request([{"role": "user", "content": text}])):
                    pass
                assert threads["cleaned_request"] == {here}

    asyncio.run(go())


@pytest.mark.parametrize("size", [10, 60_000])
def test_a_long_reply_is_judged_in_a_thread(
    serve_models: Callable[..., Any], threads: dict[str, set[bool]], size: int
) -> None:
    model = Speaker(Scripted(json.dumps([1] * size), chunk=1000), "hermes")
    form = {"type": "json_schema", "json_schema": {"name": "r", "schema": {"type": "array"}}}
    assert posted(serve_models, model, {**said("Hi"), "response_format": form}) == [200]
    assert threads["json_text"] == threads["with_estimate"] == {size == 10}


def test_a_long_request_to_a_server_is_written_in_a_thread(
    serve_models: Callable[..., Any], threads: dict[str, set[bool]]
) -> None:
    async def go() -> None:
        async with serve_models(m=Scripted("Hello", repeat=True)) as behind:
            for text, here in (("Hi", True), ("x" * 200_000, False)):
                threads.clear()
                async for _ in Http(behind.url + "/v1", "m").stream(Request([{"role": "user", "content": text}])):
                    pass
                assert threads["_written"] == {here}

    asyncio.run(go())


def test_a_request_that_is_left_while_a_thread_works_for_it_ends_well(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        model = Speaker(Scripted(json.dumps([1] * 200_000), chunk=100_000, repeat=True), "hermes")
        form = {"type": "json_schema", "json_schema": {"name": "r", "schema": {"type": "array"}}}
        async with serve_models(m=model) as running, aiohttp.ClientSession() as session:
            for wait in (0.0, 0.02, 0.1):
                body = {"model": "m", **said("<s> " * 50_000), "response_format": form}
                asking = asyncio.create_task(session.post(running.url + CHAT, json=body))
                await asyncio.sleep(wait)
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
            async with session.post(running.url + CHAT, json={"model": "m", **said("Hi")}) as reply:
                assert reply.status == 200

    asyncio.run(go())


def test_others_get_their_turn_while_nothing_of_a_reply_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that sends a megabyte of events of which nothing comes is read in small pieces, with turns between them."""
    turns = 0
    seen: list[tuple[int, int]] = []
    real = openai_chat.ReplyReader.feed

    def feed(self: Any, chunk: bytes) -> Any:
        seen.append((len(chunk), turns))
        return real(self, chunk)

    monkeypatch.setattr(openai_chat.ReplyReader, "feed", feed)

    async def reply(request: web.Request) -> web.Response:
        text = b'data: {"choices": []}\n\n' * 50_000 + endless.sent(
            {"choices": [{"index": 0, "delta": {"content": "Hi"}}]}
        )
        return web.Response(body=text + b"data: [DONE]\n\n", content_type="text/event-stream")

    async def go() -> str:
        nonlocal turns

        async def take_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with listening(reply, CHAT) as url:
            others = asyncio.create_task(take_turns())
            stream = Http(url, "m").stream(Request([{"role": "user", "content": "Hi"}]))
            text = "".join([event.text async for event in stream if isinstance(event, TextDelta)])
            others.cancel()
        return text

    assert asyncio.run(go()) == "Hi"
    fed = [row for row in seen if row[0]]
    assert max(size for size, _ in fed) <= read_timeout.PIECE
    assert all(after > before for (size, before), (_, after) in pairwise(fed) if size == read_timeout.PIECE)


def test_others_get_their_turn_while_a_reply_comes_at_once() -> None:
    """A server that sends a whole reply in one piece, or a model that never waits, keeps nobody from running."""

    async def go() -> tuple[int, list[Any]]:
        turns, over = 0, False

        async def others() -> None:
            nonlocal turns
            while not over:
                turns += 1
                await asyncio.sleep(0)

        async def never_waits() -> Any:
            for _ in range(50 * IN_A_ROW):
                yield TextDelta("a")
            yield TextDelta("b" * 10 * PIECE)
            yield Logprobs([{"token": "c"}] * 10 * TOKENS)
            yield CallStart("f", "1")
            yield CallEnd()
            yield Finished()

        task = asyncio.create_task(others())
        events = [event async for event in within_bounds(never_waits())]
        over = True
        await task
        return turns, events

    turns, events = asyncio.run(go())
    assert turns >= 70
    texts = [event.text for event in events if isinstance(event, TextDelta)]
    assert "".join(texts) == "a" * 50 * IN_A_ROW + "b" * 10 * PIECE
    assert max(map(len, texts)) == PIECE
    assert [len(event.tokens) for event in events if isinstance(event, Logprobs)] == [TOKENS] * 10


@pytest.mark.parametrize("run", ["<tool_call>", "\n<tool_call>\n", "<|python_tag|>", "[TOOL_CALLS]"])
def test_a_run_of_markers_is_held_back_no_further_than_a_call_could_need(run: str) -> None:
    """What is held back is looked at again with each piece: so it is bounded."""
    stray, told = StrayMarkers(), 0
    for number in range(1, 1000):
        told += sum(len(event.text) for event in stray.feed([TextDelta(run)]) if isinstance(event, TextDelta))
        assert number * len(run) - told <= LONGEST
    assert [event.text for event in stray.feed([TextDelta("x"), Finished()]) if isinstance(event, TextDelta)]


def test_a_million_broken_markers_are_not_a_million_notes() -> None:
    async def go() -> int:
        model = Speaker(Scripted("Hello"), "hermes")
        request = Request([{"role": "user", "content": "<|im_start|>" * 20_000}])
        return len([event async for event in model.stream(request)])

    assert asyncio.run(go()) < 2000


# ------------------------------------------------------------------ what is left of a request


def test_what_a_refused_request_held_is_let_go_of_at_once(
    serve_models: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No circle of an error, its traceback and its request waits for the garbage collector."""
    bodies: list[Any] = []
    real = body.parse_body

    class Body(dict[str, Any]):
        pass

    def parsed(*args: Any) -> Any:
        made = Body(real(*args))
        bodies.append(weakref.ref(made))
        return made

    monkeypatch.setattr(body, "parse_body", parsed)
    gc.collect()
    gc.disable()
    try:
        wrong = [{"messages": [{"role": 1}] * 5}, {"messages": [{"role": 1}] * 20_000}, {**said("Hi"), "model": "none"}]
        assert posted(serve_models, Scripted("Hello", repeat=True), *wrong) == [400, 400, 404]
        assert [one() for one in bodies] == [None] * 3
    finally:
        gc.enable()


def test_a_request_is_let_go_of_when_it_has_been_answered(
    serve_models: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No circle through the task that watches for the client's leaving waits for the garbage collector, either."""
    requests: list[Any] = []

    class Noted(app.HttpExchange):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            requests.append(weakref.ref(self))

    monkeypatch.setattr(app, "HttpExchange", Noted)
    gc.collect()
    gc.disable()
    try:
        want = {"response_format": {"type": "json_object"}}
        sent = [
            said("Hi"),
            {**said("Hi"), "stream": True},
            {**said("Hi"), **want},
            {**said("Hi"), **want, "stream": True},
        ]
        assert posted(serve_models, Scripted("No JSON", repeat=True), *sent) == [200, 200, 502, 502]
        assert [one() for one in requests] == [None] * 4
    finally:
        gc.enable()


def test_memory_is_given_back_once_for_many_large_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_trimming, "SOON", 0)
    given: list[int] = []

    async def go() -> None:
        trimmer = memory_trimming.Trimmer(lambda: given.append(threading.get_ident()))
        for size in (10, memory_trimming.LARGE, memory_trimming.LARGE, memory_trimming.LARGE):
            trimmer.ended(size)
        while not given:
            await asyncio.sleep(0.001)

    asyncio.run(go())
    assert len(given) == 1
    assert threading.get_ident() not in given


def test_memory_is_given_back_after_calls_that_ran_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a tool answered may be far larger than the request and its reply."""
    monkeypatch.setattr(memory_trimming, "SOON", 0)
    given: list[int] = []

    async def go() -> None:
        trimmer = memory_trimming.Trimmer(lambda: given.append(1))
        trimmer.ended(10, ran=1)
        while not given:
            await asyncio.sleep(0.001)

    asyncio.run(go())


def test_no_request_loads_the_libraries_of_requests() -> None:
    """They take a tenth of a second, on the event loop: a gateway that is ready has them."""
    loads = "import sys; from toolspeak.gateway.endpoints import health; health.import_libraries(); before = {*sys.modules}\n"
    asks = "from toolspeak.gateway.body import check_body; from toolspeak.api import openai_chat\n"
    asks += "check_body({'model': 'm', 'messages': [{'role': 'user', 'content': 'Hi'}]}, openai_chat.BODY)\n"
    shows = "print({one.partition('.')[0] for one in {*sys.modules} - before} - {'toolspeak'})"
    done = subprocess.run([sys.executable, "-c", loads + asks + shows], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize(
    ("pattern", "in_thread"),
    [("^[a-z]+$", False), ("^[a-z]{1,900}$", True), (r"^\\p{L}+$", True), (r"^[a-z]{\u0039}$", True)],
)
def test_tools_with_costly_patterns_are_made_in_a_thread(
    pattern: str, in_thread: bool, serve_models: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    here: set[bool] = set()
    loop = threading.get_ident()
    real = tool_cache.as_tools

    def noted(described: Any) -> Any:
        here.add(threading.get_ident() == loop)
        return real(described)

    monkeypatch.setattr(tool_cache, "as_tools", noted)
    raw = (
        '{"model": "m", "messages": [{"role": "user", "content": "Hi"}], "tools": [{"type": "function", "function":'
        ' {"name": "f", "parameters": {"type": "object", "properties": {"x": {"pattern": "' + pattern + '"}}}}}]}'
    )

    async def go() -> None:
        async with serve_models(m=Scripted(["Hi"], repeat=True)) as running, aiohttp.ClientSession() as session:
            headers = {"Content-Type": "application/json"}
            async with session.post(running.url + CHAT, data=raw, headers=headers) as answer:
                assert answer.status == 200, await answer.text()

    asyncio.run(go())
    assert here == {not in_thread}


ONE_PROCESS = """
import sys
from toolspeak.gateway.config.settings import GatewaySettings
from toolspeak.gateway.serve import server

async def run(*_):
    print(sys.getswitchinterval() < usual)

usual, server.run = sys.getswitchinterval(), run
server.work(GatewaySettings({}, port=0), None)
"""


def test_threads_of_a_gateway_give_the_interpreter_back_soon() -> None:
    done = subprocess.run([sys.executable, "-c", ONE_PROCESS], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
