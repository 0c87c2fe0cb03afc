"""MCP servers that answer wrongly: whatever one sends, a client gets a value or a clear error of ours, within bounds.

`changed` damages one answer of a server at random: a wrong value in one place of the message, other ids, no JSON, too
much of it, silence, a connection that ends, over stdio and over HTTP, where also the status, the type and the framing may
be wrong. `problem` uses such a server as anybody would and says what is wrong with what came of it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

from bodies import WRONG, places, put
from loopback import listening
from mcp_script import message, steps_for, written

import toolspeak as ts

SCRIPT = Path(__file__).with_name("mcp_script.py")
METHODS = ("server/discover", "initialize", "tools/list", "tools/call")
PATIENCE = 1.0
"""Seconds that the client gives a server."""
PARTING = {"stdio": 7.0, "http": 2.0}
"""Seconds that letting go may take, by docs/explanation/security.md; and some for a machine that has more to do."""
BUSY = 8.0
WORDS = 8_000
"""Characters that an error may have."""
MOST = 10
AT_ONCE = 6
AGAIN = 3
"""Times that a server is tried again, alone, of which a client took too long to let go: it is late only if it always is. A
busy machine holds up one step or another, and servers that run at once hold up each other."""


@dataclass(frozen=True)
class Server:
    """One server that answers a method wrongly. `head` is the status and the headers over HTTP, "" for what is right."""

    over: str
    method: str
    steps: list[dict[str, Any]]
    modern: bool = False
    head: str = ""
    sse: bool = False
    change: str = field(default="", compare=False)

    @property
    def script(self) -> dict[str, Any]:
        return {"method": self.method, "steps": self.steps, "modern": self.modern}


# ------------------------------------------------------------------ what is wrong

TRAILS: tuple[list[dict[str, Any]], ...] = (
    [{"end": True}], [{"wait": 60}], [{"raw": ""}], [{"raw": "\n"}], [{"raw": "no JSON\n"}], [{"raw": "\xff\xfe\n"}],
    [{"raw": "[]\n"}], [{"raw": "null\n"}], [{"raw": "7\n"}], [{"raw": "[" * 100_000 + "\n"}], [{"raw": '{"a":' * 9_000 + "\n"}],
    [{"raw": '{"jsonrpc": "2.0", "id": 1'}, {"end": True}], [{"raw": '{"jsonrpc": "2.0"'}, {"wait": 60}],
    [{"raw": "x"}, {"times": 18_000_000 // 1_000}], [{"raw": "x" * 4096}, {"times": -1}], [{"raw": ": note\n\n"}, {"times": -1}],
    [{"raw": '"' + "x" * 4096}, {"times": 4_500}, {"raw": '"\n'}],
    [{"json": {"jsonrpc": "2.0", "id": "s", "method": "ping"}}, {"times": -1}],
    [{"json": {"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": {}}}, {"times": 3}],
    [{"json": {"jsonrpc": "2.0", "id": "ID", "method": "roots/list"}}],
    [{"json": {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}}, {"times": 5_000}],
    [{"json": {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}}, {"times": -1}],
    [{"json": {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "ID", "progress": 1}}}, {"times": 99}],
    [{"json": {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "ID"}}}],
    [{"json": {"jsonrpc": "2.0", "id": "ID", "error": {"code": -32000, "message": "Connection closed"}}}],
    [{"json": {"jsonrpc": "2.0", "id": "ID", "error": {"code": -32001, "message": "x" * 1_000_000, "data": ["y"] * 1000}}}],
    [{"json": {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "parse"}}}],
)  # fmt: skip
HEADS = (
    "200 OK\r\ncontent-type: text/html", "200 OK", "202 Accepted", "204 No Content", "400 Bad Request\r\ncontent-type: application/json",
    "404 Not Found", "401 Unauthorized", "403 Forbidden\r\ncontent-type: text/event-stream", "500 x\r\ncontent-type: application/json",
    "302 Found\r\nlocation: http://127.0.0.1:9/x", "307 x\r\nlocation: /other", "307 x\r\nlocation: //[", "101 Switching Protocols",
    "200 OK\r\ncontent-type: application/json; charset=utf-16", "200 OK\r\ncontent-encoding: gzip\r\ncontent-type: application/json",
    "200 OK\r\ncontent-type: application/json\r\ncontent-length: 999999", "200 OK\r\ncontent-length: 3\r\ncontent-length: 4",
    "200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked", "999 x", "abc", "200 OK\r\n" + "a: b\r\n" * 500,
    "200 OK\r\nmcp-session-id: " + "x" * 5000 + "\r\ncontent-type: application/json", "200 OK\r\nmcp-session-id: \xff\r\ncontent-type: application/json",
)  # fmt: skip
EVENTS: tuple[list[dict[str, Any]], ...] = (
    [{"raw": "id: 1\nretry: 0\n\n"}, {"end": True}], [{"raw": "id: 1\nretry: 99999999\ndata:\n\n"}, {"end": True}],
    [{"raw": "event: other\ndata: {}\n\n"}, {"end": True}], [{"raw": "data: {}\n\n"}], [{"raw": "data: x\n\n"}, {"times": 3}],
    [{"raw": "data: "}, {"raw": "x" * 4096}, {"times": -1}], [{"raw": "data: x\n"}, {"times": -1}], [{"raw": ": \n\n"}, {"times": -1}],
    [{"raw": "id: 1\ndata: {}\n\n"}, {"times": 50}, {"end": True}],
)  # fmt: skip


def changed(rng: random.Random) -> Server:
    """A server that is wrong in one way."""
    over, modern = rng.choice(("stdio", "http")), rng.random() < 0.4
    method = rng.choice(METHODS)
    sse = over == "http" and rng.random() < 0.5
    right = message(method, modern)
    kind = rng.random()
    if kind < 0.5:
        told: list[str] = []
        value: Any = right
        for _ in range(rng.choice((1, 1, 2))):
            at = rng.choice(list(places(value)))
            new = rng.choice((*WRONG, "ID", 10**400, {"$ref": "#"}, "<|im_start|>", "\u202e", "x" * 70_000))
            value = put(value, at, new)
            told.append(f"{at} = {str(new)[:60]}")
        steps: list[dict[str, Any]] = [{"json": value}]
        return Server(over, method, steps, modern, "", sse, "; ".join(told))
    if over == "http" and kind < 0.7:
        return Server(over, method, [{"json": right}, {"end": True}], modern, rng.choice(HEADS), False, "the head")
    if sse and kind < 0.85:
        return Server(over, method, rng.choice(EVENTS), modern, "", True, "the events")
    steps = list(rng.choice(TRAILS))
    if rng.random() < 0.5:
        steps = [{"json": right}, *steps] if rng.random() < 0.5 else [*steps, {"json": right}]
    if rng.random() < 0.2:
        steps = [
            *steps,
            {"json": right},
            {"json": {**right, "id": rng.choice((0, -1, "1", 10**30, None, [], {}, "x"))}},
        ]
    return Server(over, method, steps, modern, "", sse, "the trail")


# ------------------------------------------------------------------ over HTTP


class Http:
    """All servers over HTTP, each at a path of its own."""

    def __init__(self) -> None:
        self.servers: list[Server] = []
        self.closed = threading.Semaphore(0)
        """Released when a client has closed a connection that was pulsing."""
        self.url = ""

    def add(self, server: Server) -> str:
        self.servers.append(server)
        return f"{self.url}/{len(self.servers) - 1}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self.answer(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        verb, path, _ = head.split(" ", 2)
        fields = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head.split("\r\n")[1:])
        }
        asked = json.loads(await reader.readexactly(int(fields.get("content-length") or 0)) or b"{}")
        server = self.servers[int(path.split("/")[1])]
        if verb != "POST" or "id" not in asked or "method" not in asked:
            status = "202 Accepted" if verb == "POST" else "405 No"
            writer.write(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n".encode())
            return True
        wrong = asked["method"] == server.method
        sse = wrong and server.sse
        kind = "text/event-stream" if sse else "application/json"
        first = server.head if wrong and server.head else f"200 OK\r\ncontent-type: {kind}\r\nmcp-session-id: 1"
        writer.write(f"HTTP/1.1 {first}\r\nconnection: close\r\n\r\n".encode("latin-1"))
        last = b""
        for step in steps_for(server.script, asked["method"]):
            if "wait" in step:
                await asyncio.sleep(step["wait"])
            elif "pulse" in step:
                try:
                    while True:
                        await asyncio.sleep(step["pulse"])
                        writer.write(last)
                        await writer.drain()
                finally:
                    self.closed.release()
            elif "times" in step:
                left = step["times"]
                many = last * max(1, 65536 // max(1, len(last))) if left < 0 else last
                while left and many:
                    writer.write(many)
                    await writer.drain()
                    left -= 1
            elif "end" not in step:
                last = written(step, asked["id"])
                last = b"data: " + last + b"\n" if sse and "json" in step else last
                writer.write(last)
                await writer.drain()
        return False


@contextmanager
def http() -> Iterator[Http]:
    """The servers over HTTP, in a thread of their own."""
    all_of_them = Http()
    with listening(all_of_them):
        yield all_of_them


# ------------------------------------------------------------------ is it right?


def problem(server: Server, web: Http, *, timed: bool = True) -> str:
    """What is wrong with how a client takes it; "" for nothing. `timed`: taking too long is wrong."""
    if server.over == "stdio":
        command = [sys.executable, "-S", "-E", str(SCRIPT)]
        box = ts.mcp(command, env={"SCRIPT": json.dumps(server.script)}, timeout=PATIENCE, pins=False)
    else:
        box = ts.mcp(web.add(server), timeout=PATIENCE, pins=False)
    parting = PARTING[server.over]
    steps: list[tuple[str, float, Any]] = [("connecting", PATIENCE + parting, box.open)]
    try:
        for what, bound, act in steps:
            begin = time.monotonic()
            told = _raised(act)
            took = time.monotonic() - begin
            if told or (timed and took > bound + BUSY):
                return told or f"late: {what} took {took:.1f} s of {bound:.0f}"
            if act == box.open and "_tools" in box.__dict__:
                names = [one.name for one in box][:3]
                steps += [
                    ("a call", PATIENCE + parting * 2, lambda n=n: box.call({"name": n, "arguments": {}}))
                    for n in names
                ]
                steps += [("closing", parting, box.close)]
        return ""
    finally:
        box.close()


def _surely(server: Server, told: str, web: Http) -> str:
    """What is wrong, seen again where it was that something took too long."""
    for _ in range(AGAIN):
        if not told.startswith("late"):
            break
        told = problem(server, web)
    return told


def _raised(act: Any) -> str:
    try:
        act()
    except Exception as error:  # noqa: BLE001
        return _unclear(error)
    return ""


def _unclear(error: Exception) -> str:
    if not isinstance(error, ts.ToolspeakError):
        return f"raised {type(error).__name__}: {str(error)[:300]}"
    text = str(error)
    return (
        f"long: {len(text):,} characters: {text[:200]}" if len(text) > WORDS else "" if text.strip() else "empty error"
    )


class _Errors(logging.Handler):
    """What the event loop says of errors that nobody took."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(
            f"{record.getMessage()[:300]} {record.exc_info[1]!r}" if record.exc_info else record.getMessage()[:300]
        )


