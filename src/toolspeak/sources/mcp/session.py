"""One MCP server as tools. It is connected on first use, and again after a lost connection; its definitions are
checked."""

from __future__ import annotations

import asyncio
import fnmatch
import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, cast
from urllib.parse import urlsplit

from ...errors import InvalidTool, ToolError, ToolspeakError, UsageError
from ...models.offload import offloaded
from ...running import in_thread
from ...schema.infer import AnyTool, as_tool
from ...schema.phrases import clipped
from ...schema.suggestions import listed as listed_names
from ...secret_removal import Secrets
from ...tool_results import message_of
from ...types import Origin, ToolEffect
from .. import background_loop
from ..definition_checks import refuse_duplicates, refuse_hostile, refuse_unsendable
from ..pins import Pins
from .config import McpAddress
from .connection import Connection, listed
from .limits import BoundedRequest
from .logins import Logins, default_path
from .results import result_size, value_of
from .server_identity import resolved

if TYPE_CHECKING:
    from mcp import Client
    from mcp.shared.exceptions import MCPError
    from mcp.types import CallToolResult
    from pydantic import ValidationError

    from .bearer import Bearer
    from .server_questions import Elicit

log = logging.getLogger(__name__)
_Review = tuple[Sequence[dict[str, Any]], list[dict[str, Any]], dict[str, AnyTool], dict[str, str]]


