"""Models over HTTP: any server that speaks an API of `api/`."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import logging
import os
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ..api import completions, ollama, openai_chat
from ..api.failure import excerpt, failure
from ..api.payloads import record
from ..errors import (
    BadRequest,
    KeyRefused,
    ModelError,
    ModelUnreachable,
    ServerFailed,
    StreamCut,
    UnknownModel,
    UsageError,
)
from ..events import Event, Finished
from ..types import Request
from .address import parse_address, redact
from .base import Capability
from .patience import Patience
from .providers import ANY, Provider
from .retry import pause, retry_after
from .sessions import close_sessions, get_session

if TYPE_CHECKING:
    import aiohttp

log = logging.getLogger(__name__)

DRAIN = 0.25
"""Seconds that a server gets to close a reply that is over, so that its connection can be used again."""


class Reader(Protocol):
    """What reads a reply: see `api.openai_chat.ReplyReader`."""

    @property
    def text(self) -> str: ...
    @property
    def received(self) -> int: ...
    def feed(self, chunk: bytes) -> list[Event]: ...
    def close(self) -> list[Event]: ...


@dataclass(frozen=True, slots=True)
class Api:
    """How one kind of API is asked: its paths, its codec, and what a server of that kind can do."""

    path: str
    models_path: str
    default_path: str
    write: Callable[..., dict[str, Any]]
    reader: Callable[[Callable[[], str]], Reader]
    read_models: Callable[[dict[str, Any]], list[str]]
    native: frozenset[Capability]
    plain: frozenset[Capability] = frozenset()


APIS: dict[str, Api] = {
    "openai": Api(
        "/chat/completions", "/models", "/v1", openai_chat.write_request, openai_chat.ReplyReader,
        openai_chat.read_models, frozenset({"tools", "schema"}),
    ),
    "completions": Api(
        "/completions", "/models", "/v1", completions.write_request, completions.ReplyReader,
        openai_chat.read_models, frozenset({"prompt"}), frozenset({"prompt"}),
    ),
    "ollama": Api(
        "/api/chat", "/api/tags", "", ollama.write_request, ollama.ReplyReader,
        ollama.read_models, frozenset({"tools", "schema"}),
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to wait for a connection, for the reply to begin, and for more of it.

    A keep-alive comment is not more of it.
    """

    connect: float = 10.0
    first: float = 300.0
    between: float = 120.0


