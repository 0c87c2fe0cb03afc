"""A real server on loopback with an OpenAPI document of its own: a small library, and everything that can go wrong."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

BOOK = {
    "type": "object",
    "required": ["id", "title"],
    "properties": {
        "id": {"type": "integer", "readOnly": True},
        "title": {"type": "string"},
        "year": {"type": "integer", "nullable": True},
        "like": {"type": "array", "items": {"$ref": "#/components/schemas/Book"}},
    },
}
BOOKS = {1: {"id": 1, "title": "Emma", "year": 1815}}
KEY = "a-key-of-the-library"
ESCAPES: dict[str, Callable[[str], str]] = {
    "json": lambda c: f"\\u{ord(c):04x}",
    "JSON": lambda c: f"\\u{ord(c):04X}",
    "twice": lambda c: f"\\\\u{ord(c):04x}",
    "slash": lambda c: "\\/" if c == "/" else c,
    "some": lambda c: "\\u0073" if c == "s" else c,
    "xml": lambda c: f"&#{ord(c)};",
    "hex": lambda c: f"&#x{ord(c):X};",
    "percent": lambda c: f"%{ord(c):02x}",
}


def ok(kind: str = "application/json") -> dict[str, Any]:
    return {"200": {"description": "Good", "content": {kind: {}}}}


def simply(name: str, **more: Any) -> dict[str, Any]:
    return {"get": {"operationId": name, "responses": ok(), **more}}


DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Library", "version": "1"},
    "servers": [{"url": "/api"}],
    "security": [{"key": []}],
    "components": {
        "schemas": {"Book": BOOK},
        "parameters": {"Id": {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}},
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
    },
    "paths": {
        "/books/{id}": {
            "parameters": [{"$ref": "#/components/parameters/Id"}],
            "get": {
                "operationId": "getBook",
                "summary": "Show a book",
                "description": "Shows one book.",
                "tags": ["books"],
                "parameters": [{"name": "X-Key", "in": "header", "schema": {"type": "string"}}],
                "responses": ok(),
            },
            "delete": {"operationId": "dropBook", "deprecated": True, "responses": {"204": {"description": "Gone"}}},
        },
        "/books": {
            "post": {
                "operationId": "books.add",
                "tags": ["books"],
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Book"}}},
                },
                "responses": ok(),
            }
        },
        "/cover": simply("cover"),
        "/slow": simply("slow"),
        "/large": simply("large"),
        "/away": simply("away", parameters=[{"name": "to", "in": "query", "schema": {"type": "string"}}]),
        "/echo/{word}": {
            "get": {
                "operationId": "echo",
                "parameters": [
                    {"name": "word", "in": "path", "required": True, "schema": {"type": "string"}},
                    {"name": "X-Note", "in": "header", "schema": {"type": "string"}},
                ],
                "responses": ok(),
            }
        },
    },
}


class Library:
    """The server: `url` is its address; `asked` holds what every request said, `gone` how many were given up on."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[dict[str, Any]] = []
        self.waiting = threading.Event()
        self.gone = threading.Event()

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self.note])
        app.router.add_get("/openapi.json", self.document)
        app.router.add_get("/api/books/{id}", self.book)
        app.router.add_delete("/api/books/{id}", self.drop)
        app.router.add_get("/api/cover", self.cover)
        app.router.add_get("/api/slow", self.slow)
        app.router.add_get("/api/large", self.large)
        app.router.add_get("/api/away", self.away)
        app.router.add_get("/charset/{name}", self.charset)
        app.router.add_get("/escaped/{how}/{status}", self.escaped)
        app.router.add_route("*", "/{path:.*}", self.echo)
        return app

    @web.middleware
    async def note(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        body = (await request.read()).decode("utf-8", "replace")
        said = {"method": request.method, "path": request.raw_path, "headers": dict(request.headers), "body": body}
        self.asked.append(said)
        return await handler(request)

    async def escaped(self, request: web.Request) -> web.Response:
        """The key that came, each character written in another way than it was sent."""
        write = ESCAPES[request.match_info["how"]]
        key = "".join(map(write, request.headers["X-Key"]))
        text = f'{{"key": "{key}", "note": "fine"}}'
        return web.Response(text=text, status=int(request.match_info["status"]), content_type="application/json")

    async def charset(self, request: web.Request) -> web.Response:
        kind = f"text/plain; charset={request.match_info['name']}"
        return web.Response(body="caf\xe9-fn".encode(), headers={"Content-Type": kind})

    async def document(self, _: web.Request) -> web.Response:
        return web.json_response(DOCUMENT)

    async def book(self, request: web.Request) -> web.Response:
        if request.headers.get("X-Key") != KEY:
            return web.json_response({"error": f"bad key {request.headers.get('X-Key')}"}, status=401)
        found = BOOKS.get(int(request.match_info["id"]))
        return web.json_response(found) if found else web.json_response({"error": "no such book"}, status=404)

    async def drop(self, _: web.Request) -> web.Response:
        return web.Response(status=204)

    async def cover(self, _: web.Request) -> web.Response:
        return web.Response(body=b"\x89PNG\0\1", content_type="image/png")

    async def slow(self, _: web.Request) -> web.Response:
        self.waiting.set()
        try:
            await asyncio.sleep(60)
        finally:
            self.gone.set()
        return web.Response()

    async def large(self, _: web.Request) -> web.Response:
        return web.json_response(["x" * 1000] * 100)

    async def away(self, request: web.Request) -> web.Response:
        return web.Response(
            status=302,
            headers={"Location": request.raw_path if request.query["to"] == "round" else request.query["to"]},
        )

    async def echo(self, _: web.Request) -> web.Response:
        return web.json_response(self.asked[-1])


@contextmanager
def running() -> Iterator[Library]:
    """A library that answers on loopback, in a thread of its own."""
    library = Library()
    told: queue.SimpleQueue[tuple[str, Callable[[], object]]] = queue.SimpleQueue()

    async def live() -> None:
        over, loop = asyncio.Event(), asyncio.get_running_loop()
        runner = web.AppRunner(library.app(), handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        told.put((f"http://{host}:{port}", lambda: loop.call_soon_threadsafe(over.set)))
        await over.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(live()), daemon=True)
    thread.start()
    library.url, stop = told.get(timeout=120)
    try:
        yield library
    finally:
        stop()
        thread.join()


def one_operation(operation: dict[str, Any], path: str = "/x", method: str = "post", **more: Any) -> dict[str, Any]:
    """A document of one operation."""
    return json.loads(json.dumps({"openapi": "3.1.0", "paths": {path: {method: operation}}, **more}))
