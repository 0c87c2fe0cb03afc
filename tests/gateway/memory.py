"""Attacks a gateway in a process of its own, class by class, and says what each leaves in its memory:
python tests/gateway/memory.py [--requests N] [--class NAME]

A class is repeated N times (default 200), then again in rounds until its memory is flat or ten minutes are over. What may stay is
what the caches may hold (docs/security.md) and 30 MB. Exits 1 where more does. Linux alone: it reads /proc.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp

SRC = Path(__file__).resolve().parents[2] / "src"
MARGIN = 30_000_000
CACHES = {
    "validators": 64_000_000,
    "alternatives": 16_000_000,
    "tools": 96_000_000,
    "texts": 32_000_000,
    "formats": 16_000_000,
}
"""What the caches may hold, as docs/security.md has it."""
FLAT = 2_000_000
"""Bytes by which a round may differ from the one before and the memory be flat."""
CHAT = "/v1/chat/completions"
HI = [{"role": "user", "content": "Hi"}]

Ask = Callable[[aiohttp.ClientSession, str, int], Awaitable[None]]


def _body(**more: object) -> dict[str, object]:
    return {"model": "m", "messages": HI, **more}


def _tool(name: str, **properties: object) -> dict[str, object]:
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def posts(make: Callable[[int], tuple[str, dict[str, object]]]) -> Ask:
    async def ask(session: aiohttp.ClientSession, url: str, number: int) -> None:
        path, body = make(number)
        async with session.post(url + path, json=body) as answer:
            await answer.read()
            if answer.status == 500:
                raise SystemExit(f"{path}: {answer.status}")

    return ask


def sends(first: bytes, more: bytes, times: int) -> Ask:
    async def ask(_: aiohttp.ClientSession, url: str, __: int) -> None:
        _reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        try:
            writer.write(first)
            async with asyncio.timeout(1):
                for _ in range(times):
                    writer.write(more)
                    await writer.drain()
        except (OSError, TimeoutError):
            pass
        writer.close()

    return ask


LIVEZ = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"
CHUNKED = b"POST /livez HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
CLASSES: dict[str, tuple[Ask, int]] = {
    "patterns": (posts(lambda i: (CHAT, _body(tools=[_tool("f", **{f"p{j}": {"pattern": f"^[a-z]+{j}x{i}$"} for j in range(900)})]))), 1),
    "properties": (posts(lambda i: (CHAT, _body(tools=[_tool("f", **{f"p{j}": {"title": f"{i}"} for j in range(3000)})]))), 1),
    "many tools": (posts(lambda i: (CHAT, _body(tools=[_tool(f"f{j}_{i}") for j in range(100)]))), 1),
    "formats": (posts(lambda i: (CHAT, _body(response_format={"type": "json_schema", "json_schema": {
        "name": "r", "schema": {"type": "object", "properties": {f"p{j}_{i}": {} for j in range(300)}}}}))), 1),
    "wrong messages": (posts(lambda _: (CHAT, {"model": "m", "messages": [{"role": 1}] * 20_000})), 1),
    "requests in a row": (sends(LIVEZ, LIVEZ * 1000, 20), 4),
    "trailers": (sends(CHUNKED + b"0\r\nx-a: ", b"b" * 65_536, 20), 4),
    "large texts": (posts(lambda i: (CHAT, _body(user=f"{i}" * 300_000))), 1),
}  # fmt: skip
"""Each class, and how many of its requests are made at once."""


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def attacked(name: str, url: str, pid: int, requests: int, limit: float) -> tuple[int, int]:
    """(bytes that a class left, requests made): `requests`, then rounds of half as many until the memory is flat."""
    ask, at_once = CLASSES[name]
    turn, done, began = asyncio.Semaphore(at_once), 0, time.monotonic()

    async def one(session: aiohttp.ClientSession, number: int) -> None:
        async with turn:
            await ask(session, url, number)

    async with aiohttp.ClientSession() as session:
        for number in range(5):
            async with session.post(url + CHAT, json=_body(tools=[_tool(f"warm{number}")])) as answer:
                await answer.read()
        warm = before = resident(pid)
        while True:
            count = requests if not done else requests // 2
            await asyncio.gather(*(one(session, done + i) for i in range(count)))
            done += count
            await asyncio.sleep(1.5)
            now = resident(pid)
            if limit <= 0 or abs(now - before) < FLAT or time.monotonic() - began > limit:
                return now - warm, done
            before = now


def running() -> tuple[subprocess.Popen[str], str]:
    """A gateway in a process of its own, and its address."""
    code = (
        "from toolspeak.gateway.server import listen, serve; from toolspeak.gateway.settings import *\n"
        "import toolspeak.models.names as names; from toolspeak.models.scripted import Scripted\n"
        "from collections import deque\n"
        "model = Scripted('Hello', repeat=True); model.requests = deque(maxlen=1)  # it would keep all\n"
        "names._scripted = lambda text, options: model\n"
        "s = Settings({'m': ModelSettings('m', ('scripted:Hello',))}, port=0)\n"
        "l = listen(s); print(f'port {l.getsockname()[1]}', flush=True); serve(s, l)"
    )
    made = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "PYTHONPATH": str(SRC)},
    )  # fmt: skip
    assert made.stdout is not None
    found = re.search(r"\d+", made.stdout.readline())
    assert found is not None
    return made, f"http://127.0.0.1:{found[0]}"


def left(name: str, requests: int, limit: float) -> tuple[int, int]:
    """What a class leaves in the memory of a gateway of its own, in bytes, and how many requests were made."""
    gateway, url = running()
    try:
        return asyncio.run(attacked(name, url, gateway.pid, requests, limit))
    finally:
        gateway.kill()
        gateway.wait()
        assert gateway.stdout is not None
        gateway.stdout.close()


MAY = MARGIN + sum(CACHES.values())
"""Bytes that a class may leave."""


def main() -> int:
    asked = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked.add_argument("--requests", type=int, default=200)
    asked.add_argument("--class", dest="only", choices=CLASSES)
    asked.add_argument("--seconds", type=float, default=600, help="for each class at most; 0: one round")
    told = asked.parse_args()
    failed = 0
    for name in [told.only] if told.only else CLASSES:
        stays, done = left(name, told.requests, told.seconds)
        failed += stays > MAY
        row = {"class": name, "requests": done, "left_mb": stays // 1_000_000, "may_mb": MAY // 1_000_000}
        print(json.dumps(row), flush=True)
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
