"""Runs several worker processes at one socket: starts them, restarts those that die, and stops them.

A worker is a fork of the supervisor, made before there is a loop, a thread or a model, so that nothing has to be passed
through arguments or the environment. Models are created in the workers, because the threads of an embedded model do not
survive a fork.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Generator
from pathlib import Path

from ...files import take_lock
from ..telemetry.metrics import DIRECTORY, worker_died

log = logging.getLogger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGINT)
"""Signals that tell a process to stop."""
HANG_UP = signal.SIGHUP
"""The signal to reload the configuration. A terminal that is closed sends it, too."""
SHORT, LONGEST = 0.1, 5.0
"""Seconds before a dead worker is restarted: the first pause, which doubles, and the longest."""
PREFIX, LOCK = "toolspeak-metrics-", ".lock"
"""The folder in which workers count, and a file in it that is locked as long as one of them, or the supervisor, lives."""
WELL = 10.0
"""Seconds after which a start counts as successful."""


def supervise(workers: int, work: Callable[[int], None], hang_up: Callable[[], None] = lambda: None) -> None:
    """Keep `workers` processes running `work`, until SIGTERM or SIGINT; a second signal kills them.

    SIGHUP calls `hang_up` and is passed on. `work` gets a file descriptor that becomes readable when the supervisor has
    died.
    """
    with _metrics_directory(), _Supervisor(work, hang_up) as supervisor:
        supervisor.run(workers)
    if supervisor.failed:
        raise SystemExit(1)


class _Supervisor:
    def __init__(self, work: Callable[[int], None], hang_up: Callable[[], None]) -> None:
        self.work = work
        self.hang_up = hang_up
        self.began: dict[int, float] = {}  # by pid
        self.stopping = 0
        self.pause = SHORT
        self.due = 0.0  # when missing workers are started, 0 if none is missing
        self.well = False  # whether a worker has ever worked
        self.failed = False
        self.gone = lost_terminal()

    def __enter__(self) -> _Supervisor:
        self.alive = os.pipe()  # nothing is written to it: workers see its end when the supervisor dies
        self.woken = os.pipe()  # signals write to it
        for end in self.woken:
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self.woken[1], warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _noted)
        for number in SIGNALS:
            signal.signal(number, self._stop)
        signal.signal(HANG_UP, self._hang_up)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(-1)
        for end in (*self.alive, *self.woken):
            os.close(end)

    def run(self, workers: int) -> None:
        for _ in range(workers):
            self._start()
        while self.began or not self.stopping:
            self._reap()
            seconds = self._replace(workers)
            if self.began or not self.stopping:
                self._sleep(seconds)

    def _replace(self, workers: int) -> float | None:
        """Start missing workers when the pause is over. Return the seconds until then, None if none is missing."""
        missing = 0 if self.stopping else workers - len(self.began)
        now = time.monotonic()
        if missing and self.due and now >= self.due:
            for _ in range(missing):
                self._start()
            missing, self.due = 0, 0.0
        if missing and not self.due:
            self.due = now + self.pause
            self.pause = min(LONGEST, self.pause * 2)
        return max(0.0, self.due - now) if self.due else None

    def _start(self) -> None:
        # Signals are blocked until the new worker is registered and has set its own handlers.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        pid = os.fork()
        if pid:
            self.began[pid] = time.monotonic()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            return
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (*SIGNALS, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(HANG_UP, signal.SIG_IGN)  # ignored until the worker has its own handler
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            for end in (self.alive[1], *self.woken):
                os.close(end)
            self.work(self.alive[0])
            status = 0
        except BaseException:  # noqa: BLE001 - the last place to report it: the process ends here
            traceback.print_exc()
        finally:
            # Run the exit handlers of libraries, such as an exporter with unsent spans. `os._exit` skips them.
            atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportAttributeAccessIssue]
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)

    def _reap(self) -> None:
        """Collect the workers that have ended."""
        while self.began:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            lived = time.monotonic() - self.began.pop(pid, 0.0)
            worker_died(pid)
            if self.stopping:
                continue
            if lived > WELL:
                self.pause = SHORT
                self.well = True
            elif not self.well and os.WIFEXITED(status):
                log.error("a worker could not start; the gateway ends")
                self.failed = True
                self._stop()
                continue
            log.error("worker %d ended with code %d and is restarted", pid, os.waitstatus_to_exitcode(status))

    def _sleep(self, seconds: float | None) -> None:
        """Wait for a signal, for `seconds` at most."""
        select.select([self.woken[0]], [], [], seconds)
        with contextlib.suppress(BlockingIOError):
            os.read(self.woken[0], 4096)

    def _stop(self, *_: object) -> None:
        self.stopping += 1
        for pid in tuple(self.began):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM if self.stopping == 1 else signal.SIGKILL)

    def _hang_up(self, *_: object) -> None:
        if self.gone():
            self._stop()
            return
        self.hang_up()
        for pid in tuple(self.began):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, HANG_UP)


def lost_terminal() -> Callable[[], bool]:
    """Return a function that tells whether standard error was a terminal now, and no longer is one."""
    was = os.isatty(2)
    return lambda: was and not os.isatty(2)


def _noted(_: int, __: object) -> None:
    """Do nothing: a handler, unlike SIG_IGN, lets the signal wake the supervisor."""


@contextlib.contextmanager
def _metrics_directory() -> Generator[None]:
    """Create the folder in which the workers count, so that each one can report the sum. An operator's folder is kept."""
    if os.environ.get(DIRECTORY):
        yield
        return
    _remove_abandoned()
    folder = tempfile.mkdtemp(prefix=PREFIX)
    os.environ[DIRECTORY] = folder
    try:
        with Path(folder, LOCK).open("w") as lock:  # the workers inherit it
            take_lock(lock, wait=False)
            yield
    finally:
        del os.environ[DIRECTORY]
        shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned() -> None:
    """Remove the folders of supervisors that were killed: nobody holds their locks."""
    for lock in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{LOCK}"):
        with contextlib.suppress(OSError), lock.open("r+") as file:  # another user's cannot be opened
            if take_lock(file, wait=False):
                shutil.rmtree(lock.parent, ignore_errors=True)
