"""The result of tuning: each strategy's score, the chosen strategy, and why."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import ModelError
from ..evals.compare import ALPHA, PairedCounts, compare, p_text
from ..evals.results import Record
from ..evals.stats import Estimate, median, wilson
from ..models.strategy import Strategy
from ..models.tuned_profiles import Profile, save

VALIDATION = "held-back"
"""The value of a case's `split` field that reserves it for the final comparison."""

NEVER_CALLED = (
    "No strategy got a question right that needs a call, so they cannot be compared. Look at the replies "
    "(`toolspeak eval report` shows them), try other `dialects=` (--dialect), or"
    " give questions of your own, `cases=` (--cases)."
)
"""The verdict on a model that called nothing right."""


@dataclass(frozen=True)
class Measured:
    """A strategy and its results: records on the tuning questions, and on the held-out questions if it got that far.
    `failed` is the error if the model could not be asked this way."""

    strategy: Strategy
    usual: bool = False
    tuning: tuple[Record, ...] = ()
    holdout: tuple[Record, ...] = ()
    failed: str = ""

    @property
    def right(self) -> int:
        return sum(record.right for record in self.tuning)

    @property
    def share(self) -> float:
        """The fraction of the tuning questions that were answered right; 0 if there were none."""
        return self.right / len(self.tuning) if self.tuning else 0.0

    @property
    def accuracy(self) -> Estimate:
        """Accuracy on the held-out questions, with its 95 % interval."""
        return wilson(sum(record.right for record in self.holdout), len(self.holdout))

    @cached_property
    def calls(self) -> bool:
        """Whether any question that needs a call was answered right; True if none was asked.

        A strategy that never calls gets every question that needs no call right, so accuracy alone would favor it.
        """
        wanting = [record for record in self.tuning + self.holdout if record.expected != []]
        return not wanting or any(record.right for record in wanting)

    @cached_property
    def tokens(self) -> float:
        """Mean tokens sent and received per question; 0 if they were not counted."""
        records = self.tuning + self.holdout
        return sum(r.prompt_tokens + r.completion_tokens for r in records) / len(records) if records else 0.0

    @cached_property
    def seconds(self) -> float:
        """Median seconds per question."""
        return median([record.seconds for record in self.tuning + self.holdout])

    def as_dict(self) -> dict[str, Any]:
        """The figures as JSON data, for `--json` and profiles."""
        accuracy = self.accuracy
        row: dict[str, Any] = {"form": self.strategy.label, "tuning": [self.right, len(self.tuning)]}
        if self.holdout:
            right = sum(record.right for record in self.holdout)
            row["held_back"] = [right, len(self.holdout)]
            row["interval"] = [round(accuracy.low, 3), round(accuracy.high, 3)]
        if self.tuning:
            row |= {"tokens": round(self.tokens), "seconds": round(self.seconds, 2)}
        return row | ({"failed": self.failed} if self.failed else {})


@dataclass(frozen=True)
class Outcome:
    """The result of tuning one model. `tried` are the strategies, best first; those that reached a later round come
    before the others. `key` identifies the model exactly, `source` says where the questions come from, `without` which
    tools have no questions, `settings` how the questions were asked."""

    model: str
    key: str
    tried: tuple[Measured, ...]
    source: str
    tools: tuple[str, ...]
    digest: str
    folder: Path
    without: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @cached_property
    def finalists(self) -> list[Measured]:
        """The strategies that were tested on the held-out questions."""
        return [one for one in self.tried if one.holdout]

    @property
    def report_folder(self) -> Path:
        """The folder that holds every prompt and reply of the held-out questions, for `evals.write_report`."""
        return self.folder / VALIDATION

    @cached_property
    def best(self) -> Measured:
        """The strategy that did best on the held-out questions. One that never called is taken only if none did."""
        return max(self.finalists, key=lambda one: (one.calls, one.accuracy.value, one.share, one.usual, -one.tokens))

    @cached_property
    def chosen(self) -> Measured:
        """The simplest strategy that is as good as the best: the usual one if possible, otherwise the one with the
        fewest tokens.

        "As good" means within one standard error: of the n questions that only one of the two got right, the best
        strategy got at most √n more than the other.
        """
        able = [one for one in self.finalists if one.calls or not self.best.calls]
        fair = [one for one in able if one is self.best or as_good(self.paired(one, self.best))]
        return min(fair, key=lambda one: (not one.usual, one.tokens))

    @property
    def usual(self) -> Measured:
        """The strategy that the model gets without a profile."""
        return next(one for one in self.tried if one.usual)

    @staticmethod
    def paired(one: Measured, other: Measured) -> PairedCounts:
        """The paired results of two strategies on the held-out questions."""
        return compare(one.holdout, other.holdout).overall

    @property
    def verdict(self) -> str:
        """One or two sentences: which strategy is chosen, and whether the difference is more than noise."""
        chosen, best, usual = self.chosen, self.best, self.usual
        if not best.calls:
            return NEVER_CALLED
        right = sum(record.right for record in chosen.holdout)
        summary = f"{chosen.strategy.label}: {right} of the {len(chosen.holdout)} held-out questions are right."
        if chosen is not best:
            summary += f" {best.strategy.label} got {_more(self.paired(chosen, best))}, which is no more than noise: "
            return summary + ("nothing changes." if chosen.usual else "the cheaper one is taken.")
        if chosen.usual:
            return summary + " It is the usual strategy: nothing changes."
        if not usual.holdout:
            return summary + f" The usual strategy, {usual.strategy.label}, could not be asked."
        pair = self.paired(usual, chosen)
        sure = "more than noise" if pair.p < ALPHA else "it may be luck"
        return (
            summary
            + f" That is {_more(pair)} than {usual.strategy.label}, the usual strategy: {sure}, p {'' if pair.p < 0.0001 else '= '}{p_text(pair.p)}."
        )

    def profile(self, now: datetime | None = None) -> Profile:
        """The profile that `save` stores."""
        measured = {
            "at": (now or datetime.now(UTC)).isoformat(timespec="seconds"),
            "toolspeak": __version__,
            "machine": platform.machine(),
            "questions": self.source,
            "digest": self.digest,
            "settings": dict(self.settings),
            "tools": list(self.tools),
            "verdict": self.verdict,
            "forms": [one.as_dict() for one in self.tried],
        }
        return Profile(self.model, self.key, self.chosen.strategy, measured)

    def save(self) -> Path:
        """Stores the profile, which `toolspeak.model` follows from then on, and returns its path.

        Raises ModelError if no strategy got any call right: the profile would favor a strategy that never calls.
        """
        if not self.best.calls:
            raise ModelError(f"{self.model}: no profile is stored. {NEVER_CALLED}")
        return save(self.profile())


def as_good(pair: PairedCounts) -> bool:
    """Whether the second strategy is at most one standard error better than the first."""
    return pair.won - pair.lost <= math.sqrt(pair.won + pair.lost)


def _more(pair: PairedCounts) -> str:
    return f"{pair.won - pair.lost} more right"
