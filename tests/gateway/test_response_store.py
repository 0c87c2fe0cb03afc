"""The store of responses: what it keeps, for whom, how long and how much; one process and several."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from clock import Clock
from toolspeak.errors import Refused, UsageError
from toolspeak.gateway.config.settings import StoreSettings
from toolspeak.gateway.endpoints import responses
from toolspeak.gateway.storage import response_store as stores
from toolspeak.gateway.storage.response_store import ROW, ResponseStore
from toolspeak.models.scripted import Scripted

ITEMS = [{"type": "message", "role": "user", "id": "msg_in_1_0", "content": [{"type": "input_text", "text": "héllo"}]}]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "kept.sqlite")


@pytest.fixture
def store(path: str, clock: Clock) -> Iterator[ResponseStore]:
    made = ResponseStore(StoreSettings(path, responses=True, size=20_000, age=60), clock=clock)
    made.prepare()
    yield made
    made.close()


def response(key: str, text: str = "") -> dict[str, Any]:
    return {"id": key, "output": [{"text": text}]}


def total(path: str) -> tuple[int, int]:
    database = sqlite3.connect(path)
    try:
        (told,) = database.execute("SELECT size FROM turn_total").fetchone()
        (summed,) = database.execute("SELECT coalesce(sum(size), 0) FROM turn").fetchone()
    finally:
        database.close()
    return told, summed


def test_what_is_kept_is_found_by_its_owner_alone(store: ResponseStore) -> None:
    async def go() -> None:
        await store.save("ann", response("resp_1", "hi"), ITEMS)
        assert json.loads(await store.body("ann", "resp_1") or b"") == response("resp_1", "hi")
        inputs = await store.inputs("ann", "resp_1")
        assert inputs is not None
        assert inputs.items == ITEMS
        assert await store.inputs("bob", "resp_1") is None
        assert await store.body("bob", "resp_1") is None
        assert await store.body("", "resp_1") is None
        assert not await store.drop("bob", "resp_1")
        assert await store.body("ann", "resp_1") is not None

    asyncio.run(go())


def test_what_is_dropped_is_gone_from_the_file_too(store: ResponseStore, path: str) -> None:
    async def go() -> None:
        await store.save("ann", response("resp_1", "a canary in here"), ITEMS)
        assert await store.drop("ann", "resp_1")
        assert not await store.drop("ann", "resp_1")
        assert await store.body("ann", "resp_1") is None

    asyncio.run(go())
    assert total(path) == (0, 0)
    assert not any(b"canary" in found.read_bytes() for found in Path(path).parent.iterdir())


def test_what_is_too_old_is_not_found_and_then_dropped(store: ResponseStore, clock: Clock, path: str) -> None:
    async def go() -> None:
        await store.save("ann", response("resp_1"), ITEMS)
        clock.now += 61
        assert await store.body("ann", "resp_1") is None
        assert not await store.drop("ann", "resp_1")
        await store.save("ann", response("resp_2"), ITEMS)
        assert await store.body("ann", "resp_2") is not None

    asyncio.run(go())
    told, summed = total(path)
    assert told == summed < 2 * ROW


def test_the_oldest_make_room(store: ResponseStore, clock: Clock, path: str) -> None:
    async def go() -> list[bool]:
        for number in range(10):
            clock.now += 1
            await store.save("ann", response(f"resp_{number}", "x" * 3000), ITEMS)
        return [await store.body("ann", f"resp_{number}") is not None for number in range(10)]

    held = asyncio.run(go())
    assert held == sorted(held)
    assert 4 <= sum(held) < 10
    told, summed = total(path)
    assert told == summed <= 20_000


def test_the_file_does_not_grow_beyond_what_it_may_hold(store: ResponseStore, path: str) -> None:
    async def go() -> None:
        for number in range(200):
            await store.save("ann", response(f"resp_{number}", "x" * 3000), ITEMS)

    asyncio.run(go())
    store.close()
    assert Path(path).stat().st_size < 100_000


def test_a_response_larger_than_the_store_is_refused(store: ResponseStore) -> None:
    with pytest.raises(Refused, match="larger than the whole store"):
        asyncio.run(store.save("ann", response("resp_1", "x" * 30_000), ITEMS))


def test_the_file_is_for_nobody_elses_eyes(store: ResponseStore, path: str) -> None:
    asyncio.run(store.save("ann", response("resp_1"), ITEMS))
    assert [found.stat().st_mode & 0o077 for found in Path(path).parent.iterdir()] == [0] * 3


def test_a_file_that_cannot_be_had_is_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be used"):
        ResponseStore(StoreSettings(str(tmp_path / "no" / "such" / "folder"), responses=True)).prepare()
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(b"no database at all, but long enough to be looked at" * 100)
    with pytest.raises(UsageError, match="cannot be used"):
        ResponseStore(StoreSettings(str(broken), responses=True)).prepare()


def test_a_store_that_fails_is_told_as_such(store: ResponseStore, path: str) -> None:
    assert asyncio.run(store.body("ann", "resp_1")) is None
    database = sqlite3.connect(path)
    database.execute("DROP TABLE turn")
    database.close()
    with pytest.raises(Refused, match="is unavailable at the moment") as caught:
        asyncio.run(store.body("ann", "resp_1"))
    assert caught.value.status == 503


KEEPER = """
import asyncio, sys
from toolspeak.gateway.config.settings import StoreSettings
from toolspeak.gateway.storage.response_store import ResponseStore
store = ResponseStore(StoreSettings(sys.argv[1], responses=True, size=10_000_000))
async def go():
    for number in range(40):
        await store.save("ann", {"id": f"resp_{sys.argv[2]}_{number}", "output": []}, [])
