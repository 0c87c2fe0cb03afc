"""A real HTTP server on loopback that answers as it is told, and remembers what it saw."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from listening import listening

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """Answers each request with the next of `answers`, the last one for ever.

    An answer is bytes (sent as a stream of events), a response, or a function. `bodies` and `headers` are
    what came, `connections` how many there were, `aborted` is set when a client leaves in the middle.
    """

    def __init__(self, *answers: bytes | web.Response | Answer) -> None:
        self.answers = list(answers)
        self.paths: list[str] = []
        self.bodies: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.transports: set[int] = set()
        self.kept: list[Any] = []  # so that no two transports share an identity
        self.aborted = asyncio.Event()
        self.url = ""

    @property
    def connections(self) -> int:
        return len(self.transports)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        turn = len(self.paths)
        if request.path == "/props" and not callable(self.answers[min(turn, len(self.answers) - 1)]):
            return web.Response(status=404)  # asked of every server before tools are offered: this is no llama.cpp
        self.paths.append(f"{request.method} {request.path_qs}")
        body = await request.read()
        self.bodies.append(json.loads(body) if body else None)
        self.headers.append(dict(request.headers))
        self.kept.append(request.transport)
        self.transports.add(id(request.transport))
        answer = self.answers[min(turn, len(self.answers) - 1)]
        try:
            if isinstance(answer, bytes):
                return web.Response(body=answer, content_type="text/event-stream")
            if isinstance(answer, web.Response):  # a response can be sent once only
                return web.Response(body=answer.body, status=answer.status, headers=answer.headers)
            return await answer(request)
        except (asyncio.CancelledError, ConnectionError):
            self.aborted.set()
            raise


@asynccontextmanager
async def serving(*answers: bytes | web.Response | Answer) -> AsyncIterator[Server]:
    server = Server(*answers)
    async with listening(server.handle, handler_cancellation=True) as server.url:
        yield server


@pytest.fixture
def serve() -> Callable[..., Any]:
    """`async with serve(answer, ...) as server:`"""
    return serving


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (
        "TOOLSPEAK_API_KEY",
        "TOOLSPEAK_MODEL",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OLLAMA_HOST",
        "OLLAMA_API_KEY",
    ):
        monkeypatch.delenv(variable, raising=False)
