"""Asks on the terminal whether a call may run.

The whole call is shown before the question, and keys that were typed before the question are thrown away. A question that is
cancelled (Ctrl-C) reads no more of what is typed.
"""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from ..display import unhidden
from ..errors import UsageError
from ..schema.nonblocking_json import loads_or
from .options import typed
from .terminal import is_terminal, json_line

if TYPE_CHECKING:
    from ..approvals import Approval, Approve
    from ..types import ToolCall

LONG = 2_000
"""A call that is longer, in characters, or does not fit on the screen, is shown over several lines, a page at a time."""
QUIET = 0.05
"""Seconds without input after which a question is asked: a long paste arrives in pieces."""
KEYS = "[y/n/e=edit/a=always]"
HELP = "y: run it, n: do not run it, e: edit the arguments and run it, a: run this tool without asking in this session, if the reason is the same"
DECLINED = "the user declined"


def asker(option: str = "--approve") -> Approve:
    """Return a callback that asks on the terminal about each call. Raises UsageError if there is no terminal.

    Keys that were typed before a question do not count as its answer: they are thrown away.
    """
    name = os.ttyname(sys.stdin.fileno()) if typed() else os.ctermid()
    try:
        terminal = open(name, "r+b", buffering=0)  # noqa: SIM115 - open as long as the program is
    except OSError:
        raise UsageError(f"{option} needs a terminal to ask on, and there is none") from None
    return Approver(terminal).ask


class Approver:
    """Asks the person at the terminal, and remembers the tools that they allowed for this session."""

    def __init__(self, terminal: BinaryIO) -> None:
        self.terminal = terminal
        self._always: set[tuple[str, str]] = set()

    async def ask(self, call: ToolCall) -> Approval:
        """Ask about one call and return the answer."""
        why = next((note.detail for note in call.notes if note.rule == "asked-about"), "")
        if (call.name, why) in self._always:
            return True
        while await self._present(call, f"{why}\n" if why else ""):
            match await self._read(f"? {KEYS} "):
                case "y" | "yes":
                    return True
                case "n" | "no" | None:
                    return DECLINED
                case "a" | "always":
                    self._always.add((call.name, why))
                    return True
                case "e" | "edit":
                    if answer := await self._edited(call):
                        return answer
                case other:  # neither a yes nor a no
                    self._explain(other)
        return DECLINED

    def _explain(self, answer: str) -> None:
        """Say which answers there are, to who asks for it or typed another one."""
        wrong = "" if answer in ("?", "h", "help") else f"{_quoted(answer)} is no answer. "
        self._write(f"{wrong}{HELP}\n")

    async def _present(self, call: ToolCall, why: str) -> bool:
        """Print the whole call. Return False if the person refused it before its end."""
        self._discard_input()  # its echo would move the call off the screen
        columns, lines = self._size()
        line = f"{why}run {call.name} {json_line(call.arguments)} "
        if len(line) <= LONG and len(list(_rows(f"{line}? {KEYS} ", columns))) < lines:
            self._write(line)
            return True
        text = json.dumps(call.arguments, ensure_ascii=False, indent=1)
        whole = f"{why}run {call.name}, {len(text):,} characters of arguments:\n{text}"
        pages = list(_pages(list(_rows(whole, columns)), max(lines - 5, 5)))
        for number, page in enumerate(pages, 1):
            self._write("\n".join(page) + "\n")
            if number < len(pages) and not await self._goes_on(f"-- page {number} of {len(pages)}"):
                return False
        self._write(f"run {call.name} with these arguments ")
        return True

    async def _goes_on(self, place: str) -> bool:
        """Ask until the answer is Enter, or a refusal."""
        while answer := await self._read(f"{place}: Enter goes on, n refuses -- "):
            if answer in ("n", "no"):
                return False
            self._write(f"{_quoted(answer)} is no answer\n")
        return answer is not None

    def _size(self) -> tuple[int, int]:
        """Return the columns and the lines of the terminal."""
        size = os.get_terminal_size(self.terminal.fileno())
        return max(size.columns or 80, 20), size.lines or 24

    async def _edited(self, call: ToolCall) -> Approval | None:
        """Ask for other arguments. Return None, after an explanation, if what is typed is no JSON object."""
        from ..approvals import Edit

        text = await self._read(f"arguments as JSON, instead of {json_line(call.arguments)}: ", lower=False)
        if text is None:
            return DECLINED
        arguments = loads_or(text, None)
        if isinstance(arguments, dict):
            return Edit(cast("dict[str, Any]", arguments))
        self._write(f"expected a JSON object, received {_quoted(text)}\n")
        return None

    def _write(self, text: str) -> None:
        self.terminal.write("\n".join(map(unhidden, text.split("\n"))).encode("utf-8", "replace"))

    async def _read(self, question: str, *, lower: bool = True) -> str | None:
        """Ask, and return the line that is typed after the question, None at the end of the input."""
        from asyncio import sleep

        self._discard_input()
        self._write(question)
        while not self._typed(0):
            await sleep(QUIET)
        line = self.terminal.readline()
        if not line.endswith(b"\n"):  # a line that the end of the input cut is no answer
            self._write("\n")
            return None
        answer = line.decode("utf-8", "replace").strip()
        return answer.lower() if lower else answer

    def _discard_input(self) -> None:
        """Throw away what was typed, until nothing more arrives."""
        import termios  # there is no other terminal than one that has it: see above

        number, more = self.terminal.fileno(), True
        while more:
            termios.tcflush(number, termios.TCIFLUSH)
            more = self._typed(QUIET)
        termios.tcflush(number, termios.TCIFLUSH)  # the beginning of a line, which is not waited for

    def _typed(self, seconds: float) -> bool:
        """Whether a line, or the end of the input, can be read within so many seconds."""
        import select

        return bool(select.select([self.terminal.fileno()], [], [], seconds)[0])


def _quoted(answer: str) -> str:
    """Return the beginning of what was typed, or what stands for nothing."""
    return repr(answer[:80]) if answer else "an empty line"


def _rows(text: str, columns: int) -> Iterator[str]:
    """Yield the rows in which a terminal shows a text, with everything visible. Letters that may be wide count twice."""
    for line in text.split("\n"):
        row, width = "", 0
        for character in unhidden(line).expandtabs():
            wide = 2 if unicodedata.east_asian_width(character) in "WFA" else 1
            if width + wide > columns:
                yield row
                row, width = "", 0
            row, width = row + character, width + wide
        yield row


def _pages(lines: Sequence[str], size: int) -> list[Sequence[str]]:
    return [lines[at : at + size] for at in range(0, len(lines), size)]


def approver(policy: object, *, approve: bool, as_json: bool = False) -> Approve | None:
    """Return who is asked about calls, None for nobody.

    With `approve`, the person at the terminal, which must exist. With a policy alone, the person who sees standard
    error there, if it is a terminal.
    """
    if approve:
        return asker()
    if as_json or policy is None:
        return None
    return asker("--policy") if is_terminal(sys.stderr) else None
