"""Conversations in the store of responses: turns that link to one another, what deleting one means, and files of old."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from clock import Clock
from toolspeak.errors import Refused
from toolspeak.gateway.config.settings import StoreSettings
from toolspeak.gateway.storage import response_store
from toolspeak.gateway.storage.response_store import ResponseStore, StoredItems
from toolspeak.models.scripted import Scripted

ENOUGH = 10_000_000


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.sqlite")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(path: str, clock: Clock) -> Iterator[ResponseStore]:
    made = opened(path, clock=clock)
    yield made
    made.close()


def opened(path: str, size: int = 1_000_000, **options: Any) -> ResponseStore:
    made = ResponseStore(StoreSettings(path, responses=True, size=size, age=60), **options)
    made.prepare()
    return made


def message(text: str, key: str = "") -> dict[str, Any]:
    return {"id": key, "type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


async def turn(store: ResponseStore, number: int | str, previous: int | str | None, text: str = "text") -> StoredItems:
    """Adds a turn, as a request does: what it goes on from is read, then it is stored. What it went on from."""
    before = "" if previous is None else f"resp_{previous}"
    earlier = await store.conversation("ann", before, (), ENOUGH)
    body = {"id": f"resp_{number}", "output": [message(f"answer {text}", f"msg_{number}_0")]}
    if before:
        body["previous_response_id"] = before
    await store.save("ann", body, [message(text, f"msg_in_{number}_0")], earlier)
    return earlier


def texts(items: list[dict[str, Any]] | None) -> list[str]:
    return [item["content"][0]["text"] for item in items or ()]


def stored_bytes(path: str) -> int:
    database = sqlite3.connect(path)
    try:
        (size,) = database.execute("SELECT sum(length(body) + length(input)) FROM turn_text").fetchone()
        (told,) = database.execute("SELECT size FROM turn_total").fetchone()
        (summed,) = database.execute("SELECT sum(size) FROM turn").fetchone()
    finally:
        database.close()
    assert told == summed
    return size


def in_file(path: str, word: bytes) -> bool:
    return any(word in found.read_bytes() for found in Path(path).parent.iterdir())


def test_a_conversation_takes_the_bytes_of_its_turns(store: ResponseStore, path: str) -> None:
    async def go() -> StoredItems:
        for number in range(50):
            await turn(store, number, number - 1 if number else None, "x" * 5000)
        return await store.conversation("ann", "resp_49", (), ENOUGH)

    whole = asyncio.run(go())
    assert len(whole.items) == 100
    assert [item["id"] for item in whole.items[:4]] == ["msg_in_0_0", "msg_0_0", "msg_in_1_0", "msg_1_0"]
    assert stored_bytes(path) < 50 * 11_000


def test_a_deleted_turn_takes_its_text_along_and_the_later_ones_stay_readable(store: ResponseStore, path: str) -> None:
    async def go() -> None:
        for number, text in enumerate(("first", "canary", "third", "fourth")):
            await turn(store, number, number - 1 if number else None, text)
        assert in_file(path, b"canary")
        assert await store.drop("ann", "resp_1")
        assert json.loads(await store.body("ann", "resp_3") or b"")["id"] == "resp_3"
        assert texts((await store.inputs("ann", "resp_3") or StoredItems()).items) == [
            "third",
            "answer third",
            "fourth",
        ]
        with pytest.raises(Refused, match=r"'resp_3' continues 'resp_1', which was deleted") as caught:
            await turn(store, 4, 3)
        assert caught.value.code == "previous_response_not_found"
        await turn(store, 5, 0)  # what came before the deleted one can be gone on from

    asyncio.run(go())
    assert not in_file(path, b"canary")


def test_what_is_deleted_while_its_follower_is_made(store: ResponseStore) -> None:
    async def go() -> None:
        await turn(store, 0, None)
        earlier = await store.conversation("ann", "resp_0", (), ENOUGH)
        assert await store.drop("ann", "resp_0")
        late = {"id": "resp_1", "previous_response_id": "resp_0", "output": []}
        await store.save("ann", late, [message("late", "msg_in_1_0")], earlier)
        assert texts((await store.inputs("ann", "resp_1") or StoredItems()).items) == ["late"]
        with pytest.raises(Refused, match="was deleted"):
            await turn(store, 2, 1)

    asyncio.run(go())


def test_what_is_gone_on_from_grows_old_with_what_goes_on(store: ResponseStore, clock: Clock) -> None:
    async def go() -> None:
        await turn(store, "lone", None)
        for number in range(10):
            await turn(store, number, number - 1 if number else None)
            clock.now += 40
        assert await store.body("ann", "resp_lone") is None
        assert len((await turn(store, 10, 9)).turns) == 10
        clock.now += 61
        assert await store.body("ann", "resp_0") is None
        assert await store.body("ann", "resp_10") is None

    asyncio.run(go())


def test_room_is_never_made_in_the_middle_of_a_conversation(path: str) -> None:
    """Whatever is dropped to make room, what is left of each conversation is its beginning."""
    store = opened(path, size=60_000, clock=lambda: 1_000_000.0)  # a clock that stands still: all are equally old

    async def go() -> list[list[bool]]:
        going = dict.fromkeys("abc", True)
        for number in range(12):
            for name in [name for name in going if going[name]]:
                try:
                    await turn(store, f"{name}{number}", f"{name}{number - 1}" if number else None, "x" * 500)
                except Refused:  # to make room its last turn was dropped
                    going[name] = False
        return [[await store.body("ann", f"resp_{name}{n}") is not None for n in range(12)] for name in going]

    there = asyncio.run(go())
    store.close()
    assert [all(turns) for turns in there].count(True) == 2
    assert all(turns == sorted(turns, reverse=True) for turns in there)


def test_a_conversation_larger_than_the_store_is_refused(path: str) -> None:
    store = opened(path, size=20_000)

    async def go() -> None:
        for number in range(20):
            await turn(store, number, number - 1 if number else None, "x" * 1000)

    with pytest.raises(Refused, match="larger than the whole store"):
        asyncio.run(go())
    store.close()


def test_reading_is_bounded_before_it_is_done(store: ResponseStore) -> None:
    async def go() -> None:
        for number in range(20):
            await turn(store, number, number - 1 if number else None, "x" * 1000)
        with pytest.raises(Refused, match="start another one"):
            await store.conversation("ann", "resp_19", (), 20_000)
        names = [f"msg_{number}_0" for number in range(20)]
        with pytest.raises(Refused, match="start another one"):
            await store.conversation("ann", "", names, 20_000)
        assert len((await store.conversation("ann", "", names, 100_000)).named) == 20

    asyncio.run(go())


def test_the_items_of_a_conversation_are_counted_before_they_are_read(
    store: ResponseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go() -> None:
        for number in range(20):
            await turn(store, number, number - 1 if number else None, "x")
        assert (await store.conversation("ann", "resp_19", (), 100_000)) is not None
        monkeypatch.setattr(response_store, "MANY", 10)
        with pytest.raises(Refused, match="start another one"):
            await store.conversation("ann", "resp_19", (), 100_000)

    assert response_store.MANY == 10_000
    asyncio.run(go())


def test_what_is_only_named_is_stored_once(serve_models: Callable[..., Any], path: str) -> None:
    """Clients that name earlier items by their ids repeat no text either, and deleting removes it."""

    async def go() -> None:
        settings = {"store": StoreSettings(path, responses=True)}
        model = Scripted("Hello", repeat=True)
        async with serve_models(m=model, settings=settings) as running, aiohttp.ClientSession() as session:

            async def ask(*items: Any, **more: Any) -> dict[str, Any]:
                body = {"model": "m", "input": list(items), **more}
                async with session.post(running.url + "/v1/responses", json=body) as answer:
                    return await answer.json()

            said = {"role": "user", "content": "canary " * 300}
            first = await ask(said)
            page = await session.get(f"{running.url}/v1/responses/{first['id']}/input_items")
            name = {"type": "item_reference", "id": (await page.json())["data"][0]["id"]}
            for _ in range(5):
                last = await ask(name, {"id": first["output"][0]["id"]}, {"role": "user", "content": "go on"})
            assert "canary" in str(model.requests[-1].messages)
            later = await ask({"role": "user", "content": "more"}, previous_response_id=last["id"])
            assert later["status"] == "completed"
            assert str(model.requests[-1].messages).count("canary") == 300
            page = await session.get(f"{running.url}/v1/responses/{last['id']}/input_items?order=asc")
            assert "canary" in str((await page.json())["data"][0])
            assert stored_bytes(path) < 20_000
            await session.delete(f"{running.url}/v1/responses/{first['id']}")
            assert not in_file(path, b"canary")
            page = await session.get(f"{running.url}/v1/responses/{last['id']}/input_items?order=asc")
            assert (await page.json())["data"][0] == name
            refused = await ask({"role": "user", "content": "more"}, previous_response_id=last["id"])
            assert "was deleted" in refused["error"]["message"]
            running.gateway.store.close()

    asyncio.run(go())


# ------------------------------------------------------------------ several processes

TALKER = """
import asyncio, sys
from toolspeak.gateway.config.settings import StoreSettings
from toolspeak.gateway.storage.response_store import ResponseStore
path, who = sys.argv[1:]
store = ResponseStore(StoreSettings(path, responses=True, size=60_000))
async def go():
    previous = ""
    for number in range(20):
        earlier = await store.conversation("ann", previous, (), 10_000_000)
        assert len(earlier.items) == 2 * number, (number, len(earlier.items))
        body = {"id": f"resp_{who}{number}", "output": [{"id": "o", "type": "x"}], "previous_response_id": previous or None}
        await store.save("ann", body, [{"id": "i", "type": "x"}], earlier)
        previous = body["id"]
