"""Many long vectors are read, converted and written in small steps, beside the event loop."""

from __future__ import annotations

import asyncio
import json
import threading
import tracemalloc
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from toolspeak.api import embeddings, json_stream
from toolspeak.api.embeddings import Vectors
from toolspeak.batch.formats import OpenAIBatch
from toolspeak.batch.row import OutputRow
from toolspeak.gateway.batches.line_request import LineResponse
from toolspeak.gateway.batches.outputs import _File
from toolspeak.models.offload import LARGE
from toolspeak.models.scripted import Scripted
from toolspeak.schema import nonblocking_json

COUNT, LENGTH = 200, 1_000
ROW = tuple(at / LENGTH for at in range(LENGTH))


class Embeds(Scripted):
    """A model with equal vectors for all texts."""

    async def embed(self, texts: Sequence[str], *, dimensions: int | None = None) -> Vectors:
        return Vectors((ROW,) * len(texts), 5)


@pytest.mark.parametrize("encoding", ["float", "base64"])
@pytest.mark.parametrize("count", [1, COUNT])
def test_vectors_are_written_in_steps(
    serve_models: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, encoding: str, count: int
) -> None:
    steps: list[int] = [0]
    threads: set[bool] = set()
    loop = threading.get_ident()
    write = embeddings.write_reply

    def noted(*args: Any) -> Any:
        threads.add(threading.get_ident() == loop)
        return write(*args)

    monkeypatch.setattr(embeddings, "write_reply", noted)
    for module in (json_stream, nonblocking_json):

        def encode(value: Any, real: Callable[[Any], str] = module._encode) -> str:
            steps.append(len(text := real(value)))
            return text

        monkeypatch.setattr(module, "_encode", encode)

    async def go() -> Any:
        async with serve_models(m=Embeds("x")) as running, aiohttp.ClientSession() as session:
            body = {"model": "m", "input": ["Hi"] * count, "encoding_format": encoding}
            async with session.post(running.url + "/v1/embeddings", json=body) as reply:
                assert reply.status == 200
                return await reply.json()

    reply = asyncio.run(go())
    assert len(reply["data"]) == count
    assert embeddings.read_reply(reply, count).rows[-1] == pytest.approx(ROW)
    assert max(steps) < LARGE
    assert threads == {count == 1}


def test_vectors_are_read_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"data": [{"index": at, "embedding": ROW} for at in range(COUNT)], "usage": {"prompt_tokens": 5}}
    raw = json.dumps(body).encode()
    spans: list[int] = []
    real = nonblocking_json._Walker.scan

    def scan(self: Any, text: str, at: int) -> tuple[Any, int]:
        value, end = real(self, text, at)
        if at not in self._large:
            spans.append(end - at)
        return value, end

    monkeypatch.setattr(nonblocking_json._Walker, "scan", scan)
    assert embeddings.read_body(raw, COUNT) == Vectors((array("d", ROW),) * COUNT, 5)
    assert len(spans) >= COUNT
    assert max(spans) <= embeddings.VECTOR


def test_lines_of_a_batch_are_written_and_read_in_steps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    body = {"data": [{"index": at, "embedding": [*ROW]} for at in range(COUNT)]}
    written: list[int] = []
    read: list[int] = []
    encode, scan = nonblocking_json._encode, nonblocking_json._Walker.scan

    def encoded(value: Any) -> str:
        written.append(len(text := encode(value)))
        return text

    def scanned(self: Any, text: str, at: int) -> tuple[Any, int]:
        value, end = scan(self, text, at)
        if at not in self._large:
            read.append(end - at)
        return value, end

    monkeypatch.setattr(nonblocking_json, "_encode", encoded)
    monkeypatch.setattr(nonblocking_json._Walker, "scan", scanned)
    line = OpenAIBatch().encode(OutputRow("a", response={"status_code": 200, "body": body}))
    assert OpenAIBatch().decode(line)["response"]["body"] == body
    assert OpenAIBatch().key(line) == "a"
    assert LineResponse(200, {}, json.dumps(body).encode()).value == body
    store: Any = SimpleNamespace(content=lambda key: tmp_path / key)
    with _File(store) as file:
        file.write({"custom_id": "a", "response": {"body": body}})
    assert len(written) >= 2 * COUNT
    assert len(read) >= 3 * COUNT
    assert max(*written, *read) <= nonblocking_json.PIECE


def test_a_line_of_a_batch_may_nest_deeper_than_a_body() -> None:
    deep: Any = "x" * LARGE
    for _ in range(nonblocking_json.DEEPEST):
        deep = [deep]
    record = OutputRow("a", response={"status_code": 200, "body": deep})
    assert OpenAIBatch().decode(OpenAIBatch().encode(record))["response"]["body"] == deep


@pytest.mark.parametrize("form", ["openai", "ollama"])
def test_vectors_take_the_memory_of_their_numbers(form: str) -> None:
    """A float of Python takes three times as much, in a small block of its own beside others."""
    rows = [[number / 7 for number in range(LENGTH)] for _ in range(COUNT)]
    data = [{"index": at, "embedding": row} for at, row in enumerate(rows)]
    raw = json.dumps({"embeddings": rows} if form == "ollama" else {"data": data}).encode()
    embeddings.read_body(raw, COUNT)
    tracemalloc.start()
    try:
        vectors = embeddings.read_body(raw, COUNT)
        stays, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert vectors.rows[-1][-1] == rows[-1][-1]
    assert stays < 10 * LENGTH * COUNT
    assert most - len(raw) < 20 * LENGTH * COUNT


def test_arrays_are_written_as_lists() -> None:
    numbers = array("d", [0.5] * 3_000)
    for dumps in (nonblocking_json.dumps, json_stream.dumped):
        for size in (0, LARGE):
            assert json.loads(dumps({"a": numbers, "b": [numbers[:2]]}, size)) == {
                "a": [0.5] * 3_000,
                "b": [[0.5, 0.5]],
            }
    with pytest.raises(TypeError, match="set"):
        nonblocking_json.dumps({"a": {1}}, 0)
