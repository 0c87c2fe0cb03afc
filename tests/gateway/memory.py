"""Attacks a gateway in a process of its own, class by class, and says what each leaves in its memory and how long `/livez`
waited meanwhile: python tests/gateway/memory.py [--requests N] [--class NAME]

A class is repeated N times (default 200), then again in rounds until its memory is flat or ten minutes are over. What may stay is
what the caches that it fills may hold (docs/explanation/security.md) and 30 MB. Exits 1 where more does. Linux alone: it reads /proc.

A third process asks for `/livez` all the time. `livez_ms` is its longest wait by the clock, `cpu_ms` the most processor time
that the gateway took during one such wait: neighbours on the machine do not count in it, and `load` says how many there are.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp

HERE = Path(__file__).resolve().parent
SRC = HERE.parents[1] / "src"
sys.path.insert(0, str(HERE.parent))

import attacks  # noqa: E402 - some of these stand one folder up
from attacks import ANY_TOOL, AUDIT_KEY, CACHES, CHAT, CLASSES, LIVEZ, MAIN_KEY, body_of, chat, hosted, post, tool  # noqa: E402
from hostile_servers import WORD, hostile_servers  # noqa: E402

from endless import endless_server  # noqa: E402

MARGIN = 30_000_000
FLAT = 2_000_000
"""Bytes by which a round may differ from the one before and the memory be flat."""


def _session() -> aiohttp.ClientSession:
    """Asks on a new connection each time: one that waits may be closed by the gateway just when it is asked."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True))


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def processor(pid: int) -> tuple[float, float]:
    """Seconds of processor time that the first thread of a process, which runs the event loop, and all its threads have
    taken."""
    taken = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread may end meanwhile
            taken[task.name] = int((task / "schedstat").read_text().split()[0]) / 1e9
    return taken[str(pid)], sum(taken.values())


def sample(port: int, pid: int) -> None:
    """Asks for `/livez` until stdin ends, and prints its longest wait: by the clock, and in the gateway's processor time; and
    the most memory that the gateway had."""
    line = socket.create_connection(("127.0.0.1", port))
    longest, dearest, loop, count, peak = 0.0, 0.0, 0.0, 0, 0
    while not select.select([sys.stdin], [], [], 0.002)[0]:
        began, used, peak = time.perf_counter(), processor(pid), max(peak, resident(pid))
        try:
            line.sendall(LIVEZ)
            answered = line.recv(65536)
        except ConnectionError:
            answered = b""
        if not answered:  # the gateway closes a connection on which nothing came for a while
            line.close()
            line = socket.create_connection(("127.0.0.1", port))
            continue
        longest = max(longest, time.perf_counter() - began)
        loop, dearest = (
            max(before, now - then) for before, now, then in zip((loop, dearest), processor(pid), used, strict=True)
        )
        count += 1
    seconds = {"livez_ms": longest, "loop_ms": loop, "cpu_ms": dearest}
    print(json.dumps({name: round(value * 1000) for name, value in seconds.items()} | {"looks": count, "peak": peak}))


async def warmed(session: aiohttp.ClientSession, url: str) -> None:
    """One small request of every kind, five times: what the gateway loads for it is no growth."""
    for number in range(5):
        for path, body, key in (
            (CHAT, body_of(tools=[tool(f"warm{number}")]), MAIN_KEY),
            (*chat("Hi", tools=[tool("f")]), AUDIT_KEY),
            (CHAT, body_of(tools=ANY_TOOL) | {"model": "chat"}, MAIN_KEY),
            (CHAT, {"model": 1}, MAIN_KEY),
            ("/v1/responses", {"model": "m", "input": "Hi", "store": True}, MAIN_KEY),
            ("/v1/embeddings", {"model": "embeds", "input": ["Hi"]}, MAIN_KEY),
        ):
            await post(session, url + path, body, key)
        await hosted(WORD)(session, url, number)


