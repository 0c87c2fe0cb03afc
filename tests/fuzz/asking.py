"""Asks a gateway with wrong bodies for so many seconds, and keeps those that it did not answer as it must."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from time import time
from typing import Any
from zlib import crc32

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gateway"))

import aiohttp
from bodies import Body, changed, problem, problems, settings, upstreams
from judge import FOUND

from conftest import gateway  # the one of tests/gateway

MOST = 10
"""So many findings are enough."""
EACH = 200


def bodies(limit: float, seed: int) -> tuple[int, int]:
    """How many bodies were asked with in so many seconds, and how many findings there were."""
    return asyncio.run(_bodies(time() + limit, random.Random(seed)))


def asked_again(case: dict[str, Any]) -> str:
    """What is wrong with the answer to a kept finding."""

    async def go() -> str:
        async with AsyncExitStack() as stack:
            session, url, _ = await _running(stack)
            return await problem(session, url, Body(case["path"], case["body"]))

    return asyncio.run(go())


async def _bodies(end: float, rng: random.Random) -> tuple[int, int]:
    asked, found = 0, dict[tuple[str, str], Body]()
    logging.disable(logging.ERROR)  # what the gateway says of a failure is said here
    async with AsyncExitStack() as stack:
        session, url, models = await _running(stack)
        while time() < end and len(found) < MOST:
            cases = [changed(rng, models) for _ in range(EACH)]
            for case, told in await problems(session, url, cases):
                if (case.path, told[:80]) not in found:
                    found[case.path, told[:80]] = case
                    print(f"FOUND {told}\n  {case.path}: {case.change}\n  kept in {_save(case, told)}", flush=True)
            asked += EACH
    logging.disable(logging.NOTSET)
    return asked, len(found)


async def _running(stack: AsyncExitStack) -> tuple[aiohttp.ClientSession, str, list[str]]:
    """A gateway on loopback with every model, and what it takes to ask it."""
    folder = stack.enter_context(TemporaryDirectory())
    models = await stack.enter_async_context(upstreams())
    running = await stack.enter_async_context(gateway(settings=settings(folder), **models))
    session = await stack.enter_async_context(aiohttp.ClientSession())
    return session, running.url, list(models)


def _save(case: Body, told: str) -> Path:
    FOUND.mkdir(exist_ok=True)
    text = json.dumps({"path": case.path, "body": case.body, "change": case.change, "problem": told}, indent=1)
    path = FOUND / f"body-{crc32(text.encode()):08x}.json"
    path.write_text(text, "utf-8")
    return path
