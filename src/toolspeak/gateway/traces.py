"""Spans by OpenTelemetry's conventions for HTTP servers and generative AI. All names are here.

Needs opentelemetry-api (the `otel` extra) and a provider that records, such as `opentelemetry-instrument` sets up.
Without either nothing is done. What was said is never told.

Source: the semantic conventions, sections HTTP spans (stable) and GenAI spans (in development).
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from ..events import CallStart, Event, Finished
from ..models.base import Capability, Model
from ..types import Request
from .record import Record

HTTP_METHOD = "http.request.method"
HTTP_ROUTE = "http.route"
HTTP_STATUS = "http.response.status_code"
ERROR_TYPE = "error.type"
OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_STREAM = "gen_ai.request.stream"
REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens"
REQUEST_TEMPERATURE = "gen_ai.request.temperature"
FINISH_REASONS = "gen_ai.response.finish_reasons"
TIME_TO_FIRST = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
# Ours, for what the conventions have no name for.
REQUEST_ID = "toolspeak.request.id"
ESTIMATED = "toolspeak.usage.estimated"
CALLS = "toolspeak.calls"
REASKS = "toolspeak.reasks"
REPAIRS = "toolspeak.repairs"
RETRIES = "toolspeak.retries"

OPERATIONS = {"/v1/completions": "text_completion", "/v1/embeddings": "embeddings"}
"""What a route does, in the words of `gen_ai.operation.name`; all others are `chat`."""
TOOLSPEAK = "toolspeak"


class Traces:
    """Makes the spans of requests. `tracing` gives one where there is something to trace with."""

    def __init__(self, provider: Any = None) -> None:
        from opentelemetry import propagate, trace

        self._trace = trace
        self._extract = propagate.extract
        self.tracer: Any = trace.get_tracer(TOOLSPEAK, tracer_provider=provider)

    def begin(self, record: Record, headers: list[tuple[bytes, bytes]]) -> Any:
        """The span of a request, under the one that the client's `traceparent` names; None where none is recorded."""
        carrier = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in headers
            if name in (b"traceparent", b"tracestate")
        }
        span = self.tracer.start_span(
            record.method, self._extract(carrier) if carrier else None, self._trace.SpanKind.SERVER
        )
        return span if span.is_recording() else None

    def end(self, span: Any, record: Record) -> None:
        """Tells the span what the record says, and ends it."""
        if record.route != "unknown":
            span.update_name(f"{record.method} {record.route}")
            span.set_attribute(HTTP_ROUTE, record.route)
        span.set_attributes({HTTP_METHOD: record.method, HTTP_STATUS: record.status, REQUEST_ID: record.id})
        if record.model:
            told: dict[str, Any] = {
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
                told[ESTIMATED] = True
            if record.finish:
                told[FINISH_REASONS] = [record.finish]
            if record.first is not None:
                told[TIME_TO_FIRST] = record.first
            if record.repairs:
                told[REPAIRS] = sorted(record.repairs)
            span.set_attributes(told)
        if record.code:
            span.set_attribute(ERROR_TYPE, record.code)
        if record.status >= 500:
            span.set_status(self._trace.StatusCode.ERROR)
        span.end()

    def traced(self, model: Model, span: Any, name: str) -> Model:
        """The model, each question to it a span under that of the request."""
        return _Traced(self, model, self._trace.set_span_in_context(span), name)

    def ask(self, context: Any, name: str, request: Request) -> Any:
        """The span of one question to a model."""
        told: dict[str, Any] = {OPERATION: "chat", PROVIDER: TOOLSPEAK, REQUEST_MODEL: name}
        if request.max_tokens is not None:
            told[REQUEST_MAX_TOKENS] = request.max_tokens
        if request.temperature is not None:
            told[REQUEST_TEMPERATURE] = request.temperature
        return self.tracer.start_span(f"chat {name}", context, self._trace.SpanKind.CLIENT, told)

    def failed(self, span: Any, error: BaseException) -> None:
        """Says of a span what kind of error ended it; the message may repeat what was said."""
        span.set_attribute(ERROR_TYPE, type(error).__name__)
        if isinstance(error, Exception):
            span.set_status(self._trace.StatusCode.ERROR)


class _Traced:
    """A model whose replies are spans."""

    def __init__(self, traces: Traces, model: Model, context: Any, shown: str) -> None:
        self._traces = traces
        self.model = model
        self._context = context
        self._shown = shown
        self.name = model.name
        self.capabilities: frozenset[Capability] = model.capabilities

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        span = self._traces.ask(self._context, self._shown, request)
        began = time.perf_counter()
        calls = 0
        first = False
        try:
            stream: Any = self.model.stream(request)
            async with aclosing(stream) as events:
                async for event in events:
                    if not first:
                        first = True
                        span.set_attribute(TIME_TO_FIRST, time.perf_counter() - began)
                    if isinstance(event, CallStart):
                        calls += 1
                    elif isinstance(event, Finished):
                        span.set_attributes({
                            FINISH_REASONS: [event.finish],
                            INPUT_TOKENS: event.usage.prompt_tokens,
                            OUTPUT_TOKENS: event.usage.completion_tokens,
                            CALLS: calls,
                        })  # fmt: skip
                    yield event
        except BaseException as error:
            self._traces.failed(span, error)
            raise
        finally:
            span.end()


def tracing() -> Traces | None:
    """Traces, where opentelemetry is installed and something records them."""
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    # Without an SDK the global provider only stands in for one; nothing it makes is ever recorded.
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    return Traces()
