"""Spans of requests by OpenTelemetry's conventions for HTTP servers and generative AI. The spans of model requests, and
metrics, are in `models.traced`.

Needs opentelemetry-api (the `otel` extra) and a provider that records, such as `opentelemetry-instrument` sets up.
Without either it does nothing. No text of a conversation is recorded.

Source: the semantic conventions, sections HTTP spans (stable) and GenAI spans (in development).
"""

from __future__ import annotations

from typing import Any

from ...models.base import Model
from ...models.traced import (
    CALLS,
    ERROR_TYPE,
    FINISH_REASONS,
    INPUT_TOKENS,
    OPERATION,
    OUTPUT_TOKENS,
    PROVIDER,
    REQUEST_MODEL,
    TIME_TO_FIRST,
    TOOLSPEAK,
    Telemetry,
    Traced,
)
from .request_record import RequestRecord

HTTP_METHOD = "http.request.method"
HTTP_ROUTE = "http.route"
HTTP_STATUS = "http.response.status_code"
REQUEST_STREAM = "gen_ai.request.stream"
# Our own attributes, for which the conventions have no names.
REQUEST_ID = "toolspeak.request.id"
ESTIMATED = "toolspeak.usage.estimated"
RAN = "toolspeak.calls_ran"
REASKS = "toolspeak.reasks"
REPAIRS = "toolspeak.repairs"
RETRIES = "toolspeak.retries"

OPERATIONS = {
    "/v1/completions": "text_completion", "/api/generate": "text_completion", "/v1/embeddings": "embeddings",
    "/api/embed": "embeddings",
}  # fmt: skip
"""The `gen_ai.operation.name` of a route; the default is `chat`."""


class Traces:
    """Makes the spans of requests. `tracing` returns one if tracing is set up."""

    def __init__(self, provider: Any = None, meters: Any = None) -> None:
        from opentelemetry import propagate, trace

        self._trace = trace
        self._extract = propagate.extract
        self.telemetry = Telemetry(provider, meters)
        self.tracer = self.telemetry.tracer

    def begin(self, record: RequestRecord, headers: list[tuple[bytes, bytes]]) -> Any:
        """Return the span of a request, with the client's `traceparent` as parent; None if nothing is recorded."""
        carrier = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in headers
            if name in (b"traceparent", b"tracestate")
        }
        span = self.tracer.start_span(
            record.method, self._extract(carrier) if carrier else None, self._trace.SpanKind.SERVER
        )
        return span if span.is_recording() else None

    def end(self, span: Any, record: RequestRecord) -> None:
        """Set the span's attributes from the record, and end it."""
        if record.route != "unknown":
            span.update_name(f"{record.method} {record.route}")
            span.set_attribute(HTTP_ROUTE, record.route)
        span.set_attributes({HTTP_METHOD: record.method, HTTP_STATUS: record.status, REQUEST_ID: record.id})
        if record.model:
            attributes: dict[str, Any] = {
                OPERATION: OPERATIONS.get(record.route, "chat"),
                PROVIDER: TOOLSPEAK,
                REQUEST_MODEL: record.model,
                REQUEST_STREAM: record.stream,
                INPUT_TOKENS: record.tokens_in,
                OUTPUT_TOKENS: record.tokens_out,
                CALLS: record.calls,
                REASKS: record.reasks,
                RETRIES: record.retries,
            }
            if record.estimated:
                attributes[ESTIMATED] = True
            if record.ran:
                attributes[RAN] = record.ran
            if record.finish:
                attributes[FINISH_REASONS] = [record.finish]
            if record.first is not None:
                attributes[TIME_TO_FIRST] = record.first
            if record.repairs:
                attributes[REPAIRS] = sorted(record.repairs)
            span.set_attributes(attributes)
        if record.code:
            span.set_attribute(ERROR_TYPE, record.code)
        if record.status >= 500:
            span.set_status(self._trace.StatusCode.ERROR)
        span.end()

    def traced(self, model: Model, span: Any, name: str) -> Model:
        """Return the model with a span for each request, under the span of the client's request."""
        return Traced(model, self.telemetry, self._trace.set_span_in_context(span), name)


def tracing() -> Traces | None:
    """Return Traces, if opentelemetry is installed and something records."""
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    # Without an SDK the global provider is a stand-in whose spans are never recorded.
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    return Traces()
