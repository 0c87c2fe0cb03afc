"""Recall as a table, as JSON data, and as a self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import plots
from .recall import KS, Recall, Retrieval
from .report import rendered
from .stats import Estimate
from .summary import percent

PAGE = "recall.html"
MOST_MISSES = 500
"""The most misses that the page lists."""
LONG = 300
"""Characters of a question that are shown."""


def table(recalls: Sequence[Recall], k: int) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of a table with one column for each way of searching."""
    rows = [[name, *map(percent, estimates)] for name, estimates in _shares(recalls, k)]
    return ["", *(one.by for one in recalls)], [*rows, ["MRR", *(_mean(one.reciprocal) for one in recalls)]]


def as_json(recall: Recall, k: int) -> dict[str, Any]:
    """The recall as JSON data."""
    return {
        "by": recall.by,
        "questions": len(recall.results),
        "recall": {str(n): _interval(recall.at(n)) for n in _ks(k)},
        "shown": _interval(recall.in_view),
        "mrr": _interval(recall.reciprocal),
        "misses": [_miss(one, k) for one in recall.misses(k)],
    }


def page(recalls: Sequence[Recall], k: int, about: str) -> str:
    """The HTML page. `about` describes what was measured."""
    titles, rows = table(recalls, k)
    return rendered(
        PAGE,
        about=about,
        titles=titles,
        rows=rows,
        legend=plots.legend([one.by for one in recalls]),
        picture=plots.bars(_shares(recalls, k)),
        k=k,
        missed=[_missed(one, k) for one in recalls],
    )


def needed(retrieval: Retrieval, k: int) -> str:
    """The needed tools that are not among the first `k`, each with its rank, as text."""
    return ", ".join(f"{name} ({rank or 'not found'})" for name, rank in retrieval.instead(k).items())


def _ks(k: int) -> list[int]:
    return sorted({*KS, k})


def _shares(recalls: Sequence[Recall], k: int) -> list[tuple[str, list[Estimate]]]:
    rows = [(f"recall@{n}", [one.at(n) for one in recalls]) for n in _ks(k)]
    return [*rows, ("shown to the model", [one.in_view for one in recalls])]


def _mean(estimate: Estimate) -> str:
    return f"{estimate.value:.2f} ({estimate.low:.2f}–{estimate.high:.2f})"


def _interval(estimate: Estimate) -> dict[str, float]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def _miss(retrieval: Retrieval, k: int) -> dict[str, Any]:
    return {
        "line": retrieval.example.line,
        "question": retrieval.example.question,
        "needed": {name: rank or None for name, rank in retrieval.instead(k).items()},
        "first": list(retrieval.first),
    }


def _missed(recall: Recall, k: int) -> dict[str, Any]:
    misses = recall.misses(k)
    rows = [
        {
            "line": one.example.line,
            "question": one.example.question[:LONG],
            "needed": needed(one, k),
            "first": ", ".join(one.first) or "nothing",
        }
        for one in misses[:MOST_MISSES]
    ]
    left = len(misses) - len(rows)
    return {"by": recall.by, "count": len(misses), "total": len(recall.results), "misses": rows, "left": left}
