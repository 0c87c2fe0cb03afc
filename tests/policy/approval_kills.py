"""Kills processes that resume an approved call, at moments spread evenly over all that they do, and counts what ran.

python tests/policy/approval_kills.py FOLDER KILLS

Each moment is a number of function calls, counted from the beginning of `resume`, after which the process kills itself by
SIGKILL: a quarter between the approval's use and the end of the call, one until the result is kept, one behind. Then a
second process resumes the same conversation with the same answer, as one would after a crash: it runs the call, goes on
with the result that was kept, or says that the call may have run. Processes are forked before any thread is started.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import toolspeak as ts
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Finished

PLACES = {"consume": "call", "remove": "return", "keep": "return"}
"""Functions, and whether their beginning or their end counts: the last one of each."""


def child(work: Callable[[], None]) -> int:
    """The exit status of a process that does the work: -9 where it was killed."""
    pid = os.fork()
    if not pid:
        try:
            work()
        except BaseException:  # noqa: BLE001 - told by the process's own end
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def tool(log: Path) -> Callable[..., str]:
    def remove(path: str) -> str:
        """Remove a file."""
        file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, b"x")
        os.close(file)
        return f"removed {path}"

    return remove


def model() -> ts.Scripted:
    return ts.Scripted(["Done."], capabilities=["tools"])


def pause(log: Path, out: Path) -> None:
    """Asks for a call, and stores the reply that waits for approval."""
    call = [CallStart("remove", "c0"), ArgumentsDelta('{"path": "a"}'), CallEnd(), Finished("tool_calls")]
    scripted = ts.Scripted([call], capabilities=["tools"])
    out.write_text(ts.run("go", tools=[tool(log)], model=scripted, policy=ts.Policy()).to_json())


def resume(folder: Path, log: Path, out: Path) -> None:
    store = folder / "approvals.sqlite"
    reply = ts.resume((folder / "paused.json").read_text(), {"c0": True}, tools=[tool(log)], model=model(), store=store)
    out.write_text(str(reply.messages[2].get("content")) + "|" + reply.text)


def counted(work: Callable[[], None], last: int, seen: Path | None = None) -> Callable[[], None]:
    """The work, killed at the call of a function with this number; 0 for never. How many there were goes to `seen`."""

    def run() -> None:
        count = 0
        places: dict[str, int] = {}

        def look(frame: Any, event: str, value: Any) -> None:
            nonlocal count
            count += 1
            if (frame.f_code.co_name, event) in PLACES.items():
                places[frame.f_code.co_name] = count
            if count == last:
                os.kill(os.getpid(), signal.SIGKILL)

        threading.setprofile(look)
        sys.setprofile(look)
        work()
        sys.setprofile(None)
        if seen:
            loaded = [name for name in sys.modules if not name.startswith("__m")]
            seen.write_text(json.dumps([*(places[name] for name in PLACES), count, loaded]))

    return run


def probed(folder: Path) -> Any:
    """The numbers of the calls at which an approval is used, its call has run, its result is kept, and all is over; the
    modules loaded then."""
    folder.mkdir()
    seen = folder / "seen"
    assert child(lambda: pause(folder / "log", folder / "paused.json")) == 0
    assert child(counted(lambda: resume(folder, folder / "log", folder / "out"), 0, seen)) == 0
    return json.loads(seen.read_text())


def main(folder: Path, kills: int) -> None:
    outcome = dict.fromkeys(("killed", "twice", "ran", "never", "kept", "right"), 0)
    for module in probed(folder / "modules")[-1]:  # so that no process has to load anything
        importlib.import_module(module)
    used, ran, kept, total, _ = probed(folder / "probe")
    gc.collect()
    gc.freeze()  # no process looks through what all have, which would copy it
    waiting = (folder / "probe" / "paused.json").read_text()
    for number in range(kills):
        own = folder / f"{number}"
        own.mkdir()
        log = own / "log"
        (own / "paused.json").write_text(waiting)
        work = lambda: resume(own, log, own / "out")  # noqa: B023, E731 - used before the next round
        begin, end = ((1, total), (used, ran), (ran, kept), (kept, total))[number % 4]
        moment = begin + (end - begin) * number // kills
        outcome["killed"] += child(counted(work, moment)) == -signal.SIGKILL
        before = log.stat().st_size if log.exists() else 0
        assert child(work) == 0
        after = log.stat().st_size if log.exists() else 0
        result = (own / "out").read_text()
        told = result == "removed a|Done."
        outcome["kept"] += told and before == after == 1
        outcome["right"] += (told and after == 1) or ("may have run" in result and after == before)
        outcome["twice"] += after > 1
        outcome["ran" if after else "never"] += 1
    print(json.dumps(outcome))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
