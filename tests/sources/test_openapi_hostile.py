"""OpenAPI documents and servers that attack: sizes that multiply, names that collide, secrets outside the body."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import toolspeak as ts
from toolspeak.schema.suggestions import numbered
from toolspeak.sources.openapi import document as document_module
from toolspeak.sources.openapi.schemas import Schemas

KEY = "sk-a-secret-key-of-somebody-1234567890"


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Yield the address of a server that gives everybody this answer."""
    loop, ready, urls = asyncio.new_event_loop(), threading.Event(), list[str]()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async def start() -> asyncio.Server:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        urls.append(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        ready.set()
        return server

    def run() -> None:
        server = loop.run_until_complete(start())
        loop.run_forever()
        server.close()
        loop.run_until_complete(server.wait_closed())
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait()
    try:
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


@pytest.mark.parametrize(
    "answer",
    [f"204 {KEY}\r\n\r\n", f"200 {KEY}\r\ncontent-length: 0\r\n\r\n", f"200 OK\r\ncontent-type: image/{KEY}\r\ncontent-length: 2\r\n\r\n\0\0", f"404 {KEY}\r\ncontent-length: 2\r\n\r\n\0\0"],
)  # fmt: skip
def test_no_secret_comes_back_in_the_head_of_an_answer(answer: str) -> None:
    document = {
        "openapi": "3.0.3",
        "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
        "paths": {"/x": {"get": {"operationId": "look"}}},
    }
    with answering(f"HTTP/1.1 {answer}".encode()) as url:
        box = ts.openapi(document, auth=KEY, server=url)
        try:
            value = str(box.call({"name": "look", "arguments": {}}))
        except ts.ToolError as error:
            value = str(error)
    assert "[hidden]" in value
    assert KEY not in value


# ------------------------------------------------------------------ documents


def sent(document: Any) -> bytes:
    return b"200 OK\r\ncontent-type: application/json\r\n\r\n" + json.dumps(document).encode()


def test_no_definition_of_a_fetched_document_brings_a_key_back() -> None:
    """A server that gets the key with the request for its document may write it wherever a model reads."""
    field = {"name": "q", "in": "query", "schema": {"type": "string", "enum": [KEY, "b"]}}
    operation = {"operationId": "look", "description": f"Your key is {KEY}.", "parameters": [field]}
    document: Any = {"openapi": "3.1.0", "servers": [{"url": "/"}], "paths": {"/x": {"get": operation}}}
    with answering(b"HTTP/1.1 " + sent(document)) as url:
        read = json.dumps(ts.openapi(f"{url}/d.json", headers={"X-Key": KEY}).list())
    assert read.count("[hidden]") == 2
    assert KEY not in read


@pytest.mark.parametrize(
    "answer",
    [
        f"302 Found\r\nlocation: ftp://{KEY}/\r\n\r\n".encode(), sent({"openapi": KEY}), sent({"swagger": KEY}),
        sent({"openapi": "3.1.0", "paths": {f"/{KEY}": 7}}), sent({"openapi": "3.1.0", "paths": {"/x": {"get": {"operationId": KEY, "parameters": [{"name": KEY, "in": KEY}]}}}}),
    ],
)  # fmt: skip
def test_no_error_about_a_fetched_document_brings_a_key_back(answer: bytes) -> None:
    with answering(b"HTTP/1.1 " + answer) as url, pytest.raises(ts.UsageError) as caught:
        ts.openapi(f"{url}/d.json", headers={"X-Key": KEY})
    assert "[hidden]" in str(caught.value)
    assert KEY not in str(caught.value)


def with_body(schema: dict[str, Any], **schemas: Any) -> dict[str, Any]:
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    return {
        "openapi": "3.0.3",
        "servers": [{"url": "https://api.example"}],
        "components": {"schemas": schemas},
        "paths": {"/x": {"post": {"operationId": "act", "requestBody": body}}},
    }


def test_schemas_that_combine_others_many_times_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each combines the next ten times: 10 ** 20 ways lead to the last one."""
    read: list[str] = []
    real = Schemas._fields_of  # pyright: ignore[reportPrivateUsage]

    def counting(self: Schemas, node: Any, where: str) -> Any:
        read.append(where)
        return real(self, node, where)

    monkeypatch.setattr(Schemas, "_fields_of", counting)
    levels = {f"L{at}": {"allOf": [{"$ref": f"#/components/schemas/L{at + 1}"}] * 10} for at in range(20)}
    last = {"L20": {"properties": {"name": {"type": "string"}}}}
    [tool] = ts.openapi(with_body({"$ref": "#/components/schemas/L0"}, **levels, **last))
    assert list(tool.parameters["properties"]) == ["name"]
    assert len(read) == 21
    circle = {
        "A": {"allOf": [{"$ref": "#/components/schemas/B"}]},
        "B": {"allOf": [{"$ref": "#/components/schemas/A"}]},
    }
    with pytest.raises(ts.InvalidTool, match="comes back to itself"):
        ts.openapi(with_body({"$ref": "#/components/schemas/A"}, **circle))


def test_many_equal_names_cost_a_few_looks_each() -> None:
    looks = 0

    class Counting(set[str]):
        def __contains__(self, name: object) -> bool:
            nonlocal looks
            looks += 1
            return super().__contains__(name)

    used, last = Counting(), dict[str, int]()
    for _ in range(1_000):
        used.add(numbered("name", used, last))
    assert len(used) == 1_000
    assert looks <= 2_000
    paths = {
        f"/{chr(0x4E00 + at)}": {"get": {"parameters": [{"name": "名" * n, "in": "query"} for n in (1, 2, 3, 4)]}}
        for at in range(4)
    }
    document = {"openapi": "3.0.3", "servers": [{"url": "https://api.example"}], "paths": paths}
    box = ts.openapi(document)
    assert [tool.name for tool in box] == ["get", "get_2", "get_3", "get_4"]
    assert list(box["get"].parameters["properties"]) == ["value", "value_query", "value_2", "value_3"]


def test_merges_of_yaml_count_before_they_are_made(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    lines = ["openapi: 3.0.0", "paths: {}", "x-0: &a0 {k: 1, l: 2}"]
    for at in range(1, 12):
        lines.append(f"x-{at}: &a{at}\n  <<: [{', '.join([f'*a{at - 1}'] * 10)}]")
    file = tmp_path / "api.yaml"
    file.write_text("\n".join(lines))
    with pytest.raises(ts.UsageError, match=r"api\.yaml expands into more than 5,000,000 values"):
        ts.openapi(file)
    file.write_text("openapi: 3.0.0\npaths: {}\nx: &x {<<: *x}\n")
    with pytest.raises(ts.UsageError, match=r"^[^ ]*api\.yaml contains a part that is inside itself"):
        ts.openapi(file)


def test_the_values_of_a_json_document_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_module, "MOST", 50)
    file = tmp_path / "api.json"
    file.write_text('{"openapi": "3.0.0", "paths": {}, "x": "' + "{," * 100 + '"}')
    assert len(ts.openapi(file)) == 0
    file.write_text('{"openapi": "3.0.0", "paths": {}, "x": [' + "{}, " * 50 + "{}]}")
    with pytest.raises(ts.UsageError, match=r"api\.json has more than 50 values"):
        ts.openapi(file)
