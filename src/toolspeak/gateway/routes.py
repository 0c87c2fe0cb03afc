"""The table of routes, used by the application, by authentication and by the OpenAPI document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from ..api import anthropic, completions, ollama, openai_chat, openai_responses
from ..api.ollama import generate
from ..api.openai_responses import compact
from ..errors import Refused
from ..events import Event
from ..schema.suggestions import did_you_mean, near
from ..types import Schema
from .endpoints import batches, count_tokens, files, health, models, ollama as ollama_paths, responses
from .endpoints.embeddings import embed
from .endpoints.openapi import show_document
from .http_exchange import HttpExchange
from .telemetry.request_record import UNKNOWN

if TYPE_CHECKING:
    from .app import Gateway

Handle = Callable[["Gateway", HttpExchange, str], Awaitable[None]]
"""Answers a request. The text is the value of the route's path parameter, "" without one."""


class Writer(Protocol):
    """Writes a stream of events: see `api.openai_chat.ReplyWriter`."""

    @property
    def keep_alive(self) -> bytes: ...
    @property
    def content_type(self) -> bytes: ...
    def begin(self) -> bytes: ...
    def due(self, event: Event | None, choice: int = 0) -> int: ...
    def feed(self, event: Event, choice: int = 0) -> bytes: ...
    def close(self) -> bytes: ...
    def error(self, error: Refused) -> bytes: ...


