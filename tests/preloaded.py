"""Runs `toolspeak`, or pytest, in a copy of a process that has loaded it already: loading is most of what a short command costs.

A copy is a process of its own, with files for its standard streams, the caller's folder and environment. What Python
itself reads from the environment when it starts is that of the process that was copied: `fits` says where this matters.
Needs an operating system with `fork`.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import importlib
import os
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryFile
from typing import IO, Any, Self

import toolspeak

READ_AT_START = ("PYTHON", "LANG", "LC_")
LOADED = [
    "toolspeak.__main__",
    "toolspeak.cli.command_group",
    "toolspeak.cli.doctor_checks",
    "toolspeak.cli.tool_sources",
    "toolspeak.cli.run_view",
    "toolspeak.models.embedded.local",
    "toolspeak.evals.runner",
    "toolspeak.models.fallback",
    "toolspeak.models.http.public_only",
    "toolspeak.search.paged_results",
    "toolspeak.sources.mcp",
    "toolspeak.verbs",
    "toolspeak.gateway.app",
    "toolspeak.gateway.serve.server",
    "toolspeak.schema.adapter",
    *(f"toolspeak.dialects.{file.stem}" for file in Path(toolspeak.__path__[0], "dialects").glob("[a-z]*.py")),
    "aiohttp",
    "docstring_parser",
    "jsonschema_rs",
    "mcp.server.mcpserver",
    "mcp_types._v2025_11_25",
    "mcp_types._v2026_07_28",
    "pydantic.type_adapter",
    "pytest",
    "rich.console",
    "uvicorn",
]
"""What most commands load, and what that loads."""

_processes = get_context("forkserver")
_processes.set_forkserver_preload(LOADED)


def fits(env: Mapping[str, str]) -> bool:
    """Whether a copy can run with these more variables."""
    return not any(name.startswith(READ_AT_START) for name in env)


def run(
    args: Sequence[str], stdin: bytes, env: Mapping[str, str], seconds: float, **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """A finished command with its output. Raises TimeoutExpired; the process is gone then."""
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        process = Started(args, stdin=given.fileno(), stdout=out.fileno(), stderr=err.fileno(), env=env, **options)
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        return subprocess.CompletedProcess(list(args), code, _written(out), _written(err))


def _written(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


class Started:
    """A command that runs. Has what tests use of a `subprocess.Popen`, and takes what they give one.

    `main` is the function that the command calls, `toolspeak`'s if none is named.
    With `terminal` what it says is on the terminal that controls it, and its session is its own.
    """

    def __init__(
        self,
        args: Sequence[str | bytes],
        *,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        text: bool = False,
        start_new_session: bool = False,
        terminal: bool = False,
        main: str = "toolspeak.cli:main",
    ) -> None:
        self.args = [os.fsdecode(arg) for arg in args]
        self.returncode: int | None = None
        pipes: list[IO[Any] | None] = []
        sent: list[Connection] = []
        for number, given in enumerate((stdin, stdout, stderr)):
            theirs, ours = _stream(number, given)
            sent.append(Connection(theirs))
            mode = ("w" if number == 0 else "r") + ("" if text else "b")
            pipes.append(None if ours is None else os.fdopen(ours, mode, encoding="utf-8" if text else None))
        self.stdin, self.stdout, self.stderr = pipes
        session = start_new_session or terminal
        environment = dict(os.environ if env is None else env)
        self._process = _processes.Process(
            target=_main, args=(self.args, str(cwd or Path.cwd()), environment, sent, session, terminal, main)
        )
        self._process.start()
        self.pid = self._process.pid or 0
        for stream in sent:
            stream.close()

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        if self.returncode is None and self._process.exitcode is not None:
            self.returncode = self._process.exitcode
            self._process.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code when it has ended. Raises TimeoutExpired."""
        if self.poll() is None:
            self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Sends a signal to a process that runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, given: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        """Its output and what it said beside it, when it has ended. Raises TimeoutExpired."""
        end = None if timeout is None else time.monotonic() + timeout
        said: dict[str, Any] = {}

        def read(name: str, stream: IO[Any]) -> None:
            said[name] = stream.read()

        both = {"stdout": self.stdout, "stderr": self.stderr}
        streams = {name: stream for name, stream in both.items() if stream is not None and not stream.closed}
        reading = [threading.Thread(target=read, args=one, daemon=True) for one in streams.items()]
        for thread in reading:
            thread.start()
        if self.stdin is not None and not self.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                if given:
                    self.stdin.write(given)
                self.stdin.close()
        for thread in reading:
            thread.join(None if end is None else max(0.0, end - time.monotonic()))
            if thread.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
        self.wait(None if end is None else max(0.1, end - time.monotonic()))
        for stream in streams.values():
            stream.close()
        return said.get("stdout"), said.get("stderr")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()


@contextlib.contextmanager
def mcp_server(tools: Path) -> Iterator[str]:
    """The address of an MCP server over HTTP with the functions of a file, in a process of its own."""
    command = ["mcp", "--tools", str(tools), "--http", "127.0.0.1:0"]
    with Started(command, stderr=subprocess.PIPE, text=True, cwd=tools.parent) as server:
        try:
            yield (server.stderr.readline() if server.stderr else "").split()[-1]
        finally:
            server.terminate()


def _stream(number: int, given: int | None) -> tuple[int, int | None]:
    """The end of a standard stream that the process gets, and ours where it is a pipe."""
    if given == subprocess.PIPE:
        read, write = os.pipe()
        return (read, write) if number == 0 else (write, read)
    if given == subprocess.DEVNULL:
        return os.open(os.devnull, os.O_RDWR), None
    return os.dup(number if given is None else given), None


def _main(
    args: list[str],
    folder: str,
    env: dict[str, str],
    streams: list[Connection],
    session: bool,
    terminal: bool,
    main: str,
) -> None:
    """What the copy does: it becomes `python -m toolspeak`, or that of another function's package, with these arguments."""
    if session:
        os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
        stream.close()
    if terminal:
        fcntl.ioctl(2, termios.TIOCSCTTY, 0)
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        old = getattr(sys, f"__{name}__")
        lines = 1 if name == "stderr" else -1  # as Python itself has it
        made = open(number, mode, lines, encoding=old.encoding, errors=old.errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, made)
        setattr(sys, f"__{name}__", made)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    sys.path[0] = folder
    package = main.partition(":")[0].partition(".")[0]
    sys.argv = [str(importlib.import_module(f"{package}.__main__").__file__), *args]
    try:
        sys.exit(resolve_name(main)())
    finally:
        atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportAttributeAccessIssue]
