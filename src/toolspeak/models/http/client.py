"""`Http`: a model behind an HTTP API. It builds requests, sends them, retries them, and turns replies into events."""

from __future__ import annotations

import asyncio
import copy
import json
import os
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal

from ...api import embeddings
from ...api.coalesce import joined
from ...api.embeddings import Vectors
from ...api.json_stream import record
from ...api.stream_reader import StreamReader
from ...api.upstream_errors import excerpt
from ...errors import (
    BadRequest,
    KeyRefused,
    ModelError,
    ModelUnreachable,
    ServerFailed,
    StreamCut,
    UnknownModel,
    UsageError,
)
from ...events import Event, Finished, Noted
from ...schema.examples import in_words
from ...schema.nonblocking_json import written
from ...secret_removal import Secrets
from ...types import Note, Request
from ..base import Capability
from ..context import checked_context
from ..new_ids import new_id
from ..offload import LARGE, offloaded, request_size
from ..retries import at_most, retried, retrying
from ..sampling import NONE, Sampling, check_settings
from ..strategy import Known
from ..unsupported_settings import without_unsupported
from .address import parse_address
from .apis import APIS, able_by
from .counting import count_chat, count_messages, count_text
from .http_response import Explaining, cause, drain, events_of, read_all, read_start, refusal, whole_url
from .providers import ANY, Provider, enforces_strict, refuse_without_key
from .read_timeout import ReadTimeout
from .sessions import close_sessions, get_session
from .timeouts import Timeouts, clean_key, timeouts, tries_again

if TYPE_CHECKING:
    import aiohttp

VECTORS, VECTOR = 256_000_000, 500_000
"""The most bytes of a response with vectors: 2,048 of 4,096 numbers each, in JSON, and a margin; and for each text."""
CHECK_PATH = "Check the path of the address, which is /v1 for most servers"
NAME_ONE = "name one: #name at the end of the address, or model=… in Python"