class Server:
    """A server and its `tools`, by name. Coroutines here run on the loop for servers (`background_loop`)."""

    def __init__(
        self,
        address: McpAddress,
        *,
        prefix: str = "",
        only: Sequence[str] = (),
        without: Sequence[str] = (),
        timeout: float,
        pins: Pins | None = None,
        accept: bool | Collection[str] = False,
        elicit: Elicit | None = None,
    ) -> None:
        self.address = address
        self.prefix = prefix
        self.only, self.without = tuple(only), tuple(without)
        self.timeout = timeout
        self.pins = pins
        self.accept = accept
        self.elicit = elicit
        self._own_secrets = Secrets(address.secrets)
        self._login: Bearer | None = None
        """The login at the server, which outlives connections."""
        self._login_secrets: tuple[tuple[str, ...], Secrets] = ((), self._own_secrets)
        self.tools: dict[str, AnyTool] = {}
        self.names: tuple[str, ...] = ()
        """Of all tools that the server offers, wanted or not."""
        self.offered: list[dict[str, Any]] = []
        """The latest definitions of the tools that are wanted."""
        self.on_change: Callable[[], None] = lambda: None
        """Called after the tools have changed."""
        self._refused: dict[str, str] = {}
        self._opened = False
        self._closed = False
        self._link: Connection | None = None
        self._turn: asyncio.Lock | None = None
        self._stay: Callable[[], None] = lambda: None

    @property
    def _secrets(self) -> Secrets:
        """Secrets that answers must not contain, including the tokens of a login, which change when they are renewed."""
        tokens = self._login.secrets if self._login else ()
        if tokens != self._login_secrets[0]:
            self._login_secrets = (tokens, Secrets([*self.address.secrets, *tokens]))
        return self._login_secrets[1] if tokens else self._own_secrets

    async def open(self) -> None:
        """Connect and load the tools. Raises ToolError or UsageError if that fails, InvalidTool or DuplicateTool for
        refused definitions."""
        self._closed = False
        await self._linked()

    async def close(self) -> None:
        """Disconnect. A server that was started here has ended when this returns."""
        self._closed = True
        self._stay()
        link, self._link = self._link, None
        if link is not None and link.loop is asyncio.get_running_loop():
            await link.close()

    async def call(self, name: str, arguments: Mapping[str, Any], *, again: bool) -> Any:
        """Return the value of one call. A call that was never sent is repeated once on a new connection; a call that
        was sent is repeated only with `again`, which says that this does no harm."""
        from mcp.shared.exceptions import MCPError

        refuse_unsendable(arguments)
        for last in (False, True):
            link = await self._linked()
            if name in self._refused:
                raise ToolError(self._refused[name])
            request = BoundedRequest()
            try:
                return await self._outcome(link, name, arguments, request)
            except MCPError as error:
                lost = error.code == _CLOSED or await link.lost()
                if lost:
                    await self._drop(link)
                unheard = not request.sent or (request.forgotten and error.code != _CLOSED)
                if not lost or last or not (unheard or again):
                    why = link.reason(error.message, request.problem)
                    raise ToolError(self._why(error, why, risky=not (unheard or again))) from None
                log.info("%s: connecting again", self.address.description)
        raise AssertionError("the second try gives a value or raises")

    async def _outcome(self, link: Connection, name: str, arguments: Mapping[str, Any], request: BoundedRequest) -> Any:
        """Return the value of a call that is sent now, without secrets. Raises ToolError, or the SDK's error."""
        from pydantic import ValidationError

        from .server_questions import call_tool

        try:
            with request:
                result = await call_tool(link.ready.result(), link.questions, name, arguments)
            return await offloaded(result_size(result), self._value, result)
        except ValidationError as error:
            problem = self._invalid("result of a tool", error)
        except ToolError as error:
            problem = self._secrets.out_of(str(error))
        raise ToolError(problem)  # here, because its context would hold the error, and with it the answer

    def _value(self, result: CallToolResult) -> Any:
        return self._secrets.out_of_data(value_of(result))

    def _invalid(self, what: str, error: ValidationError) -> str:
        """Return what is wrong with a message of the server, on one line."""
        first, *more = error.errors(include_url=False)
        problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}" + (f", and {len(more)} more" if more else "")
        return f"{self.address.description} sent an invalid {what}: {self._secrets.out_of(problem)}"

    def _why(self, error: MCPError, why: str, *, risky: bool) -> str:
        if error.code != _CLOSED:
            return f"{self.address.description} answered with an error: {why} ({error.code})"
        risk = ". The call may have run, so it was not made again" if risky else ""
        return f"the connection to {self.address.description} was lost: {why}{risk}"

    # the connection

    async def _linked(self) -> Connection:
        """Return the connection, opening it if there is none."""
        if self._closed:
            raise UsageError(f"the MCP server {self.address.description} was closed")
        if (
            self._link is not None and self._link.loop is not asyncio.get_running_loop()
        ):  # it belongs to the parent process
            self._link = self._turn = None
        if self._turn is None:
            self._turn = asyncio.Lock()
        async with self._turn:
            if self._link is not None and self._link.alive:
                return self._link
            if self._link is not None:
                await self._link.close()
            link = await self._connected()
            if self._closed:  # closed meanwhile by another caller
                await link.close()
                raise UsageError(f"the MCP server {self.address.description} was closed")
            self._link = link
            return link

    async def _load(self, link: Connection) -> None:
        """Load the tools over a new connection. Raises ToolError, UsageError, InvalidTool or DuplicateTool."""
        from mcp.shared.exceptions import MCPError
        from pydantic import ValidationError

        request = BoundedRequest()
        try:
            client = await link.ready
            with request:
                offered = await listed(client)
            await self._take(offered)
        except MCPError as error:
            raise ToolError(
                f"the MCP server {self.address.description} does not list its tools: "
                f"{link.reason(error.message, request.problem)}"
            ) from None
        except ValidationError as error:
            raise ToolError(f"the MCP server {self._invalid('list of tools', error)}") from None

    async def _connected(self) -> Connection:
        if self._login is None and self.address.url:
            self._login = bearer(self.address)
        link = Connection(self.address, self.timeout, self._renew, lambda: self._secrets, self._login, self.elicit)
        loading = asyncio.ensure_future(self._load(link))
        loading.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        try:
            await asyncio.wait([loading], timeout=self.timeout)
            if not loading.done():
                raise ToolError(
                    f"the MCP server {self.address.description} gave no session and no tools within {self.timeout:g} s{link.stderr_text}"
                )
            loading.result()
        except BaseException:
            loading.cancel()  # not waited for: the SDK takes seconds to cancel a request that it cannot send
            await link.close()
            raise
        self._stay = background_loop.leaving(self.close)
        return link

    async def _drop(self, link: Connection) -> None:
        if self._link is link:
            self._link = None
        await link.close()

    # its tools

    async def _renew(self, client: Client) -> None:
        """Load the tools again after the server reported a change."""
        from mcp.shared.exceptions import MCPError
        from pydantic import ValidationError

        try:
            async with asyncio.timeout(self.timeout):
                with BoundedRequest():
                    offered = await listed(client)
                await self._take(offered)
        except (MCPError, ToolspeakError, TimeoutError) as error:
            why = self._secrets.out_of(message_of(error)) or type(error).__name__
            log.warning("%s: its changed tools cannot be loaded: %s", self.address.description, why)
        except ValidationError as error:
            log.warning("%s", self._invalid("list of changed tools", error))

    def _raise_refused(self, refused: Mapping[str, str]) -> NoReturn:
        first, *others = refused
        more = f"\nRefused too: {listed_names(others)}" if others else ""
        raise InvalidTool(f"the MCP server {self.address.description}: {refused[first]}{more}", tool=first)

    async def _take(self, offered: Sequence[dict[str, Any]]) -> None:
        """Load definitions that pass the checks. On the first load a bad definition is raised. Later, when no caller
        waits, a known tool keeps its old definition and refuses calls, and a new one is left out.

        The checks of many tools take seconds, so they run in a thread, and end when nobody waits for them.
        """
        over = threading.Event()
        try:
            review = await in_thread(lambda: self._reviewed(offered, over.is_set))
        finally:
            over.set()
        self._install(*review)

    def _reviewed(self, offered: Sequence[dict[str, Any]], over: Callable[[], bool]) -> _Review:
        """Return the definitions without secrets, the tools of those that pass the checks, and why others are refused."""
        offered = self._secrets.out_of_data(list(offered))
        wanted = [one for one in offered if self._wants(str(one.get("name", "")))]
        refuse_duplicates((str(one.get("name", "")) for one in wanted), f"the MCP server {self.address.description}")
        tools: dict[str, AnyTool] = {}
        refused: dict[str, str] = {}
        for one in wanted:
            if over():
                raise TimeoutError
            try:
                tools[one["name"]] = self._tool(one)
            except InvalidTool as error:
                refused[one["name"]] = f"{error}. To do without it: without=[{clipped(one['name'], 200)!r}]"
        refused |= self._unaccepted([one for one in wanted if one["name"] in tools])
        return offered, wanted, tools, refused

    def _install(
        self,
        offered: Sequence[dict[str, Any]],
        wanted: list[dict[str, Any]],
        tools: dict[str, AnyTool],
        refused: dict[str, str],
    ) -> None:
        self.names, self.offered = tuple(str(one.get("name", "")) for one in offered), wanted
        if refused and not self._opened:
            self._raise_refused(refused)
        for name, why in refused.items():
            tools.pop(name, None)
            log.warning("%s: %s", self.address.description, why)
            if (old := self.tools.get(self.prefix + name)) is not None:
                tools[name] = replace(old, name=name)
        self._opened, self._refused = True, refused
        self.tools = {self.prefix + name: replace(tool, name=self.prefix + name) for name, tool in tools.items()}
        self.on_change()

    def _wants(self, name: str) -> bool:
        return (not self.only or _matches(name, self.only)) and not _matches(name, self.without)

    def _tool(self, definition: dict[str, Any]) -> AnyTool:
        name, schema = definition["name"], definition.get("inputSchema")
        others = {key: definition[key] for key in ("title", "annotations", "outputSchema") if key in definition}
        refuse_hostile(self.prefix + name, definition.get("description", ""), schema, **others)
        tool = as_tool(
            {
                "name": name,
                "description": definition.get("description") or definition.get("title"),
                "parameters": schema,
            }
        )
        effect, reads = labels(definition.get("annotations"))
        return replace(tool, function=RemoteTool(self, definition), timeout=self.timeout, effect=effect, reads=reads)

    def _unaccepted(self, offered: Sequence[dict[str, Any]]) -> dict[str, str]:
        """Return, by name, why a definition that differs from the accepted one is refused."""
        if self.pins is None:
            return {}
        key = self.key(self.pins)
        if not self._opened and self.accept:
            accepted = [one for one in offered if self.accept is True or one["name"] in self.accept]
            self.pins.accept(key, accepted)
        return {
            name: f"the definition of the tool {name!r} has changed since it was accepted, so the tool is refused until it is accepted again "
            f"(toolspeak mcp accept {f'mcp:{self.address.description}'!r} {name}, or accept=[{name!r}]). What changed:\n{changes}"
            for name, changes in self.pins.changed(key, offered).items()
        }

    def key(self, pins: Pins) -> str:
        """Return the server's key in the lock file: the one under which it is known. Pins under its command as written are
        moved."""
        folder = pins.path.parent
        key = f"mcp:{self.address.seen_from(folder)}"
        pins.adopt(f"mcp:{self.address.description}", key)
        return pins.known_as(key, lambda source: resolved(source, folder))


