"""Keys: who may ask, for which models, how often; and web pages of other origins."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import openai
import pytest

from clock import Clock
from toolspeak.errors import Refused, UsageError
from toolspeak.events import Finished, TextDelta
from toolspeak.gateway.access import keys
from toolspeak.gateway.access.host_check import check_openness
from toolspeak.gateway.access.keys import KeyRing, digest, hashed, new_key
from toolspeak.gateway.config.settings import GatewaySettings, Key, Rates, StoreSettings
from toolspeak.gateway.limits.rates import Counter
from toolspeak.models.http.address import is_loopback
from toolspeak.models.scripted import Scripted
from toolspeak.types import Usage

ALICE, BOB = "alice-has-a-long-key", "bob-has-another-one"
QUESTION = [{"role": "user", "content": "Hi"}]


def key(secret: str, models: tuple[str, ...] | None = None, **rates: int) -> Key:
    return Key(secret.partition("-")[0], digest(secret), models, Rates(**rates))


def says(text: str) -> Scripted:
    return Scripted(text, repeat=True)


async def asked(
    url: str, path: str = "/v1/chat/completions", method: str = "POST", body: Any = None, **headers: str
) -> tuple[int, dict[str, str], Any]:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    content = {"model": "m", "messages": QUESTION} if body is None and method == "POST" else body
    async with aiohttp.ClientSession() as session:
        async with session.request(method, url + path, json=content, headers=sent) as response:
            text = await response.text()
            return (
                response.status,
                {name.lower(): value for name, value in response.headers.items()},
                json.loads(text or "null"),
            )


# ------------------------------------------------------------------ who


def test_both_sdks_get_in_with_a_key_and_not_with_another(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with serve_models(m=says("Hello"), settings={"keys": (key(ALICE), key(BOB))}) as running:
            for secret in (ALICE, BOB):
                async with openai.AsyncOpenAI(base_url=running.url + "/v1", api_key=secret) as client:
                    reply = await client.chat.completions.create(model="m", messages=QUESTION)
                    assert reply.choices[0].message.content == "Hello"
            async with openai.AsyncOpenAI(base_url=running.url + "/v1", api_key="other") as client:
                with pytest.raises(openai.AuthenticationError, match="unknown API key"):
                    await client.chat.completions.create(model="m", messages=QUESTION, stream=True)
            async with anthropic.AsyncAnthropic(base_url=running.url, api_key="other") as client:
                with pytest.raises(anthropic.AuthenticationError):
                    await client.messages.create(model="m", max_tokens=5, messages=QUESTION)

    asyncio.run(go())


def test_a_key_is_read_from_either_header(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with serve_models(m=says("Hello"), settings={"keys": (key(ALICE),)}) as running:
            for headers in (
                {"authorization": f"Bearer {ALICE}"}, {"authorization": f"bearer  {ALICE} "}, {"x_api_key": ALICE},
                {"x_api_key": ALICE, "authorization": "Bearer other"},
            ):  # fmt: skip
                assert (await asked(running.url, **headers))[0] == 200, headers
            for headers in (
                {}, {"authorization": ALICE}, {"authorization": f"Basic {ALICE}"}, {"authorization": "Bearer"},
                {"x_api_key": ALICE + "x"}, {"x_api_key": ALICE[:-1]}, {"x_api_key": hashed(ALICE)},
                {"x_api_key": "x" * 20_000}, {"cookie": f"key={ALICE}"},
            ):  # fmt: skip
                status, told, body = await asked(running.url, **headers)
                assert status == 401, headers
                assert told["www-authenticate"] == 'Bearer realm="toolspeak"'
                assert body["error"]["code"] == "invalid_api_key"
            assert (await asked(running.url, f"/v1/models?api_key={ALICE}", "GET"))[0] == 401

    asyncio.run(go())


def test_a_header_given_twice_is_no_key() -> None:
    keys = KeyRing([key(ALICE)])
    good = (b"authorization", b"Bearer " + ALICE.encode())
    assert keys.caller([good]) is not None
    with pytest.raises(Refused):
        keys.caller([good, (b"authorization", b"Bearer other")])


def test_what_is_found_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    import hmac

    seen: list[bytes] = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: seen.append(b) or real(a, b))
    keys = [key(ALICE), key(BOB), key("carol-too")]
    assert KeyRing(keys).caller([(b"x-api-key", ALICE.encode())]) is keys[0]
    assert seen == [keys[0].digest]


def test_new_keys_are_long_and_differ() -> None:
    assert len({new_key() for _ in range(100)}) == 100
    assert len(new_key()) >= 43
    assert hashed("k") == "sha256:" + digest("k").hex()
    for bad in ("", "a b", "é", "a\n", "x" * 513):
        with pytest.raises(UsageError):
            digest(bad)


def test_a_model_that_a_key_does_not_open_is_not_there(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        settings = {"keys": (key(ALICE, ("small",)), key(BOB))}
        async with serve_models(small=says("s"), smaller=says("t"), settings=settings) as running:
            body = {"model": "smaller", "messages": QUESTION}
            status, _, told = await asked(running.url, body=body, x_api_key=ALICE)
            assert status == 404
            status, _, unknown = await asked(running.url, body={**body, "model": "smallest"}, x_api_key=ALICE)
            assert status == 404
            assert json.dumps(told).replace("smaller", "smallest") == json.dumps(unknown)
            assert (await asked(running.url, body=body, x_api_key=BOB))[0] == 200
            for secret, names in ((ALICE, ["small"]), (BOB, ["small", "smaller"])):
                _, _, listed = await asked(running.url, "/v1/models", "GET", x_api_key=secret)
                assert [one["id"] for one in listed["data"]] == names
            assert (await asked(running.url, "/v1/models/smaller", "GET", x_api_key=ALICE))[0] == 404

    asyncio.run(go())


# ------------------------------------------------------------------ from where


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "LOCALHOST", "::1", "[::1]"])
def test_loopback_needs_no_key(host: str) -> None:
    assert is_loopback(host)
    check_openness(GatewaySettings({}, host=host))


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "", "10.0.0.1", "example.org", "127.1", "localhost.example.org", "0"]
)
def test_beyond_loopback_needs_a_key_or_insecure(host: str) -> None:
    with pytest.raises(UsageError, match="without a key"):
        check_openness(GatewaySettings({}, host=host))
    check_openness(GatewaySettings({}, host=host, insecure=True))
    check_openness(GatewaySettings({}, host=host, keys=(key(ALICE),)))


def test_without_a_key_only_the_names_of_this_machine_are_answered(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with serve_models(m=says("Hello")) as running:
            port = running.url.rpartition(":")[2]
            for host in ("localhost", f"localhost:{port}", f"127.0.0.1:{port}", "[::1]", f"[::1]:{port}"):
                assert (await asked(running.url, host=host))[0] == 200, host
            for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "localhost@evil.example"):
                status, _, body = await asked(running.url, host=host)
                assert (status, body["error"]["code"]) == (403, "host_not_allowed"), host
        async with serve_models(m=says("Hello"), settings={"keys": (key(ALICE),)}) as running:
            assert (await asked(running.url, host="gateway.example", x_api_key=ALICE))[0] == 200

    asyncio.run(go())


def test_pages_of_other_origins_are_told_nothing(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with serve_models(m=says("Hello")) as running:
            status, headers, _ = await asked(running.url, origin="https://example.org")
            assert status == 200
            assert not [name for name in headers if name.startswith("access-control")]
            asking = {"origin": "https://example.org", "access_control_request_method": "POST"}
            assert (await asked(running.url, method="OPTIONS", **asking))[0] == 405

    asyncio.run(go())


def test_configured_origins_may_ask(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        settings = {"cors": ("https://example.org",), "keys": (key(ALICE),)}
        asking = {"access_control_request_method": "POST", "access_control_request_headers": "x-api-key"}
        async with serve_models(m=says("Hello"), settings=settings) as running:
            status, headers, _ = await asked(running.url, method="OPTIONS", origin="https://example.org", **asking)
            assert (status, headers["access-control-allow-origin"]) == (200, "https://example.org")
            assert "authorization" in headers["access-control-allow-headers"]
            assert headers["vary"] == "Origin"
            status, headers, _ = await asked(running.url, origin="https://example.org", x_api_key=ALICE)
            assert (status, headers["access-control-allow-origin"]) == (200, "https://example.org")
            assert "x-toolspeak-notes" in headers["access-control-expose-headers"]
            # an error is readable too, or nobody could tell what is wrong
            status, headers, _ = await asked(running.url, origin="https://example.org")
            assert (status, headers["access-control-allow-origin"]) == (401, "https://example.org")
            for origin in ("https://example.org.evil", "https://EXAMPLE.org", "null", "http://example.org"):
                for method in ("OPTIONS", "POST"):
                    _, headers, _ = await asked(running.url, method=method, origin=origin, x_api_key=ALICE, **asking)
                    assert "access-control-allow-origin" not in headers, origin
                    assert headers["vary"] == "Origin"
            assert (await asked(running.url, method="OPTIONS", origin="https://example.org"))[0] == 401  # no preflight
        async with serve_models(m=says("Hello"), settings={"cors": ("*",)}) as running:
            _, headers, _ = await asked(running.url, origin="https://any.example")
            assert headers["access-control-allow-origin"] == "*"
            assert "access-control-allow-credentials" not in headers

    asyncio.run(go())


# ------------------------------------------------------------------ how often


async def takes(counter: Counter, one: Key, tokens: int = 0) -> dict[str, str]:
    headers: list[tuple[bytes, bytes]] = []
    async with counter.counted(one, headers) as spent:
        spent.tokens = tokens
    return {name.decode(): value.decode() for name, value in headers}


def test_requests_a_minute_fill_up_evenly() -> None:
    async def go() -> None:
        clock = Clock()
        counter = Counter(clock=clock)
        alice = key(ALICE, requests=2)
        headers = await takes(counter, alice)
        assert headers["x-ratelimit-limit-requests"] == "2"
        assert headers["x-ratelimit-remaining-requests"] == "1"
        assert headers["x-ratelimit-reset-requests"] == "30s"
        await takes(counter, alice)
        with pytest.raises(Refused) as caught:
            await takes(counter, alice)
        assert (caught.value.status, caught.value.code) == (429, "rate_limit_exceeded")
        assert caught.value.retry_after == 30
        await takes(counter, key(BOB, requests=2))  # another key has its own
        clock.now += 29
        with pytest.raises(Refused):
            await takes(counter, alice)
        clock.now += 1
        await takes(counter, alice)
        clock.now -= 3600  # a clock that is set back
        with pytest.raises(Refused):
            await takes(counter, alice)
        clock.now += 7200
        assert (await takes(counter, alice))["x-ratelimit-remaining-requests"] == "1"
        counter.close()

    asyncio.run(go())


LOOKS = [("GET", "/metrics"), ("GET", "/v1/models"), ("GET", "/v1/models/m"), ("GET", "/openapi.json"), ("GET", "/nothing"),
         ("GET", "/api/tags"), ("POST", "/api/show"), ("GET", "/v1/responses/resp_1"), ("DELETE", "/v1/responses/resp_1"),
         ("POST", "/nothing"), ("POST", "/v1/messages/"), ("POST", "/v1/models"), ("PUT", "/v1/chat/completions")]  # fmt: skip
COSTS = [
    "/v1/chat/completions",
    "/v1/messages/count_tokens",
    "/v1/responses",
    "/v1/embeddings",
    "/api/chat",
    "/api/generate",
]


def test_requests_that_ask_no_model_do_not_count(serve_models: Callable[..., Any], tmp_path: Path) -> None:
    async def go() -> None:
        settings = {
            "keys": (key(ALICE, requests=1, running=1),),
            "store": StoreSettings(str(tmp_path / "gateway.sqlite")),
        }
        async with serve_models(m=says("Hello"), settings=settings) as running:
            running.gateway.auth._counter._clock = Clock()  # so that nothing fills up meanwhile
            for _ in range(2):  # before and after the rate is used up
                for method, path in LOOKS:
                    async with aiohttp.ClientSession(headers={"x-api-key": ALICE}) as session:
                        async with session.request(method, running.url + path, json={"model": "m"}) as response:
                            assert response.status in (200, 404, 405), (path, await response.text())
                            assert not [name for name in response.headers if name.lower().startswith("x-ratelimit")]
                await asked(running.url, x_api_key=ALICE)
            for path in COSTS:
                assert (await asked(running.url, path, x_api_key=ALICE))[0] == 429, path

    asyncio.run(go())


def test_tokens_are_taken_after_the_reply() -> None:
    async def go() -> None:
        clock = Clock()
        counter = Counter(clock=clock)
        alice = key(ALICE, tokens=600)
        await takes(counter, alice, tokens=1200)
        with pytest.raises(Refused) as caught:
            await takes(counter, alice)
        assert caught.value.retry_after == 61
        clock.now += 61
        assert (await takes(counter, alice))["x-ratelimit-remaining-tokens"] == "10"
        counter.close()

    asyncio.run(go())


def test_requests_at_once_are_given_back_even_when_they_fail() -> None:
    async def go() -> None:
        counter = Counter()
        alice = key(ALICE, running=1)
        with pytest.raises(ZeroDivisionError):
            await _fails(counter, alice)
        await takes(counter, alice)
        task = asyncio.create_task(_holds(counter, alice))
        await asyncio.sleep(0)  # up to its first wait
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await takes(counter, alice)
        counter.close()

    asyncio.run(go())


async def _fails(counter: Counter, one: Key) -> None:
    async with counter.counted(one, []):
        with pytest.raises(Refused, match="1 request at once"):
            await takes(counter, one)
        raise ZeroDivisionError


async def _holds(counter: Counter, one: Key) -> None:
    async with counter.counted(one, []):
        await asyncio.sleep(60)


def test_a_client_sees_its_rates(serve_models: Callable[..., Any], tmp_path: Path) -> None:
    async def go() -> None:
        settings = {
            "keys": (key(ALICE, requests=2, tokens=1_000_000), key(BOB)),
            "store": StoreSettings(str(tmp_path / "gateway.sqlite")),
        }
        async with serve_models(m=says("Hello"), settings=settings) as running:
            running.gateway.auth._counter._clock = Clock()  # so that nothing fills up meanwhile
            status, headers, _ = await asked(running.url, x_api_key=ALICE)
            assert (status, headers["x-ratelimit-remaining-requests"]) == (200, "1")
            body = {"model": "m", "messages": QUESTION, "stream": True}
            async with openai.AsyncOpenAI(base_url=running.url + "/v1", api_key=ALICE, max_retries=0) as client:
                raw = await client.chat.completions.with_raw_response.create(**body)
                assert raw.headers["x-ratelimit-remaining-requests"] == "0"
                with pytest.raises(openai.RateLimitError) as caught:
                    await client.chat.completions.create(**body)
            assert 1 <= int(caught.value.response.headers["retry-after"]) <= 60
            assert caught.value.response.headers["x-ratelimit-remaining-requests"] == "0"
            status, headers, _ = await asked(running.url, x_api_key=BOB)
            assert status == 200
            assert not [name for name in headers if name.startswith("x-ratelimit")]
        assert os.path.exists(tmp_path / "gateway.sqlite")

    asyncio.run(go())


def test_the_tokens_of_every_api_are_counted(serve_models: Callable[..., Any]) -> None:
    async def rest(url: str) -> int:
        """What is left, from the headers of a request whose body is refused."""
        status, headers, _ = await asked(url, "/v1/responses", "POST", x_api_key=ALICE)
        assert status == 400
        return int(headers["x-ratelimit-remaining-tokens"])

    async def go() -> None:
        spent = Finished("stop", Usage(400, 100))
        model = Scripted([[TextDelta("Hello"), spent]], repeat=True, capabilities=["tools"])
        silent = Scripted("x" * 4000, repeat=True)
        settings = {"keys": (key(ALICE, tokens=1_000_000),)}
        bodies = {
            "/v1/chat/completions": {"messages": QUESTION},
            "/v1/messages": {"messages": QUESTION, "max_tokens": 100},
            "/v1/responses": {"input": "Hi"},
        }
        async with serve_models(m=model, silent=silent, settings=settings) as running:
            running.gateway.auth._counter._clock = Clock()  # so that nothing fills up meanwhile
            left = await rest(running.url)
            for path, body in bodies.items():
                for stream in (False, True):
                    status, _, _ = await told_(running.url, path, {**body, "model": "m", "stream": stream})
                    assert status == 200
                    now = await rest(running.url)
                    assert left - now == 500, (path, stream)
                    left = now
            status, _, text = await told_(
                running.url, "/v1/chat/completions", {"model": "silent", "messages": QUESTION}
            )
            assert status == 200, text
            now = await rest(running.url)
            assert left - now > 500  # nobody told, so bytes are counted

    asyncio.run(go())


async def told_(url: str, path: str, body: Any) -> tuple[int, Any, str]:
    """Like `asked`, for what is no JSON."""
    async with aiohttp.ClientSession() as session:
        async with session.post(url + path, json=body, headers={"x-api-key": ALICE}) as response:
            return response.status, response.headers, await response.text()


def test_a_key_is_looked_up_and_not_compared_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    real = keys.hmac.compare_digest

    def counted(a: bytes, b: bytes) -> bool:
        nonlocal compared
        compared += 1
        return real(a, b)

    monkeypatch.setattr(keys.hmac, "compare_digest", counted)
    known = keys.KeyRing([Key(f"key{i}", keys.digest(f"the-key-of-{i}")) for i in range(1000)])
    found = known.caller([(b"authorization", b"Bearer the-key-of-777")])
    assert found is not None
    assert (found.name, compared) == ("key777", 1)
    with pytest.raises(Refused):
        known.caller([(b"x-api-key", b"the-key-of-nobody")])
    assert compared == 1
