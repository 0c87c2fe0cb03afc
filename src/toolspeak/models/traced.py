"""Spans and metrics of the questions to a model, by OpenTelemetry's conventions for generative AI.

Each question is a span of the kind client, and counts in two histograms: how long it took, and the tokens that it read and
wrote. What was said is never told. Needs opentelemetry-api (the `otel` extra) and providers that record; without those
nothing is done.

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
from .fallback import calling
from .resolve import model as named_model
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
"""The boundaries of the histograms, as the conventions have them."""


class Telemetry:
    """What makes spans and counts, by these providers or those that are set for the process. Raises ImportError without
    opentelemetry."""

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
        """The span of one question to a model, under that of the context."""
        told = about(name)
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

    def count(self, name: str, seconds: float, usage: Usage, error: BaseException | None) -> None:
        """Counts a question that is over. Tokens that nobody told are not counted."""
        told = about(name)
        for kind, tokens in (("input", usage.prompt_tokens), ("output", usage.completion_tokens)):
            if tokens:
                self._tokens.record(tokens, {**told, TOKEN_TYPE: kind})
        if error is not None:
            told[ERROR_TYPE] = type(error).__name__
        self._seconds.record(seconds, told)


def about(name: str) -> dict[str, Any]:
    """What every span and measurement of a model says."""
    return {OPERATION: "chat", PROVIDER: TOOLSPEAK, REQUEST_MODEL: name}


class Traced(Wrapper[Model]):
    """A model whose replies are spans, and counted; see `traced`. `context` is what the spans stand under, else the
    current one."""

    def __init__(self, model: Model, telemetry: Telemetry, context: Any = None, name: str = "") -> None:
        super().__init__(model)
        self._telemetry = telemetry
        self._context = context
        self._shown = name or model.name

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        span = self._telemetry.begin(self._context, self._shown, request)
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
            self._telemetry.count(self._shown, time.perf_counter() - began, usage, ended)


def traced(model: str | Model | None = None, *, tracer_provider: Any = None, meter_provider: Any = None) -> Traced:
    """The model, each question to it a span and counted in OpenTelemetry's metrics, by the conventions for generative AI.

    Without providers of your own, those that are set for the process are used. Neither prompts nor replies are told. Raises
    MissingExtra without opentelemetry-api.
    """
    try:
        telemetry = Telemetry(tracer_provider, meter_provider)
    except ImportError as error:
        raise MissingExtra("spans and metrics need opentelemetry-api: pip install 'toolspeak[otel]'") from error
    return Traced(calling(named_model(model)), telemetry)
