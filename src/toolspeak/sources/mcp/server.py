"""Serves a toolbox as an MCP server with the official SDK, over standard input and output or streamable HTTP on this
machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import sys
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, cast

from ...errors import ApprovalNeeded, MissingExtra, ToolError, ToolTimeout, UsageError
from ...models.http.address import is_loopback
from ...policy.policy import Policy
from ...schema.nonblocking_json import loads_or
from ...tool_results import jsonable, message_of
from ...toolbox import Toolbox
from ...types import Tool
from .error_groups import first_error

if TYPE_CHECKING:
    from mcp.server import Server

LIMIT = 200_000
"""The most characters of a result."""
ERROR = 8_000
"""The most characters of an error."""
PAGE = 500
"""The most tools in one response to `tools/list`."""
BEAT = 5.0
"""Seconds between two progress notifications of a running call, if the client asked for them."""
LAST = 3.0
"""Seconds for running calls to end when the server ends."""
PATH = "/mcp"


def build_server(box: Toolbox, name: str = "toolspeak", policy: Policy | None = None) -> Server[Any]:
    """Return the SDK's server for a box. The box checks arguments, and an exception of a tool becomes an error result.

    With a `policy`, a call runs if the policy allows it, or if it asks and the client's user accepts by elicitation.
    """
    try:
        import mcp.types as t
        from mcp.server import Server
        from mcp.shared.exceptions import MCPError
    except ImportError as error:
        raise MissingExtra("an MCP server needs the official SDK: pip install 'toolspeak[mcp]'") from error
    from ... import __version__
    from .client_approval import AnswerNeeded, PendingQuestions

    questions = PendingQuestions()

    async def list_tools(_: Any, params: Any) -> t.ListToolsResult:
        tools, start = list(box), _start(params.cursor if params else None)
        if start is None or start > len(tools):
            raise MCPError(t.INVALID_PARAMS, f"there is no page {params.cursor!r} of tools")
        page = [
            t.Tool(
                name=tool.name,
                description=tool.description or None,
                input_schema=dict(tool.parameters),
                annotations=_annotations(tool),
            )
            for tool in tools[start : start + PAGE]
        ]
        after = start + PAGE
        return t.ListToolsResult(tools=page, next_cursor=str(after) if after < len(tools) else None)

    async def call_tool(context: Any, params: t.CallToolRequestParams) -> t.CallToolResult | t.InputRequiredResult:
        call = {"id": str(context.request_id or ""), "name": params.name, "arguments": params.arguments or {}}
        approve = questions.approve(context, params) if policy else None
        beating = asyncio.create_task(_beat(context.session))
        try:
            (result,) = await box.arun([call], limit=LIMIT, policy=policy, approve=approve)
        except AnswerNeeded as needed:
            return needed.result
        finally:
            beating.cancel()
        value: Any = result.value
        data = jsonable(value) if isinstance(value, dict) and len(result.text) < LIMIT else None
        text = result.text if result.error is None else _error_text(params.name, result.error, result.text)
        return t.CallToolResult(
            content=[t.TextContent(text=text)], structured_content=data, is_error=result.error is not None
        )

    return Server(name, version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


def _error_text(name: str, error: BaseException, text: str) -> str:
    """The text of a call that failed. What a tool raised may contain secrets, or what `show_errors=False` hides: it is taken
    from `text`, which is what a model reads."""
    if not isinstance(error, ToolError):
        return message_of(error)[:ERROR] + _advice(error)
    fields = loads_or(text, {}).get("error")
    if not fields:
        return text  # it was too long
    kind, message = fields["type"], fields["message"]
    if kind not in (ToolError.__name__, ToolTimeout.__name__):
        return f"the tool {name!r} failed: {kind}: {message}"
    return message if message.startswith("the tool ") else f"the tool {name!r} failed: {message}"


def _advice(error: BaseException) -> str:
    """What to do about a call that nobody could be asked about."""
    if not isinstance(error, ApprovalNeeded):
        return ""
    return (
        ". This client cannot ask its user, since it does not support elicitation: use one that does, or allow the call "
        "in the policy that the server was started with"
    )


def _annotations(tool: Tool[..., Any]) -> Any:
    """Return a tool's effect and origin as MCP annotations; None if it has none."""
    from mcp.types import ToolAnnotations

    if (tool.effect, tool.reads) == ("write", "trusted"):
        return None
    hints = {"readOnlyHint": tool.effect == "read", "destructiveHint": tool.effect == "destructive"}
    return ToolAnnotations.model_validate({**hints, "openWorldHint": tool.reads == "untrusted"})


