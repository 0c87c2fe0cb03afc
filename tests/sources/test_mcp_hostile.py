"""MCP servers over HTTP that attack their client: what they repeat, what they send unasked, and what they make it do twice."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import web

import toolspeak as ts
from toolspeak import secret_removal
from toolspeak.models.offload import LARGE
from toolspeak.schema import nonblocking_json
from toolspeak.secret_removal import Secrets
from toolspeak.sources import background_loop, pins
from toolspeak.sources.mcp import limits, session
from toolspeak.sources.mcp.server_questions import AT_ONCE, MOST
from toolspeak.sources.pins import Pins

pytest.importorskip("mcp", reason="the extra mcp is not installed")
from mcp_types import methods as _methods

KEY = "sk-a-secret-key-of-somebody-1234567890"
PATIENT = 600.0
TOOL = {"name": "act", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}


class Hostile:
    """A server that is right in everything, as far as `answers` (by method) and `stream` do not say otherwise."""

    def __init__(self, stream: Any = None, modern: bool = False, **answers: Any) -> None:
        self.stream = stream
        self.modern = modern
        self.answers = answers
        self.streams = 0
        self.calls: list[str] = []
        self.replies: list[dict[str, Any]] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            self.streams += 1
            return await self.stream(request) if self.stream else web.Response(status=405)
        if request.method == "DELETE":
            return web.Response()
        LATEST[:] = [request]
        message = await request.json()
        if "method" not in message:
            self.replies.append(message)
        if "id" not in message or "method" not in message:
            return web.Response(status=202)
        answer = self.answers.get(message["method"].replace("/", "_"))
        if answer is not None:
            value = answer(self, message) if callable(answer) else answer
            value = await value if asyncio.iscoroutine(value) else value
        else:
            value = self.right(message)
        if isinstance(value, web.StreamResponse):
            return value
        response = web.json_response({"jsonrpc": "2.0", "id": message["id"], **value})
        response.headers["Mcp-Session-Id"] = "1"
        return response

    def right(self, message: dict[str, Any]) -> dict[str, Any]:
        method, about = (
            message["method"],
            {"capabilities": {"tools": {}}, "serverInfo": {"name": "web", "version": "1"}},
        )
        if method == "server/discover" and not self.modern:
            return error("no such method")
        if method == "server/discover":
            return {"result": {"resultType": "complete", "supportedVersions": ["2026-07-28"], **about}}
        if method == "initialize":
            return {"result": {"protocolVersion": "2025-06-18", **about}}
        if method == "tools/list":
            return {"result": {"resultType": "complete", "tools": [TOOL], "ttlMs": 0, "cacheScope": "private"}}
        if method == "tools/call":
            self.calls.append(message["params"]["arguments"].get("text", ""))
        return {"result": {"content": [{"type": "text", "text": "done"}]}}


def error(text: str) -> dict[str, Any]:
    return {"error": {"code": -32603, "message": text}}


@contextmanager
def serving(server: Hostile) -> Iterator[str]:
    """Serve in a thread, and yield the address."""
    loop, ready, urls = asyncio.new_event_loop(), threading.Event(), list[str]()

    async def start() -> web.AppRunner:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", server.handle)
        runner = web.AppRunner(app, shutdown_timeout=0, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        urls.append(f"http://127.0.0.1:{runner.addresses[0][1]}/mcp")
        ready.set()
        return runner

    def run() -> None:
        runner = loop.run_until_complete(start())
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready.wait()
    try:
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def tools_of(url: str, **options: Any) -> Any:
    return ts.mcp(url, **{"timeout": PATIENT, "pins": False, **options})


def call(box: Any, text: str = "") -> Any:
    return box.call({"name": "act", "arguments": {"text": text}})


def until(true: Callable[[], bool]) -> None:
    while not true():
        time.sleep(0.01)


# ------------------------------------------------------------------ what they repeat


def _redirect(*_: Any) -> web.Response:
    return web.Response(status=307, headers={"Location": f"http://127.0.0.1:1/{KEY}"})


def _words(text: str, kind: str = "application/json") -> Callable[..., web.Response]:
    return lambda *_: web.Response(text=text, content_type=kind)


INITIALIZED = {
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "web", "version": "1"},
    "protocolVersion": "2025-06-18",
}


async def _broken_off(*_: Any) -> web.StreamResponse:
    """A response whose next chunk begins with the key in place of its size."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.enable_chunked_encoding()
    await response.prepare(LATEST[-1])
    cast("asyncio.Transport", LATEST[-1].transport).write(KEY.encode() + b"\r\n")
    return response


