"""Is an input read as any text has to be? What is wrong with it, and the least text that is wrong in the same way."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from time import time
from zlib import crc32

from seeds import OFFERS, SEEDS, Input

from checks import problems  # isort: skip
from grows import growth  # isort: skip
from toolspeak.dialects import get

FOUND = Path(__file__).resolve().parents[2] / ".fuzz"
PATIENCE = 10
"""Seconds of processor time after which a text of a few hundred characters hangs."""
STEEP = 3.0
"""Twice the text, so many times the time: steeper is a finding. Quadratic is 4."""


def judged(case: Input) -> str:
    """What is wrong: "" or the first problem, its kind in front of a colon."""
    try:
        with limited(PATIENCE):
            tools, d = OFFERS[case.offer], get(case.dialect)
            return next(problems(d, case.text, tools, case.prompt, case.thoughts, len(case.text)), "")
    except TimeoutError:
        return f"hang: more than {PATIENCE} s"
    except Exception as error:  # noqa: BLE001 - whatever is raised is what is looked for
        return f"raised {type(error).__name__}: {error}"


@contextmanager
def limited(limit: int) -> Iterator[None]:
    """Raises TimeoutError inside if it takes more than so many seconds of processor time, or stands still for ten times as
    long: a busy machine is no finding."""

    def stop(*_: object) -> None:
        raise TimeoutError

    timers = {signal.ITIMER_PROF: (signal.SIGPROF, limit), signal.ITIMER_REAL: (signal.SIGALRM, 10 * limit)}
    before = {number: signal.signal(number, stop) for number, _ in timers.values()}
    for timer, (_, seconds) in timers.items():
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for timer in timers:
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def steep(rng: random.Random) -> tuple[Input, str]:
    """A wire with some of it again and again: does time grow faster than the text?"""
    name, text = rng.choice(SEEDS)
    i, j = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
    head, unit = text[:i], text[i : min(j, i + 40)] or " "
    size = rng.choice((0, 1, 4))
    case = Input(name, head + unit * 3)
    try:
        with limited(PATIENCE * 3):
            ratio = _growth(name, lambda n: head + unit * (n // len(unit)), size)
            if ratio > STEEP:  # what other work on the machine did in these milliseconds is not done again
                ratio = min(ratio, _growth(name, lambda n: head + unit * (n // len(unit)), size))
    except TimeoutError:
        return case, f"hang: {unit!r} again and again"
    return case, f"grows: x{ratio:.1f} for twice {unit!r}, {size} at a time" if ratio > STEEP else ""


def _growth(name: str, make: Callable[[int], str], size: int) -> float:
    return growth(get(name), make, size, OFFERS["offered"], start=8_000)


def kind(problem: str) -> str:
    return problem.partition(" ")[0]


def least(case: Input, problem: str, budget: float = 20) -> Input:
    """The input with as much of its text left out as can be, wrong in the same way."""
    end, size = time() + budget, max(1, len(case.text) // 2)
    while size and time() < end:
        i, shorter = 0, False
        while i < len(case.text) and time() < end:
            smaller = replace(case, text=case.text[:i] + case.text[i + size :])
            if kind(judged(smaller)) == kind(problem):
                case, shorter = smaller, True
            else:
                i += size
        size = size if shorter and size == 1 else size // 2
    return case


def save(case: Input, problem: str) -> Path:
    """Keeps a finding as JSON, to be read again with `run.py --again FILE`."""
    FOUND.mkdir(exist_ok=True)
    path = FOUND / f"{case.dialect}-{crc32(repr((case, kind(problem))).encode('utf-8', 'replace')):08x}.json"
    path.write_text(json.dumps({**asdict(case), "problem": problem}, ensure_ascii=False, indent=1), "utf-8")
    return path
