"""Many long vectors are read, converted and written in small steps, beside the event loop."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

import aiohttp
import pytest

from toolspeak.api import embeddings, json_stream
from toolspeak.api.embeddings import Vectors
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
    assert embeddings.read_body(raw, COUNT) == Vectors((ROW,) * COUNT, 5)
    assert len(spans) >= COUNT
    assert max(spans) <= embeddings.VECTOR
