"""Models over HTTP: any server that speaks an API of `api/`."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import os
import uuid
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ..api import completions, ollama, openai_chat
from ..api.failure import excerpt
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
from .exchange import Timeouts, clean_key, drain, read_body, reason, refusal, timeouts
from .providers import ANY, Provider
from .retry import pause
from .sessions import close_sessions, get_session

if TYPE_CHECKING:
    import aiohttp

log = logging.getLogger(__name__)


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
        kind: str = api or provider.api
        if kind not in APIS:
            raise UsageError(f"expected api to be one of {', '.join(APIS)}, got {kind!r}")
        self.api = kind
        self._api = APIS[kind]
        self._writing: Mapping[str, Any] = provider.writing if kind == provider.api else {}
        self._provider = provider
        self.model = model
        self.address = parse_address(url, default_path=self._api.default_path, endpoint=self._api.path)
        self.name = name or self.address.shown + (f"#{model}" if model else "")
        self.capabilities = self._api.native if native else self._api.plain
        self.timeouts = timeouts(timeout)
        self.retries = retries
        self._key = clean_key(os.environ.get(provider.key_variable, "") if key is None else key)
        self._trust_env = trust_env

    def __repr__(self) -> str:
        return f"Http({self.address.shown!r}, {self.model!r})"

    @property
    def _url(self) -> str:
        return self.address.url(self._api.path)

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
        return self.able(self.capabilities - {"tools"})

    def able(self, capabilities: Collection[Capability], grammar_field: str = "") -> Http:
        """The same model, known to have these capabilities; `grammar_field` is where its server takes a grammar."""
        other = copy.copy(self)
        other.capabilities = frozenset(capabilities)
        if grammar_field:
            other._writing = {**self._writing, "grammar_field": grammar_field}
        return other

    def completing(self) -> Http:
        """The same model behind the same server's /completions: it continues a prompt."""
        if self.api == "ollama":
            raise UsageError(f"{self.name} is asked through Ollama's own API, which continues no exact prompt")
        other = copy.copy(self)
        other.api, other._api, other._writing = "completions", APIS["completions"], {}
        other.capabilities = other._api.native
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
        self.model = self.model or await self.only_model()
        body = self.body(request)
        due = loop.time() + self.timeouts.first
        reader = self._api.reader(lambda: f"call_{uuid.uuid4().hex[:24]}")
        response = await self._send("POST", self._url, due, body)
        try:
            over = False
            while not over:
                before = reader.received
                chunk = await self._chunk(response, reader, due)
                over = not chunk
                for event in reader.close() if over else reader.feed(chunk):
                    if isinstance(event, Finished):
                        over = True
                        await drain(response)
                    yield event
                if reader.received > before:
                    due = loop.time() + self.timeouts.between
        finally:
            response.close()

    async def _chunk(self, response: aiohttp.ClientResponse, reader: Reader, due: float) -> bytes:
        """The next bytes, b"" at the end."""
        import aiohttp

        try:
            async with asyncio.timeout_at(due):
                return await response.content.readany()
        except TimeoutError:
            if reader.received:
                waited = f"nothing more came for {self.timeouts.between:g} s"
                raise StreamCut(f"the reply broke off: {waited}", text=reader.text) from None
            raise self._too_slow() from None
        except (aiohttp.ClientError, OSError) as error:
            raise StreamCut(f"the reply broke off: {reason(error)}", text=reader.text) from None

    async def _send(self, method: str, url: str, due: float, body: bytes | None = None) -> aiohttp.ClientResponse:
        """A good answer, its body still to be read."""
        import aiohttp

        session = await get_session(trust_env=self._trust_env)
        connect = aiohttp.ClientTimeout(total=None, sock_connect=self.timeouts.connect)
        headers = {"Accept": "*/*", "Content-Type": "application/json"}
        if authorization := f"Bearer {self._key}" if self._key else self.address.basic:
            headers["Authorization"] = authorization
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
            raise self._unreachable(reason(error)) from None
        if 200 <= response.status < 300:
            return response
        try:
            raise await refusal(response)
        finally:
            response.close()

    async def models(self) -> list[str]:
        """The names of the models that the server has. Raises ModelError, UnknownModel where it does not tell."""
        try:
            return self._api.read_models(await self.fetch(self._api.models_path, seconds=self.timeouts.first))
        except (BadRequest, ServerFailed):
            said = (
                f"{self.address.shown} does not list its models; name one: model=… or #name at the end of the address"
            )
            raise UnknownModel(said) from None

    async def fetch(
        self, path: str, body: Any = None, *, seconds: float = 10.0, origin: bool = False
    ) -> dict[str, Any]:
        """The JSON object at a path of the server, with a `body` that of a POST; `origin`: not below the API's base.

        An empty one where it is something else. Raises ModelError; ServerFailed for what is no JSON.
        """
        due = asyncio.get_running_loop().time() + seconds
        address = replace(self.address, shown=self.address.origin) if origin else self.address
        data = None if body is None else _encode(body)
        try:
            response = await self._send("GET" if body is None else "POST", address.url(path), due, data)
            try:
                return record(json.loads(await read_body(response, 4_000_000)))
            except (ValueError, RecursionError):
                raise ServerFailed("the server sent something that is not JSON") from None
            finally:
                response.close()
        except ModelError as error:
            raise self._told(error) from None

    async def only_model(self) -> str:
        """The one model that the server has. Raises UnknownModel where it has several or does not tell."""
        names = await self.models()
        if len(names) != 1:
            listed = self._hide(", ".join(excerpt(name, 100) for name in names[:20])) + (
                f" and {len(names) - 20} more" if len(names) > 20 else ""
            )
            have = f"the models {listed}" if names else "no model"
            raise UnknownModel(f"{self.address.shown} has {have}; name one: model=… or #name at the end of the address")
        return names[0]

    def _too_slow(self) -> ModelUnreachable:
        said = f"the server took the request and did not begin to answer within {self.timeouts.first:g} s"
        return ModelUnreachable(f"{said}; give it longer with timeout=…", timed_out=True)

    def _unreachable(self, reason: str) -> ModelUnreachable:
        advice = self._provider.start or "check that it runs and that the address is right"
        return ModelUnreachable(f"no answer from the server ({reason}); {advice}")

    def _told(self, error: ModelError) -> ModelError:
        """The same error, saying who and where, and holding no secret."""
        if error.reason:
            return error
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


def _encode(body: dict[str, Any]) -> bytes:
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise UsageError(f"the request holds something that is not JSON: {error}") from None
