"""Reports each finished request to the access log, the metrics and the trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...api.incoming import IncomingRequest
from ..http_exchange import HttpExchange
from ..registry import Served
from .log_lines import LogLines, request_line
from .metrics import Metrics
from .request_record import RequestRecord, request_id
from .traces import Traces, tracing

QUIET = frozenset(("/", "/livez", "/readyz", "/health", "/metrics", "/ui"))
"""Routes that are polled every few seconds, so they are logged only with `--verbose`."""


class Observer:
    """Reports every request at its end. Without `lines` nothing is logged."""

    def __init__(self, lines: LogLines | None = None, traces: Traces | None = None) -> None:
        self.lines = lines
        self.metrics = Metrics()
        self.traces = traces or tracing()

    def begin(self, method: str, headers: list[tuple[bytes, bytes]]) -> tuple[RequestRecord, Any]:
        """Return the record of a new request, and its span (None without tracing)."""
        record = RequestRecord(request_id(headers), method)
        return record, self.traces.begin(record, headers) if self.traces else None

    def request_read(self, exchange: HttpExchange, incoming: IncomingRequest, served: Served) -> Served:
        """Return the requested model; its replies are traced if the request is."""
        exchange.record.stream = incoming.stream
        if not self.traces or not exchange.span:
            return served
        return replace(served, model=self.traces.traced(served.model, exchange.span, served.settings.name))

    def end(self, record: RequestRecord, span: Any, *, gone: bool) -> None:
        """Report the end of a request."""
        record.close(gone=gone)
        self.metrics.count(record)
        if self.lines and (record.route not in QUIET or self.lines.detail):
            self.lines.write(request_line(record))
        if self.traces and span:
            self.traces.end(span, record)
