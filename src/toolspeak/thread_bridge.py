"""Runs async work on a loop in another thread, and lets that work run functions in the calling thread.

Some objects belong to the thread that created them, such as a generator that the caller passed in.
"""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from .drive import start_on, waiting_loop
from .loop_thread import Loop

T = TypeVar("T")

Here = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a function in the calling thread, and returns its result."""


def run_sync_here(work: Callable[[Here], Coroutine[Any, Any, T]], stop: Callable[[], None]) -> T:
    """As `run_sync`, for work that runs functions in the waiting thread, for example to read the caller's iterator.

    The first Ctrl-C calls `stop` on the loop and waits for the result, then it is raised with the result as its message.
    The second cancels the work and is raised at once, and so is what else ends the program, such as `sys.exit()` in a
    function that runs here.
    """
    wanted: queue.SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None] = queue.SimpleQueue()

    async def here(do: Callable[[], Any]) -> Any:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        wanted.put((do, future))
        return await future

    async def main() -> T:
        try:
            return await work(here)
        finally:
            wanted.put(None)
            wanted.put(None)  # for the wait that follows, if Ctrl-C comes after the first one was read

    with waiting_loop() as on:
        task, done = start_on(on, main())
        interrupted = False
        while True:
            try:
                if (job := wanted.get()) is None:
                    done.wait()
                    result = task[0].result()
                    break
                _settle(on, *job)
            except BaseException as error:
                if done.is_set():  # it is the error of the work
                    raise
                if isinstance(error, KeyboardInterrupt) and not interrupted:
                    interrupted = True
                    on.loop.call_soon_threadsafe(stop)
                    continue
                on.loop.call_soon_threadsafe(task[0].cancel)
                done.wait(5)
                raise
    if interrupted:
        raise KeyboardInterrupt(str(result))
    return result


def _settle(on: Loop, do: Callable[[], Any], future: asyncio.Future[Any]) -> None:
    """Runs a function in this thread, and passes its result to the loop that awaits it."""
    value: Any = None
    failed: BaseException | None = None
    try:
        value = do()
    except Exception as error:  # noqa: BLE001 - raised where it is waited for
        failed = error

    def settle() -> None:
        if future.done():
            return
        if failed is None:
            future.set_result(value)
        else:
            future.set_exception(failed)

    on.loop.call_soon_threadsafe(settle)