LATEST: list[web.Request] = []
"""The requests that a server gets, where an answer needs them."""
ECHOES: dict[str, dict[str, Any]] = {
    "no session": {"initialize": error(f"I know {KEY}")},
    "redirect": {"initialize": _redirect},
    "version": {"initialize": {"result": {**INITIALIZED, "protocolVersion": KEY}}},
    "capabilities": {"initialize": {"result": {**INITIALIZED, "capabilities": KEY}}},
    "list": {"tools_list": error(f"I know {KEY}")},
    "list of another shape": {"tools_list": {"result": {"tools": [{KEY: 1}]}}},
    "name": {"tools_list": {"result": {"tools": [{**TOOL, "name": f"{KEY} "}]}}},
    "call": {"tools_call": error(f"I know {KEY}")},
    "result": {"tools_call": {"result": {"content": [{"type": KEY}]}}},
    "field of a result": {"tools_call": {"result": {"content": [], "_meta": [KEY]}}},
    "no message": {"tools_call": _words(json.dumps({"a" * 30: KEY}))},
    "no event": {"tools_call": _words(f'data: {{"{KEY}": 1}}\n\n', "text/event-stream")},
    "redirected call": {"tools_call": _redirect},
    "coding": {"tools_call": lambda *_: web.Response(body=b"{}", headers={"Content-Encoding": KEY, "Content-Type": "application/json"})},
    "chunk": {"tools_call": _broken_off},
    "question": {
        "modern": True,
        "tools_call": {
            "result": {
                "resultType": "input_required",
                "inputRequests": {
                    "a": {"method": "elicitation/create", "params": {"message": f"Is {KEY} yours?", "requestedSchema": {"type": "object", "properties": {}}}}
                },
            }
        },
    },
}  # fmt: skip


@pytest.mark.parametrize("place", ECHOES)
def test_no_error_brings_a_key_back(place: str, caplog: pytest.LogCaptureFixture) -> None:
    with serving(Hostile(**ECHOES[place])) as url, caplog.at_level(logging.DEBUG, "toolspeak"):
        box = tools_of(url, headers={"Authorization": f"Bearer {KEY}"})
        with pytest.raises(ts.ToolspeakError) as caught:
            call(box)
        box.close()
    ours = "".join(record.getMessage() for record in caplog.records if record.name.startswith("toolspeak"))
    told = "".join(traceback.format_exception(caught.value)) + ours
    assert not [part for part in (KEY, KEY[:12], KEY[-12:]) if part in told]