async def attacked(name: str, url: str, pid: int, requests: int, limit: float) -> tuple[int, int, dict[str, int]]:
    """What a class left in bytes, how many requests were made (`requests`, then rounds of half as many until the memory is
    flat), how `/livez` waited, and whether the last round left the memory flat: if not, the time was over."""
    ask, at_once, _ = CLASSES[name]
    turn, done, began = asyncio.Semaphore(at_once), 0, time.monotonic()

    async def one(session: aiohttp.ClientSession, number: int) -> None:
        async with turn:
            await ask(session, url, number)

    async with _session() as session:
        await warmed(session, url)
        await asyncio.sleep(0.5)
        warm = before = resident(pid)
        looking = [sys.executable, str(Path(__file__).resolve()), "--sample", url.rpartition(":")[2], str(pid)]
        sampler = subprocess.Popen(looking, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        while True:
            count = requests if not done else requests // 2
            await asyncio.gather(*(one(session, done + i) for i in range(count)))
            done += count
            await asyncio.sleep(1.5)
            now = resident(pid)
            flat = abs(now - before) < FLAT
            if limit <= 0 or flat or time.monotonic() - began > limit:
                waits = await asyncio.to_thread(sampler.communicate, "")
                looks = json.loads(waits[0])
                sizes = {"warm_mb": warm // 1_000_000, "peak_mb": (looks.pop("peak") - warm) // 1_000_000}
                return now - warm, done, looks | sizes | {"flat": flat}
            before = now


@asynccontextmanager
async def running() -> AsyncGenerator[tuple[int, str]]:
    """The process id of a gateway, and its address."""
    async with endless_server() as endless, hostile_servers(attacks.SCALE) as hostile:
        with TemporaryDirectory() as folder:
            gateway = await asyncio.create_subprocess_exec(
                sys.executable, HERE / "attacked_gateway.py", endless, hostile, folder, str(attacks.SCALE),
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(SRC)},
            )  # fmt: skip
            try:
                assert gateway.stdout is not None
                found = re.search(r"\d+", (await gateway.stdout.readline()).decode())
                assert found is not None
                yield gateway.pid, f"http://127.0.0.1:{found[0]}"
            finally:
                gateway.kill()
                await gateway.wait()


async def attacked_in_turn(requests: int) -> dict[str, int]:
    """What each class left in bytes, in one gateway that all of them attack one after another."""
    stays: dict[str, int] = {}
    async with running() as (gateway, url), _session() as session:
        for name, (ask, _, _) in CLASSES.items():
            await ask(session, url, -1)
            before = resident(gateway)
            for number in range(requests):
                await ask(session, url, number)
            stays[name] = resident(gateway) - before
    return stays


async def left(name: str, requests: int, limit: float) -> tuple[int, int, dict[str, int]]:
    """What a class leaves in the memory of a gateway of its own, in bytes, how many requests were made, and how `/livez`
    waited."""
    async with running() as (gateway, url):
        return await attacked(name, url, gateway, requests, limit)


def allowed(name: str) -> int:
    """Bytes that a class may leave."""
    return MARGIN + sum(CACHES[cache] for cache in CLASSES[name][2])


def main() -> int:
    asked = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked.add_argument("--requests", type=int, default=200)
    asked.add_argument("--class", dest="only", choices=CLASSES, action="append")
    asked.add_argument("--seconds", type=float, default=600, help="for each class at most; 0: one round")
    asked.add_argument("--sample", nargs=2, type=int, help=argparse.SUPPRESS)
    told = asked.parse_args()
    if told.sample:
        sample(*told.sample)
        return 0
    failed = 0
    for name in told.only or CLASSES:
        stays, done, waits = asyncio.run(left(name, told.requests, told.seconds))
        failed += stays > allowed(name)
        row = {
            "class": name,
            "requests": done,
            "left_mb": stays // 1_000_000,
            "may_mb": allowed(name) // 1_000_000,
            **waits,
            "load": round(os.getloadavg()[0], 1),
        }
        print(json.dumps(row), flush=True)
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