class Http:
    """A model behind an HTTP server; `url` is the API's base, such as `http://localhost:8000/v1`.

    Without `model` the server is asked which one it has. `key` stands before the provider's environment
    variable. `native=False` is for a server that takes no tools: a Speaker then writes them into the
    prompt. `timeout` is one number of seconds for all waits, or Timeouts. `retries` bounds how often a
    request is sent again, only while nothing of the reply has been passed on; a server's Retry-After is
    honoured up to a minute, a longer one ends in RateLimited at once. Proxies of the environment are used
    with `trust_env`. Connections are kept for reuse, by all models alike, until the event loop ends or
    `aclose` is called.
    """

    def __init__(
        self,
        url: str,
        model: str | None = None,
        *,
        api: Literal["openai", "ollama", "completions"] | None = None,
        key: str | None = None,
        name: str | None = None,
        native: bool = True,
        timeout: float | Timeouts | None = None,
        retries: int = 2,
        trust_env: bool = False,
        provider: Provider = ANY,
    ) -> None:
        kind = api or provider.api
        if kind not in APIS:
            raise UsageError(f"expected api to be one of {', '.join(APIS)}, got {kind!r}")
        self._api = APIS[kind]
        self._writing: Mapping[str, Any] = provider.writing if kind == provider.api else {}
        self._provider = provider
        self.model = model
        self.address = parse_address(url, default_path=self._api.default_path, endpoint=self._api.path)
        self.name = name or self.address.shown + (f"#{model}" if model else "")
        self.capabilities = self._api.native if native else self._api.plain
        self.timeouts = _timeouts(timeout)
        self.retries = retries
        self._key = _clean_key(os.environ.get(provider.key_variable, "") if key is None else key)
        self._trust_env = trust_env

    def __repr__(self) -> str:
        return f"Http({self.address.shown!r}, {self.model!r})"

    @property
    def endpoint(self) -> str:
        """The URL that a request goes to, without credentials."""
        return self.address.shown + self._api.path

    def body(self, request: Request) -> bytes:
        """The exact body of a request; the model's name is empty until the server was asked for it."""
        self._check(request)
        return _encode(self._api.write(request, self.model or "", **self._writing))

    def without_tools(self) -> Http:
        """The same model for what is asked without tools."""
        other = copy.copy(self)
        other.capabilities = self.capabilities - {"tools"}
        return other

    async def aclose(self) -> None:
        """Closes the connections kept by the running event loop, other models' too: all share them."""
        await close_sessions()

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """The reply's events; see the protocol. Closing the iterator closes the connection at once."""
        self._check(request)
        begun = False
        for tried in range(1, self.retries + 2):
            try:
                async with aclosing(self._try(request)) as events:
                    async for event in events:
                        begun = True
                        yield event
                return
            except ModelError as error:
                told = self._told(error)
                wait = pause(error, tried) if not begun and tried <= self.retries else None
                if wait is None:
                    raise told from None
            log.info("%s; asking again in %.1f s", told, wait)
            await asyncio.sleep(wait)

    def _check(self, request: Request) -> None:
        wanted: dict[Capability, bool] = {
            "tools": bool(request.tools),
            "schema": request.schema is not None,
            "grammar": request.grammar is not None,
            "prompt": request.prompt is not None,
        }
        refused = [capability for capability, asked in wanted.items() if asked and capability not in self.capabilities]
        if refused:
            advice = "; give the model a dialect, so that tools go into the prompt" if "tools" in refused else ""
            raise UsageError(f"{self.name} takes no {' and no '.join(refused)} in a request{advice}")

    async def _try(self, request: Request) -> AsyncGenerator[Event]:
        """One exchange, without retries."""
        loop = asyncio.get_running_loop()
        self.model = self.model or await self._only_model()
        body = self.body(request)
        due = loop.time() + self.timeouts.first
        reader = self._api.reader(lambda: f"call_{uuid.uuid4().hex[:24]}")
        response = await self._send("POST", self._api.path, due, body)
        patience = Patience(response.content, due)
        try:
            over = False
            while not over:
                before = reader.received
                chunk = await self._chunk(patience, reader)
                over = not chunk
                for event in reader.close() if over else reader.feed(chunk):
                    if isinstance(event, Finished):
                        over = True
                        await _drain(response)
                    yield event
                if reader.received > before:
                    patience.until(loop.time() + self.timeouts.between)
        finally:
            patience.close()
            response.close()

    async def _chunk(self, patience: Patience, reader: Reader) -> bytes:
        """The next bytes, b"" at the end."""
        import aiohttp

        try:
            return await patience.read()
        except TimeoutError:
            if reader.received:
                waited = f"nothing more came for {self.timeouts.between:g} s"
                raise StreamCut(f"the reply broke off: {waited}", text=reader.text) from None
            raise self._too_slow() from None
        except (aiohttp.ClientError, OSError) as error:
            raise StreamCut(f"the reply broke off: {_reason(error)}", text=reader.text) from None

    async def _send(self, method: str, path: str, due: float, body: bytes | None = None) -> aiohttp.ClientResponse:
        """A good answer, its body still to be read."""
        import aiohttp

        session = await get_session(trust_env=self._trust_env)
        connect = aiohttp.ClientTimeout(total=None, sock_connect=self.timeouts.connect)
        headers = {"Accept": "*/*", "Content-Type": "application/json"}
        if authorization := f"Bearer {self._key}" if self._key else self.address.basic:
            headers["Authorization"] = authorization
        url = self.address.url(path)
        try:
            async with asyncio.timeout_at(due):
                response = await session.request(
                    method, url, data=body, headers=headers, timeout=connect, allow_redirects=False
                )
        except aiohttp.ConnectionTimeoutError:
            raise self._unreachable(f"no connection within {self.timeouts.connect:g} s") from None
        except TimeoutError:
            raise self._too_slow() from None
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(_reason(error)) from None
        if 200 <= response.status < 300:
            return response
        try:
            raise await _refusal(response)
        finally:
            response.close()

    async def _only_model(self) -> str:
        """The one model that the server has, asked once."""
        due = asyncio.get_running_loop().time() + self.timeouts.first
        advice = "name one: model=… or #name at the end of the address"
        try:
            response = await self._send("GET", self._api.models_path, due)
        except (BadRequest, ServerFailed):
            raise UnknownModel(f"{self.address.shown} does not list its models; {advice}") from None
        try:
            names = self._api.read_models(record(json.loads(await _body(response, 4_000_000))))
        except ValueError:
            raise UnknownModel(f"{self.address.shown} does not list its models; {advice}") from None
        finally:
            response.close()
        if len(names) != 1:
            listed = self._hide(", ".join(excerpt(name, 100) for name in names[:20])) + (
                f" and {len(names) - 20} more" if len(names) > 20 else ""
            )
            raise UnknownModel(f"{self.address.shown} has {f'the models {listed}' if names else 'no model'}; {advice}")
        return names[0]

    def _too_slow(self) -> ModelUnreachable:
        said = f"the server took the request and did not begin to answer within {self.timeouts.first:g} s"
        return ModelUnreachable(f"{said}; give it longer with timeout=…", timed_out=True)

    def _unreachable(self, reason: str) -> ModelUnreachable:
        advice = self._provider.start or "check that it runs and that the address is right"
        return ModelUnreachable(f"no answer from the server ({reason}); {advice}")

    def _told(self, error: ModelError) -> ModelError:
        """The same error, saying who and where, and holding no secret."""
        where = self.name if self.address.shown in self.name else f"{self.name} at {self.address.shown}"
        message = f"{where}: {error}"
        if isinstance(error, KeyRefused):
            variable = self._provider.key_variable
            message += (
                f"; check the key, given with key=… or in {variable}"
                if self._key
                else f"; no key was sent: set {variable}"
            )
        error.reason = self._hide(str(error)).replace(self.address.shown, "the server")
        error.args = (self._hide(message),)
        return error

    def _hide(self, text: str) -> str:
        return redact(text, [self._key, *self.address.secrets])


