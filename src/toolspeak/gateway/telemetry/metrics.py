"""Prometheus metrics: counters and histograms of requests, and how full the gateway is.

Label values are only names that the operator or this program chose: existing routes and models, rules, reasons,
statuses. With several workers, each one counts in a file in the directory PROMETHEUS_MULTIPROC_DIR (`server` sets it
before this module is imported), and any of them reports the sum.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import Any, cast

from .request_record import RequestRecord

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60, 120, 300, 600)
CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"

_MODEL = re.compile(rb'[{,]model="((?:[^"\\]|\\.)*)"')


class Metrics:
    """The metrics of one gateway. Raises ImportError without prometheus-client."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

        disable_created_metrics()  # no creation time of each series: it would double the output
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "toolspeak_requests", "Requests answered.", ["route", "model", "status"], registry=registry
        )
        self.seconds = Histogram(
            "toolspeak_request_seconds", "Seconds from a request to the end of its answer.", ["route", "model"],
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self.first = Histogram(
            "toolspeak_first_token_seconds", "Seconds from a request to the first of its answer.", ["route", "model"],
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self.tokens = Counter("toolspeak_tokens", "Tokens read and written.", ["model", "kind"], registry=registry)
        self.calls = Counter("toolspeak_calls", "Tool calls passed on.", ["model"], registry=registry)
        self.ran = Counter(
            "toolspeak_calls_ran",
            "Calls of the operator's tools that ran in the gateway.",
            ["model"],
            registry=registry,
        )
        self.repairs = Counter("toolspeak_repairs", "Replies repaired, by rule.", ["model", "rule"], registry=registry)
        self.reasks = Counter(
            "toolspeak_reasks", "Times a model was asked again after an invalid reply.", ["model"], registry=registry
        )
        self.retries = Counter(
            "toolspeak_retries", "Times a request was sent to an upstream again.", ["model"], registry=registry
        )
        self.refusals = Counter(
            "toolspeak_refusals", "Requests refused or failed, by reason.", ["route", "reason"], registry=registry
        )
        self.gone = Counter("toolspeak_clients_gone", "Clients that left early.", ["route"], registry=registry)
        self._running = Gauge(
            "toolspeak_running", "Requests in progress.", registry=registry, multiprocess_mode="livesum"
        )
        self._waiting = Gauge(
            "toolspeak_waiting", "Requests waiting in the queue.", registry=registry, multiprocess_mode="livesum"
        )
        self._breakers = Gauge(
            "toolspeak_breaker_open", "1 while an upstream gets no requests after failures (its circuit breaker is open).", ["model", "upstream"],
            registry=registry, multiprocess_mode="livesum",
        )  # fmt: skip
        self._children: dict[tuple[Any, ...], Any] = {}

    def count(self, record: RequestRecord) -> None:
        """Add a finished request."""
        route, model = record.route, record.model
        self._child(self.requests, route, model, str(record.status)).inc()
        self._child(self.seconds, route, model).observe(record.seconds)
        if record.first is not None:
            self._child(self.first, route, model).observe(record.first)
        if record.tokens_in or record.tokens_out:
            self._child(self.tokens, model, "input").inc(record.tokens_in)
            self._child(self.tokens, model, "output").inc(record.tokens_out)
        if record.calls:
            self._child(self.calls, model).inc(record.calls)
        if record.ran:
            self._child(self.ran, model).inc(record.ran)
        if record.repairs:
            for rule, times in record.repairs.items():
                self._child(self.repairs, model, rule).inc(times)
        if record.reasks:
            self._child(self.reasks, model).inc(record.reasks)
        if record.retries:
            self._child(self.retries, model).inc(record.retries)
        if record.gone:
            self._child(self.gone, route).inc()
        elif record.code:
            self._child(self.refusals, route, record.code).inc()

    def full(self, running: int, waiting: int) -> None:
        """Set how many requests are running and waiting."""
        self._running.set(running)
        self._waiting.set(waiting)

    def breakers(self, states: Iterable[tuple[str, str, bool]]) -> None:
        """Set whether the circuit breaker of each upstream is open: (model, upstream, open)."""
        for model, upstream, is_open in states:
            self._child(self._breakers, model, upstream).set(1 if is_open else 0)

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        from prometheus_client import CollectorRegistry, generate_latest

        if not os.environ.get(DIRECTORY):
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        registry.register(_Workers())
        return generate_latest(registry)

    def _child(self, metric: Any, *labels: str) -> Any:
        """Return the labelled metric, cached: a call of `labels` costs more than counting."""
        key = (metric, *labels)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = metric.labels(*labels)
        return child


def key_figures(rows: Iterable[tuple[str, str, float, float]]) -> bytes:
    """Return metrics of what keys have spent and may spend today, from (key, tokens or money, spent, budget)."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import GaugeMetricFamily

    spent = GaugeMetricFamily("toolspeak_key_spent", "What a key has used today (UTC).", labels=["key", "unit"])
    budget = GaugeMetricFamily("toolspeak_key_budget", "What a key may use per day.", labels=["key", "unit"])
    for key, unit, used, most in rows:
        spent.add_metric([key, unit], used)
        budget.add_metric([key, unit], most)
    registry = CollectorRegistry()
    registry.register(_Families([spent, budget]))
    return generate_latest(registry)


class _Families:
    """A collector of metrics that are already built."""

    def __init__(self, families: list[Any]) -> None:
        self._families = families

    def collect(self) -> Iterable[Any]:
        return self._families


def only_of(text: bytes, visible: Callable[[str], bool]) -> bytes:
    """Return the text without the metrics of models that a client may not see."""
    hidden: dict[bytes, bool] = {}

    def is_hidden(line: bytes) -> bool:
        match = None if line.startswith(b"#") else _MODEL.search(line)
        if match is None or not match[1]:
            return False
        if match[1] not in hidden:
            name = match[1].decode().replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")
            hidden[match[1]] = not visible(name)
        return hidden[match[1]]

    return b"\n".join(line for line in text.split(b"\n") if not is_hidden(line))


class _Workers:
    """Sums the counts of all workers. A file that a starting worker has just created is empty, and cannot be read yet."""

    def collect(self) -> Any:
        from prometheus_client.multiprocess import MultiProcessCollector

        with os.scandir(os.environ[DIRECTORY]) as entries:
            paths = [entry.path for entry in entries if entry.name.endswith(".db")]
        merge = cast("Callable[[list[str]], Any]", MultiProcessCollector.merge)  # pyright: ignore[reportUnknownMemberType]
        return merge([path for path in paths if _size(path)])


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:  # a dead worker's gauges were removed
        return 0


def worker_died(pid: int) -> None:
    """Remove the gauges of a dead worker; its counters stay."""
    from prometheus_client import multiprocess

    forget = cast("Callable[[int], None]", multiprocess.mark_process_dead)  # pyright: ignore[reportUnknownMemberType]
    forget(pid)
