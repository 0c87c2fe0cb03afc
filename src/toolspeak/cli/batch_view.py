"""The progress of `toolspeak batch`: a bar on a terminal, otherwise a line from time to time."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from ..display import visible
from .terminal import console, is_fancy, time_text

if TYPE_CHECKING:
    from ..batch.summary import Summary

EVERY = 15.0
"""Seconds between two lines if standard error is not a terminal."""
FRAME = 0.1
"""Seconds between two updates of the bar."""


class BatchProgress:
    """Progress of a batch on standard error: rows, rate, time left, tokens, cost, errors by kind."""

    def __init__(self) -> None:
        self.last = time.monotonic()
        self.summary: Summary | None = None
        self.bar: Any = None
        if is_fancy(sys.stderr):
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (
                BarColumn(16),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TextColumn("left"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[spent]}"),
                TextColumn("[red]{task.fields[errors]}"),
            )
            self.bar = Progress(*columns, console=console(sys.stderr), transient=True)
            self.task = self.bar.add_task("", total=None, rate="", spent="", errors="")
            self.bar.start()

    def update(self, summary: Summary) -> None:
        """Show the progress of the batch."""
        self.summary = summary
        now = time.monotonic()
        if now - self.last < (EVERY if self.bar is None else FRAME):
            return
        self.last = now
        if self.bar is None:
            left = f", about {time_text(_left(summary))} left" if summary.rows and summary.rate else ""
            parts = (_count(summary), f"{summary.rate:,.1f} rows/s", _spent(summary), _errors(summary))
            click.echo(", ".join(filter(None, parts)) + left, err=True)
            return
        self.bar.update(
            self.task,
            completed=summary.done,
            total=summary.rows,
            rate=f"{summary.rate:,.1f} rows/s, {summary.running} of {summary.limit}",
            spent=_spent(summary),
            errors=visible(_errors(summary)),
        )

    def __enter__(self) -> BatchProgress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None


def _count(summary: Summary) -> str:
    return f"{summary.done:,} rows" if summary.rows is None else f"{summary.done:,} of {summary.rows:,} rows"


def _left(summary: Summary) -> float:
    return max(0, (summary.rows or 0) - summary.done) / summary.rate


def _spent(summary: Summary) -> str:
    tokens = summary.prompt_tokens + summary.completion_tokens
    cost = "" if summary.cost is None else f", cost {summary.cost:,.4f}"
    return f"{tokens:,} tokens{cost}" if tokens else ""


def _errors(summary: Summary) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in summary.kinds.most_common(3))
