"""`ts.traced`: each question to a model is a span and counts in the metrics, and nothing that was said is told."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import toolspeak as ts
from replies import calls

SECRET = "canary-of-the-prompt"


class Collected:
    """What a model that is traced has told."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])

    def model(self, model: Any) -> ts.Model:
        return ts.traced(model, tracer_provider=self.tracers, meter_provider=self.meters)

    @property
    def points(self) -> dict[str, list[Any]]:
        """The measurements, by the names of their metrics."""
        metrics = self.reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
        return {metric.name: list(metric.data.data_points) for metric in metrics}


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def spoken(*events: Any, usage: ts.Usage) -> list[Any]:
    return [*events, ts.Finished("stop", usage)]


def test_a_run_is_a_span_for_each_question_and_a_count_of_its_tokens() -> None:
    got = Collected()
    last = spoken(ts.TextDelta(SECRET), usage=ts.Usage(30, 7))
    model = got.model(ts.Scripted([calls(("add", {"a": 1, "b": 2})), last], capabilities=["tools"]))
    with got.tracers.get_tracer("app").start_as_current_span("my request"):
        assert ts.run(SECRET, tools=[add], model=model, temperature=0.5, max_tokens=9).text == SECRET
    first, second, mine = got.exporter.get_finished_spans()
    assert {span.parent.span_id for span in (first, second)} == {mine.context.span_id}
    told = dict(second.attributes)
    assert told.pop("gen_ai.response.time_to_first_chunk") > 0
    assert told == {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "toolspeak", "gen_ai.request.model": "scripted",
        "gen_ai.request.temperature": 0.5, "gen_ai.request.max_tokens": 9, "toolspeak.calls": 0,
        "gen_ai.response.finish_reasons": ("stop",), "gen_ai.usage.input_tokens": 30, "gen_ai.usage.output_tokens": 7,
    }  # fmt: skip
    assert first.attributes["toolspeak.calls"] == 1
    assert SECRET not in first.to_json() + second.to_json()

    points = got.points
    assert [point.count for point in points["gen_ai.client.operation.duration"]] == [2]
    tokens = {point.attributes["gen_ai.token.type"]: point.sum for point in points["gen_ai.client.token.usage"]}
    assert tokens == {"input": 30, "output": 7}
    assert points["gen_ai.client.token.usage"][0].explicit_bounds[:3] == (1, 4, 16)
    assert SECRET not in str(points)


def test_an_error_is_told_by_its_kind() -> None:
    got = Collected()
    with pytest.raises(ts.ServerFailed):
        ts.run("Hi", model=got.model(ts.Scripted([ts.ServerFailed(SECRET)], capabilities=["tools"])))
    (span,) = got.exporter.get_finished_spans()
    assert (span.attributes["error.type"], span.status.status_code.name) == ("ServerFailed", "ERROR")
    (point,) = got.points["gen_ai.client.operation.duration"]
    assert (point.count, point.attributes["error.type"]) == (1, "ServerFailed")
    assert SECRET not in span.to_json()


def test_a_reply_that_is_left_early_counts_once() -> None:
    got = Collected()

    async def go() -> None:
        stream: Any = got.model(ts.Scripted("a b c d e", capabilities=["tools"])).stream(ts.Request([]))
        async for _ in stream:
            break
        await stream.aclose()

    asyncio.run(go())
    assert len(got.exporter.get_finished_spans()) == 1
    assert [point.count for point in got.points["gen_ai.client.operation.duration"]] == [1]


def test_without_providers_nothing_is_told_and_the_model_answers() -> None:
    assert ts.run("Hi", model=ts.traced(ts.Scripted("Hello.", capabilities=["tools"]))).text == "Hello."


def test_without_the_library_one_line_says_what_to_install() -> None:
    code = "import sys; sys.modules['opentelemetry'] = None\nimport toolspeak as ts\nts.traced('scripted:x')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stderr.splitlines()[-1].endswith(
        "MissingExtra: spans and metrics need opentelemetry-api: pip install 'toolspeak[otel]'"
    )