async def _refusal(response: aiohttp.ClientResponse) -> ModelError:
    """The error that an answer other than 2xx stands for."""
    status = response.status
    if 300 <= status < 400:
        target = _shown(response.headers.get("Location", ""))
        return BadRequest(f"the server redirects ({status}) to {target or 'nowhere'}: use that address if you trust it")
    told = retry_after(response.headers.get("Retry-After"))
    return failure(status, await _body(response, 65536), retry_after=told)


async def _body(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The answer's body as far as it comes, up to `limit` bytes, within seconds."""
    import aiohttp

    body = bytearray()
    with contextlib.suppress(TimeoutError, aiohttp.ClientError, OSError):
        async with asyncio.timeout(5):
            while len(body) < limit and (chunk := await response.content.readany()):
                body += chunk
    return bytes(body[:limit])


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Reads what is left of a reply that is over: only then is its connection free for the next request."""
    if response.content.at_eof():
        return
    import aiohttp

    with contextlib.suppress(TimeoutError, aiohttp.ClientError, OSError):
        async with asyncio.timeout(DRAIN):
            while await response.content.readany():
                pass


def _shown(url: str) -> str:
    try:
        return parse_address(url).shown
    except UsageError:
        return ""


REASONS = {
    "ServerDisconnectedError": "it closed the connection",
    "ClientPayloadError": "the connection was cut",
    "ClientConnectorCertificateError": "its certificate is not trusted",
    "InvalidUrlClientError": "there can be no such address",
}


def _reason(error: Exception) -> str:
    """What went wrong with a connection, in few words: an aiohttp error's own may hold the whole request."""
    name = type(error).__name__
    words = getattr(getattr(error, "os_error", error), "strerror", None)
    return REASONS.get(name) or words or f"{name.removeprefix('Client').removesuffix('Error')} error"


def _encode(body: dict[str, Any]) -> bytes:
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise UsageError(f"the request holds something that is not JSON: {error}") from None


def _timeouts(given: float | Timeouts | None) -> Timeouts:
    if given is None:
        return Timeouts()
    return given if isinstance(given, Timeouts) else Timeouts(min(given, 10.0), given, given)


def _clean_key(key: str) -> str:
    """A key read from a file ends in a line break; one with a character that no header may hold is no key."""
    key = key.strip()
    if not key.isascii() or not key.isprintable():
        raise UsageError("the key holds a character that no key has (a line break, a blank, a letter beyond ASCII)")
    return key
