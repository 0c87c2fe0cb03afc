"""The published document: it says all that the gateway does, and the gateway does what it says (schemathesis)."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from properties import is_fast
from toolspeak.api.embeddings import Vectors
from toolspeak.errors import BadRequest
from toolspeak.events import Event
from toolspeak.gateway.access.keys import digest
from toolspeak.gateway.config.settings import Batches, Key, StoreSettings
from toolspeak.gateway.endpoints.openapi import OPERATIONS, STORED, UPSTREAM_ERRORS, document
from toolspeak.gateway.response_schemas import SHAPES
from toolspeak.gateway.routes import ROUTES
from toolspeak.models.scripted import Scripted
from toolspeak.types import Request

KEY = "a-key-of-twenty-letters-and-more"
EXAMPLES = int(os.environ.get("TOOLSPEAK_SCHEMATHESIS", "2" if is_fast() else "10"))
"""Examples of each operation; 1,000 and more by hand."""

CONFIG = """
[[operations]]
include-path-regex = "chat|messages|responses|generate"
# What a schema cannot say is refused as well: a choice of a tool that is not offered, a tool's own broken schema.
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "404"]
"""


class Everything(Scripted):
    """A model that can do all there is. It always says the same, but a value that fits where a schema is asked for."""

    def __init__(self) -> None:
        super().__init__("Hello there.", repeat=True, capabilities=["prompt", "schema"])

    def stream(self, request: Request) -> AsyncIterator[Event]:
        if request.schema is None:
            return super().stream(request)
        fits = jsonschema_rs.validator_for(request.schema).is_valid
        values = [value for value in (None, {}, [], "", 0, True) if fits(value)]
        if not values:
            raise BadRequest("no simple value fits the schema")
        return Scripted(json.dumps(values[0])).stream(request)

    async def embed(self, texts: Sequence[str], *, dimensions: int | None = None) -> Vectors:
        return Vectors(tuple((0.5,) * (dimensions or 3) for _ in texts), 3)


@contextmanager
def running(serve_models: Callable[..., Any], **how: Any) -> Iterator[str]:
    """The address of a gateway that runs in a thread of its own."""
    told: queue.SimpleQueue[tuple[str, Callable[[], object]]] = queue.SimpleQueue()

    async def live() -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        async with serve_models(m=Everything(), **how) as gateway:
            told.put((gateway.url, lambda: loop.call_soon_threadsafe(over.set)))
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(live()))
    thread.start()
    url, stop = told.get(timeout=120)
    try:
        yield url
    finally:
        stop()
        thread.join(120)


def test_every_route_is_published_and_nothing_else() -> None:
    assert {(route.method, route.path) for route in ROUTES} == set(OPERATIONS)


def test_the_document_is_one() -> None:
    made = document(["m"], secured=True)
    assert made["openapi"].startswith("3.1")
    text = repr(made)
    for name in re.findall(r"#/components/schemas/(\w+)", text):
        assert name in SHAPES
    for schema in SHAPES.values():
        jsonschema_rs.meta.validate(schema)
    for operation in (one for path in made["paths"].values() for one in path.values()):
        probe = "Health" in repr(operation)
        assert operation.get("security") == (None if probe else [{"bearer": []}, {"header": []}])
        if "application/json" in operation.get("requestBody", {}).get("content", {}):
            jsonschema_rs.meta.validate(operation["requestBody"]["content"]["application/json"]["schema"])
            asks = not operation["operationId"].endswith(("_v1_batches", "_api_show"))
            assert not asks or {str(status) for status in UPSTREAM_ERRORS} <= set(operation["responses"])


@pytest.mark.costly
@pytest.mark.timeout(900)
def test_the_gateway_does_what_the_document_says(serve_models: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    store = StoreSettings(str(tmp_path / "store.sqlite"), responses=True)
    settings = {"store": store, "batches": Batches(str(tmp_path / "batches")), "keys": (Key("tester", digest(KEY)),)}
    with running(serve_models, settings=settings) as url:
        command = ["run", f"{url}/openapi.json", "--seed=1", "--checks=all", f"--max-examples={EXAMPLES}"]
        command += ["--generation-database=none", "--max-response-time=100", "--no-color"]
        command += ["--header", f"Authorization: Bearer {KEY}"]
        if is_fast():  # their bodies are among those of test_wrong_types
            command += [f"--exclude-path-regex=^({'|'.join(STORED)})"]
        done = subprocess.run(
            [sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()", *command],
            cwd=tmp_path, capture_output=True, text=True, timeout=880,
        )  # fmt: skip
    told = done.stdout + done.stderr
    assert done.returncode == 0, told[-12_000:]
    tested = re.search(r"Tested: +(\d+)", told)
    assert tested is not None  # all but the document itself
    left_out = [path for _, path in OPERATIONS if is_fast() and path.startswith(STORED)]
    assert int(tested[1]) == len(OPERATIONS) - len(left_out) - 1, told[-3000:]
    if EXAMPLES > 100:
        print(told[-1500:])