def _start(cursor: str | None) -> int | None:
    """Return the index at which a page starts; None for an invalid cursor."""
    if cursor is None:
        return 0
    return int(cursor) if cursor.isascii() and cursor.isdecimal() and len(cursor) < 9 else None


async def _beat(session: Any) -> None:
    """Send progress notifications to a client that asked for them, while its call runs."""
    count = 0
    while True:
        await asyncio.sleep(BEAT)
        count += 1
        await session.report_progress(float(count))


# ------------------------------------------------------------------ standard input and output


def serve_stdio(box: Toolbox, name: str = "toolspeak", policy: Policy | None = None) -> None:
    """Serve until standard input ends or a signal arrives. What tools print goes to standard error.

    Raises UsageError if one of both streams is closed, and OSError if standard output cannot be written.
    """
    for stream, which in ((sys.stdin, "input"), (sys.stdout, "output")):
        if stream is None:  # pyright: ignore[reportUnnecessaryComparison] - so it is if it was closed before the start
            raise UsageError(f"standard {which} is closed")
    server = build_server(box, name, policy)
    asyncio.run(_until_signal(lambda: _stdio(server)))


async def _stdio(server: Server[Any]) -> None:
    from mcp.server.stdio import stdio_server

    try:
        async with stdio_server() as (reading, writing):
            # Text that tools print would stay in the buffer and reach the wire later, so it is diverted at once.
            with contextlib.redirect_stdout(sys.stderr):
                await server.run(reading, writing, server.create_initialization_options())
    except BaseExceptionGroup as several:
        raise first_error(several) from None


async def _until_signal(serve: Callable[[], Any]) -> None:
    """Await `serve()`. A signal cancels running calls and ends the process."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    serving = asyncio.create_task(serve())
    waiting = asyncio.create_task(stopped.wait())
    await asyncio.wait([serving, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not stopped.is_set():
        await serving
        return
    others = asyncio.all_tasks() - {asyncio.current_task(), waiting}
    for task in others:
        task.cancel()
    await asyncio.wait(others, timeout=LAST)
    from .. import background_loop

    await asyncio.to_thread(background_loop.leave)
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(0)  # a thread is blocked on standard input and cannot be woken


@contextlib.contextmanager
def quiet() -> Generator[None]:
    """Reserve standard output for the protocol: anything else that is written to it goes to standard error."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        with contextlib.redirect_stdout(sys.stderr):
            yield
        return
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)


# ------------------------------------------------------------------ HTTP


def listen(where: str) -> socket.socket:
    """Return a socket that listens at `HOST:PORT` (or a port) of this machine. Raises UsageError."""
    host, _, port = where.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not re.fullmatch("[0-9]{1,5}", port) or int(port) >= 65_536:
        raise UsageError(f"expected --http HOST:PORT, such as 127.0.0.1:8000; got {where!r}")
    if not is_loopback(host):
        raise UsageError(
            f"{host} can be reached from other machines, and this MCP server requires no key: expected 127.0.0.1, ::1 or "
            "localhost. For access from other machines, put a proxy that requires a key in front of it"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, int(port)))
        listener.listen(128)
    except OSError as error:
        listener.close()
        why = f"cannot listen at {where}: {error.strerror or error}"
        raise UsageError(f"{why}. Choose another port with --http HOST:PORT, where 0 is any free one") from error
    return listener


def serve_http(box: Toolbox, listening: socket.socket, name: str = "toolspeak", policy: Policy | None = None) -> None:
    """Serve at PATH of a socket until a signal arrives."""
    server = build_server(box, name, policy)
    import uvicorn

    app = cast("Any", server.streamable_http_app(streamable_http_path=PATH))
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, ws="none", timeout_graceful_shutdown=int(LAST)
    )

    class Quiet(uvicorn.Server):
        """Uvicorn's server without its handling of signals."""

        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

    async def run() -> None:
        serving = Quiet(config)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, setattr, serving, "should_exit", True)
        await serving.serve(sockets=[listening])

    asyncio.run(run())
