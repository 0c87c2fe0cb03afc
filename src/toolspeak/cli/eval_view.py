"""The output of `toolspeak eval`: progress, tables of results, and the difference between two runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..display import visible
from .terminal import console, is_fancy, json_line

if TYPE_CHECKING:
    from ..evals import Comparison, Record
    from .terminal import Out

EVERY = 15.0
"""Seconds between two lines of progress where standard error is no terminal."""


class ProgressReport:
    """Progress on standard error: a bar with the time left on a terminal, else a line now and then."""

    def __init__(self, out: Path, total: int) -> None:
        self.out, self.total, self.done, self.new = out, total, 0, 0
        self.right = 0
        self.began = self.last = time.monotonic()
        self.bar: Any = None
        if is_fancy(sys.stderr):
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )
            from rich.table import Column

            # Long names of models are cut, so that the counts stay in view on 80 columns.
            columns = (
                TextColumn("{task.fields[model]}", table_column=Column(no_wrap=True, max_width=24)),
                TextColumn("{task.fields[share]}"),
                BarColumn(16),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
            )
            self.bar = Progress(*columns, console=console(sys.stderr), transient=True)
            self.task = self.bar.add_task("", total=total, model="", share="")

    def case_done(self, record: Record, done: int, total: int) -> None:
        """Takes note of a case that is done."""
        self.done, self.new, self.total = done, self.new + 1, total
        self.right += record.right
        if self.bar is not None:
            if self.new == 1:
                self.bar.start()
            self.bar.update(self.task, completed=done, total=total, model=record.contender, share=self._share())
        elif time.monotonic() - self.last > EVERY:
            self.last = time.monotonic()
            left = (self.last - self.began) / self.new * (total - done)
            click.echo(f"{record.contender}: {done} of {total}, {self._share()}, about {_clock(left)} left", err=True)

    def _share(self) -> str:
        return f"{100 * self.right / self.new:.0f} % right"

    def stopped(self) -> None:
        """Says that nothing is lost."""
        self.close()
        if self.new:
            click.echo(
                f"stopped: {self.done} of {self.total} are kept in {self.out}; the same command goes on", err=True
            )

    def close(self) -> None:
        """Takes the bar away."""
        if self.bar is not None:
            self.bar.stop()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"{hours} h {minutes:02d} min" if hours else f"{minutes} min" if minutes >= 10 else f"{minutes}:{rest:02d} min"
    )


# ------------------------------------------------------------------ results


def results(to: Out, folder: Path, records: Sequence[Record], as_json: bool) -> None:
    """Tells what records come to, and writes the page on them."""
    from ..evals import as_json as summary_json, summarise, table, write_report

    summaries = summarise(records)
    page = write_report(folder)
    if as_json:
        to.json([summary_json(summary) for summary in summaries])
    else:
        print_table(to, *table(summaries))
    for line in reasons(records):
        click.echo(line, err=True)
    click.echo(f"to read: {page}", err=True)


REASONS = 3
"""Errors of so many kinds are shown."""


def reasons(records: Sequence[Record]) -> list[str]:
    """Why cases ended in an error: of each kind, by its first line, how many there are and the first in full."""
    kinds: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.kind == "error":
            kinds.setdefault((record.contender, record.detail.partition("\n")[0]), []).append(record)
    lines: list[str] = []
    for (contender, _), rows in list(kinds.items())[:REASONS]:
        many = (
            f"{len(rows)} cases of {contender} have no answer, the first"
            if len(rows) > 1
            else f"{contender} has no answer to"
        )
        lines.append(f"error: {visible(many)} {visible(rows[0].case)}: {visible(rows[0].detail)}")
    if len(kinds) > REASONS:
        lines.append(f"error: {len(kinds) - REASONS} other errors are on the page")
    return lines


def print_table(to: Out, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table, in full where standard output is no terminal."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD if to.fancy else None, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)
    for title in titles:
        made.add_column(visible(title), overflow="fold")
    for row in rows:
        made.add_row(*map(visible, row))
    screen = console(to.stream)
    if not to.terminal:
        screen.width = 1000  # lines are for programs there, and not folded
    screen.print(made)


def compared(to: Out, found: Comparison, shown: int) -> None:
    """Tells what changed, with so many of the cases."""
    from ..evals.report import compared_rows

    to.line(f"{found.first} → {found.second}")
    titles = ["", "cases", "won", "lost", "points", "p"]
    print_table(to, titles, compared_rows(found))
    to.line(found.verdict)
    if found.left_out:
        to.line(f"Left out: {found.left_out} cases that only one of them has, or that expect something else there.")
    for before, after in found.changes[:shown]:
        to.line(f"{after.case}: {after.question[:100]}", before=("✓", "green") if after.right else ("✗", "red"))
        to.line(f"    before  {_came(before)}")
        to.line(f"    after   {_came(after)}")
    if len(found.changes) > shown:
        to.line(f"… and {len(found.changes) - shown} more changed (--cases N)")


def _came(record: Record) -> str:
    calls = "; ".join(f"{call['name']} {json_line(call['arguments'])}" for call in record.calls)
    came = calls or " ".join(record.text.split())[:100] or "nothing"
    return came if record.right else f"{came}  ({record.kind})"


def difference(found: Comparison) -> dict[str, Any]:
    """What changed, for programs."""
    whole = found.overall
    return {
        "first": found.first,
        "second": found.second,
        "verdict": found.verdict,
        "cases": whole.total,
        "left_out": found.left_out,
        "won": [after.case for _, after in found.changes if after.right],
        "lost": [after.case for _, after in found.changes if not after.right],
        "p": whole.p,
        "difference": [whole.difference.value, whole.difference.low, whole.difference.high],
        "mean_of_groups": [found.macro.value, found.macro.low, found.macro.high],
    }
