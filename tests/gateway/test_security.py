"""What must not be possible: to come in without a key, to steer where and how the upstream is asked, to learn a secret."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from raw_client import connected

from clock import held_time
from listening import listening
from toolspeak.gateway.access.keys import digest, hashed
from toolspeak.gateway.config.settings import Key, ModelSettings
from toolspeak.gateway.routes import ROUTES
from toolspeak.models.scripted import Scripted

SRC = Path(__file__).resolve().parents[2] / "src"
KEY, UPSTREAM_KEY = "the-key-of-a-client", "the-key-of-the-upstream"
KEYS = {"keys": (Key("client", digest(KEY)),)}
MESSAGES = [{"role": "user", "content": "Hi"}]
CHAT = "/v1/chat/completions"
COMPLETION = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "up",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}  # fmt: skip
FORBIDDEN: dict[str, Any] = {
    "api_base": "http://evil.example/v1", "base_url": "http://evil.example/v1", "api_key": "sk-evil",
    "chat_template": "{{ evil }}", "chat_template_kwargs": {"evil": True}, "extra_headers": {"x-evil": "1"},
    "headers": {"x-evil": "1"}, "extra_body": {"evil": 1}, "extra_query": {"evil": 1}, "dialect": "evil",
    "template": "{{ evil }}", "upstream": "http://evil.example", "grammar": "root ::= evil",
    "guided_grammar": "evil", "guided_regex": "evil", "structured_outputs": {"regex": "evil"}, "mode": "raw",
    "proxy": "http://evil.example", "url": "http://evil.example", "path": "/../../etc/passwd", "timeout": 1e9,
    "mm_processor_kwargs": {"evil": 1}, "lora_request": {"path": "evil"}, "cache_salt": "evil", "__class__": "evil",
    "prompt": "evil",
}  # fmt: skip


class Upstream:
    """A server that answers every request in the same way, and remembers what it saw."""

    def __init__(self, status: int = 200, body: Any = COMPLETION, **headers: str) -> None:
        self.answer = (status, body, {name.replace("_", "-"): value for name, value in headers.items()})
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[Any] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.paths.append(f"{request.method} {request.path_qs}")
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.bodies.append(json.loads(await request.read() or b"null"))
        status, body, headers = self.answer
        return web.Response(
            status=status, text=json.dumps(body), headers={"content-type": "application/json", **headers}
        )


@asynccontextmanager
async def upstream(*args: Any, made: Upstream | None = None, **headers: str) -> AsyncIterator[Upstream]:
    made = made or Upstream(*args, **headers)
    async with listening(made.handle) as made.url:
        yield made


def served(server: Upstream) -> ModelSettings:
    return ModelSettings("m", (server.url + "/v1#up",), key=UPSTREAM_KEY)


def says(text: str) -> Scripted:
    return Scripted(text, repeat=True)


async def raw(url: str, data: bytes) -> bytes:
    """Everything that is said to bytes on a socket, until it closes: the gateway closes what is idle."""
    client = await connected(url)
    with held_time() as clock:
        client.transport.write(data)
        await clock.until(client.closed.is_set, step=0.01)
    return client.told


def statuses(told: bytes) -> list[int]:
    parts = told.split(b"HTTP/1.1 ")[1:]
    return [int(part[:3]) for part in parts]


def post(target: str = CHAT, *lines: str, key: bool = False, version: str = "1.1", host: str = "localhost") -> bytes:
    body = json.dumps({"model": "m", "messages": MESSAGES})
    head = [f"POST {target} HTTP/{version}", f"host: {host}", "content-type: application/json", *lines]
    head += [f"content-length: {len(body)}"] + ([f"authorization: Bearer {KEY}"] if key else [])
    return ("\r\n".join(head) + "\r\n\r\n" + body).encode("latin-1")


# ------------------------------------------------------------------ nobody comes in without a key


def test_every_route_needs_the_key(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with serve_models(m=says("Hello"), settings=KEYS) as running, aiohttp.ClientSession() as session:
            paths = [route.path.replace("{model}", "m").replace("{response}", "resp_1") for route in ROUTES]
            guarded = [path for path, route in zip(paths, ROUTES, strict=True) if not route.open]
            assert {CHAT, "/v1/models", "/v1/models/m"} <= set(guarded)
            others = ["/", "/metrics", "/v1", "/v1/", "/docs", "/openapi.json", "/v1/nothing", "/admin", "/health/detail",
                      "/v1/messages/count_tokens", "/v1/responses", "/livez/../v1/models", "/livez/x"]  # fmt: skip
            for path in dict.fromkeys([*guarded, *others]):
                for method in ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"):
                    for stream in (False, True):
                        body = {"model": "m", "messages": MESSAGES, "stream": stream, "input": "Hi", "prompt": "Hi"}
                        async with session.request(method, running.url + path, json=body) as response:
                            assert response.status == 401, (method, path)
                            assert response.headers["www-authenticate"].startswith("Bearer")
                            text = await response.text()
                            assert "Hello" not in text
                            assert method == "HEAD" or "error" in json.loads(text)
            for path in (route.path for route in ROUTES if route.open):
                async with session.get(running.url + path) as response:
                    text = await response.text()
                    assert "127.0.0.1" not in text
                    assert '"m"' not in text

    asyncio.run(go())


@pytest.mark.parametrize(
    "request_",
    [
        post(host="a/?x="),
        post(host="localhost/v1/models?"),
        post("http://localhost" + CHAT),
        post("http://evil.example/livez?" + CHAT),
        post("//v1/chat/completions"),
        post("/livez/../v1/chat/completions"),
        post("/livez/%2e%2e/v1/chat/completions"),
        post("/v1/%2e%2e/v1/chat/completions"),
        post("/v1/chat%2fcompletions"),
        post("/%76%31/chat/completions"),
        post("/v1/chat/completions;/livez"),
        post("/v1/chat/completions?/livez"),
        post("/v1/chat/completions#/livez"),
        post("/v1/chat/completions/"),
        post("/V1/CHAT/COMPLETIONS"),
        post("*"),
        post(CHAT, "authorization: Bearer"),
        post(CHAT, f"authorization: Bearer {KEY}", "authorization: Bearer other"),
        post(CHAT, f"authorization: Bearer {KEY},{KEY}"),
        post(CHAT, f"Authorization : Bearer {KEY}"),
        post(CHAT, f"x_api_key: {KEY}"),
        post(CHAT, "x-original-url: /livez", "x-rewrite-url: /livez", "x-http-method-override: GET"),
        post(CHAT, "x-forwarded-for: 127.0.0.1", "forwarded: for=127.0.0.1", "x-real-ip: 127.0.0.1"),
        post(version="1.0"),
        post(CHAT, "upgrade: websocket", "connection: upgrade"),
        post(CHAT, "expect: 100-continue"),
        post(CHAT, "transfer-encoding: chunked"),
        post(CHAT, "content-length: 3"),
        post(CHAT, "transfer-encoding: xchunked"),
        b"POST " + CHAT.encode() + b"\r\n\r\n",
        b"POST " + CHAT.encode() + b" HTTP/9.9\r\n\r\n",
        b"CONNECT localhost:80 HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET /v1/\xff\xfe HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    ids=range(35),
)
def test_odd_requests_do_not_get_past_the_key(request_: bytes, serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        model = says("Hello")
        async with serve_models(m=model, settings=KEYS) as running:
            told = await raw(running.url, request_)
            found = statuses(told)
            assert all(400 <= status < 500 or status == 100 for status in found), told
            assert found or not told
            assert not model.requests
            assert statuses(await raw(running.url, post(key=True))) == [200]  # and the server lives

    asyncio.run(go())


def test_two_ways_to_tell_the_length_are_refused_with_a_key_too(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with serve_models(m=says("Hello"), settings=KEYS) as running:
            for line in ("transfer-encoding: chunked", "content-length: 3", "transfer-encoding: xchunked"):
                assert statuses(await raw(running.url, post(CHAT, line, key=True)))[:1] == [400], line

    asyncio.run(go())


def test_each_request_of_a_connection_needs_its_own_key(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with serve_models(m=says("Hello"), settings=KEYS) as running:
            assert statuses(await raw(running.url, post(key=True) + post())) == [200, 401]
            assert statuses(await raw(running.url, post() + post(key=True) + post())) == [401, 200, 401]
            told = await raw(running.url, post(key=True, version="1.0"))
            assert statuses(told) == [200]

    asyncio.run(go())


# ------------------------------------------------------------------ nothing of a request steers the upstream


async def _sent(
    running: Any, body: dict[str, Any], path: str = CHAT, **headers: str
) -> tuple[int, str, dict[str, str]]:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    async with aiohttp.ClientSession() as session:
        async with session.post(running.url + path, json=body, headers=given) as response:
            return response.status, await response.text(), {k.lower(): v for k, v in response.headers.items()}


BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"model": "m", "messages": MESSAGES},
    "/v1/messages": {"model": "m", "messages": MESSAGES, "max_tokens": 10},
    "/v1/responses": {"model": "m", "input": "Hi"},
}
PUBLISHED = [path for path in BODIES if any(route.path == path for route in ROUTES)]


@pytest.mark.parametrize("path", PUBLISHED)
def test_fields_that_would_steer_never_reach_the_upstream(path: str, serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with upstream() as server, serve_models(m=served(server)) as running:
            plain = BODIES[path]
            assert (await _sent(running, plain, path))[0] == 200
            extra = {"x_evil": "evil", "api_base": "http://evil.example", "x_upstream": "http://evil.example"}
            known = next(route.codec.BODY["properties"] for route in ROUTES if route.path == path)
            fields = {name: value for name, value in FORBIDDEN.items() if name not in known}
            status, _, headers = await _sent(running, {**plain, **fields}, path + "?api_base=http://evil", **extra)
            assert status == 200
            assert server.bodies[1] == server.bodies[0]
            assert server.paths[1] == server.paths[0]
            assert server.headers[1] == server.headers[0]
            assert "evil" not in json.dumps([server.bodies, server.headers, server.paths])
            assert (
                set(fields) <= set(headers["x-toolspeak-ignored"].replace(" ", "").split(",")) | {"…"}
                or len(fields) > 20
            )

    asyncio.run(go())


def test_the_clients_headers_are_not_forwarded(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with upstream() as server, serve_models(m=served(server), settings=KEYS) as running:
            headers = {
                "authorization": f"Bearer {KEY}", "x_api_key": KEY, "cookie": "session=canary", "openai_organization": "canary",
                "anthropic_beta": "canary", "x_forwarded_for": "canary", "user_agent": "canary", "referer": "http://canary",
                "x_request_id": "canary", "traceparent": "canary",
            }  # fmt: skip
            assert (await _sent(running, BODIES[CHAT], **headers))[0] == 200
            assert server.headers[0]["authorization"] == f"Bearer {UPSTREAM_KEY}"
            assert KEY not in json.dumps(server.headers)
            assert "canary" not in json.dumps(server.headers)

    asyncio.run(go())


def test_redirects_of_the_upstream_are_not_followed(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with upstream() as elsewhere:
            for status in (301, 302, 303, 307, 308):
                async with upstream(status, {}, location=elsewhere.url + "/v1/canary?token=secret") as server:
                    async with serve_models(m=served(server)) as running:
                        told, text, headers = await _sent(running, BODIES[CHAT])
                        assert told == 502, text
                        assert "location" not in headers
                        for hidden in (elsewhere.url, server.url, "canary", "secret", "127.0.0.1"):
                            assert hidden not in text
            assert not elsewhere.paths

    asyncio.run(go())


def test_a_model_cannot_be_named_by_its_address(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with upstream() as server, serve_models(m=served(server)) as running:
            for name in (
                server.url + "/v1#up",
                "openai:up",
                "local",
                "local:/etc/passwd",
                "scripted:evil",
                "m\r\nx: y",
                "../m",
            ):
                assert (await _sent(running, {**BODIES[CHAT], "model": name}))[0] == 404, name
            assert not server.paths

    asyncio.run(go())


# ------------------------------------------------------------------ nothing of it breaks out of an answer


def test_an_answer_cannot_be_split(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with serve_models(m=says("Hello"), settings={"cors": ("https://example.org",)}) as running:
            evil = "a\r\nx-evil: 1\r\n\r\nHTTP/1.1 200 OK"
            body = {"model": "m", "messages": MESSAGES, evil: 1, "\u2028x-evil": 2, "é": 3}
            status, _, headers = await _sent(running, body)
            assert status == 200
            assert "x-evil" not in headers
            assert all(value.isascii() and value.isprintable() for value in headers.values())
            await _sent(running, {**body, "model": evil})
            told = await raw(running.url, b"GET /v1/models/a%0d%0ax-evil:%201 HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert statuses(told) == [404]
            assert b"x-evil" not in told.partition(b"\r\n\r\n")[0]
            for name in ("origin", "x-request-id"):
                line = f"{name}: https://example.org\rx-evil: 1"
                told = await raw(running.url, post(CHAT, line))
                assert b"x-evil" not in told.partition(b"\r\n\r\n")[0]

    asyncio.run(go())


# ------------------------------------------------------------------ nobody learns a secret


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 413, 429, 500, 503])
def test_an_upstreams_error_holds_no_secret(status: int, serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        said = {"error": {"message": f"bad key {UPSTREAM_KEY} at http://internal.example:9", "type": "x", "code": "y"}}
        async with upstream(status, said, retry_after="0") as server, serve_models(m=served(server)) as running:
            for stream in (False, True):
                told, text, headers = await _sent(running, {**BODIES[CHAT], "stream": stream})
                assert told in (400, 404, 413, 429, 502, 503, 504), text
                assert UPSTREAM_KEY not in text + json.dumps(headers)
                assert server.url.partition("//")[2] not in text + json.dumps(headers)

    asyncio.run(go())


# ------------------------------------------------------------------ canaries

CANARIES = {
    "client key": "canary-client-key-0123456789", "wrong key": "canary-wrong-key-0123456789",
    "upstream key": "canary-upstream-key-0123456789", "header": "canary-header-0123456789",
    "query": "canary-query-0123456789", "body": "canary-body-0123456789", "tool": "canary-tool-result-0123456789",
    "error": "canary-upstream-error-0123456789", "reply": "canary-reply-0123456789", "field": "canary_field_0123456789",
    "userinfo": "canary-userinfo-0123456789", "path": "canary-path-0123456789", "model": "canary-model-0123456789",
}  # fmt: skip


async def _everything(url: str) -> list[str]:
    """Goes every way there is, canaries everywhere, and gives what came back of it."""
    told: list[str] = []
    secret = {"x-canary": CANARIES["header"], "cookie": f"a={CANARIES['header']}"}
    good = {**secret, "authorization": f"Bearer {CANARIES['client key']}"}
    wrong = {**secret, "authorization": f"Bearer {CANARIES['wrong key']}"}
    said = [
        {"role": "user", "content": CANARIES["body"]},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": CANARIES["tool"]},
    ]  # fmt: skip
    plain = [{"role": "user", "content": CANARIES["body"]}]
    bodies = [
        (CHAT, {"messages": said}), (CHAT, {"messages": said, "stream": True}),
        ("/v1/messages", {"messages": plain, "max_tokens": 10}), ("/v1/responses", {"input": CANARIES["body"]}),
        (CHAT, {"messages": plain, CANARIES["field"]: CANARIES["body"], "temperature": CANARIES["body"]}),
        (CHAT, {"messages": CANARIES["body"]}),
    ]  # fmt: skip
    async with aiohttp.ClientSession() as session:
        for path, body in bodies:
            for model in ("good", "down", "failing", "broken", "flaky", "odd", CANARIES["model"]):
                for headers in (good, wrong):
                    where = f"{url}{path}?api_key={CANARIES['query']}"
                    async with session.post(where, json={"model": model, **body}, headers=headers) as response:
                        told.append(json.dumps(dict(response.headers)) + await response.text())
        for method, path in (("GET", f"/v1/{CANARIES['path']}"), ("DELETE", CHAT), ("GET", "/v1/models"), ("GET", "/health"),
                             ("GET", f"/v1/models/{CANARIES['path']}"), ("GET", "/metrics")):  # fmt: skip
            async with session.request(method, f"{url}{path}?q={CANARIES['query']}", headers=good) as response:
                text = await response.text()
                told.append(text if path == "/metrics" else "")
        async with session.post(url + CHAT, data=b"{" + CANARIES["body"].encode(), headers=good) as response:
            await response.text()
    return told


class Flaky(Upstream):
    """Fails at first, so that it is asked again, and cuts a reply off every now and then."""

    async def handle(self, request: web.Request) -> web.Response:
        self.answer = (
            (200, COMPLETION, {}) if len(self.paths) % 2 else (503, {"error": CANARIES["error"]}, {"retry-after": "0"})
        )
        return await super().handle(request)


def test_no_canary_comes_out_of_anything(tmp_path: Any) -> None:
    async def go() -> tuple[list[str], str]:
        error = {"error": {"message": f"{CANARIES['error']} {CANARIES['upstream key']}"}}
        reply = json.loads(json.dumps(COMPLETION).replace("Hello", CANARIES["reply"]))
        async with (
            upstream(200, reply) as good, upstream(401, error) as failing, upstream(200, CANARIES["error"]) as odd,
            upstream(500, error) as broken, upstream(made=Flaky()) as flaky,
        ):  # fmt: skip
            config = tmp_path / "gateway.toml"
            models = {
                "good": good.url,
                "failing": failing.url,
                "broken": broken.url,
                "flaky": flaky.url,
                "odd": odd.url,
                "down": "http://127.0.0.1:9",
            }
            lines = [f'[keys.client]\nhash = "{hashed(CANARIES["client key"])}"']
            for name, url in models.items():
                url = url.replace("//", f"//user:{CANARIES['userinfo']}@") if name == "down" else url
                lines.append(f'[models.{name}]\nupstream = "{url}/v1?k={CANARIES["userinfo"]}#up"')
                lines += [] if name == "down" else ['key = { env = "CANARY_KEY" }']
            config.write_text("\n".join(lines))
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "toolspeak", "-vv", "--debug", "serve", "--config", str(config), "--port", "0",
                stderr=asyncio.subprocess.PIPE,
                env={**os.environ, "CANARY_KEY": CANARIES["upstream key"],
                     "PYTHONPATH": os.pathsep.join([str(SRC), os.environ.get("PYTHONPATH", "")])},
            )  # fmt: skip
            assert process.stderr
            logged = ""
            while "curl" not in logged:
                line = (await process.stderr.readline()).decode()
                assert line, logged
                logged += line
            found = re.search(r"at (http://\S+)", logged)
            assert found
            told, rest = await asyncio.gather(_ended(process, found[1]), process.stderr.read())
            assert CANARIES["upstream key"] in json.dumps(good.headers)  # it was really used
            assert any(CANARIES["tool"] in json.dumps(body) for body in good.bodies)
            return told, logged + rest.decode()

    told, logged = asyncio.run(go())
    assert logged.count('"message": "request"') > 50, logged[-2000:]
    for name, canary in CANARIES.items():
        assert canary not in logged, f"{name}: {logged[max(0, logged.find(canary) - 300) :][:400]}"
    for text in told:
        for name in ("client key", "wrong key", "upstream key", "header", "query", "userinfo"):
            assert CANARIES[name] not in text, (name, text)
    metrics = next(text for text in told if "toolspeak_requests" in text)
    assert "canary" not in metrics


async def _ended(process: asyncio.subprocess.Process, url: str) -> list[str]:
    try:
        return await _everything(url)
    finally:
        process.terminate()
        await process.wait()


def test_a_trace_holds_no_canary(serve_models: Callable[..., Any]) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from toolspeak.gateway.telemetry.traces import Traces

    async def go() -> str:
        spans = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(spans))
        error = {"error": {"message": f"{CANARIES['error']} {CANARIES['upstream key']}"}}
        async with upstream() as good, upstream(500, error, retry_after="0") as failing:
            models = {
                name: ModelSettings(name, (server.url + "/v1#up",), key=CANARIES["upstream key"])
                for name, server in (
                    ("good", good),
                    ("failing", failing),
                    ("flaky", failing),
                    ("down", failing),
                    ("odd", failing),
                )
            }
            settings = {"keys": (Key("client", digest(CANARIES["client key"])),)}
            async with serve_models(settings=settings, **models) as running:
                running.gateway.observer.traces = Traces(provider)
                await _everything(running.url)
        return "".join(span.to_json() for span in spans.get_finished_spans())

    traced = asyncio.run(go())
    assert '"good"' in traced
    assert "canary" not in traced, traced[max(0, traced.find("canary") - 300) :][:500]


def test_a_request_id_is_taken_only_if_it_is_harmless(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with serve_models(m=says("Hello")) as running:
            for good in ("abc-123_X.y", "a" * 64):
                assert (await _sent(running, BODIES[CHAT], x_request_id=good))[2]["x-request-id"] == good
            for bad in ("a" * 65, "a b", "a;b", "<script>", "é", '"', "a/b", "${jndi:x}"):
                status, _, headers = await _sent(running, BODIES[CHAT], x_request_id=bad)
                assert status == 200
                assert re.fullmatch(r"req_[0-9a-f]{24}", headers["x-request-id"]), bad
            ids = {(await _sent(running, BODIES[CHAT]))[2]["x-request-id"] for _ in range(5)}
            assert len(ids) == 5

    asyncio.run(go())
