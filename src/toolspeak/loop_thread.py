"""An event loop in a thread of its own, which outlives whatever runs on it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading

from .running import EXITS


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self, name: str = "toolspeak-loop") -> None:
        self.pid = os.getpid()
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._main, name=name, daemon=True)
        self.thread.start()
        self.ready.wait()

    def _main(self) -> None:
        with asyncio.Runner() as runner:
            life = runner.get_loop().create_task(self._live())
            while not life.done():
                # A task with such an exception stops its loop. It is raised where the task is waited for; the others go on.
                with contextlib.suppress(*EXITS):
                    runner.get_loop().run_until_complete(life)

    async def _live(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.over = asyncio.Event()
        self.ready.set()
        await self.over.wait()

    def usable(self) -> bool:
        return self.pid == os.getpid() and self.thread.is_alive()

    def end(self, wait: float | None = None) -> None:
        """Cancels running tasks, closes connections, and ends the thread."""
        if self.usable():
            with contextlib.suppress(RuntimeError):  # the loop has just closed
                self.loop.call_soon_threadsafe(self.over.set)
            self.thread.join(wait)