class Http:
    """A model behind an HTTP server; `url` is the API's base, such as `http://localhost:8000/v1`.

    Without `model`, the server is asked for its only model. `key` takes precedence over the provider's environment
    variable. `native=False` is for a server without tools: a Speaker then writes them into the prompt. `timeout` is one
    number of seconds for all waits, or Timeouts. `retries` is how often a request is sent again, only before any part
    of the reply was passed on. A server's Retry-After is respected up to a minute; a longer one raises RateLimited at
    once. `trust_env` uses the proxies of the environment. `defaults` are sampling settings for requests without them.
    `context` is how many tokens the model reads and writes at once, whatever its server reports. Connections are shared by all models and reused until the event loop ends or `aclose` is called.
    """

    def __init__(
        self,
        url: str,
        model: str | None = None,
        *,
        api: Literal["openai", "responses", "ollama", "completions", "anthropic"] | None = None,
        key: str | None = None,
        name: str | None = None,
        native: bool = True,
        timeout: float | Timeouts | None = None,
        retries: int = 2,
        trust_env: bool = False,
        provider: Provider = ANY,
        defaults: Sampling = NONE,
        context: int | None = None,
    ) -> None:
        kind: str = api or provider.api
        if kind not in APIS:
            raise UsageError(f"expected api to be one of {', '.join(APIS)}, got {kind!r}")
        self.api, self._api = kind, APIS[kind]
        self._writing: Mapping[str, Any] = provider.writing if kind == provider.api else {}
        self._constraints: Mapping[str, str] = {}
        self.model, self._provider = model, provider
        address = parse_address(url, default_path=self._api.default_path, endpoint=self._api.path)
        self.address = address.root if self._api.path.startswith("/v1") else address
        self.name = name or self.address.public + (f"#{model}" if model else "")
        self.capabilities: frozenset[Capability] = self._api.native if native else self.plain
        if enforces_strict(self.address.public):
            self.capabilities |= frozenset[Capability](("strict",))
        self.timeouts = timeouts(timeout)
        self.retries = tries_again(retries)
        self._key = clean_key(os.environ.get(provider.key_variable, "") if key is None else key)
        self.key_source = f"given in {provider.key_variable}, or in Python with key=…"
        """Where the key came from, for errors."""
        self._trust_env = trust_env
        self.defaults, self.context = defaults, checked_context(context)
        self.in_pieces = False
        """Whether deltas are passed on one by one; otherwise those that arrive together are joined."""

    def __repr__(self) -> str:
        return f"Http({self.address.public!r}, {self.model!r})"

    @property
    def endpoint(self) -> str:
        """The URL of requests, without credentials."""
        return self.address.public + self._api.path

    @property
    def plain(self) -> frozenset[Capability]:
        """The capabilities besides tools."""
        return self._api.plain

    @property
    def known(self) -> Known:
        """What is known about the model before its server is asked."""
        chats = self.api != "completions"
        return Known(self.model or "", tools="tools" in self.capabilities or None, completes=not chats, chats=chats)

    def body(self, request: Request) -> bytes:
        """Return the exact body of a request. The model's name is empty until the server was asked for it."""
        request, _ = self._supported(request)
        self._check(request)
        return self._written(request)

    def able(self, capabilities: Collection[Capability], **fields: str) -> Http:
        """Return the same model with these capabilities; `fields` of `apis.CONSTRAINTS` name the server's fields for
        constraints."""
        other = copy.copy(self)
        other.capabilities = frozenset(capabilities)
        other._constraints = {**self._constraints, **{name: value for name, value in fields.items() if value}}
        return other

    def completing(self) -> Http:
        """Return the same model through the server's /completions, which continues a prompt."""
        if self.api not in ("openai", "completions", "responses"):
            raise UsageError(f"{self.name} is used through an API that cannot continue a prompt")
        other = copy.copy(self)
        other.api, other._api, other._writing = "completions", APIS["completions"], {}
        other.capabilities = other._api.native | able_by(self._constraints)
        return other

    async def aclose(self) -> None:
        """Close the connections of the running event loop, which all models share."""
        await close_sessions()

    def stream(self, request: Request) -> AsyncGenerator[Event]:
        """Yield the reply's events; see the protocol. Closing the iterator closes the connection at once."""
        request, notes = self._supported(request)
        self._check(request)
        if request.prompt is not None and self.api != "completions":
            return self.completing().stream(request)
        if not self.retries:
            return self._once(request, notes)
        return retrying(lambda: self._once(request, notes), at_most(self.retries))

    async def embed(self, texts: Sequence[str], *, dimensions: int | None = None) -> Vectors:
        """Return a vector for each text; see `models.embed.Embedder`."""
        return await retried(lambda: self._embed(texts, dimensions), at_most(self.retries))

    async def _embed(self, texts: Sequence[str], dimensions: int | None) -> Vectors:
        """Return the vectors from one HTTP exchange, without retries."""
        import aiohttp

        with Explaining(self._explained):
            self.model = self.model or await self.only_model()
            wanted = self._api.write_texts(texts, self.model, dimensions)
            body = await offloaded(size := sum(map(len, texts)), _encode, wanted, size)
            due = asyncio.get_running_loop().time() + self.timeouts.first
            response = await self._send("POST", self._api.embed_path, due, body)
            try:
                async with asyncio.timeout_at(due):
                    raw = await read_all(response, min(VECTORS, VECTOR * (1 + len(texts))))
                return await offloaded(len(raw), embeddings.read_body, raw, len(texts))
            except TimeoutError:
                raise self._too_slow() from None
            except (aiohttp.ClientError, OSError) as error:
                raise StreamCut(f"the answer broke off: {cause(error)}") from None
            except (ValueError, RecursionError):
                raise ServerFailed("the server sent something that is not JSON") from None
            finally:
                response.close()

    async def count(self, request: Request) -> int | None:
        """Return the tokens of a request as the server counts them; None if it cannot. Raises the server's errors only
        if counting is part of its API."""
        self.model = self.model or await self.only_model()
        if self._api is APIS["anthropic"]:
            return await count_messages(self._post, self._api.path + "/count_tokens", request, self.model)
        if self._api is APIS["ollama"]:
            return None
        if request.prompt is not None:
            return await count_text(self._post, request.prompt, self.model)
        return await count_chat(self._post, request, self.model)

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the response to a body posted outside of the API's path (without `/v1`)."""
        return await self.fetch(path, body, seconds=self.timeouts.connect, root=True)

    def _check(self, request: Request) -> None:
        wanted: dict[Capability, bool] = {
            "tools": bool(request.tools),
            "schema": request.schema is not None,
            "grammar": request.grammar is not None,
            "tags": request.tag is not None,
            "prompt": request.prompt is not None,
        }
        if refused := [one for one, needed in wanted.items() if needed and one not in self.capabilities]:
            advice = "; give the model a dialect, so that tools go into the prompt" if "tools" in refused else ""
            raise UsageError(f"{self.name} takes no {' and no '.join(refused)} in a request{advice}")
        check_settings(request, self.name, self._api.sampling, logprobs=self._api.logprobs)

    def _written(self, request: Request) -> bytes:
        """Return the body of a request after the checks."""
        fields = {name: value for name, value in self._constraints.items() if name in self._api.constraints}
        if request.tools:
            request = replace(request, tools=in_words(request.tools))
        body = self._api.write(request, self.model or "", **self._writing, **fields)
        return _encode(body, request_size(request))

    def _supported(self, request: Request) -> tuple[Request, list[Note]]:
        thinks = self._provider.thinks and self._api.thinks and request.prompt is None
        engine = self._constraints.get("engine", self._provider.engine)
        return without_unsupported(self.defaults.fill(request), self._api.sampling, thinks=thinks, engine=engine)

    async def _once(self, request: Request, notes: Sequence[Note]) -> AsyncGenerator[Event]:
        """Run one HTTP exchange. `notes` are sent with the first event, because the request may be sent again before
        it."""
        with Explaining(self._explained):
            loop = asyncio.get_running_loop()
            self.model = self.model or await self.only_model()
            body = await offloaded(request_size(request), self._written, request)
            due = loop.time() + self.timeouts.first + (self.timeouts.between if request.whole else 0)
            reader = self._api.reader(new_id)
            response = await self._send("POST", self._api.path, due, body)
            waiting = ReadTimeout(response.content, due)
            over = False
            try:
                while not over:
                    before = reader.received
                    chunk = await self._chunk(waiting, reader)
                    over = not chunk
                    came = await events_of(reader, chunk)
                    came = came if self.in_pieces else joined(came)
                    if notes and came:
                        came, notes = [*map(Noted, notes), *came], ()
                    for event in came:
                        if isinstance(event, Finished):
                            over = True
                            await drain(response)
                        yield event
                    if not over:
                        reader.feed(b"")  # raises an error that followed these events in the same piece
                    if reader.received > before:
                        waiting.until(loop.time() + self.timeouts.between)
            finally:
                waiting.close()
                response.close()

    async def _chunk(self, waiting: ReadTimeout, reader: StreamReader) -> bytes:
        """Return the next bytes, b"" at the end."""
        import aiohttp

        try:
            return await waiting.read()
        except TimeoutError:
            if reader.received:
                waited = f"no data arrived for {self.timeouts.between:g} s"
                raise StreamCut(f"the reply broke off: {waited}", text=reader.text) from None
            raise self._too_slow() from None
        except (aiohttp.ClientError, OSError) as error:
            raise StreamCut(f"the reply broke off: {cause(error)}", text=reader.text) from None

    async def _send(
        self, method: str, path: str, due: float, body: bytes | None = None, *, root: bool = False
    ) -> aiohttp.ClientResponse:
        """Return a successful response with unread body. `root`: the path is relative to the server, not to its API."""
        import aiohttp

        if not (self._key + self.address.basic):
            refuse_without_key(self._provider, self.name, self.address.public)
        session = await get_session(trust_env=self._trust_env)
        connect = aiohttp.ClientTimeout(total=None, sock_connect=self.timeouts.connect)
        headers = {"Accept": "*/*", "Content-Type": "application/json", **self._api.headers}
        if self._key and self._api.key_header:
            headers[self._api.key_header] = self._key
        elif authorization := f"Bearer {self._key}" if self._key else self.address.basic:
            headers["Authorization"] = authorization
        url = whole_url((self.address.root if root else self.address).url(path))
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
            raise self._unreachable(cause(error)) from None
        if 200 <= response.status < 300:
            return response
        try:
            raise await refusal(response)
        finally:
            response.close()

    @property
    def models_path(self) -> str:
        """The API's path of the list of models."""
        return self._api.models_path

    def names_in(self, listed: dict[str, Any]) -> list[str]:
        """Return the names of the models in such a list."""
        return self._api.read_models(listed)

    async def models(self) -> list[str]:
        """Return the names of the server's models. Raises ModelError, or UnknownModel if it does not list them."""
        try:
            return self.names_in(await self.fetch(self.models_path, seconds=self.timeouts.first))
        except (BadRequest, ServerFailed) as error:
            path = self.address.public + self.models_path
            why = f": {path} answers {error.code}. {CHECK_PATH}, or" if error.code == HTTPStatus.NOT_FOUND else ";"
            raise UnknownModel(f"{self.address.public} does not list its models{why} {NAME_ONE}") from None

    async def fetch(self, path: str, body: Any = None, *, seconds: float = 10.0, root: bool = False) -> dict[str, Any]:
        """Return the JSON object at a path of the API; with a `body` by POST. `root`: the path is relative to the
        server.

        Any other JSON gives an empty object. Raises ModelError; ServerFailed for a response that is not JSON.
        """
        due = asyncio.get_running_loop().time() + seconds
        data = None if body is None else _encode(body)
        with Explaining(self._explained):
            response = await self._send("GET" if body is None else "POST", path, due, data, root=root)
            try:
                return record(json.loads(await read_start(response, 4_000_000)))
            except (ValueError, RecursionError):
                raise ServerFailed("the server answered with something that is not JSON") from None
            finally:
                response.close()

    async def only_model(self) -> str:
        """Return the server's only model. Raises UnknownModel if it has several or does not list them."""
        names = await self.models()
        if len(names) != 1:
            more = f" and {len(names) - 20} more" if len(names) > 20 else ""
            listed = self._hide(", ".join(excerpt(name, 100) for name in names[:20]) + more)
            have = f"the models {listed}" if names else "no model"
            raise UnknownModel(f"{self.address.public} has {have}; {NAME_ONE}")
        return names[0]

    def _too_slow(self) -> ModelUnreachable:
        message = f"the server accepted the request but did not start to answer within {self.timeouts.first:g} s"
        return ModelUnreachable(f"{message}. In Python, timeout=… sets how long it may take", timed_out=True)

    def _unreachable(self, reason: str) -> ModelUnreachable:
        advice = self._provider.start or "check that it runs and that the address is right"
        return ModelUnreachable(f"no answer from the server ({reason}); {advice}")

    def _explained(self, error: ModelError) -> ModelError:
        if error.reason:
            return error
        where = self.name if self.address.public in self.name else f"{self.name} at {self.address.public}"
        text = str(error)
        if isinstance(error, KeyRefused):
            missing = f"no key was sent: set {self._provider.key_variable}"
            text += f"; check the key, {self.key_source}" if self._key else f"; {missing}"
        error.reason = self._hide(text).replace(self.address.public, "the server")
        error.args = (self._hide(f"{where}: {text}"),)
        return error

    @property
    def secrets(self) -> list[str]:
        """Return what no text may show: the key, and the secret parts of the address."""
        return [self._key, *self.address.secrets]

    def _hide(self, text: str) -> str:
        return Secrets(self.secrets).out_of(text)


_in_json = json.JSONEncoder(allow_nan=False).encode


def _encode(body: dict[str, Any], size: int = 0) -> bytes:
    """Return a body as JSON. One of a large `size`, in characters, is written in steps, so that a thread blocks nothing."""
    try:
        return ("".join(written(body, _in_json)) if size >= LARGE else _in_json(body)).encode()
    except (TypeError, ValueError) as error:
        raise UsageError(f"the request contains a value that is not JSON: {error}") from None
