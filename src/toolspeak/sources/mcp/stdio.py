"""Starts an MCP server, exchanges lines with it over standard input and output within limits, and ends it if it does not
exit itself."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

from ...api.json_stream import paired
from ...display import visible
from ...schema.value_count import has_more
from .limits import LARGEST, PARTING, VALUES, flood

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

GRACE = 2.0
"""Seconds for a process to end once its input is closed, again once it was asked to, and half of it once it was
killed."""
ID = re.compile(r'"id"\s*:\s*(\d{1,15})\b')
HEAD = 200
"""Characters of an invalid message in which its method is searched: the SDK's own ids are numbers."""
LAST_WORDS = 4 * LARGEST
"""The most bytes that a server may write while it ends."""


@asynccontextmanager
async def by_stdio(
    command: Sequence[str],
    env: Mapping[str, str],
    cwd: str | None,
    errors: TextIO,
    ended: Callable[[str], None],
) -> AsyncGenerator[TransportStreams]:
    """Yield the message streams from and to a server that is started here, and has ended at the exit. `ended` is called
    with the reason if its output cannot be read any further."""
    import anyio
    from mcp.client.stdio import get_default_environment

    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=errors,
        env=get_default_environment() | dict(env),
        cwd=cwd,
        limit=LARGEST,
        start_new_session=True,
    )
    arriving, reading = anyio.create_memory_object_stream[Any](0)
    writing, leaving = anyio.create_memory_object_stream[Any](0)
    tasks = [
        asyncio.create_task(_read(process, arriving, ended)),
        asyncio.create_task(_write(process, leaving, arriving)),
    ]
    try:
        yield reading, writing
    finally:
        reading.close()
        writing.close()
        try:
            await _end(process, tasks)
        finally:
            arriving.close()
            leaving.close()


async def _read(process: asyncio.subprocess.Process, arriving: Any, ended: Callable[[str], None]) -> None:
    """Pass on each line of a server as a message, or as an error if it is not one."""
    import anyio
    from mcp.shared.message import SessionMessage

    stdout, written = cast("asyncio.StreamReader", process.stdout), flood()
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with arriving:
            while True:
                try:
                    line = await stdout.readline()
                except ValueError:
                    return ended(f"it wrote a line of more than {LARGEST:,} bytes")
                if not line:
                    return None
                if written.exceeded(len(line)):
                    return ended(f"it wrote more than {written.most:,} bytes in a minute")
                try:
                    message: Any = SessionMessage(_message(line))
                except ValueError as error:
                    message = error
                await arriving.send(message)
    return None


def _message(line: bytes) -> Any:
    """Return the message in a line. One that is too large is an error for the request that waits for it. Half a character becomes U+FFFD: some servers cut texts inside of one. A response that
    cannot be read becomes an error for the request that waits for it. Raises ValueError."""
    from mcp.types import jsonrpc_message_adapter

    if has_more(text := line.decode("utf-8", "replace"), VALUES):
        return _error(text, f"the server's response has more than {VALUES:,} values")
    with contextlib.suppress(ValueError):
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    text = paired(text)
    try:
        return jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        return _error(text, f"the server's response is not valid: {visible(text[:HEAD])}")


def _error(text: str, why: str) -> Any:
    """Return an error response to the request that a message answers. Raises ValueError if it is no response."""
    from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError

    key = ID.search(text)
    if key is None or '"method"' in text[:HEAD]:
        raise ValueError(why)
    return JSONRPCError(jsonrpc="2.0", id=int(key[1]), error=ErrorData(code=PARSE_ERROR, message=why))


async def _write(process: asyncio.subprocess.Process, leaving: Any, arriving: Any) -> None:
    """Write each message to a server as a line."""
    stdin = cast("asyncio.StreamWriter", process.stdin)
    try:
        async for item in leaving:
            text: str = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            stdin.write(text.encode() + b"\n")
            await stdin.drain()
    except OSError:
        await arriving.aclose()  # fail the requests that wait for an answer
    finally:
        with contextlib.suppress(OSError):
            stdin.close()


async def _end(process: asyncio.subprocess.Process, tasks: Sequence[asyncio.Task[None]]) -> None:
    """End a server: close its input, then terminate it, then kill it, each time with its child processes. Its remaining
    output is discarded."""
    reader, writer = tasks
    reader.cancel()
    drained: asyncio.Task[bool] | None = None
    try:
        await asyncio.wait([reader])
        drained = asyncio.create_task(_drained(cast("asyncio.StreamReader", process.stdout)))
        await asyncio.wait([writer], timeout=PARTING / 2)
        writer.cancel()
        await asyncio.wait([writer])
        for sign, grace in ((None, GRACE), (signal.SIGTERM, GRACE), (signal.SIGKILL, GRACE / 2)):
            if sign is not None:
                _signal(process, sign)
            if await _is_over(process, grace, drained):
                return
    finally:
        if process.returncode is None:
            _signal(process, signal.SIGKILL)
        if drained is not None:
            drained.cancel()
        transport: Any = getattr(process, "_transport", None)
        if transport is not None:
            transport.close()


async def _is_over(process: asyncio.subprocess.Process, grace: float, drained: asyncio.Task[bool]) -> bool:
    """Whether a process ends in time; a process that keeps writing does not. `wait` would also wait for children that
    hold its output."""
    end = asyncio.get_running_loop().time() + grace
    while process.returncode is None and asyncio.get_running_loop().time() < end:
        if drained.done() and drained.result():
            break
        await asyncio.sleep(0.01)
    return process.returncode is not None


async def _drained(stdout: asyncio.StreamReader) -> bool:
    """Reads on, so that a server that still writes can end; whether it does not leave off."""
    left = LAST_WORDS
    with contextlib.suppress(OSError, ValueError):
        while part := await stdout.read(65_536):
            left -= len(part)
            if left < 0:
                return True
    return False


def _signal(process: asyncio.subprocess.Process, sign: int) -> None:
    """Send a signal to a process and its children."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.terminate()
        else:
            os.killpg(process.pid, sign)