class RemoteTool:
    """A tool of a server, called by name."""

    def __init__(self, server: Server, definition: Mapping[str, Any]) -> None:
        self.server = server
        self.name: str = definition["name"]
        self.__doc__ = definition.get("description")
        self.__qualname__ = f"{self.name} of {server.address.description}"
        hints: Mapping[str, Any] = definition.get("annotations") or {}
        self.again = bool(hints.get("readOnlyHint") or hints.get("idempotentHint"))

    async def __call__(self, **arguments: Any) -> Any:
        return await background_loop.there(self.server.call(self.name, arguments, again=self.again))


def bearer(address: McpAddress) -> Bearer | None:
    """Return what sends the token of a login, if the server has no key. UsageError if the logins cannot be read."""
    keyed = "@" in urlsplit(address.url).netloc or any(name.lower() == "authorization" for name in address.headers)
    if keyed:
        return None
    from .bearer import Bearer

    logins = Logins(default_path())
    logins.read(address.url)
    return Bearer(address, logins)


def labels(hints: Any) -> tuple[ToolEffect, Origin]:
    """Return a tool's effect and origin from its annotations. Without annotations it counts as writing, and as
    returning untrusted data."""
    known: Mapping[str, Any] = cast("Mapping[str, Any]", hints) if isinstance(hints, Mapping) else {}
    reads: Origin = "trusted" if known.get("openWorldHint") is False else "untrusted"
    if known.get("readOnlyHint") is True:
        return "read", reads
    return "destructive" if known.get("destructiveHint") is True else "write", reads


_CLOSED = -32000
"""The SDK's JSON-RPC code for a closed connection."""


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
