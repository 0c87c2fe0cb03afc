"""What records come to: accuracy by group with intervals, kinds of error, seconds, tokens, money."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .case import KINDS, Kind
from .record import Record
from .stats import Estimate, mean, median, wilson


@dataclass(frozen=True, slots=True)
class Group:
    """How many of a group's cases were right."""

    name: str
    right: int
    total: int

    @property
    def share(self) -> Estimate:
        """The accuracy, with its 95 % interval."""
        return wilson(self.right, self.total)


@dataclass(frozen=True, slots=True)
class Summary:
    """A contender's results. `seconds` are per case; `tokens` sent and received per case; `cost` of all cases, None
    where no price is known."""

    contender: str
    groups: tuple[Group, ...]
    kinds: dict[Kind, int]
    seconds_mean: float
    seconds_median: float
    tokens: tuple[float, float]
    cost: float | None

    @property
    def overall(self) -> Group:
        """All cases together."""
        return Group("all", sum(group.right for group in self.groups), sum(group.total for group in self.groups))

    @property
    def macro(self) -> Estimate:
        """The mean of the groups' accuracies, each counting the same, with its 95 % interval."""
        return mean([group.share for group in self.groups])

    def group(self, name: str) -> Group:
        """A group by its name; of no cases where there is none."""
        return next((group for group in self.groups if group.name == name), Group(name, 0, 0))


def summarise(records: Sequence[Record]) -> list[Summary]:
    """One summary for every contender, in the order in which they come."""
    by: dict[str, list[Record]] = {}
    for record in records:
        by.setdefault(record.contender, []).append(record)
    return [_one(contender, own) for contender, own in by.items()]


def _one(contender: str, records: Sequence[Record]) -> Summary:
    totals = Counter(record.group for record in records)
    right = Counter(record.group for record in records if record.right)
    found = Counter(record.kind for record in records if not record.right)
    costs = [record.cost for record in records if record.cost is not None]
    n = len(records)
    return Summary(
        contender=contender,
        groups=tuple(Group(name, right[name], totals[name]) for name in totals),
        kinds={kind: found[kind] for kind in KINDS if found[kind]},
        seconds_mean=sum(record.seconds for record in records) / n,
        seconds_median=median([record.seconds for record in records]),
        tokens=(sum(r.prompt_tokens for r in records) / n, sum(r.completion_tokens for r in records) / n),
        cost=sum(costs) if costs else None,
    )


# ------------------------------------------------------------------ as a table


def percent(estimate: Estimate) -> str:
    """`78 % (69–84)`."""
    if math.isnan(estimate.value):
        return "–"
    return f"{100 * estimate.value:.0f} % ({100 * estimate.low:.0f}–{100 * estimate.high:.0f})"


def table(summaries: Sequence[Summary]) -> tuple[list[str], list[list[str]]]:
    """The titles and the rows of a table: a column for every contender, a row for every group and what else is told."""
    names = list(dict.fromkeys(group.name for summary in summaries for group in summary.groups))
    rows = [[name, *(_cell(summary.group(name)) for summary in summaries)] for name in names]
    if len(names) > 1:
        rows.append(["mean of groups", *(percent(summary.macro) for summary in summaries)])
        rows.append(["all cases", *(_cell(summary.overall) for summary in summaries)])
    kinds: list[Kind] = [kind for kind in KINDS if any(kind in summary.kinds for summary in summaries)]
    rows += [[kind, *(str(summary.kinds.get(kind, 0)) for summary in summaries)] for kind in kinds]
    rows.append(["seconds, median", *(f"{summary.seconds_median:.2f}" for summary in summaries)])
    rows.append(["seconds, mean", *(f"{summary.seconds_mean:.2f}" for summary in summaries)])
    rows.append(["tokens sent", *(_tokens(summary, 0) for summary in summaries)])
    rows.append(["tokens received", *(_tokens(summary, 1) for summary in summaries)])
    if any(summary.cost is not None for summary in summaries):
        rows.append(["cost of all", *("–" if s.cost is None else f"{s.cost:.4f}" for s in summaries)])
    return ["", *(summary.contender for summary in summaries)], rows


def _tokens(summary: Summary, which: int) -> str:
    return f"{summary.tokens[which]:.0f}" if any(summary.tokens) else "–"  # not told


def _cell(group: Group) -> str:
    return f"{percent(group.share)} {group.right}/{group.total}" if group.total else "–"


def markdown(summaries: Sequence[Summary]) -> str:
    """The table as Markdown."""
    titles, rows = table(summaries)
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines) + "\n"


def as_json(summary: Summary) -> dict[str, object]:
    """A summary for programs."""
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


def _numbers(group: Group) -> dict[str, object]:
    return {"right": group.right, "total": group.total, **_interval(group.share)}


def _interval(estimate: Estimate) -> dict[str, object]:
    return {"share": estimate.value, "low": estimate.low, "high": estimate.high}
