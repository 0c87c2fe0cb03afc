"""The progress of `toolspeak batch`: a bar on a terminal, otherwise a line from time to time."""

from __future__ import annotations

import math
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
    """Progress of a batch on standard error: rows, rate, time left, tokens, cost, errors by kind. None if `quiet`."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.last = time.monotonic()
        self.summary: Summary | None = None
        self.bar: Any = None
        self.every = math.inf if quiet else FRAME if is_fancy(sys.stderr) else EVERY
        if self.every == FRAME:
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
        if now - self.last < self.every:
            return
        self.last = now
        if self.bar is None:
            parts = (_count(summary), _pace(summary), _spent(summary), _errors(summary), _left(summary))
            click.echo(f"{time.strftime('%H:%M:%S')} {summary.out}: {', '.join(filter(None, parts))}", err=True)
            return
        self.bar.update(
            self.task,
            completed=summary.done,
            total=summary.rows,
            rate=_pace(summary),
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


def _pace(summary: Summary) -> str:
    """Return the rate, with the limit while the server refuses; if it refuses everything, until when it is asked."""
    if summary.refused:
        times = time_text(summary.refused), time_text(summary.patience)
        return "waiting: {} for every request for {}, the job ends after {}".format(summary.refusal, *times)
    limit = f", {summary.limit} of {summary.concurrency} at once: {summary.refusal}" if summary.refusal else ""
    return f"{summary.rate:,.1f} rows/s{limit}"


def _left(summary: Summary) -> str:
    if not summary.rows or not summary.rate or summary.refused:
        return ""
    return f"about {time_text(max(0, summary.rows - summary.done) / summary.rate)} left"


def _spent(summary: Summary) -> str:
    tokens = summary.prompt_tokens + summary.completion_tokens
    cost = "" if summary.cost is None else f", cost {summary.cost:,.4f}"
    return f"{tokens:,} tokens{cost}" if tokens else ""


def _errors(summary: Summary) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in summary.kinds.most_common(3))
