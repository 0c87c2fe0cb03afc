"""Where the record of a request goes: a line of the log, the metrics, a span."""

from __future__ import annotations

from typing import Any

from ..models.base import Model
from .log import Lines, request_line
from .metrics import Metrics
from .record import Record, request_id
from .traces import Traces, tracing


class Observer:
    """Tells of every request once it is over. Without `lines` nothing is logged of it."""

    def __init__(self, lines: Lines | None = None, traces: Traces | None = None) -> None:
        self.lines = lines
        self.metrics = Metrics()
        self.traces = traces or tracing()

    def begin(self, method: str, headers: list[tuple[bytes, bytes]]) -> tuple[Record, Any]:
        """The record of a request that has come, and its span, None where nothing is traced."""
        record = Record(request_id(headers), method)
        return record, self.traces.begin(record, headers) if self.traces else None

    def traced(self, model: Model, span: Any, name: str) -> Model:
        """The model, its replies traced where the request is."""
        return self.traces.traced(model, span, name) if self.traces and span else model

    def end(self, record: Record, span: Any, *, gone: bool) -> None:
        """The request is over."""
        record.close(gone=gone)
        self.metrics.count(record)
        if self.lines:
            self.lines.write(request_line(record))
        if self.traces and span:
            self.traces.end(span, record)
