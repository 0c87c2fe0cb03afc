"""Functions of the program that end it: `sys.exit()` and Ctrl-C come out where the program waits, and nothing hangs.

A task that raises such an exception stops its event loop, also one that other threads wait for.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import toolspeak as ts
from replies import calls, native
from toolspeak.drive import run_sync
from toolspeak.events import Event, Finished, TextDelta
from toolspeak.types import Request

TWICE = calls(("remove", {"path": "a"}), ("remove", {"path": "b"}))
removed: list[str] = []


def remove(path: str) -> str:
    """Remove a file."""
    removed.append(path)
    return "removed"


def leave(*_: Any) -> Any:
    sys.exit(3)


def interrupt(*_: Any) -> Any:
    raise KeyboardInterrupt


EXITS: list[tuple[Callable[..., Any], type[BaseException]]] = [(leave, SystemExit), (interrupt, KeyboardInterrupt)]


def forms(ends: Callable[..., Any]) -> Iterator[Callable[[], Any]]:
    """The ways to run calls and other functions of a program, each with one that ends the program."""

    async def later(call: Any) -> Any:
        return ends(call)

    def asked(approve: Any) -> Any:
        return {"tools": [remove], "model": native(TWICE, "Done."), "approve": approve}

    async def streamed() -> None:
        async for _ in ts.astream("go", **asked(ends)):
            pass

    async def inside() -> None:
        ts.run("go", **asked(ends))

    for approve in (ends, later):
        yield lambda approve=approve: ts.run("go", **asked(approve))
        yield lambda approve=approve: list(ts.stream("go", **asked(approve)))
        yield lambda approve=approve: asyncio.run(ts.arun("go", **asked(approve)))
    yield lambda: asyncio.run(streamed())
    yield lambda: asyncio.run(inside())
    yield lambda: ts.generate_checked(native("fine"), ends, "go")
    yield lambda: asyncio.run(ts.agenerate_checked(native("fine"), ends, "go"))


@pytest.mark.parametrize(("ends", "kind"), EXITS)
def test_who_waits_gets_the_exception_and_nothing_runs(
    ends: Callable[..., Any], kind: type[BaseException], recwarn: pytest.WarningsRecorder, caplog: Any
) -> None:
    removed.clear()
    for form in forms(ends):
        with pytest.raises(kind):
            form()
        assert ts.generate(native("fine"), "Still there?") == "fine"
    assert (removed, caplog.text, list(recwarn)) == ([], "", [])


@pytest.mark.parametrize(("ends", "kind"), EXITS)
def test_others_who_wait_for_the_loop_go_on(ends: Callable[..., Any], kind: type[BaseException]) -> None:
    begun, over = threading.Event(), threading.Event()
    answers: list[str] = []

    async def slowly() -> str:
        begun.set()
        while not over.is_set():
            await asyncio.sleep(0)
        return "there"

    other = threading.Thread(target=lambda: answers.append(run_sync(slowly())))
    other.start()
    begun.wait()
    with pytest.raises(kind):
        ts.run("go", tools=[remove], model=native(TWICE), approve=ends)
    over.set()
    other.join()
    assert answers == ["there"]


@pytest.mark.parametrize("ends", [leave, interrupt])
def test_an_exit_in_a_tool_is_its_error(ends: Callable[..., Any]) -> None:
    def outer(path: str) -> str:
        """Ask another model."""
        return ts.run(path, tools=[remove], model=native(TWICE), approve=ends).text

    asking = calls(("outer", {"path": "a"}))
    reply = ts.run("go", tools=[outer], model=native(asking, "Done."))
    (result,) = reply.steps[0].results
    assert (reply.text, isinstance(result.error, ts.ToolError)) == ("Done.", True)


def test_what_waits_for_approval_can_still_be_approved(tmp_path: Path) -> None:
    removed.clear()
    options: Any = {"tools": [remove], "policy": ts.Policy(), "store": tmp_path / "approvals.sqlite"}
    paused = ts.run("go", tools=[remove], model=native(TWICE), policy=ts.Policy())
    with pytest.raises(SystemExit):  # the approved call runs, and the next one ends the program
        ts.resume(paused, {"c0": True, "c1": "no"}, model=native(TWICE), approve=leave, **options)
    with pytest.raises(ts.StaleApproval):  # it was refused
        ts.resume(paused, {"c1": True}, model=native("Done."), **options)
    after = ts.resume(paused, {"c0": True, "c1": "no"}, model=native("Done."), **options)
    assert (removed, after.text) == (["a"], "Done.")


class Slow:
    """A model that never answers its second question."""

    name, capabilities = "slow", frozenset[Any]()

    def __init__(self) -> None:
        self.asked, self.cancelled = 0, 0
        self.waits = threading.Event()

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        self.asked += 1
        if self.asked > 1:
            self.waits.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        yield TextDelta("Done.")
        yield Finished()


def test_rows_that_end_the_program_end_the_batch(tmp_path: Path) -> None:
    model = Slow()

    def rows() -> Iterator[dict[str, str]]:
        for number in range(100):  # more than are read at once
            yield {"id": str(number), "text": "go"}
        model.waits.wait()
        leave()

    with pytest.raises(SystemExit):
        ts.batch(rows(), tmp_path / "out", verb="run", model=model, concurrency=200)
    assert model.cancelled == model.asked - 1
    assert [row["id"] for row in ts.read_batch(tmp_path / "out")] == ["0"]


@pytest.mark.parametrize(("ends", "kind"), EXITS)
def test_progress_that_ends_the_program_ends_the_batch(
    ends: Callable[..., Any], kind: type[BaseException], tmp_path: Path
) -> None:
    rows = [{"id": str(number), "text": "go"} for number in range(9)]
    model: Any = native("Done.", repeat=True)
    with pytest.raises(kind):
        ts.batch(rows, tmp_path / "out", verb="run", model=model, concurrency=1, progress=ends)
    assert len(list(ts.read_batch(tmp_path / "out"))) < len(rows)
