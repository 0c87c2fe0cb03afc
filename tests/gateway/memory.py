"""Attacks a gateway in a process of its own, class by class, and says what each leaves in its memory and how long `/livez`
waited meanwhile: python tests/gateway/memory.py [--requests N] [--class NAME]

A class is repeated N times (default 200), then again in rounds until its memory is flat or ten minutes are over. What may stay is
what the caches that it fills may hold (docs/explanation/security.md) and 30 MB. Exits 1 where more does. Linux alone: it reads /proc.

A third process asks for `/livez` all the time. `livez_ms` is its longest wait by the clock, `cpu_ms` the most processor time
that the gateway took during one such wait: neighbours on the machine do not count in it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import aiohttp

HERE = Path(__file__).resolve().parent
SRC = HERE.parents[1] / "src"
sys.path.insert(0, str(HERE.parent))

from endless import ENDLESS, endless_server  # noqa: E402 - it stands one folder up

MARGIN = 30_000_000
CACHES = {
    "validators": 64_000_000,
    "alternatives": 16_000_000,
    "tools": 96_000_000,
    "texts": 32_000_000,
    "formats": 16_000_000,
    "indexes": 96_000_000,
    "words": 35_000_000,
}
"""What the caches may hold, as docs/explanation/security.md has it."""
FLAT = 2_000_000
"""Bytes by which a round may differ from the one before and the memory be flat."""
CHAT = "/v1/chat/completions"
HI = [{"role": "user", "content": "Hi"}]

STATUS: dict[int, int] = {}
"""How often each status was answered."""

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
            STATUS[answer.status] = STATUS.get(answer.status, 0) + 1
            if answer.status == 500:
                raise SystemExit(f"{path}: {answer.status}")

    return ask


def sends(first: bytes, more: bytes, times: Callable[[], int]) -> Ask:
    async def ask(_: aiohttp.ClientSession, url: str, __: int) -> None:
        _reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        try:
            writer.write(first)
            async with asyncio.timeout(1):
                for _ in range(times()):
                    writer.write(more)
                    await writer.drain()
        except (OSError, TimeoutError):
            pass
        writer.close()

    return ask


LIVEZ = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"
CHUNKED = b"POST /livez HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"


def _chat(text: str, **more: object) -> tuple[str, dict[str, object]]:
    return CHAT, {"model": "echo", "messages": [{"role": "user", "content": text}], **more}


def _called(arguments: str) -> dict[str, object]:
    """A conversation with a call of these arguments."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": f'{{"x": {arguments}}}'}}
    turns = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "ok"},
    ]
    return _body(tools=ANY_TOOL) | {"messages": [*HI, *turns]}


def _endless(kind: str, number: int) -> tuple[str, dict[str, object]]:
    """A request whose reply does not end, every other one with a stream."""
    return CHAT, _body(tools=ANY_TOOL) | {
        "model": ENDLESS[kind][0],
        "messages": [{"role": "user", "content": kind}],
        "stream": number % 2 == 0,
    }


def _big(i: int) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": f"{i}"}] * 20}] * n(8000)}


SCALE = 1.0
"""How large the attacks are: the suite makes them small."""


def n(count: int) -> int:
    return max(1, int(count * SCALE))


def alternatives(depth: int) -> dict[str, object]:
    made: dict[str, object] = {"type": "integer"}
    for _ in range(depth):
        made = {"anyOf": [made, {"type": "array", "items": made}]}
    return made


def kinds(count: int, i: int = 0) -> list[object]:
    """Alternatives of which each wants another value of a field."""
    return [
        {"type": "object", "properties": {"k": {"const": j}}, "required": ["k"], "title": f"{i}"}
        for j in range(n(count))
    ]


def numbered(count: int, value: object, i: int = 0) -> dict[str, object]:
    return {f"p{j}_{i}": value for j in range(n(count))}