asyncio.run(go())
store.close()
"""


def test_several_processes_keep_in_one_file(path: str) -> None:
    workers = [
        subprocess.Popen([sys.executable, "-c", KEEPER, path, str(number)], stderr=subprocess.PIPE)
        for number in range(3)
    ]
    assert [(worker.communicate()[1], worker.returncode) for worker in workers] == [(b"", 0)] * 3
    store = ResponseStore(StoreSettings(path, responses=True))

    async def go() -> bool:
        return all([await store.body("ann", f"resp_{w}_{n}") is not None for w in range(3) for n in range(40)])

    assert asyncio.run(go())
    store.close()
    told, summed = total(path)
    assert told == summed


def test_a_long_history_is_read_and_written_beside_the_event_loop(
    serve_models: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body of ninety bytes may bring megabytes with it: no JSON of them is made or read on the loop."""
    real, threads = stores.nonblocking_json, dict[str, set[str]]()

    def noted(name: str) -> Callable[..., Any]:
        def work(*args: Any, **options: Any) -> Any:
            threads.setdefault(name, set()).add(threading.current_thread().name)
            return getattr(real, name)(*args, **options)

        return work

    monkeypatch.setattr(stores, "nonblocking_json", SimpleNamespace(loads=noted("loads")))
    dumped = stores.dumped
    monkeypatch.setattr(
        stores, "dumped",
        lambda value: threads.setdefault("dumps", set()).add(threading.current_thread().name) or dumped(value),
    )  # fmt: skip
    read = responses.openai_responses.read_request
    monkeypatch.setattr(
        responses.openai_responses, "read_request",
        lambda *args: threads.setdefault("read", set()).add(threading.current_thread().name) or read(*args),
    )  # fmt: skip

    async def go() -> list[dict[str, Any]]:
        settings = {"store": StoreSettings(str(tmp_path / "store.sqlite"), responses=True)}
        async with serve_models(m=Scripted("Hi", repeat=True), settings=settings) as running:
            async with aiohttp.ClientSession() as session:
                told: list[dict[str, Any]] = []
                for more in ({"input": "x" * 300_000}, {"input": "go on"}):
                    body = {"model": "m", **more, **({"previous_response_id": told[0]["id"]} if told else {})}
                    async with session.post(running.url + "/v1/responses", json=body) as answer:
                        told.append(await answer.json())
                return told

    first, second = asyncio.run(go())
    assert second["previous_response_id"] == first["id"]
    here = threading.current_thread().name
    assert here not in set().union(*threads.values())
    assert set(threads) == {"dumps", "loads", "read"}
