"""Mixed traffic against a gateway for minutes: every endpoint, clients that leave, upstreams that die, bodies that are none.

    python tests/clients/soak.py [--minutes 10] [--clients 24] [--seed 1]

Among it are whole sessions as coding agents have them (see `soak_sessions.py`). Fails where an answer was a 500, where a
request of a session was refused, where an accepted request was neither answered nor told why, or where sockets, running requests
or memory are left behind. Prints what came, and what the process held at the start and at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from asking import FUNCTIONS
from soak_sessions import session
from upstream import PLAYED, spoken

WAIT = 60.0
"""Seconds after which an answer has not come."""
SETTLE = 40.0
"""Seconds that connections kept for reuse may stay after the last request."""
GROWTH = 12.0
"""MB that the process may grow from the first fifth of the run to its end."""
FILES = 12
"""Files and sockets more than at the start that may stay."""
CONFIG = """
[models.good]
upstream = "http://127.0.0.1:{port}/v1#good"
mode = "chat"
dialect = "hermes"

[models.sick]
upstream = "http://127.0.0.1:{port}/v1#sick"
mode = "chat"
dialect = "hermes"
tries = 2

[limits]
running = 64
waiting = 32
patience = 5.0
"""


# ------------------------------------------------------------------ upstream


class Upstream:
    """A model's server that plays what it is asked to; the model called `sick` fails in every way there is."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.open = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError, asyncio.CancelledError):
            while await self._answer(reader, writer):
                pass
        writer.close()
        self.open -= 1

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        found = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        body = json.loads(await reader.readexactly(int(found[1]))) if found else {}
        words = re.findall(r"\[(\w+)\]", json.dumps(body.get("messages") or body.get("prompt") or ""))
        text = PLAYED.get(words[-1] if words else "plain", PLAYED["plain"])[-1]
        if "[[run_command" in json.dumps(body.get("messages", "")):
            text = spoken(body["messages"]) or ""
        elif words and words[-1] == "long":
            text = "A long story. " * 400
        if body.get("model") == "sick":
            return await self._sick(writer, text)
        await self._stream(writer, text, pause=0.002 if words[-1:] == ["slow"] else 0)
        return True

    async def _sick(self, writer: asyncio.StreamWriter, text: str) -> bool:
        match self.chance.randrange(24):
            case 0:
                writer.transport.abort()
            case 1:
                await _send(writer, _whole("500 Oops", b'{"error": {"message": "broken"}}'))
            case 2:
                await _send(writer, _whole("503 Later", b"<html>later</html>"))
            case 3:
                await _send(writer, _whole("429 Slow", b'{"error": {"message": "slow"}}', "retry-after: 1\r\n"))
            case 4:
                await _send(writer, _whole("200 OK", b'{"choi'))
            case 5:
                await _send(writer, HEAD + b"zz\r\nnot a chunk")
            case 6:
                await self._stream(writer, text, pause=0, cut=True)
            case 7:
                await asyncio.sleep(self.chance.random() * 2)
                writer.close()
            case _:
                await self._stream(writer, text, pause=0)
                return True
        return False

    async def _stream(self, writer: asyncio.StreamWriter, text: str, *, pause: float, cut: bool = False) -> None:
        writer.write(HEAD)
        pieces = [text[i : i + 9] for i in range(0, len(text), 9)]
        for i, piece in enumerate(pieces):
            if cut and i >= len(pieces) / 2:
                writer.transport.abort()
                return
            await _send(writer, _chunk({"choices": [{"index": 0, "delta": {"content": piece}, "text": piece}]}))
            if pause:
                await asyncio.sleep(pause)
        end = {"choices": [{"index": 0, "delta": {}, "text": "", "finish_reason": "stop"}]}
        await _send(writer, _chunk(end) + _chunked(b"data: [DONE]\n\n") + b"0\r\n\r\n")


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def _chunked(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _chunk(payload: dict[str, Any]) -> bytes:
    return _chunked(f"data: {json.dumps(payload)}\n\n".encode())


def _whole(status: str, body: bytes, more: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n{more}\r\n".encode() + body


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


# ------------------------------------------------------------------ clients


@dataclass
class Seen:
    """What came of it all."""

    statuses: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    sessions: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    requests: int = 0
    left: int = 0
    pause: float = 0.0
    """The longest time, in seconds, that this program itself was late: the machine's share of a slow answer."""


TOOLS = [{"type": "function", "function": one} for one in FUNCTIONS]
FLAT = [{"type": "function", **one} for one in FUNCTIONS]
INPUTS = [{"name": one["name"], "input_schema": one["parameters"]} for one in FUNCTIONS]


def chat(asked: str, tools: bool) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": asked}], **({"tools": TOOLS} if tools else {})}


def responses(asked: str, tools: bool) -> dict[str, Any]:
    return {"input": asked, "store": False, **({"tools": FLAT} if tools else {})}


def messages(asked: str, tools: bool) -> dict[str, Any]:
    return {**chat(asked, False), "max_tokens": 256, **({"tools": INPUTS} if tools else {})}


def completions(asked: str, _: bool) -> dict[str, Any]:
    return {"prompt": asked}


GENERATING: dict[str, tuple[Callable[[str, bool], dict[str, Any]], re.Pattern[bytes]]] = {
    "/v1/chat/completions": (chat, re.compile(rb'data: \[DONE\]|"error":')),
    "/v1/responses": (responses, re.compile(rb"event: (response\.(completed|failed|incomplete)|error)")),
    "/v1/messages": (messages, re.compile(rb"event: (message_stop|error)")),
    "/v1/completions": (completions, re.compile(rb'data: \[DONE\]|"error":')),
}
"""How each API is asked, and what ends its streams."""
OTHERS = (
    ("GET", "/v1/models"), ("GET", "/v1/models/good"), ("GET", "/v1/models/none"), ("GET", "/metrics"),
    ("GET", "/readyz"), ("GET", "/livez"), ("GET", "/openapi.json"), ("GET", "/v1/chat/completions"),
    ("GET", "/nothing"), ("DELETE", "/v1/responses/resp_none"), ("HEAD", "/v1/models"),
    ("OPTIONS", "/v1/chat/completions"),
)  # fmt: skip
BODIES = (
    b"", b"{", b"null", b"[]", b"\xff\xfe{}", b"[" * 100_000, b'{"model": "good", "messages": "no"}',
    b'{"model": "good", "messages": [{"role": "user", "content": "\\ud800"}], "max_tokens": -1}',
    b'{"model": 7}', b'{"model": "good", "messages": [], "n": 9223372036854775807}', b"x" * 2_000_000,
)  # fmt: skip


class Client:
    """Asks as many kinds of things as there are, one after another."""

    def __init__(self, url: str, seen: Seen, chance: random.Random, session: aiohttp.ClientSession) -> None:
        self.url, self.seen, self.chance, self.session = url, seen, chance, session

    async def ask(self) -> None:
        self.seen.requests += 1
        kind = self.chance.random()
        path = self.chance.choice(list(GENERATING))
        if kind < 0.08:
            method, path = self.chance.choice(OTHERS)
            await self._plain(method, path, b"")
        elif kind < 0.18:
            await self._plain("POST", path, self.chance.choice(BODIES))
        elif kind < 0.23:
            await self._session("sick" if self.chance.random() < 0.3 else "good")
        else:
            await self._generate(path, leaves=kind < 0.38, slow=kind > 0.95)

    async def _session(self, model: str) -> None:
        """All requests of an agent's session, one behind the other."""

        async def post(path: str, body: dict[str, Any]) -> tuple[int, bytes]:
            self.seen.requests += 1
            async with self._sent("POST", path, json.dumps(body).encode()) as answer:
                return answer.status, await answer.read()
            return 599, b""  # the connection broke

        wrong = await session(post, model, self.chance)
        self.seen.sessions[model, "given up" if wrong is None else "ended"] += 1
        if wrong:
            self._wrong(wrong)

    async def _plain(self, method: str, path: str, body: bytes) -> None:
        async with self._sent(method, path, body) as answer:
            raw = await answer.read()
            if method != "HEAD" and answer.status >= 400:
                self._told(path, answer, raw)

    async def _generate(self, path: str, *, leaves: bool, slow: bool) -> None:
        write, end = GENERATING[path]
        word = self.chance.choice(["plain", "call", "parallel", "text_call", "wrong", "slow", "long"])
        model = "sick" if self.chance.random() < 0.3 else "good"
        stream = slow or self.chance.random() < 0.6
        body = {"model": model, "stream": stream, **write(f"Weather? [{word}]", self.chance.random() < 0.7)}
        if leaves:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.chance.random() * 0.05):
                    await self._answered(path, body, end, slow=False)
            self.seen.left += 1
            return
        await self._answered(path, body, end, slow=slow)

    async def _answered(self, path: str, body: dict[str, Any], end: re.Pattern[bytes], *, slow: bool) -> None:
        async with self._sent("POST", path, json.dumps(body).encode()) as answer:
            raw = bytearray()
            async for piece in answer.content.iter_chunked(512 if slow else 65536):
                raw += piece
                if slow:
                    await asyncio.sleep(0.02)
            if answer.status != 200:
                self._told(path, answer, bytes(raw))
            elif body["stream"] and not end.search(raw):
                self._wrong(f"{path}: a stream without an end: ...{bytes(raw[-300:])!r}")
            elif not body["stream"]:
                json.loads(raw)

    def _told(self, path: str, answer: aiohttp.ClientResponse, raw: bytes) -> None:
        """A refusal says why, in JSON."""
        if path == "/readyz":
            return
        try:
            said = json.loads(raw)["error"]["message"]
        except (ValueError, KeyError, TypeError):
            said = ""
        if not said:
            self._wrong(f"{path}: {answer.status} without a reason: {raw[:300]!r}")
        if answer.status == 500:
            self._wrong(f"{path}: 500: {said}")

    def _wrong(self, what: str) -> None:
        if len(self.seen.wrong) < 50:
            self.seen.wrong.append(what)

    @asynccontextmanager
    async def _sent(self, method: str, path: str, body: bytes) -> AsyncIterator[aiohttp.ClientResponse]:
        begun = time.monotonic()
        kind = {"content-type": "application/json"}
        try:
            async with self.session.request(method, self.url + path, data=body or None, headers=kind) as answer:
                self.seen.statuses[f"{path if path in GENERATING else 'others'} {answer.status}"] += 1
                yield answer
        except aiohttp.ClientError as error:
            if len(body) < 1_000_000:  # a body that is too large is refused while it is still sent
                self._wrong(f"{path}: {type(error).__name__}: {error}")
        if time.monotonic() - begun > WAIT:
            self._wrong(f"{path}: took {time.monotonic() - begun:.0f} s")


# ------------------------------------------------------------------ the run


def held(pid: int) -> tuple[int, float, int]:
    """Open files, memory in MB, threads."""
    home = Path(f"/proc/{pid}")
    pages = int((home / "statm").read_text().split()[1])
    return len(os.listdir(home / "fd")), pages * os.sysconf("SC_PAGE_SIZE") / 1e6, len(os.listdir(home / "task"))


async def running(url: str, session: aiohttp.ClientSession) -> float:
    """How many requests the gateway says it is at work on, the one that asks left out."""
    async with session.get(url + "/metrics") as answer:
        rows = re.findall(
            r"^toolspeak_\w*(?:running|in_flight|in_progress)\w*(?:\{.*\})? ([\d.]+)", await answer.text(), re.MULTILINE
        )
    return sum(map(float, rows))


async def soak(given: argparse.Namespace, url: str, pid: int, stub: Upstream) -> int:
    seen = Seen()
    memory: list[float] = []
    chance = random.Random(given.seed)
    begun = time.monotonic()
    due = begun + given.minutes * 60
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=2 * WAIT)) as session:
        await Client(url, seen, chance, session)._plain("GET", "/v1/models", b"")
        before = held(pid)

        async def one(number: int) -> None:
            client = Client(url, seen, random.Random(given.seed * 1000 + number), session)
            while time.monotonic() < due:
                await client.ask()

        async def watch() -> None:
            while time.monotonic() < due:
                slept = time.monotonic()
                await asyncio.sleep(max(0.5, given.minutes))
                memory.append(held(pid)[1])
                seen.pause = max(seen.pause, time.monotonic() - slept - max(0.5, given.minutes))

        await asyncio.gather(watch(), *(one(i) for i in range(given.clients)))
    seconds = time.monotonic() - begun
    after = await settled(pid, before)
    async with aiohttp.ClientSession() as session:
        busy = await running(url, session)
    return report(seen, seconds, before, after, memory, busy, stub)


