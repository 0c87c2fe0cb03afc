"""What the tests of the command line work with: the command, a tools file, a terminal, a reply that is a call."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import preloaded

TOOLSPEAK = [sys.executable, "-m", "toolspeak"]

WEATHER = '''\
"""Tools for the tests."""

import os
import time
from typing import Literal

from toolspeak import tool


@tool
def weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """Get the current weather in a city.

    Args:
        city: The city, e.g. Beijing
    """
    return f"Sunny in {city}, 21 °C"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def noisy(word: str) -> dict[str, str]:
    """Prints a lot, in every way there is."""
    print("printed")
    os.write(1, b"written")
    os.system("echo from a child")
    return {"word": word}


def broken(word: str) -> str:
    """Always fails."""
    raise RuntimeError(f"no {word} today")


def slow(seconds: float) -> str:
    """Takes its time."""
    print("begun", flush=True)
    time.sleep(seconds)
    return "done"


def _hidden() -> None: ...
'''

ANSI = re.compile(r"\x1b")

Cli = Callable[..., subprocess.CompletedProcess[str]]


class Terminal:
    """A process on a terminal of its own."""

    def __init__(self, *args: str, stdin: int | None = None, stdout: int | None = None, **env: str) -> None:
        self.master, slave = pty.openpty()
        self.seen = ""
        self.process = preloaded.Started(
            args,
            stdin=slave if stdin is None else stdin,
            stdout=slave if stdout is None else stdout,
            stderr=slave,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", **env},
            terminal=True,
        )
        os.close(slave)

    def until(self, text: str, seconds: float = 600) -> str:
        """What came up to and with `text`."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            if not self._more(end - time.monotonic()):
                raise AssertionError(f"{text!r} did not come; what came: {self.seen!r}")
        before, _, self.seen = self.seen.partition(text)
        return before + text

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def end(self, seconds: float = 600) -> tuple[int, str]:
        """The exit code, and all that came since `until`."""
        end = time.monotonic() + seconds
        while self._more(end - time.monotonic()):
            pass
        return self.process.wait(max(0.1, end - time.monotonic())), self.seen

    def _more(self, seconds: float) -> bool:
        if seconds <= 0 or not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            piece = os.read(self.master, 65536)
        except OSError:  # the other end is closed
            return False
        self.seen += piece.decode("utf-8", "replace")
        return bool(piece)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)


def wants(tool: str, **arguments: object) -> str:
    """A reply that is a call."""
    return json.dumps({"tool": tool, "tool_input": arguments})
