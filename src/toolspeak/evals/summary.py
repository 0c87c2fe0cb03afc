"""Summarizes results: accuracy by group with intervals, kinds of error, seconds, tokens, cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .case import KINDS, Kind
from .results import Record
from .stats import Estimate, mean, median, wilson


@dataclass(frozen=True, slots=True)
class GroupScore:
    """How many of a group's cases were right."""

    name: str
    right: int
    total: int

    @property
    def share(self) -> Estimate:
        """The accuracy, with its 95 % interval."""
        return wilson(self.right, self.total)


@dataclass(frozen=True, slots=True)
class ContenderSummary:
    """The results of one contender. `tokens` are input and output tokens per case. `cost` is that of all cases, None
    if no price is known."""

    contender: str
    groups: tuple[GroupScore, ...]
    kinds: dict[Kind, int]
    seconds_mean: float
    seconds_median: float
    tokens: tuple[float, float]
    cost: float | None

    @property
    def overall(self) -> GroupScore:
        """All cases together."""
        return GroupScore("all", sum(group.right for group in self.groups), sum(group.total for group in self.groups))

    @property
    def macro(self) -> Estimate:
        """The mean of the groups' accuracies with equal weights, with its 95 % interval."""
        return mean([group.share for group in self.groups])

    def group(self, name: str) -> GroupScore:
        """The group of that name; one without cases if there is none."""
        return next((group for group in self.groups if group.name == name), GroupScore(name, 0, 0))


def summarise(records: Sequence[Record]) -> list[ContenderSummary]:
    """One summary per contender, in the order of their first records."""
    by: dict[str, list[Record]] = {}
    for record in records:
        by.setdefault(record.contender, []).append(record)
    return [_one(contender, own) for contender, own in by.items()]


def _one(contender: str, records: Sequence[Record]) -> ContenderSummary:
    totals = Counter(record.group for record in records)
    right = Counter(record.group for record in records if record.right)
    counts = Counter(record.kind for record in records if not record.right)
    costs = [record.cost for record in records if record.cost is not None]
    n = len(records)

    def average(values: Iterable[float]) -> float:
        return sum(values) / n

    return ContenderSummary(
        contender=contender,
        groups=tuple(GroupScore(name, right[name], totals[name]) for name in totals),
        kinds={kind: counts[kind] for kind in KINDS if counts[kind]},
        seconds_mean=average(record.seconds for record in records),
        seconds_median=median([record.seconds for record in records]),
        tokens=(average(r.prompt_tokens for r in records), average(r.completion_tokens for r in records)),
        cost=sum(costs) if costs else None,
    )


# ------------------------------------------------------------------ as a table


def percent(estimate: Estimate) -> str:
    """A share and its interval as text: `78 % (69–84)`."""
    if math.isnan(estimate.value):
        return "–"
    return f"{100 * estimate.value:.0f} % ({100 * estimate.low:.0f}–{100 * estimate.high:.0f})"


def table(summaries: Sequence[ContenderSummary]) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of a table with one column per contender and one row per group and further figure."""
    rows: list[list[str]] = []

    def row(title: str, cell: Callable[[ContenderSummary], str]) -> None:
        rows.append([title, *map(cell, summaries)])

    names = list(dict.fromkeys(group.name for summary in summaries for group in summary.groups))
    for name in names:
        row(name, lambda summary, name=name: _cell(summary.group(name)))
    if len(names) > 1:
        row("mean of groups", lambda summary: percent(summary.macro))
        row("all cases", lambda summary: _cell(summary.overall))
    came = Counter(kind for summary in summaries for kind in summary.kinds)
    for kind in filter(came.__contains__, KINDS):
        row(kind, lambda summary, kind=kind: str(summary.kinds.get(kind, 0)))
    row("seconds, median", lambda summary: f"{summary.seconds_median:.2f}")
    row("seconds, mean", lambda summary: f"{summary.seconds_mean:.2f}")
    row("tokens sent", lambda summary: _tokens(summary, 0))
    row("tokens received", lambda summary: _tokens(summary, 1))
    if any(summary.cost is not None for summary in summaries):
        row("cost of all", lambda summary: "–" if summary.cost is None else f"{summary.cost:.4f}")
    return ["", *(summary.contender for summary in summaries)], rows


def _tokens(summary: ContenderSummary, which: int) -> str:
    return f"{summary.tokens[which]:.0f}" if any(summary.tokens) else "–"  # not counted


def _cell(group: GroupScore) -> str:
    return f"{percent(group.share)} {group.right}/{group.total}" if group.total else "–"


def markdown(summaries: Sequence[ContenderSummary]) -> str:
    """The table as Markdown."""
    titles, rows = table(summaries)
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines) + "\n"


def as_json(summary: ContenderSummary) -> dict[str, object]:
    """The summary as JSON data."""
    return {
        "contender": summary.contender,
        "groups": {group.name: _numbers(group) for group in summary.groups},
        "macro": _interval(summary.macro),
        "all": _numbers(summary.overall),
        "kinds": summary.kinds,
        "seconds": {"median": summary.seconds_median, "mean": summary.seconds_mean},
        "tokens": {"sent": summary.tokens[0], "received": summary.tokens[1]},
        "cost": summary.cost,
    }


def _numbers(group: GroupScore) -> dict[str, object]:
    return {"right": group.right, "total": group.total, **_interval(group.share)}


def _interval(estimate: Estimate) -> dict[str, object]:
    return {"share": estimate.value, "low": estimate.low, "high": estimate.high}