async def settled(pid: int, before: tuple[int, float, int]) -> tuple[int, float, int]:
    """What is held once connections that are kept have been let go."""
    due = time.monotonic() + SETTLE
    while (now := held(pid))[0] > before[0] and time.monotonic() < due:
        await asyncio.sleep(0.5)
    return now


def report(
    seen: Seen,
    seconds: float,
    before: tuple[int, float, int],
    after: tuple[int, float, int],
    memory: list[float],
    busy: float,
    stub: Upstream,
) -> int:
    warm = max(memory[: max(1, len(memory) // 5)], default=before[1])
    print(f"{seen.requests:,} requests in {seconds:.0f} s, {seen.left:,} of them left by their client")
    for what, count in sorted(seen.statuses.items()):
        print(f"  {what:<32} {count:>8,}")
    print("sessions: " + ", ".join(f"{model} {how} {count}" for (model, how), count in sorted(seen.sessions.items())))
    print(f"longest pause of the clients' own loop: {seen.pause:.2f} s")
    print(f"open files: {before[0]} before, {after[0]} after; upstream connections left: {stub.open}")
    print(f"threads: {before[2]} before, {after[2]} after; requests still running: {busy:g}")
    print(f"memory, MB: {before[1]:.1f} before, {warm:.1f} warm, {after[1]:.1f} after")
    wrong = list(seen.wrong)
    if after[0] > before[0] + FILES:
        wrong.append(f"{after[0] - before[0]} files or sockets stay open")
    if after[1] > warm + GROWTH:
        wrong.append(f"memory grew by {after[1] - warm:.1f} MB")
    if busy > 1:
        wrong.append(f"{busy:g} requests are still running")
    for one in wrong:
        print(f"WRONG: {one}")
    print("failed" if wrong else "passed")
    return 1 if wrong else 0


async def main(given: argparse.Namespace) -> int:
    stub = Upstream(random.Random(given.seed))
    server = await asyncio.start_server(stub.handle, "127.0.0.1", 0)
    with tempfile.TemporaryDirectory() as folder:
        file, log = Path(folder) / "gateway.toml", Path(folder) / "log"
        file.write_text(CONFIG.format(port=server.sockets[0].getsockname()[1]), encoding="utf-8")
        command = [sys.executable, "-m", "toolspeak", "serve", "--config", str(file), "--port", "0"]
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out)
        try:
            while not (found := re.search(r"(http://127\.0\.0\.1:\d+)/v1", log.read_text(errors="replace"))):
                if process.poll() is not None:
                    print(log.read_text())
                    return 1
                await asyncio.sleep(0.05)
            code = await soak(given, found[1], process.pid, stub)
            told = log.read_text(errors="replace")
            for kind in ("Traceback", "Task exception was never retrieved", "Task was destroyed"):
                if kind in told:
                    print(f"WRONG: the log holds {kind!r}: {told[told.index(kind) :][:3000]}")
                    code = 1
            return code
        finally:
            process.terminate()
            process.wait(60)
            server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    sys.exit(asyncio.run(main(parser.parse_args())))