CALL = '<tool_call>{"name": "f", "arguments": {"x": %s}}</tool_call>'
ANY_TOOL = [_tool("f", x={})]
TOOLS = ("validators", "alternatives", "tools", "texts")
MANY = (*TOOLS, "indexes", "words")


def words(count: int, i: int) -> str:
    return " ".join(f"w{number:x}" for number in random.Random(i).choices(range(10**7), k=count))


CLASSES: dict[str, tuple[Ask, int, tuple[str, ...]]] = {
    "patterns": (posts(lambda i: (CHAT, _body(tools=[_tool("f", **{f"p{j}": {"pattern": f"^[a-z]+{j}x{i}$"} for j in range(n(900))})]))), 1, TOOLS),
    "properties": (posts(lambda i: (CHAT, _body(tools=[_tool("f", **numbered(3000, {"title": f"{i}"}))]))), 1, TOOLS),
    "many tools": (posts(lambda i: (CHAT, _body(tools=[_tool(f"f{j}_{i}") for j in range(n(100))]))), 1, MANY),
    "large tools": (posts(lambda i: (CHAT, _body(tools=[_tool(f"f{j}_{i}", **{f"p{k}": {"type": "string", "description": "d" * 40} for k in range(10)}) for j in range(n(3000))]))), 1, MANY),
    "tools of words": (posts(lambda i: (CHAT, _body(tools=[_tool(f"f{j}_{i}", x={"description": words(100, i * 1000 + j)}) for j in range(n(1000))]))), 1, MANY),
    "deferred tools": (posts(lambda i: ("/v1/messages", {**_body(max_tokens=9), "tools": [
        {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
        *({"name": f"f{j}_{i}", "description": words(20, i * 1000 + j), "input_schema": {"type": "object"}, "defer_loading": True} for j in range(n(1000)))]})), 1, MANY),
    "varied fields": (posts(lambda i: (CHAT, _body(**{
        "user": words(9_000, i), "stop": [words(20, i)], "metadata": {"a": words(50, i)}, f"x{words(20_000, i)}": i}))), 1, ()),
    "formats": (posts(lambda i: (CHAT, _body(response_format={"type": "json_schema", "json_schema": {
        "name": "r", "schema": {"type": "object", "properties": numbered(300, {}, i)}}}))), 1, ("validators", "alternatives", "formats")),
    "wrong messages": (posts(lambda _: (CHAT, {"model": "m", "messages": [{"role": 1}] * n(300_000)})), 1, ()),
    "requests in a row": (sends(LIVEZ, LIVEZ * 1000, lambda: n(20)), 4, ()),
    "trailers": (sends(CHUNKED + b"0\r\nx-a: ", b"b" * 65_536, lambda: n(20)), 4, ()),
    "large texts": (posts(lambda i: (CHAT, _body(user="x" * n(9_000_000)))), 1, ()),
    "many parts": (posts(lambda i: (CHAT, _big(i))), 1, ()),
    "many names": (posts(lambda i: (CHAT, _body(x=numbered(190_000, 1, i)))), 1, ()),
    "many lists": (posts(lambda i: (CHAT, _body(x=[[]] * n(390_000)))), 1, ()),
    "large prompts": (posts(lambda i: (CHAT, {"model": "m", "messages": [{"role": "user", "content": f"<s>{i} " * n(1_000_000)}]})), 1, ()),
    "many replies": (posts(lambda i: _chat("x" * n(100_000), n=8)), 1, ()),
    "replies of braces": (posts(lambda i: _chat("{" * n(200_000), tools=ANY_TOOL)), 1, TOOLS),
    "replies of calls": (posts(lambda i: _chat(CALL % '"y"' * n(200), tools=ANY_TOOL)), 1, TOOLS),
    "replies of openers": (posts(lambda i: _chat("<tool_call>" * n(20_000), tools=ANY_TOOL)), 1, TOOLS),
    "replies of arguments": (posts(lambda i: _chat(CALL % ("[" + "1," * n(400_000) + "1]"), tools=ANY_TOOL)), 1, TOOLS),
    "replies of values": (posts(lambda i: _chat("[" + "1," * n(790_000) + "1]", response_format={"type": "json_object"})), 1, ("formats",)),
    "replies of lists": (posts(lambda i: _chat(CALL % ("[" + "[]," * n(390_000) + "1]"), tools=ANY_TOOL)), 1, TOOLS),
    "replies of names": (posts(lambda i: _chat(CALL % json.dumps({f"k{j}": 1 for j in range(n(380_000))}), tools=ANY_TOOL)), 1, TOOLS),
    "calls of lists": (posts(lambda i: (CHAT, _called("[" + "[]," * n(390_000) + "1]"))), 1, TOOLS),
    "wrong alternatives": (posts(lambda i: _chat(CALL % '[[[["y"]]]]', tools=[_tool("f", x=alternatives(10 if SCALE == 1 else 4))])), 1, TOOLS),
    "wrong items": (posts(lambda i: _chat(CALL % json.dumps([{"k": 1}] * n(400) + [{"k": "q"}] * n(100)), tools=[_tool("f", x={"type": "array", "items": {"anyOf": kinds(300, i)}})])), 1, TOOLS),
    "many alternatives": (posts(lambda i: _chat(CALL % '{"k": "q"}', tools=[_tool("f", x={"anyOf": kinds(1500, i)})])), 1, TOOLS),
    "equal items": (posts(lambda i: _chat(CALL % ("[" + "1," * n(60_000) + "1]"), tools=[_tool("f", x={"type": "array", "uniqueItems": True})])), 1, TOOLS),
    "texts to convert": (posts(lambda i: _chat(CALL % ("[" + '"1.25",' * n(150_000) + '"1"]'), tools=[_tool("f", x={"type": "array", "items": {"type": "number"}})])), 1, TOOLS),
    "long events of a response": (posts(lambda i: ("/v1/responses", {"model": "echo", "input": "x\n" * n(1_000_000), "stream": True})), 1, ()),
    **{f"endless {kind}": (posts(partial(_endless, kind)), 1, ()) for kind in ENDLESS},
}  # fmt: skip
"""Each class, how many of its requests are made at once, and the caches that it fills."""


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


async def attacked(name: str, url: str, pid: int, requests: int, limit: float) -> tuple[int, int, dict[str, int]]:
    """What a class left in bytes, how many requests were made (`requests`, then rounds of half as many until the memory is
    flat), and how `/livez` waited."""
    ask, at_once, _ = CLASSES[name]
    turn, done, began = asyncio.Semaphore(at_once), 0, time.monotonic()

    async def one(session: aiohttp.ClientSession, number: int) -> None:
        async with turn:
            await ask(session, url, number)

    async with _session() as session:
        for number in range(5):
            for body in (
                _body(tools=[_tool(f"warm{number}")]),
                _chat("Hi", tools=[_tool("f")])[1],
                _body(tools=ANY_TOOL) | {"model": "chat"},
                {"model": 1},
            ):
                async with session.post(url + CHAT, json=body) as answer:
                    await answer.read()
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
            if limit <= 0 or abs(now - before) < FLAT or time.monotonic() - began > limit:
                waits = await asyncio.to_thread(sampler.communicate, "")
                looks = json.loads(waits[0])
                return now - warm, done, looks | {"peak_mb": (looks.pop("peak") - warm) // 1_000_000}
            before = now


@asynccontextmanager
async def running() -> AsyncIterator[tuple[int, str]]:
    """The process id of a gateway, and its address."""
    async with endless_server() as upstream:
        gateway = await asyncio.create_subprocess_exec(
            sys.executable, HERE / "attacked_gateway.py", upstream, str(SCALE), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(SRC)},
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
        }
        print(json.dumps(row), flush=True)
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
