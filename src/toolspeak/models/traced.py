"""Spans and metrics of model requests, by OpenTelemetry's conventions for generative AI.

Each request is a span of kind client, and counts in two histograms: its duration, and its input and output tokens. No
text is recorded. Needs opentelemetry-api (the `otel` extra) and providers that record; without those nothing happens.

Source: the semantic conventions, GenAI spans and GenAI metrics (in development).
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from ..errors import MissingExtra
from ..events import CallStart, Event, Finished
from ..types import Request, Usage
from .base import Model
from .resolve import model as named_model
from .tool_calling import calling
from .wrapper import Wrapper

TOOLSPEAK = "toolspeak"
ERROR_TYPE = "error.type"
OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens"
REQUEST_TEMPERATURE = "gen_ai.request.temperature"
FINISH_REASONS = "gen_ai.response.finish_reasons"
TIME_TO_FIRST = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105 - no secret
CALLS = "toolspeak.calls"

DURATION = "gen_ai.client.operation.duration"
TOKEN_USAGE = "gen_ai.client.token.usage"  # noqa: S105
SECONDS = tuple(0.01 * 2**power for power in range(14))
TOKENS = tuple(4**power for power in range(14))
"""The bucket boundaries of the histograms, from the conventions."""


class Telemetry:
    """Makes spans and counts with these providers, or those of the process. Raises ImportError without opentelemetry."""

    def __init__(self, tracer_provider: Any = None, meter_provider: Any = None) -> None:
        from opentelemetry import metrics, trace

        self._trace = trace
        self.tracer: Any = trace.get_tracer(TOOLSPEAK, tracer_provider=tracer_provider)
        meter: Any = metrics.get_meter(TOOLSPEAK, meter_provider=meter_provider)
        self._seconds: Any = meter.create_histogram(
            DURATION, "s", "GenAI operation duration.", explicit_bucket_boundaries_advisory=SECONDS
        )
        self._tokens: Any = meter.create_histogram(
            TOKEN_USAGE,
            "{token}",
            "Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=TOKENS,
        )

    def begin(self, context: Any, name: str, request: Request) -> Any:
        """Return the span of one model request, under that of the context."""
        attributes = about(name)
        if request.max_tokens is not None:
            attributes[REQUEST_MAX_TOKENS] = request.max_tokens
        if request.temperature is not None:
            attributes[REQUEST_TEMPERATURE] = request.temperature
        return self.tracer.start_span(f"chat {name}", context, self._trace.SpanKind.CLIENT, attributes)

    def failed(self, span: Any, error: BaseException) -> None:
        """Set the type of the error that ended a span. The message is left out, because it may contain prompts."""
        span.set_attribute(ERROR_TYPE, type(error).__name__)
        if isinstance(error, Exception):
            span.set_status(self._trace.StatusCode.ERROR)

    def count(self, name: str, seconds: float, usage: Usage, error: BaseException | None) -> None:
        """Count a finished request. Unreported tokens are not counted."""
        attributes = about(name)
        for kind, tokens in (("input", usage.prompt_tokens), ("output", usage.completion_tokens)):
            if tokens:
                self._tokens.record(tokens, {**attributes, TOKEN_TYPE: kind})
        if error is not None:
            attributes[ERROR_TYPE] = type(error).__name__
        self._seconds.record(seconds, attributes)


def about(name: str) -> dict[str, Any]:
    """Return the attributes of every span and measurement of a model."""
    return {OPERATION: "chat", PROVIDER: TOOLSPEAK, REQUEST_MODEL: name}


class Traced(Wrapper[Model]):
    """A model whose requests are spans, and are counted; see `traced`. `context` is the parent, else the current span."""

    def __init__(self, model: Model, telemetry: Telemetry, context: Any = None, name: str = "") -> None:
        super().__init__(model)
        self._telemetry = telemetry
        self._context = context
        self._label = name or model.name

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        span = self._telemetry.begin(self._context, self._label, request)
        began = time.perf_counter()
        calls, first, usage = 0, False, Usage()
        ended: BaseException | None = None
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
                        usage = event.usage
                        span.set_attributes({
                            FINISH_REASONS: [event.finish],
                            INPUT_TOKENS: usage.prompt_tokens,
                            OUTPUT_TOKENS: usage.completion_tokens,
                            CALLS: calls,
                        })  # fmt: skip
                    yield event
        except BaseException as error:
            ended = error
            self._telemetry.failed(span, error)
            raise
        finally:
            span.end()
            self._telemetry.count(self._label, time.perf_counter() - began, usage, ended)


def traced(model: str | Model | None = None, *, tracer_provider: Any = None, meter_provider: Any = None) -> Traced:
    """Return the model with a span for each request, counted in OpenTelemetry's metrics, by the conventions for
    generative AI.

    The default providers are those of the process. Neither prompts nor replies are recorded. Raises MissingExtra
    without opentelemetry-api.
    """
    try:
        telemetry = Telemetry(tracer_provider, meter_provider)
    except ImportError as error:
        raise MissingExtra("spans and metrics need opentelemetry-api: pip install 'toolspeak[otel]'") from error
    return Traced(calling(named_model(model)), telemetry)
