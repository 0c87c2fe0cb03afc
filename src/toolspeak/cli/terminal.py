"""Output of commands: the answer goes to standard output, everything else to standard error.

On a terminal there is colour, and text from outside cannot move the cursor or change the title: control
characters become visible. Piped, text goes through byte for byte.
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
from ..schema.phrases import beginning

if TYPE_CHECKING:
    from ..types import Note


def json_line(value: Any) -> str:
    """Arguments on one line: from their JSON text if that is JSON, else the text itself with its blanks joined."""
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}")
        except ValueError:
            return " ".join(value.split())
    return json.dumps(value, ensure_ascii=False)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether somebody sees what is written to a stream."""
    return stream is not None and stream.isatty()


def is_fancy(stream: TextIO | None) -> bool:
    """Whether colours may be written to a stream."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def console(stream: TextIO) -> Any:
    """A rich console on a stream, with colours where they may be."""
    from rich.console import Console

    fancy = is_fancy(stream)
    return Console(
        file=stream, force_terminal=fancy, no_color=not fancy, color_system="auto" if fancy else None, emoji=False
    )


class Out:
    """Standard output: what was asked for, and nothing else."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.terminal = stream.isatty()
        self.fancy = is_fancy(stream)
        self.midline = False

    def write(self, text: str) -> None:
        """Text as it comes, at once on a terminal."""
        if text:
            self.stream.write(visible(text) if self.terminal else text)
            self.stream.flush()
            self.midline = not text.endswith("\n")

    def end_line(self) -> None:
        """Ends the line that is open."""
        if self.midline:
            self.write("\n")

    def line(self, text: str, *, before: tuple[str, str] | None = None) -> None:
        """A whole line; `before` is a mark and its colour."""
        if before:
            mark, color = before
            self.stream.write((click.style(mark, fg=color) if self.fancy else mark) + " ")
        self.write(text or "\n")
        self.end_line()

    def json(self, value: Any) -> None:
        """A JSON document on one line."""
        self.line(json.dumps(value, ensure_ascii=False))


@contextlib.contextmanager
def answers(*, typing: bool = False) -> Generator[Out]:
    """Standard output, kept for the answer: what tools and libraries print to it meanwhile goes to standard error.

    With `typing` a terminal stays as it is: line editing wants the real standard output.
    """
    given: TextIO = sys.stdout or io.StringIO()  # None where it was closed
    if typing and given.isatty():
        yield Out(given)
        return
    try:
        given.flush()
        number = given.fileno()
        kept = os.dup(number)
    except (OSError, ValueError):  # no file but a buffer
        with contextlib.redirect_stdout(sys.stderr):
            yield Out(given)
        return
    _point(number, 2)
    stream = open(kept, "w", encoding=given.encoding, errors="backslashreplace")  # noqa: SIM115 - closed below
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield Out(stream)
    finally:
        try:
            stream.flush()
        except OSError:
            _point(kept, None)  # so that closing it does not fail again
            raise
        finally:
            with contextlib.suppress(OSError, ValueError):
                given.flush()
            os.dup2(kept, number)
            stream.close()


def _point(number: int, at: int | None) -> None:
    """Makes a file number mean what another means; nothing at all where that one is closed or None."""
    try:
        os.dup2(at if at is not None else -1, number)
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


class Progress:
    """Standard error: what happens, line by line, and a spinner while there is something to wait for."""

    def __init__(self) -> None:
        self.fancy = is_fancy(sys.stderr)
        self._console: Any = None
        self._status: Any = None

    def waiting(self, text: str = "thinking") -> None:
        """Shows that something goes on, on a terminal, until the next thing is written."""
        if self.fancy and self._status is None:
            self._status = self._on_console().status(f"[dim]{text}[/]", spinner_style="cyan")
            self._status.start()

    def ready(self) -> None:
        """Takes the spinner away."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def line(self, *parts: tuple[str, str]) -> None:
        """A line of (text, style) parts."""
        self.ready()
        if self.fancy:
            from rich.text import Text

            made = Text.assemble(*((visible(text), style) for text, style in parts))
            self._on_console().print(made, soft_wrap=True, highlight=False)
        else:
            text = "".join(text for text, _ in parts)
            on_terminal = is_terminal(sys.stderr)
            click.echo(visible(text) if on_terminal else text, err=True)

    def call(self, name: str, arguments: Any) -> None:
        self.line(("→ ", "cyan"), (name, "bold cyan"), (" " + json_line(arguments), "cyan"))

    def result(self, text: str, *, failed: bool) -> None:
        first, *more = text.splitlines() or [""]
        rest = f" (+ {len(more)} lines)" if more else ""
        self.line(
            ("✗ " if failed else "← ", "red" if failed else "green"),
            (beginning(first, 200), "red" if failed else ""),
            (rest, "dim"),
        )

    def note(self, text: str) -> None:
        self.line((text, "dim"))

    def _on_console(self) -> Any:
        if self._console is None:
            self._console = console(sys.stderr)
        return self._console


def print_notes(notes: Iterable[Note]) -> None:
    """Prints what was noted, a line each, on standard error."""
    progress = Progress()
    for note in notes:
        progress.note(f"note: {note.rule} {note.detail}".rstrip())
