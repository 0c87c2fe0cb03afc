"""Finds the best strategy for a model by successive halving. All strategies get a few questions, the better ones get
more. The last ones are compared on held-out questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..drive import run_sync
from ..errors import ModelError, UsageError
from ..evals import Contender, Settings, arun, load
from ..evals.case import Case, digest
from ..evals.datasets import mixed
from ..evals.jsonl_cases import read
from ..evals.results import Record
from ..evals.runner import STOPPING, OnRecord
from ..models.base import Model
from ..models.fallback import as_tuned
from ..models.profiles import key_of, slug
from ..models.resolve import bare
from ..models.strategy import Strategy
from ..schema.infer import as_tools
from ..types import Tool
from .candidates import Candidate, candidates
from .outcome import VALIDATION, Measured, Outcome
from .questions import as_lines, questions

FIRST = 6
"""Questions that every form is put."""
HALVING = 3
"""One form in so many goes on to the next round, which doubles the questions."""
LAST = 2
"""Forms that are left at last, beside the usual one."""
MOST = 100
"""Questions of either part, at most."""
IN_PROCESS = 256
"""Tokens of a reply of a model in this process: a weak one may not stop by itself."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Which questions are put when: `rounds` to fewer and fewer forms, then what is held `back`."""

    rounds: tuple[tuple[Case, ...], ...]
    back: tuple[Case, ...]

    def total(self, forms: int) -> int:
        """How many questions are put in all, if no form fails."""
        left, total = forms, 0
        for put in self.rounds:
            total += left * len(put)
            left = survivors(left)
        return total + min(forms, LAST + 1) * len(self.back)