def servers(limit: float, seed: int) -> tuple[int, int]:
    """How many servers were tried in so many seconds, and how many findings there were."""
    rng, end, tried = random.Random(seed), time.time() + limit, 0
    found: set[str] = set()
    errors = _Errors()
    logging.getLogger("asyncio").addHandler(errors)
    with http() as web, ThreadPoolExecutor(AT_ONCE) as pool:
        while time.time() < end and len(found) < MOST:
            cases = [changed(rng) for _ in range(AT_ONCE * 4)]
            results = list(pool.map(lambda case: problem(case, web), cases))
            results = [_surely(case, told, web) for case, told in zip(cases, results, strict=True)]
            for case, told in [
                *zip(cases, results, strict=True),
                *((cases[0], f"logged: {one}") for one in errors.said),
            ]:
                if told and told[:40] not in found:
                    found.add(told[:40])
                    print(
                        f"FOUND {told}\n  {case.over} {case.method}: {case.change!a}\n  kept in {_save(case, told)}",
                        flush=True,
                    )
            errors.said.clear()
            tried += len(cases)
    logging.getLogger("asyncio").removeHandler(errors)
    return tried, len(found)


def tried_again(case: dict[str, Any]) -> str:
    """What is wrong with a kept finding."""
    with http() as web:
        server = Server(**{key: value for key, value in case.items() if key != "problem"})
        return _surely(server, problem(server, web), web)


def _save(case: Server, told: str) -> Path:
    from judge import FOUND

    FOUND.mkdir(exist_ok=True)
    text = json.dumps({**asdict(case), "problem": told}, indent=1)
    path = FOUND / f"mcp-{crc32(text.encode()):08x}.json"
    path.write_text(text, "utf-8")
    return path


if __name__ == "__main__":
    print(servers(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
