"""What the gateway costs, beside a plain pass-through and LiteLLM's proxy in the same run.

    python benchmarks/gateway/run.py [--long] [--seconds S] [--only toolspeak] [--cases whole,stream,memory,crowd,start]

Each server has one core to itself, the stub of a model's server and the generator of load have another. The peers
pass tools on to a server that knows them; the gateway writes them into a prompt and reads the call out of a text.
Requests a core are counted from the processor time that the kernel tells, so that neighbours on the machine
weigh less; seconds are the wall's. --long answers 100,000 requests for the memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
from collections.abc import Awaitable, Callable
from importlib.metadata import version

import servers
import uvloop
from servers import Server, Unavailable

import wire

CASES = ("whole", "stream", "memory", "crowd", "start")
SERVERS = {"pass-through": servers.passthrough, "toolspeak": servers.toolspeak, "LiteLLM": servers.litellm}
CALLED = b"get_weather"
OPEN = 1000
ROUNDS = 10
Measure = Callable[[str, int, Server | None], Awaitable[None]]


class Bench:
    """One run: what to measure, how long, and what was measured so far."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.base: dict[str, float] = {}
        self.failed = False

    def say(self, what: str, value: str, note: str = "") -> None:
        print(f"  {what:<44} {value:>14}  {note}", flush=True)

    def judge(self, who: str, reached: bool, target: str) -> str:
        """The target beside a value of ours."""
        if who != "toolspeak":
            return ""
        self.failed |= not reached
        return f"target {target}: {'reached' if reached else 'MISSED'}"

    async def measure(self, who: str, port: int, server: Server | None) -> None:
        for case in self.given.cases:
            if case != "start":
                await getattr(self, case)(who, port, server)

    async def whole(self, who: str, port: int, server: Server | None) -> None:
        """One request with one tool, answered with a call, whole."""
        body, seconds = wire.question("call", stream=False), self.given.seconds
        await self.prove(who, port, body, wire.SHORT)
        await self.load(port, body, connections=4, requests=200)
        alone = await self.load(port, body, seconds=seconds)
        p50, p99 = statistics.median(alone.took), _percentile(alone.took, 99)
        if server is None:
            self.base |= {"p50": p50, "p99": p99}
            self.say(f"{who}: one at a time, p50 / p99", f"{p50 * 1e3:.2f} / {p99 * 1e3:.2f}", "ms")
        else:
            added = (p50 - self.base["p50"]) * 1e3, (p99 - self.base["p99"]) * 1e3
            note = self.judge(who, added[0] <= 0.6 and added[1] <= 3, "<= 0.6 / 3")
            self.say(f"{who}: added, one at a time, p50 / p99", f"{added[0]:.2f} / {added[1]:.2f}", f"ms  {note}")
        await self.rate(who, port, server, body, "requests", 3000, 32)

    async def stream(self, who: str, port: int, server: Server | None) -> None:
        """A stream of 100 chunks that is one call."""
        body = wire.question("stream", stream=True)
        await self.prove(who, port, body, wire.LONG)
        await self.rate(who, port, server, body, "streams", 400, 32)

    async def rate(
        self, who: str, port: int, server: Server | None, body: bytes, what: str, goal: int, at: int
    ) -> None:
        await self.load(port, body, connections=at, requests=at * 4)
        rates: list[float] = []
        costs: list[float] = []
        for _ in range(ROUNDS):
            before = server.cpu() if server else 0.0
            result = await self.load(port, body, connections=at, seconds=self.given.seconds / ROUNDS)
            rates.append(len(result.took) / result.seconds)
            costs.append(((server.cpu() if server else 0.0) - before) / len(result.took))
        rate, cost = statistics.median(rates), statistics.median(costs)
        if server is None:
            self.base[what] = rate
            enough = "enough" if rate >= 3 * goal else f"TOO FEW to measure {goal}"
            self.say(f"{who}: {what}/s, {at} at once", f"{rate:,.0f}", f"must be >= {3 * goal:,}: {enough}")
            return
        note = self.judge(who, 1 / cost >= goal, f">= {goal:,}")
        told = f"{cost * 1e6:,.0f} us each, {min(costs) * 1e6:,.0f} at best; {rate:,.0f}/s by the wall, {at} at once"
        self.say(f"{who}: {what} a core", f"{1 / cost:,.0f}", f"{told}; {self.ratio(what, 1 / cost)}{note}")

    def ratio(self, what: str, value: float) -> str:
        """How it compares with the pass-through, which is measured first."""
        key = f"{what} passed through"
        if key not in self.base:
            self.base[key] = value
            return ""
        return f"{value / self.base[key]:.2f} x the pass-through; "

    async def memory(self, who: str, port: int, server: Server | None) -> None:
        """Resident memory after many requests, and how it grows at the end."""
        if server is None:
            return
        many = 100_000 if self.given.long else 10_000
        many = many if who != "LiteLLM" else many // 20
        body = wire.question("call", stream=False)
        seen = [server.memory()]
        for _ in range(5):
            await self.load(port, body, connections=32, requests=many // 5)
            seen.append(server.memory())
        slope = (seen[-1] - seen[2]) / (many * 3 / 5) * 1e6
        note = self.judge(who, seen[-1] <= 90 and slope <= 20, "<= 90 and not growing")
        told = f"MB; {seen[0]:.0f} before, {slope:+.1f} bytes a request over the last three fifths; {note}"
        self.say(f"{who}: memory after {many:,} requests", f"{seen[-1]:.1f}", told)

    async def crowd(self, who: str, port: int, server: Server | None) -> None:
        """A thousand streams of plain text open at once, and fifty more that come while they are."""
        if who == "LiteLLM":
            self.say(
                f"{who}: {OPEN:,} streams at once", "left out", "20,000 chunks a second are more than it passes on"
            )
            return
        held, ramp = 5.0, 5.0
        chunks, late = int((held + ramp) * wire.PACE), 100
        body = wire.question(f"paced{chunks:04}", stream=True, tools=False)
        short = wire.question("paced0004", stream=True, tools=False)
        word = b" word"  # several may come in one event
        before = server.cpu() if server else 0.0
        async with asyncio.TaskGroup() as group:
            first = group.create_task(wire.crowd(port, body, b"[DONE]", streams=OPEN, ramp=ramp, mark=word))
            await asyncio.sleep(ramp)
            used = server.cpu() if server else 0.0
            then = group.create_task(wire.crowd(port, short, b"[DONE]", streams=late, ramp=held * 0.8, mark=word))
            await asyncio.sleep(held * 0.9)
            used = (server.cpu() - used) / (held * 0.9) if server else 0.0
        results = first.result(), then.result()
        self.right(*results)
        lost = OPEN * chunks + late * 4 - sum(result.chunks for result in results)
        p99 = _percentile(results[1].first, 99)
        if server is None:
            self.base["first"] = p99
            told = f"ms to the first words, p99, of {late} that come then; {lost} chunks lost"
            self.say(f"{who}: {OPEN:,} streams at once", f"{p99 * 1e3:.1f}", told)
            return
        added = (p99 - self.base["first"]) * 1e3
        note = self.judge(who, added <= 50 and lost == 0, "<= 50, 0 lost")
        whole = (server.cpu() - before) / (OPEN * chunks + late * 4) * 1e6
        told = f"ms to the first words added, p99; {used:.0%} of a core, {whole:.0f} us a chunk; {lost} lost; {note}"
        self.say(f"{who}: {OPEN:,} streams at once", f"{added:.1f}", told)

    async def load(self, port: int, body: bytes, **bounds: float) -> wire.Result:
        result = await wire.load(port, body, CALLED, **bounds)  # type: ignore[arg-type]
        self.right(result)
        return result

    async def prove(self, who: str, port: int, body: bytes, arguments: str) -> None:
        """Ends the run where the answer is not the one call that it should be."""
        result = await self.load(port, body, requests=1)
        if (came := wire.calls(result.last)) != [("get_weather", json.loads(arguments))]:
            raise SystemExit(f"{who}: a wrong answer: {came} in {result.last[:2000]!r}")

    def right(self, *results: wire.Result) -> None:
        """Ends the run where an answer was wrong: what is measured must be the work."""
        for result in results:
            if result.wrong:
                raise SystemExit(f"a wrong answer: {result.wrong[0]}")

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        stub = await loop.create_server(wire.Stub, "127.0.0.1", 0, backlog=4096)
        port = stub.sockets[0].getsockname()[1]
        core = max(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        await self.measure("direct", port, None)
        for who, command in SERVERS.items():
            if self.given.only and who not in self.given.only:
                continue
            try:
                with servers.running(command, f"http://127.0.0.1:{port}", core) as server:
                    if "start" in self.given.cases:
                        note = self.judge(who, server.started <= 0.5, "<= 0.5")
                        self.say(f"{who}: from exec to listening", f"{server.started:.2f}", f"s  {note}")
                    await self.measure(who, server.port, server)
            except Unavailable as why:
                self.say(f"{who}", "left out", str(why))
        return 1 if self.failed and self.given.strict else 0


def _percentile(values: list[float], at: int) -> float:
    return statistics.quantiles(values, n=100)[at - 1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="100,000 requests for the memory")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each load (default 5)")
    parser.add_argument("--only", type=lambda told: told.split(","), help=f"of {', '.join(SERVERS)}")
    parser.add_argument("--cases", type=lambda told: told.split(","), default=CASES, help=f"of {', '.join(CASES)}")
    parser.add_argument("--strict", action="store_true", help="fail where a target is missed")
    given = parser.parse_args()
    if not hasattr(os, "sched_setaffinity") or os.cpu_count() == 1:
        raise SystemExit("this needs Linux and two cores")
    made = ", ".join(f"{name} {version(name)}" for name in ("uvicorn", "uvloop", "aiohttp"))
    print(f"{platform.machine()}, {os.cpu_count()} cores, CPython {platform.python_version()}, {made}")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(Bench(given).run())


if __name__ == "__main__":
    sys.exit(main())
