"""What one client asked of a gateway, added up: for the summary of `toolspeak launch`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from .observe import Observer
from .record import Record

LOOKING = ("", "not_found", "method_not_allowed")
"""What comes of a client's look at what there is."""


class Tally(Observer):
    """An observer that logs nothing and adds up."""

    def __init__(self) -> None:
        super().__init__()
        self.sums: Counter[str] = Counter()
        self.repairs: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.shown = ""

    def end(self, record: Record, span: Any, *, gone: bool) -> None:
        """The request is over."""
        super().end(record, span, gone=gone)
        if record.method == "HEAD" or (not record.model and record.code in LOOKING):
            return
        self.sums.update(
            requests=1, calls=record.calls, tokens_in=record.tokens_in, tokens_out=record.tokens_out,
            reasks=record.reasks, searches=record.searches,
        )  # fmt: skip
        self.repairs.update(record.repairs)
        self.failures.update([f"{record.code} ({record.status})"] if record.code else [])
        self.shown = record.shown or self.shown

    def summary(self, model: str) -> Iterator[str]:
        """Lines for a person: what was asked, what was repaired, what was left out, what failed."""
        sums = self.sums
        tokens = f"{sums['tokens_in']:,} tokens read, {sums['tokens_out']:,} written"
        yield f"toolspeak: {sums['requests']} requests to {model}, {sums['calls']} tool calls, {tokens}"
        if noted := [*self.repairs.most_common(), *([("asked-again", sums["reasks"])] if sums["reasks"] else [])]:
            yield f"  repaired or noted: {_listed(noted)}"
        if self.shown:
            yield f"  left out: tools ({self.shown} were shown), {sums['searches']} searches for others"
        if self.failures:
            yield f"  failed: {_listed(self.failures.most_common())}"


def _listed(rows: list[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {times}" for name, times in rows)