asyncio.run(go())
store.close()
"""


def test_conversations_of_several_processes_stay_whole(path: str) -> None:
    store = opened(path, size=60_000)
    talkers = [subprocess.Popen([sys.executable, "-c", TALKER, path, who], stderr=subprocess.PIPE) for who in "ab"]
    assert [(talker.communicate()[1], talker.returncode) for talker in talkers] == [(b"", 0)] * 2

    async def go() -> list[int]:
        return [len((await store.conversation("ann", f"resp_{who}19", (), ENOUGH)).items) for who in "ab"]

    assert asyncio.run(go()) == [40, 40]
    store.close()
    stored_bytes(path)


# ------------------------------------------------------------------ files of the first version

OLD = """
CREATE TABLE IF NOT EXISTS response (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, at REAL NOT NULL, size INTEGER NOT NULL,
    body TEXT NOT NULL, input TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS response_at ON response (at, size);
CREATE TABLE IF NOT EXISTS response_total (one INTEGER PRIMARY KEY CHECK (one = 1), size INTEGER NOT NULL);
INSERT OR IGNORE INTO response_total VALUES (1, 0);
CREATE TRIGGER IF NOT EXISTS response_added AFTER INSERT ON response BEGIN
    UPDATE response_total SET size = size + new.size;
END;
CREATE TRIGGER IF NOT EXISTS response_dropped AFTER DELETE ON response BEGIN
    UPDATE response_total SET size = size - old.size;
END;
"""


def old_file(path: str) -> None:
    """A conversation of ten turns with a fork, one whose beginning was deleted, and somebody else's."""
    items: dict[str, list[Any]] = {}
    outputs: dict[str, list[Any]] = {}
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = WAL")
    database.executescript(OLD)
    rows = [(str(n), str(n - 1) if n else None) for n in range(10)]
    for name, previous in [*rows, ("fork", "3"), ("gone", None), ("orphan", "gone")]:
        repeated = [{**item, "status": "completed"} for item in [*items.get(previous, []), *outputs.get(previous, [])]]
        items[name] = [
            *repeated,
            {**message(f"{name} " * 200, f"msg_in_{name}_{len(repeated)}"), "status": "completed"},
        ]
        call = {"type": "function_call", "id": f"fc_{name}_0", "name": "f", "call_id": "c", "arguments": "{}"}
        outputs[name] = [message(f"answer {name}", f"msg_{name}_0"), call]
        body = {"id": f"resp_{name}", "output": outputs[name]}
        if previous:
            body["previous_response_id"] = f"resp_{previous}"
        row = [json.dumps(body), json.dumps(items[name])]
        values = (f"resp_{name}", "ann", 1_000_000.0 + len(items), sum(map(len, row)) + 512, *row)
        database.execute("INSERT INTO response VALUES (?, ?, ?, ?, ?, ?)", values)
    database.execute("DELETE FROM response WHERE id = 'resp_gone'")
    database.execute("INSERT INTO response VALUES ('resp_bob', 'bob', 1000000.0, 600, '{\"output\": []}', '[]')")
    database.commit()
    database.close()


def check_migrated(path: str) -> None:
    store = opened(path, clock=lambda: 1_000_050.0)

    async def go() -> None:
        last = await store.conversation("ann", "resp_9", (), ENOUGH)
        assert len(last.items) == 30
        assert last.items[0]["content"][0]["text"] == "0 " * 200
        assert last.items[-1]["id"] == "fc_9_0"
        assert len((await store.conversation("ann", "resp_fork", (), ENOUGH)).items) == 15
        assert len((await store.conversation("ann", "resp_orphan", (), ENOUGH)).items) == 6  # nothing is lost
        assert await store.body("bob", "resp_bob") == b'{"output": []}'
        await turn(store, 10, 9)

    asyncio.run(go())
    store.close()
    database = sqlite3.connect(path)
    [links] = database.execute("SELECT count(*) FROM turn WHERE previous IS NOT NULL").fetchone()
    older = "SELECT count(*) FROM turn a JOIN turn b ON a.id = b.previous WHERE a.at < b.at OR a.used < b.used"
    assert (links, database.execute(older).fetchone()) == (11, (0,))
    assert not database.execute("SELECT 1 FROM sqlite_master WHERE name LIKE 'response%'").fetchall()
    database.close()
    assert stored_bytes(path) < 13 * 1200


def test_a_file_of_the_first_version_is_taken_over(path: str) -> None:
    old_file(path)
    check_migrated(path)


CRASHING = """
import os, sys
from toolspeak.gateway.storage import response_migration
from toolspeak.gateway.config.settings import StoreSettings
from toolspeak.gateway.storage.response_store import ResponseStore
move = response_migration._move
def crashing(database, number, row):
    if number == 7:
        os._exit(9)
    move(database, number, row)
response_migration._move = crashing
ResponseStore(StoreSettings(sys.argv[1], responses=True)).prepare()
"""


def test_a_crash_in_the_middle_of_taking_over_loses_nothing(path: str) -> None:
    old_file(path)
    assert subprocess.run([sys.executable, "-c", CRASHING, path], check=False).returncode == 9
    database = sqlite3.connect(path)
    assert database.execute("SELECT count(*) FROM response").fetchone() == (13,)
    assert database.execute("SELECT count(*) FROM turn").fetchone() == (0,)
    database.close()
    check_migrated(path)