@pytest.mark.parametrize("modern", [True, False])
def test_no_question_shows_a_key(modern: bool) -> None:
    """Neither its text, nor its schema, nor the address to open; and the server does not read a password in what the
    function raises."""
    field = {"type": "string", "description": f"not {KEY}", "enum": ["yes", KEY.encode().hex()]}
    schema = {"type": "object", "properties": {"sure": field, KEY: {"type": "string"}}}
    form = {"mode": "form", "message": f"Is {KEY} yours?", "requestedSchema": schema}
    link = {"mode": "url", "message": "Log in:", "url": f"http://127.0.0.1:9/?key={KEY}", "elicitationId": "1"}
    asked: list[Any] = []

    def elicit(*question: Any) -> Any:
        asked.append(question)
        raise ValueError("no http://ann:open-sesame@127.0.0.1/ here")

    async def answer(server: Hostile, message: dict[str, Any]) -> Any:
        if modern:
            query = {"method": "elicitation/create", "params": [form, link][len(asked)]}
            return {"result": {"resultType": "input_required", "inputRequests": {"a": query}}}
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(LATEST[-1])
        for at, one in enumerate((form, link), 1):
            await response.write(events({"id": at, "method": "elicitation/create", "params": one}))
            while len(server.replies) < at:
                await asyncio.sleep(0.001)
        await response.write(
            events({"id": message["id"], "result": {"content": [{"type": "text", "text": f"{server.replies}"}]}})
        )
        return response

    with serving(Hostile(modern=modern, tools_call=answer)) as url:
        with tools_of(url, headers={"Authorization": f"Bearer {KEY}"}, elicit=elicit) as box:
            if modern:
                for _ in range(2):
                    with pytest.raises(ts.ToolError) as caught:
                        call(box)
                    assert "the question was not answered: no http://ann:[hidden]@127.0.0.1/ here" in str(caught.value)
            else:
                assert (
                    str(call(box)).count("the question was not answered: no http://ann:[hidden]@127.0.0.1/ here") == 2
                )
    clean = json.loads(json.dumps(schema).replace(KEY, "[hidden]").replace(KEY.encode().hex(), "[hidden]"))
    empty = {"type": "object", "properties": {}}
    assert asked == [("Is [hidden] yours?", clean), ("Log in:\nhttp://127.0.0.1:9/?key=[hidden]", empty)]


@pytest.mark.parametrize("key", [KEY, '"begins-so', "ends-with\\", "12345678", 'with\\"both'])
def test_data_keeps_its_shape_without_a_key(key: str) -> None:
    data = {"a": [f"\\\\{key}", key, {key: 1}], "b": f"{key}\\", "c": {"d": f'"{key}"', "e": None}, "f": "fine"}
    clean = Secrets([key]).out_of_data(data)
    assert set(clean) == {"a", "b", "c", "f"}
    assert (clean["a"][1:], clean["f"], clean["c"]["e"]) == (["[hidden]", {"[hidden]": 1}], "fine", None)
    assert key not in "".join([clean["a"][0], clean["b"], clean["c"]["d"]])


def test_a_number_that_is_a_key_becomes_a_text() -> None:
    assert Secrets(["12345678"]).out_of_data([12345678, 1]) == ["[hidden]", 1]


@pytest.mark.parametrize("piece", [1, 7, 40, 1000])
def test_a_text_is_searched_in_pieces(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_removal, "PIECE", piece)
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    parts = [KEY, escaped, KEY.encode().hex(), KEY[:-1], "%" * 9]
    text = "".join(f"{'x' * at}{part}" for at, part in enumerate(parts * 5))
    expected = text.replace(KEY, "[hidden]").replace(escaped, "[hidden]").replace(KEY.encode().hex(), "[hidden]")
    assert Secrets([KEY]).out_of(text, exact=True) == expected


# ------------------------------------------------------------------ what they make it do twice


@pytest.mark.parametrize("later", [0, 0.001, 0.003])
def test_a_call_that_ran_is_not_made_again_because_another_one_was_refused(later: float) -> None:
    """404 says that the session is forgotten, which concerns only the call that it answers."""
    both, first = asyncio.Event(), dict[str, bool]()

    async def answer(server: Hostile, message: dict[str, Any]) -> Any:
        text = message["params"]["arguments"]["text"]
        server.calls.append(text)
        if server.calls.count(text) > 1:
            return server.right(message)
        first[text] = True
        if len(first) == 2:
            both.set()
        await both.wait()
        if text == "refused":
            return web.Response(status=404)
        await asyncio.sleep(later)
        return error("it failed after it had run")

    server = Hostile(tools_call=answer)
    calls = [{"id": text, "name": "act", "arguments": {"text": text}} for text in ("ran", "refused")]
    with serving(server) as url, tools_of(url) as box:
        asyncio.run(box.arun(calls))
    assert server.calls.count("ran") == 1
    assert server.calls.count("refused") > 1


# ------------------------------------------------------------------ what they send unasked