class Codec(Protocol):
    """An API as the gateway uses it. The modules of `api/` implement it."""

    @property
    def BODY(self) -> Schema: ...  # noqa: N802 - a module's constant
    @property
    def ReplyWriter(self) -> Any: ...  # noqa: N802
    @property
    def read_request(self) -> Any: ...
    @property
    def write_reply(self) -> Any: ...
    @property
    def write_error(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class Route:
    """A path and its handler. HEAD is answered wherever GET is.

    A path may have a parameter (`/v1/models/{model}`), which matches anything, slashes included. Errors are written by
    `codec`. An `open` route needs no key. A `free` one asks no model, so it does not count against the rate of a key; nor
    does any route that is not POST, nor an unknown path.
    """

    method: str
    path: str
    handle: Handle
    codec: Codec
    open: bool = False
    free: bool = False


def generates(codec: Codec) -> Handle:
    """Return the handler of an API in which a model generates the response."""

    async def handle(gateway: Gateway, exchange: HttpExchange, _: str) -> None:
        await gateway.generate(exchange, codec)

    return handle


OPENAI = cast("Codec", openai_chat)
COMPLETIONS = cast("Codec", completions)
ANTHROPIC = cast("Codec", anthropic)
RESPONSES = cast("Codec", openai_responses)
COMPACT = cast("Codec", compact)
OLLAMA = cast("Codec", ollama)
GENERATE = cast("Codec", generate)

ROUTES: tuple[Route, ...] = (
    Route("POST", "/v1/chat/completions", generates(OPENAI), OPENAI),
    Route("POST", "/v1/completions", generates(COMPLETIONS), COMPLETIONS),
    Route("POST", "/v1/messages", generates(ANTHROPIC), ANTHROPIC),
    Route("POST", "/v1/messages/count_tokens", count_tokens.count_tokens, ANTHROPIC),
    Route("POST", "/v1/embeddings", embed, OPENAI),
    Route("POST", "/v1/responses", responses.creates(RESPONSES), RESPONSES),
    Route("POST", "/v1/responses/compact", responses.creates(COMPACT), COMPACT),
    Route("GET", "/v1/responses/{response}", responses.show, RESPONSES),
    Route("GET", "/v1/responses/{response}/input_items", responses.show_input, RESPONSES),
    Route("DELETE", "/v1/responses/{response}", responses.drop, RESPONSES),
    Route("POST", "/v1/files", files.create, OPENAI),
    Route("GET", "/v1/files", files.list_files, OPENAI),
    Route("GET", "/v1/files/{file}", files.show, OPENAI),
    Route("GET", "/v1/files/{file}/content", files.content, OPENAI),
    Route("DELETE", "/v1/files/{file}", files.drop, OPENAI),
    Route("POST", "/v1/batches", batches.create, OPENAI),
    Route("GET", "/v1/batches", batches.list_batches, OPENAI),
    Route("GET", "/v1/batches/{batch}", batches.show, OPENAI),
    Route("POST", "/v1/batches/{batch}/cancel", batches.cancel, OPENAI, free=True),
    Route("GET", "/v1/models", models.list_models, OPENAI),
    Route("GET", "/v1/models/{model}", models.show_model, OPENAI),
    Route("POST", "/api/chat", ollama_paths.chat, OLLAMA),
    Route("POST", "/api/generate", ollama_paths.generate, GENERATE),
    Route("POST", "/api/embed", ollama_paths.embed, OLLAMA),
    Route("GET", "/api/tags", ollama_paths.list_models, OLLAMA),
    Route("POST", "/api/show", ollama_paths.show_model, OLLAMA, free=True),
    Route("GET", "/api/ps", ollama_paths.list_running, OLLAMA),
    Route("GET", "/api/version", ollama_paths.show_version, OLLAMA),
    Route("GET", "/", ollama_paths.show_root, OPENAI),
    Route("GET", "/openapi.json", show_document, OPENAI),
    Route("GET", "/livez", health.live, OPENAI, open=True),
    Route("GET", "/readyz", health.ready, OPENAI, open=True),
    Route("GET", "/health", health.ready, OPENAI, open=True),
    Route("GET", "/metrics", health.metrics, OPENAI),
)

_BY_PATH: dict[str, dict[str, Route]] = {}
for _route in ROUTES:
    _BY_PATH.setdefault(_route.path, {})[_route.method] = _route
_HOLES = [
    (path[: path.index("{")], path[path.index("}") + 1 :], routes) for path, routes in _BY_PATH.items() if "{" in path
]
_HOLES.sort(key=lambda hole: len(hole[1]), reverse=True)
"""The text before and after a path parameter, with the routes; those with text after it first."""


def find(path: str) -> tuple[dict[str, Route], str]:
    """Return the routes of a path by method, and the value of its parameter; no routes for an unknown path."""
    if "{" not in path and (route := _BY_PATH.get(path)):
        return route, ""
    for start, end, routes in _HOLES:
        if path.startswith(start) and path.endswith(end) and len(path) > len(start) + len(end):
            return routes, path[len(start) : len(path) - len(end)]
    return {}, ""


def known_path(path: str) -> str:
    """Return the route's path for a request path, "unknown" if there is none."""
    routes, _ = find(path)
    return next(iter(routes.values())).path if routes else UNKNOWN


def is_open(path: str) -> bool:
    """Whether a path is answered without a key."""
    routes, _ = find(path)
    return bool(routes) and all(route.open for route in routes.values())


def is_rated(method: str, path: str) -> bool:
    """Whether a request counts against the rate of its key. Those that only look, such as monitoring, do not, and those
    that no route answers do not."""
    route = find(path)[0].get(method)
    return method == "POST" and route is not None and not route.free


def codec_for(exchange: HttpExchange) -> Codec:
    """Return the API in whose format an error is written: that of the path or of its prefix, else Anthropic's if the
    client sends the version of that API, else OpenAI's."""
    path: str = exchange.scope["path"]
    if path.startswith("/api/"):
        return OLLAMA
    routes, _ = find(path)
    matches = [*routes.values(), *(route for route in ROUTES if path.startswith(route.path + "/"))]
    codec = matches[0].codec if matches else OPENAI
    return ANTHROPIC if codec is OPENAI and exchange.header(b"anthropic-version") else codec


async def answer_route(gateway: Gateway, exchange: HttpExchange) -> None:
    """Call the handler for a request's path and method. Raises Refused (404, 405)."""
    path, method = exchange.scope["path"], exchange.scope["method"]
    routes, rest = find(path)
    if not routes:
        known = [
            known.partition("/{")[0] for known in _BY_PATH if known != "/"
        ]  # a path with a parameter is no suggestion
        message = f"there is no {path[:200]} here.{did_you_mean(near(path[:200], dict.fromkeys(known)))}"
        raise Refused(message, status=404, code="not_found")
    route = routes.get("GET" if method == "HEAD" else method)
    if route is None:
        allowed = [*routes, *(["HEAD"] if "GET" in routes else [])]
        exchange.headers.append((b"allow", ", ".join(allowed).encode()))
        raise Refused(f"{path[:200]} takes {' or '.join(allowed)}", status=405, code="method_not_allowed")
    if not route.open:
        gateway.admission.check_open()
    await route.handle(gateway, exchange, rest)
