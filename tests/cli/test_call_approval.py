"""What a terminal shows of a call before the question, and what counts as an answer."""

from __future__ import annotations

import asyncio
import codecs
import fcntl
import os
import struct
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from toolspeak.cli import call_approval
from toolspeak.cli.call_approval import KEYS, Approver
from toolspeak.display import unhidden
from toolspeak.types import ToolCall

COLUMNS, LINES = 80, 24
PAGE = "n refuses -- "


class Screen:
    """The other end of a terminal."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.text = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")()

    def until(self, *ends: str) -> str:
        """Read until one of these has come, and return what came since the last time."""
        while not any(end in self.text for end in ends):
            self.text += self.decoder.decode(os.read(self.number, 65_536))
        text, self.text = self.text, ""
        return text

    def type(self, keys: str) -> None:
        os.write(self.number, keys.encode())


@contextmanager
def asking(call: ToolCall, early: Callable[[Screen], object] = lambda _: None) -> Iterator[tuple[Screen, list[Any]]]:
    """Yield the screen of a terminal on which somebody is asked about a call, and a list for the answer."""
    outside, inside = os.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    screen, answers = Screen(outside), list[Any]()
    try:
        with Path(os.ttyname(inside)).open("r+b", buffering=0) as terminal:
            early(screen)
            work = threading.Thread(
                target=lambda: answers.append(asyncio.run(Approver(terminal).ask(call))), daemon=True
            )
            work.start()
            yield screen, answers
            work.join(60)
    finally:
        os.close(inside)
        os.close(outside)


def rows(text: str) -> int:
    """The rows that a text takes on the screen, if each letter from outside ASCII is as wide as two."""
    widths = (sum(1 + (not letter.isascii()) for letter in line) for line in text.replace("\r", "").split("\n"))
    return sum(max(1, -(-width // COLUMNS)) for width in widths)


@pytest.mark.parametrize(
    "value", ["x" * 1900, "漢" * 1900, "漢" * 3000, "\u202e" * 1900, "\u3164" * 900, "a b " * 2000]
)
def test_no_part_of_a_call_leaves_the_screen_before_it_is_answered(value: str) -> None:
    with asking(ToolCall("1", "remove_everything", {"path": value})) as (screen, answers):
        shown = pages = 0
        while True:
            text = screen.until(PAGE, f"{KEYS} ")
            assert rows(text) <= LINES
            assert pages or "run remove_everything" in text
            pages, shown = pages + 1, shown + text.count(unhidden(value[0])[-1])
            if f"{KEYS} " in text:
                break
            screen.type("\n")
        screen.type("y\n")
    assert answers == [True]
    assert shown >= value.count(value[0])


@pytest.mark.parametrize(
    "letter", "\u3164\u115f\u1160\uffa0\u2800\u034f\u17b4\ufe0f\u180b\U000e0100\U000e01ef\u200b\u202e\u00ad\U000e0041"
)
def test_what_cannot_be_seen_is_written_out(letter: str) -> None:
    with asking(ToolCall("1", "remove", {"path": f"a{letter}b"})) as (screen, answers):
        assert ascii(f"a{letter}b")[1:-1] in screen.until(f"{KEYS} ")
        screen.type("n\n")
    assert answers == ["the user declined"]


@pytest.mark.parametrize("paste", ["y\n" * 5, "y\n" * 5_000, "y\n" * 3_000 + "y"])
def test_a_paste_is_no_answer(paste: str) -> None:
    """A terminal takes no more than some thousand letters at a time; the rest of a paste comes after that is read."""

    def early(screen: Screen) -> None:
        threading.Thread(target=screen.type, args=(paste,), daemon=True).start()

    with asking(ToolCall("1", "remove", {"path": "a"}), early) as (screen, answers):
        screen.until(f"{KEYS} ")
        assert answers == []
        screen.type("n\n")
    assert answers == ["the user declined"]


def test_what_arrives_while_the_input_is_discarded_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A paste that comes in pieces: each time the input is empty, a little later the next piece is there."""
    outsides: list[Screen] = []
    pieces, discard = iter(["y\n"] * 6), termios.tcflush

    def flush(number: int, queue: int) -> None:
        discard(number, queue)
        if piece := next(pieces, ""):
            outsides[0].type(piece)

    monkeypatch.setattr(termios, "tcflush", flush)
    monkeypatch.setattr(call_approval, "QUIET", 0.5)  # a busy machine takes its time to pass a piece on
    with asking(ToolCall("1", "remove", {"path": "a"}), outsides.append) as (screen, answers):
        screen.until(f"{KEYS} ")
        assert answers == []
        screen.type("n\n")
    assert answers == ["the user declined"]


def test_a_cancelled_question_reads_no_more() -> None:
    """What is typed after Ctrl-C is for the conversation."""
    outside, inside = os.openpty()
    screen = Screen(outside)

    async def main() -> bytes:
        with Path(os.ttyname(inside)).open("r+b", buffering=0) as terminal:
            question = asyncio.create_task(Approver(terminal).ask(ToolCall("1", "remove", {"path": "a"})))
            await asyncio.to_thread(screen.until, "[y/n")
            question.cancel()
            await asyncio.wait([question])
            screen.type("hello\n")
            return await asyncio.to_thread(terminal.readline)

    try:
        assert asyncio.run(main()) == b"hello\n"
    finally:
        os.close(inside)
        os.close(outside)
