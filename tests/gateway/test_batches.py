"""Files and batches behind the gateway, as OpenAI's SDK drives them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest

from preloaded import Started
from toolspeak.api.embeddings import Vectors
from toolspeak.events import Event, Finished, TextDelta
from toolspeak.gateway.access.keys import digest
from toolspeak.gateway.config.settings import Batches, GatewayLimits, Key, Rates
from toolspeak.models.scripted import Scripted
from toolspeak.types import Request

CHAT = "/v1/chat/completions"
ENDED = ("completed", "failed", "expired", "cancelled")
KEYS = {name: f"a-key-of-{name}-and-more-letters" for name in ("ann", "bob")}
Serve = Callable[..., Any]


class Gated:
    """A model that answers what it was asked, once it may."""

    name = "gated"
    capabilities: frozenset[str] = frozenset()

    def __init__(self, *, shut: bool = False) -> None:
        self.free = asyncio.Event()
        self.asked: list[str] = []
        self.running = self.most = 0
        if not shut:
            self.free.set()

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        text = str(request.messages[-1]["content"])
        self.asked.append(text)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if text != "now":
                await self.free.wait()
            yield TextDelta(f"You said: {text}")
            yield Finished("stop")
        finally:
            self.running -= 1


class Embedding(Scripted):
    """A model that gives vectors too."""

    async def embed(self, texts: Any, *, dimensions: int | None = None) -> Vectors:
        return Vectors(tuple((0.5, 0.25) for _ in texts), 3)


def sdk(running: Any, key: str = "none") -> openai.AsyncOpenAI:
    client = openai.AsyncOpenAI(base_url=running.url + "/v1", api_key=KEYS.get(key, key), max_retries=0)
    running.clients.append(client)
    return client


def line(number: int | str, url: str = CHAT, **body: Any) -> dict[str, Any]:
    usual = {"model": "m", "messages": [{"role": "user", "content": f"row {number}"}]}
    return {"custom_id": f"r{number}", "method": "POST", "url": url, "body": body or usual}


def content(lines: Any) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in lines)


async def begun(client: openai.AsyncOpenAI, data: bytes, endpoint: Any = CHAT) -> Any:
    file = await client.files.create(file=("in.jsonl", data), purpose="batch")
    return await client.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window="24h")


async def ended(client: openai.AsyncOpenAI, batch: Any) -> Any:
    async with asyncio.timeout(60):
        while batch.status not in ENDED:
            await asyncio.sleep(0.02)
            batch = await client.batches.retrieve(batch.id)
    return batch


async def rows_of(client: openai.AsyncOpenAI, key: str | None) -> list[dict[str, Any]]:
    assert key is not None
    return [json.loads(one) for one in (await client.files.content(key)).text.splitlines()]


def live(
    serve_models: Serve, folder: Path, work: Callable[[Any], Awaitable[Any]], model: Any = None, **how: Any
) -> Any:
    """What `work` gives with a gateway that has batches."""
    bounds, batches = how.pop("bounds", {}), how.pop("batches", True)

    async def go() -> Any:
        settings = {**({"batches": Batches(str(folder / "batches"), **bounds)} if batches else {}), **how}
        made = model() if model else Scripted("Hello", repeat=True)
        async with serve_models(m=made, settings=settings) as running:
            running.model, running.clients = made, []
            try:
                return await work(running)
            finally:
                for client in running.clients:
                    await client.close()

    return asyncio.run(go())


def test_a_batch_from_its_file_to_its_answers(serve_models: Serve, tmp_path: Path) -> None:
    async def work(running: Any) -> None:
        client = sdk(running)
        lines = [line(number) for number in range(30)]
        lines[7] = line(7, model="nobody", messages=[{"role": "user", "content": "Hi"}])
        lines[9] = line(9, model="m", messages=[{"role": "user", "content": "Hi"}], stream=True)
        lines[11] = line(11, model="m", messages="none")
        file = await client.files.create(file=("a/in.jsonl", content(lines)), purpose="batch")
        assert (file.filename, file.purpose, file.bytes) == ("in.jsonl", "batch", len(content(lines)))
        assert (await client.files.content(file.id)).content == content(lines)
        batch = await client.batches.create(
            input_file_id=file.id, endpoint=CHAT, completion_window="24h", metadata={"night": "1"}
        )
        assert batch.status == "validating"
        batch = await ended(client, batch)
        assert (batch.status, batch.metadata) == ("completed", {"night": "1"})
        counts = batch.request_counts
        assert counts is not None
        assert (counts.total, counts.completed, counts.failed) == (30, 27, 3)
        good = await rows_of(client, batch.output_file_id)
        assert [one["custom_id"] for one in good] == [f"r{n}" for n in range(30) if n not in (7, 9, 11)]
        said = good[0]["response"]["body"]["choices"][0]["message"]["content"]
        assert (said, good[0]["response"]["status_code"], good[0]["error"]) == ("You said: row 0", 200, None)
        bad = await rows_of(client, batch.error_file_id)
        told = [
            (one["custom_id"], one["response"]["status_code"], one["response"]["body"]["error"]["param"]) for one in bad
        ]
        assert told == [("r7", 404, "model"), ("r9", 400, "stream"), ("r11", 400, "messages")]
        assert batch.usage is not None
        assert batch.usage.total_tokens > 0
        async with asyncio.timeout(60):  # it goes after the batch is shown as completed
            while (tmp_path / "batches" / "batches" / batch.id).exists():
                await asyncio.sleep(0.01)

    live(serve_models, tmp_path, work, Gated)


@pytest.mark.parametrize(
    ("endpoint", "body", "found"),
    [
        ("/v1/responses", {"model": "m", "input": "Hi"}, "Hello"),
        ("/v1/embeddings", {"model": "m", "input": "Hi"}, "0.25"),
        ("/v1/completions", {"model": "m", "prompt": "Hi"}, "Hello"),
    ],
)
def test_each_endpoint_is_answered(
    endpoint: str, body: dict[str, Any], found: str, serve_models: Serve, tmp_path: Path
) -> None:
    async def work(running: Any) -> None:
        client = sdk(running)
        batch = await ended(client, await begun(client, content([line(1, endpoint, **body)]), endpoint))
        (row,) = await rows_of(client, batch.output_file_id)
        assert found in json.dumps(row["response"]["body"])

    live(serve_models, tmp_path, work, lambda: Embedding("Hello", repeat=True, capabilities=["prompt"]))


def test_lists_come_a_page_at_a_time_and_files_are_deleted(serve_models: Serve, tmp_path: Path) -> None:
    async def work(running: Any) -> None:
        client = sdk(running)
        made = [await ended(client, await begun(client, content([line(n)]))) for n in range(3)]
        assert [one.id async for one in client.batches.list(limit=1)] == [one.id for one in reversed(made)]
        listed = [one.id async for one in client.files.list(limit=2)]
        assert len(listed) == len(set(listed)) == 6
        inputs = [one.id async for one in client.files.list(purpose="batch", order="asc", limit=1)]
        assert inputs == [one.input_file_id for one in made]
        assert (await client.files.delete(inputs[0])).deleted
        with pytest.raises(openai.NotFoundError):
            await client.files.retrieve(inputs[0])
        assert len(list((tmp_path / "batches" / "files").iterdir())) == 5
        with pytest.raises(openai.NotFoundError, match="after: there is no item"):
            await client.get("/batches?after=batch_none", cast_to=object)
        for query in ("limit=0", "limit=x", "limit=101"):
            with pytest.raises(openai.BadRequestError):
                await client.get(f"/batches?{query}", cast_to=object)

    live(serve_models, tmp_path, work)


def test_a_batch_that_is_cancelled_has_what_was_answered(serve_models: Serve, tmp_path: Path) -> None:
    async def work(running: Any) -> None:
        client, model = sdk(running), running.model
        batch = await begun(client, content([line("now", model="m", messages=[{"role": "user", "content": "now"}]),
                                             *map(line, range(40))]))  # fmt: skip
        async with asyncio.timeout(30):
            while model.running < 4:
                await asyncio.sleep(0.01)
        with pytest.raises(openai.BadRequestError, match="is the input of"):
            await client.files.delete(batch.input_file_id)
        batch = await client.batches.cancel(batch.id)
        assert batch.status == "cancelling"
        assert (await client.batches.cancel(batch.id)).status == "cancelling"
        model.free.set()
        batch = await ended(client, batch)
        assert batch.status == "cancelled"
        rows = await rows_of(client, batch.output_file_id)
        assert 1 < len(rows) < 41
        assert batch.request_counts.completed == len(rows)
        with pytest.raises(openai.BadRequestError, match="cannot be cancelled: it is cancelled"):
            await client.batches.cancel(batch.id)

    live(serve_models, tmp_path, work, lambda: Gated(shut=True), bounds={"concurrency": 4})


WRONG: list[tuple[bytes, int | None, str, str | None]] = [
    (content([line(1)]) + b"{oops\n", 2, "invalid_json_line", None),
    (b"[1]\n", 1, "invalid_json_line", None),
    (b'"\xff"\n', 1, "invalid_json_line", None),
    (b"[" * 15_000 + b"\n", 1, "invalid_json_line", None),
    (content([line(1, model="m", messages=[], x=json.loads("[" * 201 + "]" * 201))]), 1, "invalid_json_line", None),
    (content([{"method": "POST", "url": CHAT, "body": {}}]), 1, "missing_required_parameter", "custom_id"),
    (content([line(1), line(2), line(1)]), 3, "duplicate_custom_id", "custom_id"),
    (content([{**line(1), "custom_id": 7}]), 1, "invalid_value", "custom_id"),
    (content([{**line(1), "custom_id": "\ud800"}]), 1, "invalid_value", "custom_id"),
    (content([{**line(1), "method": "GET"}]), 1, "invalid_value", "method"),
    (content([line(1, "/v1/embeddings")]), 1, "mismatched_endpoint", "url"),
    (content([{**line(1), "body": "x"}]), 1, "invalid_value", "body"),
    (b"\n\n" + content([{**line(1), "body": {"x": "y" * 20_001}}]), 3, "line_too_long", None),
    (content(map(line, range(60))), 51, "too_many_requests", None),
    (b"", None, "empty_file", None),
    (b"\n \n", None, "empty_file", None),
]


def test_a_file_that_is_wrong_is_told_line_by_line(serve_models: Serve, tmp_path: Path) -> None:
    async def work(running: Any) -> list[tuple[Any, ...]]:
        client = sdk(running)
        batches = [await begun(client, data) for data, *_ in WRONG]
        told: list[tuple[Any, ...]] = []
        for batch in batches:
            batch = await ended(client, batch)
            (error,) = batch.errors.data
            assert error.message
            told.append((batch.status, error.line, error.code, error.param))
        return told

    told = live(serve_models, tmp_path, work, bounds={"rows": 50}, limits=GatewayLimits(body=20_000))
    assert told == [("failed", *expected) for _, *expected in WRONG]


def test_the_errors_of_a_file_are_told_a_hundred_at_most(serve_models: Serve, tmp_path: Path) -> None:
    async def work(running: Any) -> list[int]:
        client = sdk(running)
        batch = await ended(client, await begun(client, b"no\n" * 1000))
        return [error.line for error in batch.errors.data]

    assert live(serve_models, tmp_path, work) == list(range(1, 101))


def test_no_key_sees_what_is_anothers(serve_models: Serve, tmp_path: Path) -> None:
    keys = tuple(Key(name, digest(key)) for name, key in KEYS.items())

    async def work(running: Any) -> None:
        ann, bob = sdk(running, "ann"), sdk(running, "bob")
        batch = await ended(ann, await begun(ann, content([line(1)])))
        assert batch.status == "completed"
        for key in (batch.input_file_id, batch.output_file_id):
            for ask in (bob.files.retrieve, bob.files.content, bob.files.delete):
                with pytest.raises(openai.NotFoundError):
                    await ask(key)
        for ask in (bob.batches.retrieve, bob.batches.cancel):
            with pytest.raises(openai.NotFoundError):
                await ask(batch.id)
        with pytest.raises(openai.NotFoundError, match="there is no file"):
            await bob.batches.create(input_file_id=batch.input_file_id, endpoint=CHAT, completion_window="24h")
        assert [one async for one in bob.files.list()] == [one async for one in bob.batches.list()] == []
        assert len(await rows_of(ann, batch.output_file_id)) == 1

    live(serve_models, tmp_path, work, keys=keys)


def test_lines_have_the_models_of_their_key_alone(serve_models: Serve, tmp_path: Path) -> None:
    keys = (Key("ann", digest(KEYS["ann"]), models=()),)

    async def work(running: Any) -> int:
        ann = sdk(running, "ann")
        batch = await ended(ann, await begun(ann, content([line(1)])))
        (row,) = await rows_of(ann, batch.error_file_id)
        return row["response"]["status_code"]

    assert live(serve_models, tmp_path, work, keys=keys) == 404


def test_a_batch_leaves_room_for_requests(serve_models: Serve, tmp_path: Path) -> None:
    """Lines have half of all places, and half of what their key may have at once; a request is answered at once."""
    keys = (Key("ann", digest(KEYS["ann"]), rates=Rates(running=6)), Key("bob", digest(KEYS["bob"])))

    async def work(running: Any) -> int:
        ann, bob, model = sdk(running, "ann"), sdk(running, "bob"), running.model
        batches = [await begun(one, content(map(line, range(30)))) for one in (ann, bob)]
        async with asyncio.timeout(30):
            while model.running < 4:
                await asyncio.sleep(0.01)
        for one in (ann, bob) * 3:
            said = await one.chat.completions.create(model="m", messages=[{"role": "user", "content": "now"}])
            assert said.choices[0].message.content == "You said: now"
        assert running.gateway.background.running == 4
        model.free.set()
        for one, batch in zip((ann, bob), batches, strict=True):
            assert (await ended(one, batch)).request_counts.completed == 30
        return model.most

    assert live(serve_models, tmp_path, work, lambda: Gated(shut=True), keys=keys, limits=GatewayLimits(running=8)) == 5


def test_a_batch_leaves_half_of_a_rate_to_requests(serve_models: Serve, tmp_path: Path) -> None:
    keys = (Key("ann", digest(KEYS["ann"]), rates=Rates(requests=60)),)

    async def work(running: Any) -> tuple[int, str]:
        ann, model = sdk(running, "ann"), running.model
        await begun(ann, content(map(line, range(60))))
        async with asyncio.timeout(30):
            while len(model.asked) < 24:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        asked = len(model.asked)
        raw = await ann.chat.completions.with_raw_response.create(
            model="m", messages=[{"role": "user", "content": "now"}]
        )
        return asked, "plenty" if int(raw.headers["x-ratelimit-remaining-requests"]) >= 20 else "few"

    asked, left = live(serve_models, tmp_path, work, Gated, keys=keys)
    assert asked < 40
    assert left == "plenty"


async def under_way(running: Any) -> str:
    """The id of a batch whose first lines are being asked: one that is answered at once, and twenty."""
    now = line("now", model="m", messages=[{"role": "user", "content": "now"}])
    batch = await begun(sdk(running), content([now, *map(line, range(20))]))
    async with asyncio.timeout(30):
        while running.model.running < 4:
            await asyncio.sleep(0.01)
    return batch.id


def test_a_gateway_that_was_stopped_goes_on_where_it_was(serve_models: Serve, tmp_path: Path) -> None:
    async def second(running: Any) -> None:
        client = sdk(running)
        batch = await ended(client, await client.batches.retrieve(key))
        assert batch.status == "completed"
        rows = await rows_of(client, batch.output_file_id)
        assert [row["custom_id"] for row in rows] == ["rnow", *(f"r{n}" for n in range(20))]
        assert sorted(running.model.asked) == sorted(f"row {n}" for n in range(20))

    key = live(serve_models, tmp_path, under_way, lambda: Gated(shut=True), bounds={"concurrency": 4})
    live(serve_models, tmp_path, second, Gated)


def test_a_batch_that_expires_has_what_was_answered(serve_models: Serve, tmp_path: Path) -> None:
    async def second(running: Any) -> None:
        client = sdk(running)
        batch = await ended(client, await client.batches.retrieve(key))
        assert (batch.status, batch.request_counts.completed, batch.request_counts.failed) == ("expired", 1, 20)
        bad = await rows_of(client, batch.error_file_id)
        assert {row["error"]["code"] for row in bad} == {"batch_expired"}
        assert [row["custom_id"] for row in bad] == [f"r{n}" for n in range(20)]

    key = live(serve_models, tmp_path, under_way, lambda: Gated(shut=True), bounds={"concurrency": 4})
    index = sqlite3.connect(tmp_path / "batches" / "index.sqlite", isolation_level=None)
    index.execute("UPDATE batch SET body = json_set(body, '$.expires_at', 1)")
    index.close()
    live(serve_models, tmp_path, second, lambda: Gated(shut=True))


async def posted(url: str, data: bytes, **headers: str) -> tuple[int, dict[str, Any]]:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{url}/v1/files", data=data, headers=sent) as response:
            return response.status, json.loads(await response.text())


def form(*parts: tuple[str, bytes]) -> bytes:
    made = b"".join(
        b'--B\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n' % (name.encode(), value)
        for name, value in parts
    )
    return made + b"--B--\r\n"


FORM = "multipart/form-data; boundary=B"
FORMS: list[tuple[bytes, str, int, str | None]] = [
    (form(("purpose", b"batch"), ("file", b"x")), FORM, 200, None),
    (form(("file", b"x"), ("purpose", b"batch")), FORM, 200, None),
    (form(("file", b"x")), FORM, 400, "purpose"),
    (form(("file", b"x"), ("purpose", b"assistants")), FORM, 400, "purpose"),
    (form(("purpose", b"batch")), FORM, 400, "file"),
    (form(("file", b"x"), ("file", b"y"), ("purpose", b"batch")), FORM, 400, "file"),
    (form(("file", b"x"), ("purpose", b"x" * 2000)), FORM, 400, "purpose"),
    (form(("file", b"x" * 1001), ("purpose", b"batch")), FORM, 413, "file"),
    (form(("purpose", b"batch"), ("file", b"x"), ("expires_after[seconds]", b"9")), FORM, 400, "expires_after"),
    (form(("purpose", b"batch"), ("file", b"x"), ("expires_after[anchor]", b"created_at"),
          ("expires_after[seconds]", b"7200")), FORM, 200, None),
    (form(*(("more", b"x"),) * 20), FORM, 400, None),
    (form(("file", b"x"), ("purpose", b"batch"))[:-20], FORM, 400, None),
    (b"no form", FORM, 400, None),
    (b"", FORM, 400, None),
    (b"--B\r\n" + b"x: y\r\n" * 100, FORM, 400, None),
    (b"--B\r\n" + b"x" * 9000, FORM, 400, None),
    (b"{}", "application/json", 415, None),
    (b"{}", "multipart/form-data", 415, None),
    (form(("file", b"x")), "multipart/form-data; boundary=" + "B" * 2000, 400, None),
]  # fmt: skip


def test_a_form_that_is_none_is_told(serve_models: Serve, tmp_path: Path) -> None:
    async def work(running: Any) -> list[tuple[int, Any]]:
        told: list[tuple[int, Any]] = []
        for data, kind, *_ in FORMS:
            status, body = await posted(running.url, data, content_type=kind)
            told.append((status, body["error"]["param"] if status != 200 else None))
        return told

    told = live(serve_models, tmp_path, work, bounds={"file": 1000})
    assert told == [(status, param) for _, _, status, param in FORMS]
    assert len(list((tmp_path / "batches" / "files").iterdir())) == 3


def test_a_file_arrives_in_time_or_leaves_nothing(serve_models: Serve, tmp_path: Path) -> None:
    async def slow(pause: float) -> AsyncIterator[bytes]:
        yield form(("purpose", b"batch"), ("file", b"x" * 100))[:-30]
        for _ in range(10):
            await asyncio.sleep(pause)
            yield b"x"
        yield b"\r\n--B--\r\n"

    async def work(running: Any) -> list[int]:
        statuses: list[int] = []
        async with aiohttp.ClientSession() as session:
            for pause in (0.1, 30.0):
                async with session.post(
                    f"{running.url}/v1/files", data=slow(pause), headers={"content-type": FORM}
                ) as response:
                    statuses.append(response.status)
        return statuses

    assert live(serve_models, tmp_path, work, limits=GatewayLimits(reading=0.6)) == [200, 408]
    assert len(list((tmp_path / "batches" / "files").iterdir())) == 1


def test_a_web_page_of_elsewhere_uploads_nothing(serve_models: Serve, tmp_path: Path) -> None:
    async def work(running: Any) -> list[int]:
        data = form(("purpose", b"batch"), ("file", b"x"))
        pages = ("https://evil.example", "https://good.example", "null")
        return [(await posted(running.url, data, content_type=FORM, origin=page))[0] for page in pages]

    assert live(serve_models, tmp_path, work, cors=("https://good.example",)) == [403, 200, 403]


def test_a_key_has_so_many_files_bytes_and_batches(serve_models: Serve, tmp_path: Path) -> None:
    async def work(running: Any) -> None:
        client = sdk(running)
        batch = await begun(client, content(map(line, range(3))))
        batch = await client.batches.create(input_file_id=batch.input_file_id, endpoint=CHAT, completion_window="24h")
        with pytest.raises(openai.RateLimitError, match="unfinished"):
            await client.batches.create(input_file_id=batch.input_file_id, endpoint=CHAT, completion_window="24h")
        with pytest.raises(openai.BadRequestError, match="bytes of at most"):
            await client.files.create(file=b"x" * 2000, purpose="batch")
        await client.files.create(file=b"x", purpose="batch")
        await client.files.create(file=b"x", purpose="batch")
        with pytest.raises(openai.BadRequestError, match="3 files of at most 3"):
            await client.files.create(file=b"x", purpose="batch")

    bounds = {"files": 3, "size": 2000, "waiting": 2}
    live(serve_models, tmp_path, work, lambda: Gated(shut=True), bounds=bounds)


def test_uploads_in_progress_count(serve_models: Serve, tmp_path: Path) -> None:
    """A key could begin any number of uploads beyond its room."""

    async def begin(running: Any, head: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(running.url.rpartition(":")[2]))
        part = '--XX\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n' + "x" * 900
        kind = "Content-Type: multipart/form-data; boundary=XX"
        writer.write(f"POST /v1/files HTTP/1.1\r\nHost: localhost\r\n{kind}\r\n{head}\r\n\r\n".encode())
        writer.write(part.encode() if "Length" in head else f"{len(part):x}\r\n{part}\r\n".encode())
        await writer.drain()
        return reader, writer

    async def work(running: Any) -> None:
        client = sdk(running)
        for head in ("Content-Length: 300000", "Transfer-Encoding: chunked"):
            _, writer = await begin(running, head)
            async with asyncio.timeout(60):
                while not any(path.stat() for path in (tmp_path / "batches" / "files").iterdir()):
                    await asyncio.sleep(0.01)
            with pytest.raises(openai.BadRequestError, match=r"with uploads in progress, hold [1-9]"):
                await client.files.create(file=b"x" * 100_000, purpose="batch")
            writer.close()
            async with asyncio.timeout(60):
                while any((tmp_path / "batches" / "files").iterdir()):
                    await asyncio.sleep(0.01)
            file = await client.files.create(file=b"x" * 100_000, purpose="batch")
            await client.files.delete(file.id)

    live(serve_models, tmp_path, work, bounds={"size": 300_000, "file": 300_000})


def test_a_batch_whose_input_is_gone_fails(serve_models: Serve, tmp_path: Path) -> None:
    """It was tried again until it expired, and then for good."""

    async def work(running: Any) -> None:
        client = sdk(running)
        batch = await ended(client, await begun(client, content([line(1)])))
        (tmp_path / "batches" / "files" / batch.input_file_id).unlink()
        again = "UPDATE batch SET open = 1, body = json_set(body, '$.status', 'in_progress', '$.expires_at', 0)"
        with closing(sqlite3.connect(tmp_path / "batches" / "index.sqlite")) as database, database:
            database.execute(again)
        batch = await ended(client, await client.batches.retrieve(batch.id))
        assert (batch.status, batch.errors.data[0].code) == ("failed", "missing_file")

    live(serve_models, tmp_path, work)


def test_an_upload_to_a_disk_that_fails_is_refused(serve_models: Serve, tmp_path: Path) -> None:
    async def work(running: Any) -> None:
        (tmp_path / "batches" / "files").rename(tmp_path / "elsewhere")
        with pytest.raises(openai.InternalServerError, match="unavailable at the moment") as caught:
            await sdk(running).files.create(file=b"x", purpose="batch")
        assert (caught.value.status_code, caught.value.code) == (503, "store_unavailable")

    live(serve_models, tmp_path, work)


def test_without_a_folder_there_are_no_batches(serve_models: Serve, tmp_path: Path) -> None:
    async def work(running: Any) -> None:
        client = sdk(running)
        for ask in (client.files.list, client.batches.list, lambda: client.files.create(file=b"x", purpose="batch"),
                    lambda: client.batches.cancel("batch_1")):  # fmt: skip
            with pytest.raises(openai.NotFoundError, match=r"\[batches\]"):
                await ask()

    live(serve_models, tmp_path, work, batches=False)


class Process:
    """`toolspeak serve` with batches and two workers, each of which works on one batch at a time. It may be killed."""

    def __init__(self, folder: Path, upstream: str) -> None:
        config = folder / "gateway.toml"
        batches = '[batches]\npath = "batches"\nrunning = 1\nconcurrency = 4\n'
        config.write_text(f'[server]\nworkers = 2\n[models.m]\nupstream = "{upstream}"\nmode = "native"\n{batches}')
        command = ["serve", "--port", "0", "--config", str(config)]
        self.process = Started(
            command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True
        )
        self.clients: list[openai.AsyncOpenAI] = []
        self.url = ""
        while not self.url:
            assert self.process.stderr is not None
            said = self.process.stderr.readline()
            assert said, "the gateway has not started"
            found = re.search(r"serving .* at (http://[\w.]+:\d+)", said)
            self.url = found[1] if found else ""

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate(timeout=60)

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=60)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_workers_share_batches_and_go_on_with_them_after_kill_9(serve_models: Serve, tmp_path: Path) -> None:
    """Two workers look at the same two batches, and each is worked on by one. All are killed in the middle: the next ones
    answer the rest, and ask again what was under way and nothing else."""
    now = [{"role": "user", "content": "now"}]

    def lines(first: int) -> list[dict[str, Any]]:
        return [line(n, model="m", messages=now) if n < first + 10 else line(n) for n in range(first, first + 30)]

    async def go() -> None:
        model = Gated(shut=True)
        async with serve_models(m=model) as upstream:
            first = await asyncio.to_thread(Process, tmp_path, f"{upstream.url}/v1#m")
            try:
                client = sdk(first)
                batches = [await begun(client, content(lines(n))) for n in (0, 100)]
                under_way = {f"row {n}" for start in (10, 110) for n in range(start, start + 4)}
                async with asyncio.timeout(60):
                    while not under_way <= set(
                        model.asked
                    ):  # a worker that has one batch leaves the other to the second
                        await asyncio.sleep(0.01)
                await client.close()
            finally:
                await asyncio.to_thread(first.kill)
            assert sorted(model.asked) == sorted([*["now"] * 20, *under_way])
            model.free.set()
            second = await asyncio.to_thread(Process, tmp_path, f"{upstream.url}/v1#m")
            client = sdk(second)
            try:
                for batch, start in zip(batches, (0, 100), strict=True):
                    batch = await ended(client, await client.batches.retrieve(batch.id))
                    assert (batch.status, batch.request_counts.completed) == ("completed", 30)
                    answers = await rows_of(client, batch.output_file_id)
                    assert [one["custom_id"] for one in answers] == [f"r{n}" for n in range(start, start + 30)]
            finally:
                await client.close()
                await asyncio.to_thread(second.stop)
        rows = {f"row {n}" for start in (10, 110) for n in range(start, start + 20)}
        assert sorted(model.asked) == sorted([*["now"] * 20, *rows, *under_way])

    asyncio.run(go())
