"""Finds the best strategy for a model by successive halving.

All strategies get a few questions. In each round the better third goes on and the number of questions doubles. The
last ones and the usual strategy are compared on held-out questions.
"""

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
from ..models.resolve import bare
from ..models.tool_calling import as_tuned
from ..models.tuned_profiles import key_of, slug
from ..schema.infer import as_tools
from ..types import Tool
from .candidate_strategies import Candidate, candidates
from .outcome import VALIDATION, Measured, Outcome
from .questions import as_lines, questions

FIRST = 6
"""Questions in the first round."""
HALVING = 3
"""One strategy in so many goes on to the next round."""
LAST = 2
"""Strategies that reach the final comparison, beside the usual one."""
MOST = 100
"""The most questions that are used for the rounds, and the most that are held out."""
IN_PROCESS = 256
"""The token limit of a reply from a model in this process: a weak one may not stop by itself."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Which questions are asked when: `rounds`, each for fewer strategies, then the held-out questions (`back`)."""

    rounds: tuple[tuple[Case, ...], ...]
    back: tuple[Case, ...]

    def total(self, forms: int) -> int:
        """How many questions are asked in all for this many strategies, if none fails."""
        left, total = forms, 0
        for put in self.rounds:
            total += left * len(put)
            left = survivors(left)
        return total + min(forms, LAST + 1) * len(self.back)


def survivors(forms: int) -> int:
    """How many of this many strategies go on to the next round."""
    return max(LAST, -(-forms // HALVING)) if forms > LAST else forms


def schedule(cases: Sequence[Case]) -> Schedule:
    """The schedule for these cases. Half of each group is held out, or the cases that are marked for it. Raises
    UsageError if either part would be empty."""
    if any(case.split == VALIDATION for case in cases):
        back = [case for case in cases if case.split == VALIDATION]
        rest = [case for case in cases if case.split != VALIDATION]
    else:
        rest, back = _halves(cases)
    if not rest or not back:
        raise UsageError("too few questions: expected at least two, one of them to be held out")
    return Schedule(_rounds(mixed(rest)[:MOST]), tuple(mixed(back)[:MOST]))


def _rounds(cases: Sequence[Case]) -> tuple[tuple[Case, ...], ...]:
    """The cases split into rounds, each of which doubles the number of cases asked so far."""
    bounds = [0]
    while bounds[-1] < len(cases):
        bounds.append(min(len(cases), 2 * bounds[-1] or FIRST))
    return tuple(tuple(cases[a:b]) for a, b in pairwise(bounds))


def _halves(cases: Sequence[Case]) -> tuple[list[Case], list[Case]]:
    """Two halves of the cases, alternating within each group. Groups take turns in which half gets the first case."""
    halves: tuple[list[Case], list[Case]] = ([], [])
    seen: dict[str, int] = {}
    for case in cases:
        at = seen.setdefault(case.group, len(seen) % 2)
        halves[at % 2].append(case)
        seen[case.group] = at + 1
    return halves


# ------------------------------------------------------------------ running


def tune(name: str, tools: Any, out: Path | str, **options: Any) -> Outcome:
    """Finds the best strategy for a model on these tools; see `atune`. Writes only to the folder `out`."""
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
    on_record: OnRecord | None = None,
) -> Outcome:
    """As `tune`, awaited.

    `tools` are given as to `run`. `cases` are files of your own cases (see `evals.load`); without them about `count`
    questions are generated from the tools' schemas. `dialects` are the ones to try. `on_record` is called with each
    record, the number of finished questions and the total.

    Every answer is stored in a folder in `out` as it arrives, so the same call continues a run that was killed. Raises
    UsageError, and ModelError if the model cannot be asked.
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
    trial = Trial(name, folder, settings, on_record, plan.total(len(tried)))
    done = await trial.run(plan, tried)
    names = tuple(dict.fromkeys(tool.name for case in put for tool in case.tools))
    return Outcome(model.name, key, tuple(done), source, names, digest(put), folder, without, settings.as_dict())


def _cases(
    tools: Sequence[Tool[..., Any]], files: Sequence[str | Path], count: int
) -> tuple[list[Case], str, tuple[str, ...]]:
    """The cases, where they come from, and for each tool without cases the reason."""
    if files:
        loaded = load(*map(str, files), tools=tools or None)
        return loaded, ", ".join(Path(one).name for one in map(str, files)), ()
    generated, without = questions(tools, count)
    return (
        read(as_lines(generated), Path("questions.jsonl"), tools),
        f"{len(generated)} made from the tools' schemas",
        tuple(without),
    )


class Trial:
    """Tests strategies on one model and counts progress: `done` of `total` questions are answered."""

    def __init__(self, name: str, folder: Path, settings: Settings, on_record: OnRecord | None, total: int) -> None:
        self.name, self.folder, self.settings = name, folder, settings
        self.on_record, self.total, self.done = on_record, total, 0

    async def run(self, plan: Schedule, candidates: Sequence[Candidate]) -> list[Measured]:
        """All strategies with their results, best first; those that reached a later round come before the others."""
        left = [Measured(one.strategy, one.usual) for one in candidates]
        out: list[Measured] = []
        for number, cases in enumerate(plan.rounds, 1):
            trials = [await self._ask_cases(one, f"round-{number}", cases) for one in left]
            able = _ranked([one for one in trials if not one.failed])
            if not able:
                raise ModelError(f"{self.name}: no strategy works: {trials[0].failed}")
            go_on = survivors(len(left))
            left, gone = able[:go_on], able[go_on:]
            out = [*gone, *(one for one in trials if one.failed), *out]
        last = _finalists(left, out)
        rest = [one for one in (*left, *out) if one not in last]
        self.total = self.done + len(last) * len(plan.back)
        order = sorted([await self._ask_cases(one, VALIDATION, plan.back) for one in last], key=_holdout_rank)
        if not any(one.holdout for one in order):
            raise ModelError(f"{self.name}: no strategy works: {order[0].failed}")
        return [*order, *rest]

    async def _ask_cases(self, one: Measured, part: str, cases: Sequence[Case]) -> Measured:
        """The strategy with its records on these cases added. If the model cannot be asked this way, `failed` says
        why."""
        contender = Contender(as_tuned(bare(self.name), one.strategy), title=one.strategy.label)
        try:
            records = await arun(cases, [contender], self.folder / part, self.settings, on_record=self._on_record)
        except STOPPING:
            raise
        except ModelError as error:
            return replace(one, failed=str(error))
        self.done += len(records)
        if part == VALIDATION:
            return replace(one, holdout=tuple(records))
        return replace(one, tuning=(*one.tuning, *records))

    def _on_record(self, record: Record, done: int, _: int) -> None:
        if self.on_record is not None:
            self.on_record(record, self.done + done, self.total)


def _finalists(left: Sequence[Measured], out: Sequence[Measured]) -> list[Measured]:
    """The best of the remaining strategies, and the usual one even if it has dropped out."""
    usual = next((one for one in out if one.usual and not one.failed), None)
    return [*left[:LAST], *([usual] if usual else [one for one in left[LAST:] if one.usual])]


def _holdout_rank(one: Measured) -> tuple[bool, bool, float, float]:
    """Sort key, best first: by held-out accuracy. Strategies that failed or never called come last."""
    return bool(one.failed), not one.calls, -one.accuracy.value if one.holdout else 0, -one.share


def _ranked(tried: Sequence[Measured]) -> list[Measured]:
    """The strategies, best first. Those that never called come last. Ties go to the usual one, then to the one with
    fewer tokens."""
    return sorted(tried, key=lambda one: (not one.calls, -one.right, not one.usual, one.tokens))