def survivors(forms: int) -> int:
    """How many of so many forms go on."""
    return max(LAST, -(-forms // HALVING)) if forms > LAST else forms


def schedule(cases: Sequence[Case]) -> Schedule:
    """Half of each group is held back, or what says so itself. Raises UsageError where a part would be empty."""
    if any(case.split == VALIDATION for case in cases):
        back = [case for case in cases if case.split == VALIDATION]
        rest = [case for case in cases if case.split != VALIDATION]
    else:
        rest, back = _halves(cases)
    if not rest or not back:
        raise UsageError("too few questions: expected two at least, one of them to be held back")
    return Schedule(_rounds(mixed(rest)[:MOST]), tuple(mixed(back)[:MOST]))


def _rounds(cases: Sequence[Case]) -> tuple[tuple[Case, ...], ...]:
    """The cases in rounds: after the first, each doubles how many have been asked."""
    bounds = [0]
    while bounds[-1] < len(cases):
        bounds.append(min(len(cases), 2 * bounds[-1] or FIRST))
    return tuple(tuple(cases[a:b]) for a, b in pairwise(bounds))


def _halves(cases: Sequence[Case]) -> tuple[list[Case], list[Case]]:
    """Every other case of each group, groups beginning with either half by turns."""
    halves: tuple[list[Case], list[Case]] = ([], [])
    seen: dict[str, int] = {}
    for case in cases:
        at = seen.setdefault(case.group, len(seen) % 2)
        halves[at % 2].append(case)
        seen[case.group] = at + 1
    return halves


# ------------------------------------------------------------------ running


def tune(name: str, tools: Any, out: Path | str, **options: Any) -> Outcome:
    """Which form suits the model of that name, tried on these tools; see `atune`. Nothing is kept but in `out`."""
    return run_sync(atune(name, tools, out, **options))


async def atune(
    name: str,
    tools: Any,
    out: Path | str,
    *,
    cases: Sequence[str | Path] = (),
    dialects: Sequence[str] = (),
    count: int = 48,
    settings: Settings | None = None,
    heard: OnRecord | None = None,
) -> Outcome:
    """As `tune`, awaited. `tools` as everywhere; `cases` are files of one's own (see `evals.load`), without them some
    `count` questions are made from the tools' schemas. `dialects` are those to try.

    Every answer is kept in a folder in `out` as it comes, so that a run that was killed is gone on with by the same call.
    `heard` is told each record, how many are done, and of how many. Raises UsageError, and the ModelError of a model
    that cannot be asked.
    """
    offered = as_tools(tools) or ()
    model = bare(name)
    if settings is None:
        settings = Settings(max_tokens=None if hasattr(model, "address") else IN_PROCESS)
    put, source, without = _cases(offered, cases, count)
    plan = schedule(put)
    tried = await candidates(model, dialects)
    key = key_of(model)
    folder = Path(out) / f"{slug(model.name, key)}-{digest(put)[:8]}"
    trial = Trial(name, folder, settings, heard, plan.total(len(tried)))
    done = await trial.run(plan, tried)
    names = tuple(dict.fromkeys(tool.name for case in put for tool in case.tools))
    return Outcome(model.name, key, tuple(done), source, names, digest(put), folder, without, settings.as_dict())


def _cases(
    tools: Sequence[Tool[..., Any]], files: Sequence[str | Path], count: int
) -> tuple[list[Case], str, tuple[str, ...]]:
    """The cases, where they come from, and why there are none for some tools."""
    if files:
        found = load(*map(str, files), tools=tools or None)
        return found, ", ".join(Path(one).name for one in map(str, files)), ()
    made, without = questions(tools, count)
    return (
        read(as_lines(made), Path("questions.jsonl"), tools),
        f"{len(made)} made from the tools' schemas",
        tuple(without),
    )


class Trial:
    """Forms of one model, put to the test. `total` is how many questions there will be, `done` how many are
    answered."""

    def __init__(self, name: str, folder: Path, settings: Settings, heard: OnRecord | None, total: int) -> None:
        self.name, self.folder, self.settings = name, folder, settings
        self.heard, self.total, self.done = heard, total, 0

    async def run(self, plan: Schedule, given: Sequence[Candidate]) -> list[Measured]:
        """All that were tried, in the order of how far they came and how well they did."""
        left = [Measured(one.strategy, one.usual) for one in given]
        out: list[Measured] = []
        for number, cases in enumerate(plan.rounds, 1):
            asked_now = [await self._put(one, f"round-{number}", cases) for one in left]
            able = _ranked([one for one in asked_now if not one.failed])
            if not able:
                raise ModelError(f"{self.name} could be asked in no form: {asked_now[0].failed}")
            go_on = survivors(len(left))
            left, gone = able[:go_on], able[go_on:]
            out = [*gone, *(one for one in asked_now if one.failed), *out]
        last = _finalists(left, out)
        rest = [one for one in (*left, *out) if one not in last]
        self.total = self.done + len(last) * len(plan.back)
        order = sorted([await self._put(one, VALIDATION, plan.back) for one in last], key=_validated)
        if not any(one.holdout for one in order):
            raise ModelError(f"{self.name} could be asked in no form: {order[0].failed}")
        return [*order, *rest]

    async def _put(self, one: Measured, part: str, cases: Sequence[Case]) -> Measured:
        """The form with its records on these cases too; what it cannot be asked is said in `failed`."""
        contender = Contender(self._build(one.strategy), title=one.strategy.label)
        try:
            records = await arun(cases, [contender], self.folder / part, self.settings, heard=self._on_record)
        except STOPPING:
            raise
        except ModelError as error:
            return replace(one, failed=str(error))
        self.done += len(records)
        if part == VALIDATION:
            return replace(one, holdout=tuple(records))
        return replace(one, tuning=(*one.tuning, *records))

    def _build(self, chosen: Strategy) -> Model:
        return as_tuned(bare(self.name), chosen)

    def _on_record(self, record: Record, done: int, _: int) -> None:
        if self.heard is not None:
            self.heard(record, self.done + done, self.total)


def _finalists(left: Sequence[Measured], out: Sequence[Measured]) -> list[Measured]:
    """The best of those that are left, and the usual one, whether it is left or out."""
    usual = next((one for one in out if one.usual and not one.failed), None)
    return [*left[:LAST], *([usual] if usual else [one for one in left[LAST:] if one.usual])]


def _validated(one: Measured) -> tuple[bool, bool, float, float]:
    """Puts the best in front: by what was held out, those last that failed or never called."""
    return bool(one.failed), not one.calls, -one.accuracy.value if one.holdout else 0, -one.share


def _ranked(tried: Sequence[Measured]) -> list[Measured]:
    """The best first, those that never called last; of equals the usual one, then the one with fewer tokens."""
    return sorted(tried, key=lambda one: (not one.calls, -one.right, not one.usual, one.tokens))
