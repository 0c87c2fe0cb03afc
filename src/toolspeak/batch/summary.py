"""The counters of a batch: rows, errors, tokens, cost and rate, updated while it runs."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..schema.phrases import number_of
from .row import OutputRow


@dataclass(slots=True)
class Summary:
    """The counters of a batch; while it runs, the current ones.

    `rows` is the number of rows of the input, None while unknown. `done` rows have a record; `before` of them were
    written by an earlier run. `cut` answers of this run are incomplete, because they reached the limit of tokens (`max_tokens`,
    or the model's context) or a filter of its server. `errors` rows of this run have an error, counted by kind in `kinds`; `first_error`
    is the text of one. `standing` are errors of earlier runs that were left. `cost` is None without a price. `running` rows are in progress, at most
    `limit`, which is `concurrency` or less. `refusal` says why it is less if the server refused too much, such as
    `429`. The server has refused every request for `refused` seconds, after `patience` seconds the job ends.
    `interrupted`: rows are left for the next run.
    """

    out: Path
    fingerprint: str = ""
    rows: int | None = None
    done: int = 0
    before: int = 0
    cut: int = 0
    errors: int = 0
    standing: int = 0
    kinds: Counter[str] = field(default_factory=Counter[str])
    first_error: str = ""
    attempts: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    price: tuple[float, float] | None = None
    seconds: float = 0.0
    running: int = 0
    limit: int = 0
    concurrency: int = 0
    refusal: str = ""
    refused: float = 0.0
    patience: float = 0.0
    interrupted: bool = False
    began: float = field(default_factory=time.monotonic, repr=False)

    @property
    def new(self) -> int:
        """The number of rows that this run has written."""
        return self.done - self.before

    @property
    def rate(self) -> float:
        """Rows per second in this run."""
        return self.new / self.seconds if self.seconds else 0.0

    @property
    def cost(self) -> float | None:
        """What the tokens of this run cost, in the currency of the price."""
        if self.price is None:
            return None
        return (self.prompt_tokens * self.price[0] + self.completion_tokens * self.price[1]) / 1e6

    def add(self, record: OutputRow) -> None:
        """Count a record that was written."""
        self.done += 1
        self.attempts += record.attempts
        self.prompt_tokens += record.prompt_tokens
        self.completion_tokens += record.completion_tokens
        self.seconds = time.monotonic() - self.began
        if record.error is not None:
            self.errors += 1
            self.kinds[record.kind] += 1
            self.first_error = self.first_error or record.error
        elif record.finish in ("length", "content_filter"):
            self.cut += 1

    def add_earlier(self, *, failed: bool) -> None:
        """Counts a record that an earlier run wrote, and that stays."""
        self.done += 1
        self.before += 1
        self.standing += failed

    def as_dict(self) -> dict[str, Any]:
        """Return the counters by name."""
        names = "rows done before cut errors standing kinds attempts prompt_tokens completion_tokens cost rate seconds"
        counts = {name: getattr(self, name) for name in names.split()}
        return {"out": str(self.out), "fingerprint": self.fingerprint, **counts, "interrupted": self.interrupted}

    def __str__(self) -> str:
        rows = f"{self.done:,} of {self.rows:,} rows" if self.rows is not None else number_of(self.done, "row")
        parts = [f"{rows} in {self.out}"]
        if self.before:
            parts.append(f"{self.before:,} of them from before")
        if self.cut:
            parts.append(
                f"{number_of(self.cut, 'answer')} cut off (more fits with a higher max_tokens, or a longer context)"
            )
        if self.kinds:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.kinds.most_common())
            parts.append(f"{number_of(self.errors, 'error')} ({kinds})")
        if self.standing:
            parts.append(f"{number_of(self.standing, 'error')} from before")
        parts.append(number_of(self.prompt_tokens + self.completion_tokens, "token"))
        if self.cost is not None:
            parts.append(f"cost {self.cost:,.4f}")
        if self.interrupted:
            parts.append("interrupted")
        return "; ".join(parts)
