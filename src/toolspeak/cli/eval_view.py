"""The output of `toolspeak eval`: progress, tables of results, and the difference between two runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..display import visible
from .terminal import console, is_fancy, json_line, time_text

if TYPE_CHECKING:
    from ..evals import Comparison, Record
    from .terminal import Out

EVERY = 15.0
"""Seconds between two lines of progress if standard error is not a terminal."""


class ProgressReport:
    """Progress on standard error: a bar with the time left on a terminal, otherwise a line now and then."""

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

            # Long model names are cut, so that the counts fit into 80 columns.
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
        """Count a finished case and update the display."""
        self.done, self.new, self.total = done, self.new + 1, total
        self.right += record.right
        if self.bar is not None:
            if self.new == 1:
                self.bar.start()
            self.bar.update(self.task, completed=done, total=total, model=record.contender, share=self._share())
        elif time.monotonic() - self.last > EVERY:
            self.last = time.monotonic()
            left = (self.last - self.began) / self.new * (total - done)
            click.echo(
                f"{record.contender}: {done} of {total}, {self._share()}, about {time_text(left)} left", err=True
            )

    def _share(self) -> str:
        return f"{100 * self.right / self.new:.0f} % right"

    def stopped(self) -> None:
        """Print that the results so far are saved."""
        self.close()
        if self.new:
            click.echo(
                f"stopped: {self.done} of {self.total} are saved in {self.out}; run the same command to continue",
                err=True,
            )

    def close(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.stop()


# ------------------------------------------------------------------ results


def results(to: Out, folder: Path, records: Sequence[Record], as_json: bool) -> None:
    """Print the results of the records, and write their page."""
    from ..evals import as_json as summary_json, summarise, table, write_report

    summaries = summarise(records)
    page = write_report(folder)
    if as_json:
        to.json([summary_json(summary) for summary in summaries])
    else:
        print_table(to, *table(summaries))
    for line in reasons(records):
        click.echo(line, err=True)
    click.echo(f"report: {page}", err=True)


REASONS = 3
"""The most kinds of errors that are printed."""


def reasons(records: Sequence[Record]) -> list[str]:
    """Return why cases ended in an error: for each first line, how many cases there are and the first one in full."""
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
    """Print a table; at full width if standard output is not a terminal."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD if to.fancy else None, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)
    for title in titles:
        table.add_column(visible(title), overflow="fold")
    for row in rows:
        table.add_row(*map(visible, row))
    screen = console(to.stream)
    if not to.terminal:
        screen.width = 1000  # a program may read it: no folding
    screen.print(table)


def compared(to: Out, comparison: Comparison, most: int) -> None:
    """Print the comparison, with at most `most` of the changed cases."""
    from ..evals.report import compared_rows

    to.line(f"{comparison.first} → {comparison.second}")
    titles = ["", "cases", "won", "lost", "points", "p"]
    print_table(to, titles, compared_rows(comparison))
    to.line(comparison.verdict)
    if comparison.left_out:
        to.line(f"Left out: {comparison.left_out} cases that are in one run only, or that expect different calls.")
    for before, after in comparison.changes[:most]:
        to.line(f"{after.case}: {after.question[:100]}", before=("✓", "green") if after.right else ("✗", "red"))
        to.line(f"    before  {_came(before)}")
        to.line(f"    after   {_came(after)}")
    if len(comparison.changes) > most:
        to.line(f"… and {len(comparison.changes) - most} more changed (--cases N)")


def _came(record: Record) -> str:
    calls = "; ".join(f"{call['name']} {json_line(call['arguments'])}" for call in record.calls)
    came = calls or " ".join(record.text.split())[:100] or "nothing"
    return came if record.right else f"{came}  ({record.kind})"


def difference(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as JSON data."""
    whole = comparison.overall
    return {
        "first": comparison.first,
        "second": comparison.second,
        "verdict": comparison.verdict,
        "cases": whole.total,
        "left_out": comparison.left_out,
        "won": [after.case for _, after in comparison.changes if after.right],
        "lost": [after.case for _, after in comparison.changes if not after.right],
        "p": whole.p,
        "difference": [whole.difference.value, whole.difference.low, whole.difference.high],
        "mean_of_groups": [comparison.macro.value, comparison.macro.low, comparison.macro.high],
    }
