"""What trying the forms came to: how well each did, which is chosen, and why."""

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
from ..evals.compare import ALPHA, Paired, compare, shown_p
from ..evals.record import Record
from ..evals.stats import Estimate, median, wilson
from ..models.profiles import Profile, save
from ..models.strategy import Strategy


@dataclass(frozen=True)
class Tried:
    """A form, and its records on the questions that it was put: those for tuning, and those held back where it came so
    far. `failed` says why it could not be asked."""

    strategy: Strategy
    usual: bool = False
    tuning: tuple[Record, ...] = ()
    held_back: tuple[Record, ...] = ()
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
        return wilson(sum(record.right for record in self.held_back), len(self.held_back))

    @cached_property
    def tokens(self) -> float:
        """Sent and received for a question, 0 where nobody counts them."""
        records = self.tuning + self.held_back
        return sum(r.prompt_tokens + r.completion_tokens for r in records) / len(records) if records else 0.0

    @cached_property
    def seconds(self) -> float:
        """For a question, the median."""
        return median([record.seconds for record in self.tuning + self.held_back])

    def told(self) -> dict[str, Any]:
        """For programs and profiles."""
        accuracy = self.accuracy
        told: dict[str, Any] = {"form": self.strategy.label, "tuning": [self.right, len(self.tuning)]}
        if self.held_back:
            right = sum(record.right for record in self.held_back)
            told["held_back"] = [right, len(self.held_back)]
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
    tried: tuple[Tried, ...]
    source: str
    tools: tuple[str, ...]
    digest: str
    folder: Path
    without: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @cached_property
    def finalists(self) -> list[Tried]:
        """Those that were put the questions held back."""
        return [one for one in self.tried if one.held_back]

    @cached_property
    def best(self) -> Tried:
        """The one that did best on what was held back."""
        return max(self.finalists, key=lambda one: (one.accuracy.value, one.share, one.usual, -one.tokens))

    @cached_property
    def chosen(self) -> Tried:
        """The simplest of those that are as good as the best: the usual one if it is, else the one with fewest tokens.

        As good is within one standard error: of the questions that only one of the two got right, the best got no more
        than their number's root more than the other.
        """
        fair = [one for one in self.finalists if one is self.best or as_good(self.paired(one, self.best))]
        return min(fair, key=lambda one: (not one.usual, one.tokens))

    @property
    def usual(self) -> Tried:
        """What the model is asked in without a profile."""
        return next(one for one in self.tried if one.usual)

    @staticmethod
    def paired(one: Tried, other: Tried) -> Paired:
        """The two on the questions held back."""
        return compare(one.held_back, other.held_back).overall

    @property
    def verdict(self) -> str:
        """What is chosen, and whether the difference is more than noise, in a sentence or two."""
        chosen, best, usual = self.chosen, self.best, self.usual
        right = sum(record.right for record in chosen.held_back)
        told = f"{chosen.strategy.label}: {right} of the {len(chosen.held_back)} questions held back are right."
        if chosen is not best:
            told += f" {best.strategy.label} got {_more(self.paired(chosen, best))}, which is no more than noise: "
            return told + ("nothing changes." if chosen.usual else "the cheaper one is taken.")
        if chosen.usual:
            return told + " It is the usual form: nothing changes."
        if not usual.held_back:
            return told + f" The usual form, {usual.strategy.label}, could not be asked."
        pair = self.paired(usual, chosen)
        sure = "more than noise" if pair.p < ALPHA else "it may be luck"
        return (
            told
            + f" That is {_more(pair)} than {usual.strategy.label}, the usual form: {sure}, p {'' if pair.p < 0.0001 else '= '}{shown_p(pair.p)}."
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
            "forms": [one.told() for one in self.tried],
        }
        return Profile(self.model, self.key, self.chosen.strategy, measured)

    def save(self) -> Path:
        """Keeps the profile, which `toolspeak.model` follows from then on; says where."""
        return save(self.profile())


def as_good(pair: Paired) -> bool:
    """Whether the second is no more than one standard error better than the first."""
    return pair.won - pair.lost <= math.sqrt(pair.won + pair.lost)


def _more(pair: Paired) -> str:
    return f"{pair.won - pair.lost} more right"
