"""Writes the output of commands: the answer to standard output, everything else to standard error.

On a terminal there is color, and control characters from outside are made visible, so that they cannot move the cursor
or change the title. Piped text is passed through byte for byte.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Any, TextIO

import click

from ..display import visible
from ..schema.phrases import beginning, number_of

if TYPE_CHECKING:
    from ..types import Note

LINE = 1_000
"""The most characters of a call's arguments, or of an error, in a line of progress."""


def json_line(value: Any) -> str:
    """Return arguments on one line: as compact JSON, or with blanks collapsed if they are not JSON."""
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}")
        except ValueError:
            return " ".join(value.split())
    return json.dumps(value, ensure_ascii=False)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether the stream is a terminal."""
    return stream is not None and stream.isatty()


def is_fancy(stream: TextIO | None) -> bool:
    """Whether colors may be written to the stream."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def console(stream: TextIO) -> Any:
    """Return a rich console on a stream, with colors if they are allowed."""
    from rich.console import Console

    fancy = is_fancy(stream)
    return Console(
        file=stream, force_terminal=fancy, no_color=not fancy, color_system="auto" if fancy else None, emoji=False
    )


def to_stderr(text: str) -> None:
    """Write a line to standard error; on a terminal, control characters are visible."""
    click.echo(visible(text) if is_terminal(sys.stderr) else text, err=True)


class Out:
    """Standard output, which gets the answer and nothing else."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.terminal = stream.isatty()
        self.fancy = is_fancy(stream)
        self.midline = False

    def write(self, text: str) -> None:
        """Write text, at once on a terminal."""
        if text:
            self.stream.write(visible(text) if self.terminal else text)
            self.stream.flush()
            self.midline = not text.endswith("\n")

    def end_line(self) -> None:
        """End the current line, if one is open."""
        if self.midline:
            self.write("\n")

    def line(self, text: str, *, before: tuple[str, str] | None = None) -> None:
        """Write a whole line; `before` is a mark and its color."""
        if before:
            mark, color = before
            self.stream.write((click.style(mark, fg=color) if self.fancy else mark) + " ")
        self.write(text or "\n")
        self.end_line()

    def json(self, value: Any) -> None:
        """Write a JSON document on one line."""
        self.line(json.dumps(value, ensure_ascii=False))


@contextlib.contextmanager
def answers(*, typing: bool = False) -> Generator[Out]:
    """Reserve standard output for the answer: what tools and libraries print meanwhile goes to standard error.

    With `typing`, a terminal is left alone, because line editing needs the real standard output.
    """
    stdout: TextIO = sys.stdout or io.StringIO()  # None if it was closed before the start
    if typing and stdout.isatty():
        yield Out(stdout)
        return
    try:
        stdout.flush()
        number = stdout.fileno()
        copy = os.dup(number)
    except (OSError, ValueError):  # a buffer without a file descriptor
        with contextlib.redirect_stdout(sys.stderr):
            yield Out(stdout)
        return
    _point(number, 2)
    stream = open(copy, "w", encoding=stdout.encoding, errors="backslashreplace")  # noqa: SIM115 - closed below
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield Out(stream)
    finally:
        try:
            stream.flush()
        except OSError:
            _point(copy, None)  # so that `close` does not fail again
            raise
        finally:
            with contextlib.suppress(OSError, ValueError):
                stdout.flush()
            os.dup2(copy, number)
            stream.close()


def _point(number: int, at: int | None) -> None:
    """Make a file descriptor a copy of another one, or of the null device if that one is closed or None."""
    try:
        os.dup2(at if at is not None else -1, number)
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


class Progress:
    """Standard error: a line for each thing that happens, and a spinner during waits."""

    def __init__(self, rest: str = "") -> None:
        """`rest` says where to find the rest of what is shortened, such as `--json has all of it`."""
        self.fancy = is_fancy(sys.stderr)
        self.rest = f"; {rest}" if rest else ""
        self._console: Any = None
        self._status: Any = None

    def waiting(self, text: str = "thinking") -> None:
        """Show a spinner on a terminal until the next line is written."""
        if self.fancy and self._status is None:
            self._status = self._on_console().status(f"[dim]{text}[/]", spinner_style="cyan")
            self._status.start()

    def ready(self) -> None:
        """Remove the spinner."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def line(self, *parts: tuple[str, str]) -> None:
        """Write a line of (text, style) parts."""
        self.ready()
        if self.fancy:
            from rich.text import Text

            line = Text.assemble(*((visible(text), style) for text, style in parts))
            self._on_console().print(line, soft_wrap=True, highlight=False)
        else:
            to_stderr("".join(text for text, _ in parts))

    def call(self, name: str, arguments: Any) -> None:
        text, rest = self._shortened(json_line(arguments))
        self.line(("→ ", "cyan"), (name, "bold cyan"), (f" {text}", "cyan"), (rest, "dim"))

    def result(self, text: str, *, failed: bool) -> None:
        first, *more = text.splitlines() or [""]
        line, rest = self._shortened(first, LINE if failed else 200)
        if more:
            rest += f" (+ {number_of(len(more), 'line')})"
        self.line(
            ("✗ " if failed else "← ", "red" if failed else "green"), (line, "red" if failed else ""), (rest, "dim")
        )

    def _shortened(self, text: str, at_most: int = LINE) -> tuple[str, str]:
        """Return the beginning of a text that is too long, and how long it is; otherwise the text and ""."""
        if len(text) <= at_most:
            return text, ""
        return beginning(text, at_most), f" ({len(text):,} characters{self.rest})"

    def note(self, text: str) -> None:
        self.line((text, "dim"))

    def _on_console(self) -> Any:
        if self._console is None:
            self._console = console(sys.stderr)
        return self._console


def print_notes(notes: Iterable[Note]) -> None:
    """Print notes to standard error, one per line."""
    progress = Progress()
    for note in notes:
        progress.note(f"note: {note.rule} {note.detail}".rstrip())


def time_text(seconds: float) -> str:
    """Return a time for people: `1:05 min`, `12 min`, `2 h 05 min`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"{hours} h {minutes:02d} min" if hours else f"{minutes} min" if minutes >= 10 else f"{minutes}:{rest:02d} min"
    )