def events(*messages: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n\n" for one in messages)


def streaming(data: bytes) -> Any:
    """A stream that sends some events, and stays open."""

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(data)
        await asyncio.sleep(PATIENT)
        return response

    return stream


def questions(count: int) -> bytes:
    params = {"message": "Who?", "mode": "form", "requestedSchema": {"type": "object", "properties": {}}}
    return events(*({"id": at, "method": "elicitation/create", "params": params} for at in range(count)))


def test_a_stream_that_ends_all_the_time_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STREAMS", 5)

    async def stream(_: web.Request) -> web.Response:
        return web.Response(text="retry: 0\nid: 1\ndata:\n\n", content_type="text/event-stream")

    server = Hostile(stream)
    with serving(server) as url, tools_of(url) as box:
        until(lambda: server.streams >= 5)
        assert [call(box) for _ in range(40)] == ["done"] * 40
    assert server.streams == 5


def test_notifications_without_end_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FLOOD", 100_000)
    note = events({"method": "notifications/message", "params": {"level": "info", "data": "x" * 4096}})
    sent: list[int] = []

    async def stream(request: web.Request) -> web.StreamResponse:
        at = len(sent)
        sent.append(0)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        while True:
            await response.write(note)
            sent[at] += len(note)

    server = Hostile(stream)
    with serving(server) as url, tools_of(url) as box:
        until(lambda: server.streams >= 2)  # the first one was cut
        assert call(box) == "done"
    assert sent[0] < limits.LARGEST  # what the sockets hold, and not the limit of an answer


def test_no_question_is_answered_outside_a_call() -> None:
    asked: list[str] = []
    server = Hostile(streaming(questions(30)))
    with serving(server) as url, tools_of(url, elicit=lambda message, _: asked.append(message) or {}) as box:
        until(lambda: len(server.replies) == 30)
        assert call(box) == "done"
    assert asked == []
    assert {one["error"]["message"] for one in server.replies} == {
        "the question was not answered: no call is running that it could belong to"
    }


@pytest.mark.parametrize(("slow", "answered"), [(True, AT_ONCE), (False, MOST)])
def test_the_questions_of_a_call_have_a_limit(slow: bool, answered: int) -> None:
    over, count = threading.Event(), MOST + 20

    async def answer(server: Hostile, message: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(requests[-1])
        for at, one in enumerate(questions(count).split(b"\n\n")[:-1], 1):
            await response.write(one + b"\n\n")
            while not slow and len(server.replies) < at:
                await asyncio.sleep(0.001)
        while len(asked) <= answered and len([one for one in server.replies if "error" in one]) < count - answered:
            await asyncio.sleep(0.001)
        over.set()
        while len(server.replies) < count:
            await asyncio.sleep(0.001)
        await response.write(events({"id": message["id"], **server.right(message)}))
        return response

    asked: list[str] = []

    def elicit(message: str, _: Any) -> dict[str, Any]:
        asked.append(message)
        if slow:
            over.wait(PATIENT)
        return {}

    requests: list[web.Request] = []
    server = Hostile(tools_call=answer)
    handle = server.handle

    async def remembering(request: web.Request) -> web.StreamResponse:
        requests.append(request) if b"tools/call" in await request.read() else None
        return await handle(request)

    server.handle = remembering  # type: ignore[method-assign]
    with serving(server) as url, tools_of(url, elicit=elicit) as box:
        assert call(box) == "done"
    assert len(asked) == answered


# ------------------------------------------------------------------ many tools


def test_pages_may_not_have_more_tools_than_a_list() -> None:
    def page(server: Hostile, message: dict[str, Any]) -> dict[str, Any]:
        begin = int((message.get("params") or {}).get("cursor", 0))
        tools = [{**TOOL, "name": f"t{begin + at}"} for at in range(10_001)]
        return {"result": {"tools": tools, "nextCursor": str(begin + len(tools))}}

    with serving(Hostile(tools_list=page)) as url:
        with pytest.raises(ts.ToolError, match="lists more than 20,000 tools"):
            tools_of(url).open()


def test_a_list_may_have_many_pages_but_not_without_end() -> None:
    def page(server: Hostile, message: dict[str, Any]) -> dict[str, Any]:
        at = int((message.get("params") or {}).get("cursor", 0)) + 1
        more = {"nextCursor": str(at)} if at < last else {}
        return {"result": {"tools": [{**TOOL, "name": f"t{at}"}], **more}}

    last = 150
    with serving(Hostile(tools_list=page)) as url:
        assert len(list(tools_of(url).open())) == 150
        last = 2_000
        with pytest.raises(ts.ToolError, match="more than 1,000 pages"):
            tools_of(url).open()


def test_who_gives_up_does_not_wait_until_the_request_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK waits for seconds until it can send the notice, where the server does not take the message before it."""
    released = threading.Event()

    async def stubborn(_: Any) -> Any:
        try:
            await asyncio.sleep(PATIENT)
        finally:
            await asyncio.shield(asyncio.to_thread(released.wait))

    monkeypatch.setattr(session, "listed", stubborn)
    with serving(Hostile()) as url:
        with pytest.raises(ts.ToolError, match=r"gave no session and no tools within 0\.3 s"):
            tools_of(url, timeout=0.3).open()
        assert not released.is_set()
        released.set()


def test_definitions_are_checked_beside_the_loop_of_all_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the check ends when nobody waits for it any more."""
    real, threads, waits = session.refuse_hostile, set[int](), threading.Event()

    def watching(name: Any, *more: Any, **others: Any) -> None:
        threads.add(threading.get_ident())
        checked.append(name)
        if len(checked) == 3:
            waits.wait(PATIENT)
        real(name, *more, **others)

    checked: list[str] = []
    monkeypatch.setattr(session, "refuse_hostile", watching)
    tools = [{**TOOL, "name": f"t{at}"} for at in range(10)]
    with serving(Hostile(tools_list={"result": {"tools": tools}})) as url:
        with pytest.raises(ts.ToolError, match="gave no session and no tools within 2 s"):
            tools_of(url, timeout=2).open()
        waits.set()
        checked[:] = []
        assert len(list(tools_of(url).open())) == 10
    assert background_loop.wait(_thread()) not in threads


async def _thread() -> int:
    return threading.get_ident()


def test_the_pins_of_a_server_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that renames its tools all the time fills no disk."""
    store = Pins(tmp_path / "pins.json")
    monkeypatch.setattr(pins, "MOST", 3)
    for name in "abc":
        store.changed("mcp:x", [{"name": name}])
    before = store.path.read_text()
    with pytest.raises(
        ts.UsageError, match=r"mcp:x has offered too many tools by now: .*pins.json may have 3 definitions"
    ):
        store.changed("mcp:x", [{"name": "d"}])
    assert store.path.read_text() == before
    assert store.changed("mcp:x", [{"name": "a"}]) == {}
    monkeypatch.setattr(pins, "LARGEST", 1000)
    with pytest.raises(ts.UsageError, match="with 1,000 characters"):
        store.changed("mcp:y", [{"name": "a", "description": "x" * 1000}])


HALVES = r"""
import json, sys
TOOL = {"name": "cut", "inputSchema": {"type": "object", "properties": {"how": {}}}, "description": "half an emoji \ud83d"}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    head = b'{"jsonrpc": "2.0", "id": ' + json.dumps(asked["id"]).encode() + b', "result": '
    if asked["method"] == "tools/call":
        text = {"byte": b'"a\xff"', "half": b'"a\\ud83d"', "nothing": b"]", "many": b"[" + b"1," * 100_001 + b"1]"}[asked["params"]["arguments"]["how"]]
        body = b'{"content": [{"type": "text", "text": ' + text + b"}]}"
    elif asked["method"] == "tools/list":
        body = json.dumps({"tools": [TOOL]}).encode()
    elif asked["method"] == "initialize":
        given = asked["params"]["protocolVersion"]
        body = json.dumps({"protocolVersion": given, "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}).encode()
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    sys.stdout.buffer.write(head + body + b"}\n")
    sys.stdout.buffer.flush()
"""


def test_half_a_character_is_replaced_and_what_cannot_be_read_fails_at_once(tmp_path: Path) -> None:
    """The call hung until its time limit, and its reason was the time."""
    (tmp_path / "halves.py").write_text(HALVES)
    with ts.mcp([sys.executable, str(tmp_path / "halves.py")], timeout=PATIENT) as box:
        assert next(iter(box)).description == "half an emoji \ufffd"
        for how in ("byte", "half"):
            assert "a\ufffd" in str(box.call({"name": "cut", "arguments": {"how": how}}))
        with pytest.raises(ts.ToolError, match="the server's response is not valid"):
            box.call({"name": "cut", "arguments": {"how": "nothing"}})
        with pytest.raises(ts.ToolError, match="more than 100,000 values"):
            box.call({"name": "cut", "arguments": {"how": "many"}})


@pytest.mark.parametrize(
    ("result", "why"),
    [
        ({"content": [], "structuredContent": {"names": [1] * 100_001}}, "more than 100,000 values"),
        ({"content": [{"type": "text", "text": ""}] * 5_001}, "more than 5,000 content blocks"),
    ],
)
def test_an_answer_has_a_limit_of_values(result: dict[str, Any], why: str) -> None:
    """The interpreter does nothing else while the SDK parses one."""
    server = Hostile(tools_call=lambda self, message: {"result": result})
    with serving(server) as url, ts.mcp(url, timeout=PATIENT) as box, pytest.raises(ts.ToolError, match=why):
        box.call({"name": "act", "arguments": {"text": "x"}})


@pytest.mark.parametrize("kind", ["text", "resource", "data"])
@pytest.mark.parametrize("size", [10, LARGE])
def test_large_answers_share_one_thread(monkeypatch: pytest.MonkeyPatch, kind: str, size: int) -> None:
    """One of each answer's own would compete with the event loop for the interpreter."""
    text, threads, real = "x" * size, list[str](), session.value_of

    def noted(result: Any) -> Any:
        threads.append(threading.current_thread().name)
        return real(result)

    monkeypatch.setattr(session, "value_of", noted)
    block = (
        {"type": "text", "text": text}
        if kind == "text"
        else {"type": "resource", "resource": {"uri": "a:b", "text": text}}
    )
    result = {"content": [], "structuredContent": {"x": text}} if kind == "data" else {"content": [block]}
    server = Hostile(tools_call=lambda self, message: {"result": result})
    with serving(server) as url, ts.mcp(url, timeout=PATIENT) as box:
        for _ in range(2):
            assert text in str(call(box))
    assert len(set(threads)) == 1
    assert ("work" in threads[0]) == (size == LARGE)


def test_a_long_list_of_tools_is_counted_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its characters are counted, which was one step for 16 MB."""
    steps, real = list[int](), nonblocking_json._encode

    def noted(value: Any) -> str:
        steps.append(len(text := real(value)))
        return text

    monkeypatch.setattr(nonblocking_json, "_encode", noted)
    tools = [{**TOOL, "name": f"act{number}", "description": "x" * 1_000} for number in range(500)]
    with (
        serving(Hostile(tools_list={"result": {"tools": tools}})) as url,
        ts.mcp(url, timeout=PATIENT, pins=False) as box,
    ):
        assert len(box) == 500
    assert sum(steps) > 500_000
    assert max(steps) <= nonblocking_json.PIECE + 2


def test_a_result_of_too_many_blocks_is_not_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK did that first, in one step of a tenth of a second for 30,000 blocks."""
    validated, real = list[str](), _methods.validate_server_result

    def noted(method: str, *arguments: Any) -> Any:
        validated.append(method)
        return real(method, *arguments)

    monkeypatch.setattr(_methods, "validate_server_result", noted)
    result = {"content": [{"type": "text", "text": ""}] * 5_001}
    server = Hostile(tools_call=lambda self, message: {"result": result})
    with (
        serving(server) as url,
        ts.mcp(url, timeout=PATIENT) as box,
        pytest.raises(ts.ToolError, match="5,000 content"),
    ):
        call(box)
    assert "tools/list" in validated
    assert "tools/call" not in validated


def test_commas_in_texts_are_no_values() -> None:
    text = 'a,[{"\\,' * 100_000
    server = Hostile(tools_call=lambda self, message: {"result": {"content": [{"type": "text", "text": text}]}})
    with serving(server) as url, ts.mcp(url, timeout=PATIENT) as box:
        assert box.call({"name": "act", "arguments": {"text": "x"}}) == text
