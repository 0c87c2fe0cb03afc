"""`toolspeak chat`: a conversation, turn by turn, kept on disk."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import ToolspeakError, UsageError
from .base import (
    Command,
    approve_option,
    asked_model,
    asker,
    model_option,
    prompt_dialect_option,
    sampling_of,
    sampling_options,
    system_option,
    tools_option,
    typed,
)

if TYPE_CHECKING:
    from ..models.base import Model
    from ..toolbox import Approve, Toolbox
    from ..types import Message
    from ..verbs import Sampled
    from .screen import Out

HELP = """\
/help    this list
/reset   begin a new conversation
/exit    leave (so does Ctrl-D)
Ctrl-C stops an answer; the next one starts where the last whole answer ended."""


@click.command(cls=Command)
@tools_option
@model_option
@prompt_dialect_option
@system_option
@sampling_options
@click.option("-c", "--continue", "go_on", is_flag=True, help="Go on with the last conversation.")
@approve_option
def chat(files: tuple[str, ...], go_on: bool, **given: Any) -> None:
    """Talk with a model that may call your functions.

    \b
    toolspeak chat --tools weather.py
    toolspeak chat --continue --model ollama:NAME
    printf 'Hello!\\nAnd goodbye.\\n' | toolspeak chat

    Each line is a question; /help lists what else can be typed. Conversations are kept as JSON in the
    user's state folder.
    """
    from . import history
    from .files import runnable, toolbox
    from .screen import answers

    with answers(typing=typed()) as out:
        box = runnable(toolbox(files))
        path = history.latest() if go_on else history.new()
        messages = history.read(path) if go_on else []
        ask = asker() if given["approve"] else None
        talk = Talk(out, asked_model(given["model"], given["dialect"]), box, ask, given["system"], path, messages)
        talk.sampling = sampling_of(given)
        if go_on:
            talk.note(f"going on with {path}: {len(messages)} messages")
        elif talk.interactive:
            talk.note(f"{talk.model.name}, {len(box)} tools. /help for help")
        for line in talk.lines():
            if not talk.turn(line):
                break


class Talk:
    """A conversation at its present state."""

    def __init__(
        self,
        out: Out,
        model: Model,
        box: Toolbox,
        approve: Approve | None,
        system: str | None,
        path: Path,
        messages: list[Message],
    ) -> None:
        from .screen import Progress

        self.out, self.model, self.box, self.approve, self.system = out, model, box, approve, system
        self.path, self.messages = path, messages
        self.sampling: Sampled = {}
        self.interactive = typed()
        self.note = Progress().note

    def lines(self) -> Iterator[str]:
        """What is typed, or piped, a line at a time; empty ones are left out."""
        while True:
            try:
                line = self._line()
            except UnicodeDecodeError as error:
                raise UsageError(
                    f"standard input is not UTF-8: {error.reason} at byte {error.start} of a line"
                ) from None
            if line is None:
                return
            if line := line.strip():
                yield line

    def _line(self) -> str | None:
        if self.interactive:
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401 # pyright: ignore[reportUnusedImport] - gives `input` its line editing
            try:
                return input("> ")
            except EOFError:
                self.out.line("")
                return None
        if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
            return None
        raw = sys.stdin.buffer.readline()
        return raw.decode("utf-8") if raw else None

    def turn(self, line: str) -> bool:
        """Answers a line. False when it was the last one."""
        match line.split():
            case ["/exit" | "/quit"]:
                return False
            case ["/help"]:
                self.note(HELP)
            case ["/reset"]:
                from . import history

                self.messages, self.path = [], history.new()
                self.note("a new conversation")
            case [word] if word.startswith("/"):
                self.note(f"there is no {word}.\n{HELP}")
            case _:
                self._answer(line)
        return True

    def _answer(self, line: str) -> None:
        """One question. On a terminal its failure ends the turn, not the conversation."""
        try:
            self._ask(line)
        except KeyboardInterrupt:
            if not self.interactive:
                raise
            self.note("stopped")
        except ToolspeakError as error:
            if not self.interactive:
                raise
            click.echo(f"error: {error}", err=True)

    def _ask(self, line: str) -> None:
        from . import history
        from .turn import Show, answer

        begin: list[Message] = [{"role": "system", "content": self.system}] if self.system and not self.messages else []
        question: list[Message] = [*self.messages, *begin, {"role": "user", "content": line}]
        show = Show(self.out, live=self.out.terminal or not len(self.box), asks=self.approve is not None)
        try:
            reply = answer(question, self.box, show, model=self.model, approve=self.approve, **self.sampling)
        finally:
            self.out.end_line()
        self.messages = reply.messages
        try:
            history.write(self.path, self.messages, self.model.name)
        except OSError as error:
            self.note(f"the conversation cannot be stored in {self.path}: {error.strerror}")
