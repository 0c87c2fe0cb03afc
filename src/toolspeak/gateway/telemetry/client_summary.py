"""Sums up one client's requests for the summary of `toolspeak launch`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ...schema.phrases import number_of
from .observer import Observer
from .request_record import RequestRecord

LOOKING = (("", ""), ("", "not_found"), ("", "method_not_allowed"))
"""The model and the code of a client's look at what there is."""
TOO_LONG = "context_length_exceeded"
"""The code of a prompt that does not fit into the model's context."""


class Tally(Observer):
    """An observer that logs nothing and sums up."""

    def __init__(self) -> None:
        super().__init__()
        self.sums: Counter[str] = Counter()
        self.repairs: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.visible_tools = ""

    def end(self, record: RequestRecord, span: Any, *, gone: bool) -> None:
        """Add a finished request."""
        super().end(record, span, gone=gone)
        if record.method == "HEAD" or (record.model, record.code) in LOOKING:
            return
        self.sums.update(
            requests=1, calls=record.calls, tokens_in=record.tokens_in, tokens_out=record.tokens_out,
            reasks=record.reasks, searches=record.searches,
        )  # fmt: skip
        self.repairs.update(record.repairs)
        if record.code:
            self.failures[f"{record.code} ({record.status})"] += 1
        if record.visible_tools:
            self.visible_tools = record.visible_tools

    def summary(self, model: str) -> Iterator[str]:
        """Yield lines for a person: requests, repairs, hidden tools and failures."""
        sums = self.sums
        tokens = f"{sums['tokens_in']:,} tokens read, {sums['tokens_out']:,} written"
        yield f"toolspeak: {number_of(sums['requests'], 'request')} to {model}, {number_of(sums['calls'], 'tool call')}, {tokens}"
        noted = self.repairs + Counter({"re-asked": sums["reasks"]})
        if noted:
            yield f"  repaired or noted: {_listed(noted)}"
        if self.visible_tools:
            yield f"  left out: tools ({self.visible_tools} were shown), {sums['searches']} searches for others"
        if self.failures:
            yield f"  failed: {_listed(self.failures)}"
        if any(name.startswith(TOO_LONG) for name in self.failures):
            yield "  too long: set the model's `context` in the configuration (--config), so that the agent compacts in time"


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {times}" for name, times in counts.most_common())
