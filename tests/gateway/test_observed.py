"""What is told of requests: a line, metrics, spans, an id; and what never is."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from test_aliases import CONFIG

from toolspeak.errors import ServerFailed
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Finished, TextDelta
from toolspeak.gateway.access.keys import digest
from toolspeak.gateway.config.load import parse_config
from toolspeak.gateway.config.settings import Key
from toolspeak.gateway.telemetry import traces
from toolspeak.gateway.telemetry.log_lines import LogLines, request_line
from toolspeak.gateway.telemetry.metrics import Metrics, only_of
from toolspeak.gateway.telemetry.request_record import RequestRecord, request_id
from toolspeak.gateway.telemetry.traces import Traces
from toolspeak.models import traced
from toolspeak.models.pool import Care, Pool
from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker
from toolspeak.types import Usage

CANARY = "canary-5f0e1d"
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CHAT: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": f"Weather in {CANARY}?"}],
    "tools": [TOOL],
}


class Kept(LogLines):
    """Keeps the lines."""

    def __init__(self) -> None:
        super().__init__(-1)
        self.lines: list[str] = []

    def write(self, line: str) -> None:
        self.lines.append(line)

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


def speaks(*replies: str) -> Speaker:
    return Speaker(Scripted(replies, repeat=True), "hermes")


def call(arguments: str) -> str:
    return f'<tool_call>\n{{"name": "weather", "arguments": {arguments}}}\n</tool_call>'


async def post(url: str, body: Any, headers: dict[str, str] | None = None, path: str = "/v1/chat/completions") -> Any:
    async with aiohttp.ClientSession() as client, client.post(url + path, json=body, headers=headers) as reply:
        return reply.status, reply.headers, await reply.text()


async def get(url: str, headers: dict[str, str] | None = None, method: str = "GET") -> Any:
    async with aiohttp.ClientSession() as client, client.request(method, url, headers=headers) as reply:
        return reply.status, reply.headers, await reply.text()


def test_a_request_is_told_in_one_line_and_counted(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        model = speaks(call('{"town": 1}'), "Let me look. " + call('{"city": "Xiamen",}'))
        async with serve_models(m=model) as running:
            running.gateway.observer.lines = kept = Kept()
            status, headers, text = await post(running.url, {**CHAT, "stream": True})
            assert status == 200
            (line,) = kept.records
            assert line | {"time": "", "seconds": 0, "first": 0, "tokens_in": 0, "tokens_out": 0} == {
                "time": "", "level": "info", "message": "request", "id": headers["x-request-id"], "method": "POST",
                "route": "/v1/chat/completions", "status": 200, "seconds": 0, "bytes": len(text.encode()),
                "model": "m", "stream": True, "tokens_in": 0, "tokens_out": 0, "calls": 1, "first": 0,
                "finish": "tool_calls", "repairs": line["repairs"], "reasks": 1, "estimated": True,
            }  # fmt: skip
            assert 0 < line["first"] <= line["seconds"]
            (rule,) = line["repairs"]
            told = (await get(running.url + "/metrics"))[2]
            for expected in (
                'toolspeak_requests_total{model="m",route="/v1/chat/completions",status="200"} 1.0',
                'toolspeak_calls_total{model="m"} 1.0',
                'toolspeak_reasks_total{model="m"} 1.0',
                f'toolspeak_repairs_total{{model="m",rule="{rule}"}} 1.0',
                'toolspeak_first_token_seconds_count{model="m",route="/v1/chat/completions"} 1.0',
                "toolspeak_running 0.0",
                "toolspeak_waiting 0.0",
            ):
                assert expected in told.splitlines(), told

    asyncio.run(go())


def test_tokens_are_counted_over_all_tries(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        wrong = [CallStart("weather", "a"), ArgumentsDelta("{}"), CallEnd(), Finished("tool_calls", Usage(10, 5))]
        model = Scripted([wrong, [TextDelta("Fine."), Finished("stop", Usage(20, 7))]], capabilities=["tools"])
        async with serve_models(m=model) as running:
            running.gateway.observer.lines = kept = Kept()
            await post(running.url, CHAT)
            assert (kept.records[0]["tokens_in"], kept.records[0]["tokens_out"]) == (30, 12)
            told = (await get(running.url + "/metrics"))[2]
            assert 'toolspeak_tokens_total{kind="output",model="m"} 12.0' in told

    asyncio.run(go())


def test_retries_are_counted_and_breakers_told(
    serve_models: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolspeak.models.retries.FIRST", 0.01)

    async def go() -> None:
        fine = [TextDelta("Fine."), Finished("stop", Usage(20, 7))]
        once = Scripted([ServerFailed("no", code=500), fine], capabilities=["tools"])
        down = Scripted([ServerFailed("no", code=500)], capabilities=["tools"], repeat=True)
        models = {"m": Pool([once]), "n": Pool([down], care=Care(attempts=1, failures=1))}
        async with serve_models(**models) as running:
            running.gateway.observer.lines = kept = Kept()
            assert (await post(running.url, CHAT))[0] == 200
            assert kept.records[0]["retries"] == 1
            await post(running.url, {**CHAT, "model": "n"})
            told = (await get(running.url + "/metrics"))[2]
            assert 'toolspeak_retries_total{model="m"} 1.0' in told
            assert 'toolspeak_breaker_open{model="m",upstream="scripted"} 0.0' in told
            assert 'toolspeak_breaker_open{model="n",upstream="scripted"} 1.0' in told
            status, _, text = await get(running.url + "/readyz")  # one model can still be asked
            assert (status, json.loads(text)) == (200, {"status": "ready", "models": ["n"]})
            running.gateway.readiness.failed["m"] = "WeightsError"
            assert (await get(running.url + "/readyz"))[0] == 503

    asyncio.run(go())


def test_nothing_that_a_client_says_becomes_a_label_or_a_log(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        keys = (Key("alice", digest("key-" + CANARY)),)
        key = {"authorization": f"Bearer key-{CANARY}"}
        async with serve_models(settings={"keys": keys}, m=speaks(f"Yes, {CANARY}.")) as running:
            running.gateway.observer.lines = kept = Kept()
            url = running.url
            assert (await post(url, CHAT, key))[0] == 200
            assert (await post(url, CHAT, {"authorization": f"Bearer {CANARY}"}))[0] == 401
            assert (await post(url, {**CHAT, "model": CANARY}, key))[0] == 404
            assert (await post(url, {**CHAT, CANARY: 1, "temperature": CANARY}, key))[0] == 400
            assert (await post(url, CHAT, key, path=f"/v1/{CANARY}?x={CANARY}"))[0] == 404
            assert (await post(url, CHAT, {**key, "x-request-id": f"{CANARY}\t"}))[0] == 200
            status, _, told = await get(url + "/metrics", key)
            assert status == 200
            assert CANARY not in told
            assert CANARY not in "".join(kept.lines).replace(f'"id": "{CANARY}"', "")
            assert {record["route"] for record in kept.records[:-1]} == {"/v1/chat/completions", "unknown"}
            assert {record.get("model") for record in kept.records[:-1]} == {"m", "unknown", None}
            assert kept.records[0]["key"] == "alice"
            assert kept.records[1]["route"] == "/v1/chat/completions"  # refused at the door
            assert [record.get("code") for record in kept.records[1:5]] == [
                "invalid_api_key", "model_not_found", "invalid_value", "not_found"
            ]  # fmt: skip
            assert 'reason="invalid_api_key"' in told
            assert (await get(url + "/metrics"))[0] == 401

    asyncio.run(go())


def test_a_fault_of_ours_is_told_without_what_was_said(
    serve_models: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    class Faulty(Scripted):
        async def stream(self, request: Any) -> Any:
            raise KeyError(f"what {CANARY} said")
            yield

    async def go() -> None:
        async with serve_models(m=Faulty([], capabilities=["tools"])) as running:
            status, headers, text = await post(running.url, CHAT)
            assert status == 500
            assert CANARY not in text
            (record,) = [record for record in caplog.records if record.name.startswith("toolspeak.gateway")]
            line = LogLines(-1).line(record)
            assert CANARY not in line
            told = json.loads(line)
            assert told["error"] == "KeyError"
            assert any("test_observed.py" in frame for frame in told["where"])
            assert headers["x-request-id"] in told["message"]
            assert CANARY in json.loads(LogLines(-1, detail=True).line(record))["said"]
            assert CANARY not in LogLines(-1, [CANARY], detail=True).line(record)

    asyncio.run(go())


def test_the_words_of_a_failed_server_are_logged_with_detail_only(
    serve_models: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    words = "CUDA out of\x9b memory" + 5000 * "!"

    async def go() -> None:
        failing = Scripted([ServerFailed(words, code=500)], capabilities=["tools"])
        async with serve_models(m=failing) as running:
            running.gateway.observer.lines = LogLines(-1)
            status, headers, text = await post(running.url, CHAT)
            assert status == 502
            assert "CUDA" not in text
            (record,) = [one for one in caplog.records if one.name.startswith("toolspeak.gateway")]
            line = json.loads(LogLines(-1).line(record))
            assert line["level"] == "warning"
            assert line["message"].startswith(
                f"request {headers['x-request-id']}: the model's server failed: upstream_failed, status 500"
            )
            assert (line["error"], line["said"]) == ("ServerFailed", "serve -v logs it")
            said = json.loads(LogLines(-1, detail=True).line(record))["said"]
            assert said.startswith("CUDA out of\\x9b memory!")
            assert len(said) < 2100

    asyncio.run(go())


def test_log_lines_are_json_whatever_is_in_them(tmp_path: Path) -> None:
    path = tmp_path / "log"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    lines = LogLines(descriptor, ["s3cret"])
    for message, arguments in (
        ("two\nlines, %s and half of a pair \ud800", ("s3cret",)),
        ("wrong %d", ("arguments",)),
    ):
        lines.handle(logging.LogRecord("toolspeak.test", logging.WARNING, __file__, 1, message, arguments, None))
    os.close(descriptor)
    first, second = path.read_bytes().splitlines()
    assert json.loads(second)["message"] == "wrong %d"
    told = json.loads(first)
    assert told["message"].startswith("two\nlines, *** and")
    assert told["level"] == "warning"
    lines.write("nobody listens: the descriptor is closed")


@pytest.mark.parametrize(
    ("given", "taken"),
    [("abc-1.2_3", True), ("x" * 64, True), ("x" * 65, False), ("a b", False), ('a"}', False), ("", False)],
)
def test_a_request_has_an_id(given: str, taken: bool) -> None:
    made = request_id([(b"host", b"x"), (b"x-request-id", given.encode())])
    assert (made == given) is taken
    assert taken or re.fullmatch(r"req_[0-9a-f]{24}", made)


def test_health(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        keys = (Key("alice", digest("good")),)
        async with serve_models(settings={"keys": keys}, m=speaks("Hi")) as running:
            for path in ("/livez", "/readyz", "/health"):
                assert (await get(running.url + path))[::2] == (200, await told(running.url + path))
                status, headers, text = await get(running.url + path, method="HEAD")
                assert (status, text) == (200, "")
                assert int(headers["content-length"]) > 0
                assert (await post(running.url, {}, path=path))[0] == 405
            running.gateway.readiness.loading = True
            running.gateway.readiness.failed["m"] = "WeightsError"
            status, headers, text = await get(running.url + "/readyz")
            assert (status, json.loads(text)) == (503, {"status": "not ready"})
            assert headers["retry-after"] == "1"
            text = (await get(running.url + "/readyz", {"x-api-key": "good"}))[2]
            assert json.loads(text) == {"status": "not ready", "loading": True, "models": ["m"]}
            assert (await get(running.url + "/livez"))[0] == 200

    async def told(url: str) -> str:
        return '{"status":"%s"}' % ("alive" if url.endswith("livez") else "ready")

    asyncio.run(go())


# ------------------------------------------------------------------ spans


@pytest.fixture
def spans() -> tuple[TracerProvider, InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


def test_a_request_is_a_span_and_each_question_one_under_it(serve_models: Callable[..., Any], spans: Any) -> None:
    provider, exporter = spans

    async def go() -> None:
        model = speaks(call('{"town": 1}'), call('{"city": "Xiamen"}'))
        async with serve_models(m=model) as running:
            running.gateway.observer.traces = Traces(provider)
            trace = "0af7651916cd43dd8448eb211c80319c"
            await post(running.url, CHAT, {"traceparent": f"00-{trace}-b7ad6b7169203331-01"})
            first, second, server = exporter.get_finished_spans()
            assert f"{server.context.trace_id:032x}" == trace
            assert f"{server.parent.span_id:016x}" == "b7ad6b7169203331"
            assert (server.name, server.kind.name) == ("POST /v1/chat/completions", "SERVER")
            told = {**server.attributes, traces.REQUEST_ID: "", traces.TIME_TO_FIRST: 0}
            assert told.pop(traces.INPUT_TOKENS) > 0  # this model tells no tokens, so that they are estimated
            assert told.pop(traces.OUTPUT_TOKENS) > 0
            assert told == {
                "http.request.method": "POST", "http.route": "/v1/chat/completions", "http.response.status_code": 200,
                "gen_ai.operation.name": "chat", "gen_ai.provider.name": "toolspeak", "gen_ai.request.model": "m",
                "gen_ai.request.stream": False, "toolspeak.usage.estimated": True,
                "gen_ai.response.finish_reasons": ("tool_calls",), "gen_ai.response.time_to_first_chunk": 0,
                "toolspeak.calls": 1, "toolspeak.reasks": 1, "toolspeak.retries": 0, "toolspeak.request.id": "",
            }  # fmt: skip
            for span in (first, second):
                assert (span.name, span.kind.name) == ("chat m", "CLIENT")
                assert span.parent.span_id == server.context.span_id
                assert span.attributes["toolspeak.calls"] == 1
            assert CANARY not in "".join(span.to_json() for span in (first, second, server))

    asyncio.run(go())


def test_each_question_counts_in_the_metrics_of_the_conventions(serve_models: Callable[..., Any], spans: Any) -> None:
    reader = InMemoryMetricReader()

    async def go() -> None:
        async with serve_models(m=speaks(call('{"town": 1}'), call('{"city": "Xiamen"}'))) as running:
            running.gateway.observer.traces = Traces(spans[0], MeterProvider([reader]))
            await post(running.url, CHAT)

    asyncio.run(go())
    metrics = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
    assert {one.name: one.data.data_points[0].count for one in metrics} == {"gen_ai.client.operation.duration": 2}


def test_a_failure_is_told_by_its_kind(serve_models: Callable[..., Any], spans: Any) -> None:
    provider, exporter = spans

    async def go() -> None:
        async with serve_models(m=Scripted([ValueError(CANARY)], capabilities=["tools"])) as running:
            running.gateway.observer.traces = Traces(provider)
            await post(running.url, CHAT)
            client, server = exporter.get_finished_spans()
            assert client.attributes["error.type"] == "ValueError"
            assert server.attributes["error.type"] == "internal_error"
            assert server.status.status_code.name == client.status.status_code.name == "ERROR"
            assert CANARY not in client.to_json() + server.to_json()

    asyncio.run(go())


def test_names_are_those_of_the_conventions() -> None:
    semconv = pytest.importorskip("opentelemetry.semconv")
    files = [*Path(semconv.__path__[0]).rglob("*_attributes.py"), *Path(semconv.__path__[0]).rglob("*_metrics.py")]
    known = "\n".join(path.read_text() for path in files)
    ours = [
        value
        for name, value in {**vars(traces), **vars(traced)}.items()
        if name.isupper() and isinstance(value, str) and "." in value and not value.startswith("toolspeak.")
    ]
    assert len(ours) > 15
    for value in ours:
        assert f'"{value}"' in known


def test_without_a_provider_there_are_no_spans(serve_models: Callable[..., Any]) -> None:
    assert traces.tracing() is None


def test_a_record_that_says_little_makes_a_short_line() -> None:
    record = RequestRecord("req_1", "GET", "/v1/models", status=200)
    record.close(gone=False)
    assert set(json.loads(request_line(record))) == {
        "time", "level", "message", "id", "method", "route", "status", "seconds", "bytes"
    }  # fmt: skip


def test_a_key_of_some_models_sees_no_other_in_the_metrics(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        keys = (Key("all", digest("key-of-all")), Key("one", digest("key-of-one"), ("m",)))
        every, one = ({"authorization": f"Bearer key-of-{name}"} for name in ("all", "one"))
        async with serve_models(settings={"keys": keys}, m=speaks("Yes."), n=speaks("No.")) as running:
            for name in ("m", "n"):
                assert (await post(running.url, {**CHAT, "model": name}, every))[0] == 200
            told = (await get(running.url + "/metrics", every))[2]
            assert 'model="m"' in told
            assert 'model="n"' in told
            told = (await get(running.url + "/metrics", one))[2]
            assert 'model="m"' in told
            assert 'model="n"' not in told
            assert "toolspeak_running" in told

    asyncio.run(go())


@pytest.mark.parametrize("name", ["m", 'a"b', "a\\b", "a\nb", 'a",model="m'])
def test_a_line_of_metrics_is_of_the_model_that_it_names(name: str) -> None:
    metrics = Metrics()
    metrics.count(RequestRecord(route="/v1/chat/completions", model=name, status=200))
    assert b"toolspeak_requests_total{" in only_of(metrics.text(), lambda seen: seen == name)
    assert b"toolspeak_requests_total{" not in only_of(metrics.text(), lambda seen: seen != name)


def test_the_empty_file_of_a_worker_that_starts_counts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    (tmp_path / "counter_1.db").touch()
    assert Metrics().text() == b""


def test_a_misspelled_name_that_the_default_answers_is_named(serve_models: Callable[..., Any]) -> None:
    """The response and the log say which model answered; a hint names the model that the client probably meant. A name
    that an alias fits is no mistake."""
    settings = parse_config(CONFIG)
    more = {"aliases": settings.aliases, "default": settings.default}

    async def go() -> list[tuple[Any, ...]]:
        found = list[tuple[Any, ...]]()
        async with serve_models(settings=more, small=speaks("1"), big=speaks("2")) as running:
            running.gateway.observer.lines = kept = Kept()
            for name in ("small", "smal", "claude-opus-4-8", "gpt-51", "anything"):
                _, headers, _ = await post(running.url, {**CHAT, "model": name})
                line = kept.records[-1]
                hint = headers.get("x-toolspeak-hint")
                found.append((headers["x-toolspeak-model"], hint, line.get("default"), line.get("meant")))
        return found

    assert asyncio.run(go()) == [
        ("small", None, None, None),
        ("big", "smal: did you mean small?", True, ["small"]),
        ("big", None, None, None),
        ("big", "gpt-51: did you mean gpt-5?", True, ["gpt-5"]),
        ("big", None, True, None),
    ]


@pytest.mark.parametrize("default", ["big", None])
def test_the_details_of_a_misspelled_model_are_those_of_the_default_and_say_so(
    serve_models: Callable[..., Any], default: str | None
) -> None:
    async def go() -> tuple[int, str | None, str | None]:
        async with serve_models(settings={"default": default}, small=speaks("1"), big=speaks("2")) as running:
            async with aiohttp.ClientSession() as session, session.get(f"{running.url}/v1/models/smal") as answer:
                head = answer.headers
                return answer.status, head.get("x-toolspeak-model"), head.get("x-toolspeak-hint")

    assert asyncio.run(go()) == ((200, "big", "smal: did you mean small?") if default else (404, None, None))
