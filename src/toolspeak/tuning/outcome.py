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
from ..models.profiles import Profile, save
from ..models.strategy import Strategy

VALIDATION = "held-back"
"""The split of the cases that are kept for the last comparison, where they say so themselves."""

NEVER_CALLED = (
    "In no form was a question that wants a call answered right, so nothing tells the forms apart. Look at the replies "
    "(`toolspeak eval report` shows them), try other dialects (--dialect), or give questions of your own (--cases)."
)
"""The verdict on a model that called nothing right."""


@dataclass(frozen=True)
class Measured:
    """A form, and its records on the questions that it was put: those for tuning, and those held back where it came so
    far. `failed` says why it could not be asked."""

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
        """Of the questions for tuning, 0 of none."""
        return self.right / len(self.tuning) if self.tuning else 0.0

    @property
    def accuracy(self) -> Estimate:
        """Of those held back, with its 95 % interval."""
        return wilson(sum(record.right for record in self.holdout), len(self.holdout))

    @cached_property
    def calls(self) -> bool:
        """Whether a question that wants a call was ever answered right; True where none was put.

        Without it nothing tells a form apart that never calls: all questions that want no call are right in it.
        """
        wanting = [record for record in self.tuning + self.holdout if record.expected != []]
        return not wanting or any(record.right for record in wanting)

    @cached_property
    def tokens(self) -> float:
        """Sent and received for a question, 0 where nobody counts them."""
        records = self.tuning + self.holdout
        return sum(r.prompt_tokens + r.completion_tokens for r in records) / len(records) if records else 0.0

    @cached_property
    def seconds(self) -> float:
        """For a question, the median."""
        return median([record.seconds for record in self.tuning + self.holdout])

    def as_dict(self) -> dict[str, Any]:
        """For programs and profiles."""
        accuracy = self.accuracy
        told: dict[str, Any] = {"form": self.strategy.label, "tuning": [self.right, len(self.tuning)]}
        if self.holdout:
            right = sum(record.right for record in self.holdout)
            told["held_back"] = [right, len(self.holdout)]
            told["interval"] = [round(accuracy.low, 3), round(accuracy.high, 3)]
        if self.tuning:
            told |= {"tokens": round(self.tokens), "seconds": round(self.seconds, 2)}
        return told | ({"failed": self.failed} if self.failed else {})


@dataclass(frozen=True)
class Outcome:
    """What tuning a model came to. `tried` are the forms in the order of how far they came and how well they did; `key`
    says which model exactly; `source` is where the questions come from, `without` the tools that have none,
    `settings` how they were put."""

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
        """Those that were put the questions held back."""
        return [one for one in self.tried if one.holdout]

    @property
    def report_folder(self) -> Path:
        """The folder with every prompt and reply of the questions held back, as `evals.write_report` takes it."""
        return self.folder / VALIDATION

    @cached_property
    def best(self) -> Measured:
        """The one that did best on what was held back, of those that called at all if there are any."""
        return max(self.finalists, key=lambda one: (one.calls, one.accuracy.value, one.share, one.usual, -one.tokens))

    @cached_property
    def chosen(self) -> Measured:
        """The simplest of those that are as good as the best: the usual one if it is, else the one with fewest tokens.

        As good is within one standard error: of the questions that only one of the two got right, the best got no more
        than their number's root more than the other.
        """
        able = [one for one in self.finalists if one.calls or not self.best.calls]
        fair = [one for one in able if one is self.best or as_good(self.paired(one, self.best))]
        return min(fair, key=lambda one: (not one.usual, one.tokens))

    @property
    def usual(self) -> Measured:
        """What the model is asked in without a profile."""
        return next(one for one in self.tried if one.usual)

    @staticmethod
    def paired(one: Measured, other: Measured) -> PairedCounts:
        """The two on the questions held back."""
        return compare(one.holdout, other.holdout).overall

    @property
    def verdict(self) -> str:
        """What is chosen, and whether the difference is more than noise, in a sentence or two."""
        chosen, best, usual = self.chosen, self.best, self.usual
        if not best.calls:
            return NEVER_CALLED
        right = sum(record.right for record in chosen.holdout)
        told = f"{chosen.strategy.label}: {right} of the {len(chosen.holdout)} questions held back are right."
        if chosen is not best:
            told += f" {best.strategy.label} got {_more(self.paired(chosen, best))}, which is no more than noise: "
            return told + ("nothing changes." if chosen.usual else "the cheaper one is taken.")
        if chosen.usual:
            return told + " It is the usual form: nothing changes."
        if not usual.holdout:
            return told + f" The usual form, {usual.strategy.label}, could not be asked."
        pair = self.paired(usual, chosen)
        sure = "more than noise" if pair.p < ALPHA else "it may be luck"
        return (
            told
            + f" That is {_more(pair)} than {usual.strategy.label}, the usual form: {sure}, p {'' if pair.p < 0.0001 else '= '}{p_text(pair.p)}."
        )

    def profile(self, now: datetime | None = None) -> Profile:
        """What is kept."""
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
        """Keeps the profile, which `toolspeak.model` follows from then on; says where.

        Raises ModelError where no form got any call right: a profile would choose what stays silent best.
        """
        if not self.best.calls:
            raise ModelError(f"{self.model}: no profile is kept. {NEVER_CALLED}")
        return save(self.profile())


def as_good(pair: PairedCounts) -> bool:
    """Whether the second is no more than one standard error better than the first."""
    return pair.won - pair.lost <= math.sqrt(pair.won + pair.lost)


def _more(pair: PairedCounts) -> str:
    return f"{pair.won - pair.lost} more right"
