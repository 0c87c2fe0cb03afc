"""Reports each finished request to the access log, the metrics and the trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...api.incoming import IncomingRequest
from ..context import RequestContext
from ..registry import Served
from .log_lines import Lines, request_line
from .metrics import Metrics
from .request_record import Record, request_id
from .traces import Traces, tracing

QUIET = frozenset(("/", "/livez", "/readyz", "/health", "/metrics", "/ui"))
"""What is asked every few seconds: logged with `--verbose` alone."""


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

    def request_read(self, exchange: RequestContext, asked: IncomingRequest, served: Served) -> Served:
        """Notes which model is asked for; gives it back, its replies traced where the request is."""
        exchange.record.model = served.settings.name  # what the client calls it may be any text
        exchange.record.stream = asked.stream
        if not self.traces or not exchange.span:
            return served
        return replace(served, model=self.traces.traced(served.model, exchange.span, served.settings.name))

    def end(self, record: Record, span: Any, *, gone: bool) -> None:
        """The request is over."""
        record.close(gone=gone)
        self.metrics.count(record)
        if self.lines and (record.route not in QUIET or self.lines.detail):
            self.lines.write(request_line(record))
        if self.traces and span:
            self.traces.end(span, record)
