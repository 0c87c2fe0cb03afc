"""Budgets of keys: tokens and money a day, counted for every question, over all processes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import anthropic
import openai
import pytest
from test_process import Process, until

from clock import Clock
from toolspeak.errors import Refused, ServerFailed, StreamCut, UsageError
from toolspeak.events import Event, Finished, TextDelta
from toolspeak.gateway.access.keys import digest, hashed
from toolspeak.gateway.app import Gateway
from toolspeak.gateway.config.load import parse_config, summary
from toolspeak.gateway.config.settings import Budget, GatewaySettings, Key, ModelSettings, Price, StoreSettings
from toolspeak.gateway.endpoints import health
from toolspeak.gateway.limits.budgets import Budgets, cost
from toolspeak.gateway.serve.reload import close
from toolspeak.gateway.storage import sqlite
from toolspeak.models.scripted import Scripted
from toolspeak.types import Usage

Serve = Callable[..., Any]
MIDNIGHT = 1_800_057_600.0
"""The begin of a day in UTC."""
HASH = "sha256:" + hashlib.sha256(b"x").hexdigest()


def key(name: str = "alice", **budget: Any) -> Key:
    return Key(name, digest(name), budget=Budget(**budget))


def told(text: str = "Yes.", read: int = 7, written: int = 3) -> list[Event]:
    return [TextDelta(text), Finished("stop", Usage(read, written))]


# ------------------------------------------------------------------ the sums


async def spends(budgets: Budgets, one: Key, *tokens: int, price: Price | None = None) -> None:
    for count in tokens:
        budgets.spend(one, price, lambda count=count: Usage(count, 0))
    await budgets.spent([one])


def test_what_processes_spend_is_one_sum(tmp_path: Path) -> None:
    """What one has written the other knows at once; a key without a budget is not looked up."""

    async def go() -> None:
        clock = Clock(MIDNIGHT + 3600)
        both = [Budgets(str(tmp_path / "store"), clock=clock) for _ in range(2)]
        alice, bob = key(tokens=100), key("bob", tokens=100)
        await spends(both[0], alice, 40, 59)
        for budgets in both:
            await budgets.check(alice)
        await spends(both[1], alice, 1)
        for budgets in both:
            with pytest.raises(Refused, match=r"may use 100 tokens a day, and has used 100\."):
                await budgets.check(alice)
            await budgets.check(bob)
        clock.now = MIDNIGHT + 86_400
        for budgets in both:
            await budgets.check(alice)
            budgets.close()

    asyncio.run(go())


def test_a_refusal_says_when_it_begins_anew(tmp_path: Path) -> None:
    async def go() -> None:
        budgets = Budgets(str(tmp_path / "store"), clock=Clock(MIDNIGHT + 86_400 - 90.5))
        alice = key(tokens=10, money=0.002)
        await spends(budgets, alice, 10, price=Price(300, 600))
        with pytest.raises(Refused) as refused:
            await budgets.check(alice)
        assert (refused.value.status, refused.value.code, refused.value.retry_after) == (429, "insufficient_quota", 91)
        assert str(refused.value) == (
            "this key may use 10 tokens a day, and has used 10; it may use 0.002 a day, and has spent 0.003. "
            "The budget is reset at 2027-01-17T00:00:00Z, in 91 s"
        )
        budgets.close()

    asyncio.run(go())


def test_a_file_that_cannot_be_read_lets_nobody_in(tmp_path: Path) -> None:
    async def go() -> None:
        (tmp_path / "store").write_text("no database" * 500)
        budgets = Budgets(str(tmp_path / "store"))
        with pytest.raises(Refused) as refused:
            await budgets.check(key(tokens=10))
        assert refused.value.status == 503
        assert await budgets.spent([key(tokens=10)]) == {}
        budgets.close()

    asyncio.run(go())


def test_what_cannot_be_written_counts_and_is_written_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "WAIT", 0.05)

    async def go() -> None:
        path = str(tmp_path / "one.sqlite")
        budgets, other = Budgets(path, clock=Clock(MIDNIGHT)), Budgets(path, clock=Clock(MIDNIGHT))
        one = key(tokens=100)
        await spends(budgets, one, 30)
        with closing(sqlite3.connect(path, isolation_level=None)) as locking:
            locking.execute("BEGIN IMMEDIATE")
            await spends(budgets, one, 40, 30)
            with pytest.raises(Refused, match="has used 100"):
                await budgets.check(one)
            assert (await other.spent([one]))["alice"].tokens == 30
            locking.execute("COMMIT")
        budgets.close()
        assert (await other.spent([one]))["alice"].tokens == 100
        other.close()

    asyncio.run(go())


def test_many_at_once_share_a_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    real = Budgets._read
    monkeypatch.setattr(Budgets, "_read", lambda self, name, day: looks.append(name) or real(self, name, day))

    async def go() -> None:
        budgets = Budgets(str(tmp_path / "store"))
        await asyncio.gather(*(budgets.check(key(tokens=10)) for _ in range(1000)))
        await budgets.check(key(tokens=10))
        budgets.close()

    asyncio.run(go())
    assert len(looks) == 2


@pytest.mark.parametrize(
    ("usage", "price", "money"),
    [
        (Usage(1_000_000, 1_000_000), Price(0.5, 1.5), 2.0), (Usage(1_000_000, 0, 400_000), Price(1, 9, 0.1), 0.64),
        (Usage(1_000_000, 0, 400_000), Price(1, 9), 1.0), (Usage(10, 0, 20), Price(1e6, 9, 0), 0.0), (Usage(9, 9), None, 0.0),
    ],
)  # fmt: skip
def test_what_a_question_costs(usage: Usage, price: Price | None, money: float) -> None:
    assert cost(usage, price) == pytest.approx(money)


# ------------------------------------------------------------------ through the gateway


def talk(
    serve_models: Serve,
    tmp_path: Path,
    say: Callable[[str], Awaitable[Any]],
    *replies: Any,
    keys: tuple[Key, ...] = (key(tokens=10),),
    kind: type[Scripted] = Scripted,
) -> tuple[Any, Scripted, dict[str, Any]]:
    """What `say` gives, the model, and what each key has spent."""
    model = kind(replies, repeat=True, capabilities=["tools"])
    tmp_path.mkdir(exist_ok=True)

    async def go() -> Any:
        settings = {"keys": keys, "store": StoreSettings(str(tmp_path / "store"))}
        async with serve_models(m=model, settings=settings) as running:
            said = await say(running.url)
            return said, await running.gateway.budgets.spent(keys)

    said, spent = asyncio.run(go())
    return said, model, spent


async def raw(url: str, path: str, body: dict[str, Any], who: str = "alice", read: int = -1) -> tuple[int, Any, str]:
    headers = {"authorization": f"Bearer {who}"}
    async with aiohttp.ClientSession(headers=headers) as session, session.post(url + path, json=body) as answer:
        text = await (answer.content.readexactly(read) if read > 0 else answer.read())
        return answer.status, answer.headers, text.decode()


CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize("stream", [False, True])
def test_every_api_refuses_what_is_over_before_the_model_is_asked(
    serve_models: Serve, tmp_path: Path, stream: bool
) -> None:
    """As the SDKs know it, with when it begins anew; nobody is asked, and the client is told not to try again."""

    async def say(url: str) -> Any:
        async with (
            openai.AsyncOpenAI(base_url=url + "/v1", api_key="alice") as chat,
            anthropic.AsyncAnthropic(base_url=url, api_key="alice") as messages,
        ):
            asked: Any = {**CHAT, "stream": stream}
            reply = await chat.chat.completions.create(**asked)
            if stream:
                assert [chunk async for chunk in reply]
            with pytest.raises(openai.RateLimitError) as first:
                await chat.chat.completions.create(**asked)
            with pytest.raises(openai.RateLimitError) as second:
                await chat.responses.create(model="m", input="Hi", stream=stream)
            with pytest.raises(anthropic.RateLimitError) as third:
                await messages.messages.create(**asked, max_tokens=9)
            assert [model.id async for model in chat.models.list()] == ["m"]
            return [error.value for error in (first, second, third)]

    errors, model, spent = talk(serve_models, tmp_path, say, told())
    assert len(model.requests) == 1
    assert spent["alice"].tokens == 10
    for error in errors[:2]:
        assert (error.code, error.type) == ("insufficient_quota", "insufficient_quota")
    assert errors[2].body["error"]["type"] == "rate_limit_error"
    for error in errors:
        assert "may use 10 tokens a day, and has used 10" in str(error)
        assert 0 < int(error.response.headers["retry-after"]) <= 86_400
        assert error.response.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("stream", [False, True])
def test_what_nobody_told_is_estimated(serve_models: Serve, tmp_path: Path, stream: bool) -> None:
    body = {**CHAT, "messages": [{"role": "user", "content": "word " * 400}], "stream": stream}

    async def say(url: str) -> Any:
        return await raw(url, "/v1/chat/completions", body)

    _, _, spent = talk(serve_models, tmp_path, say, [TextDelta("yes " * 100), Finished()])
    assert 600 <= spent["alice"].tokens <= 620


class Breaking(Scripted):
    """A model whose connection breaks behind each reply."""

    async def stream(self, request: Any) -> Any:
        async for event in super().stream(request):
            yield event
        raise StreamCut("gone")


@pytest.mark.parametrize("tools", [False, True])
def test_failures_and_retries_cost_what_they_cost(serve_models: Serve, tmp_path: Path, tools: bool) -> None:
    """A reply that broke off, and each of those that did not fit; a server that refuses costs nothing."""

    async def say(url: str) -> Any:
        schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
        more = {
            "tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}],
            "tool_choice": "required",
        }
        return await raw(url, "/v1/chat/completions", {**CHAT, **(more if tools else {})})

    (status, *_), model, spent = talk(serve_models, tmp_path, say, told())
    assert (status, len(model.requests) > 1) == ((502, True) if tools else (200, False))
    assert spent["alice"].tokens == 10 * len(model.requests)
    (status, *_), _, spent = talk(
        serve_models, tmp_path / "2", say, ServerFailed("no", code=500), keys=(key(tokens=5),)
    )
    assert (status, spent["alice"].tokens) == (502, 0)
    cut = [TextDelta("yes " * 100)]
    (status, *_), model, spent = talk(serve_models, tmp_path / "3", say, cut, keys=(key(tokens=5),), kind=Breaking)
    assert status == 502
    assert 100 < spent["alice"].tokens / len(model.requests) < 200


def test_a_stream_that_the_client_cut_counts(serve_models: Serve, tmp_path: Path) -> None:
    """By what the model had said until then."""
    heard = asyncio.Event()

    async def say(url: str) -> None:
        status, _, text = await raw(url, "/v1/chat/completions", {**CHAT, "stream": True}, read=5000)
        assert (status, bool(text)) == (200, True)
        await asyncio.wait_for(heard.wait(), 600)

    class Endless(Scripted):
        async def stream(self, request: Any) -> Any:
            try:
                while True:
                    yield TextDelta("yes ")
                    await asyncio.sleep(0.001)
            finally:
                heard.set()

    async def go() -> Any:
        settings = {"keys": (key(tokens=10),), "store": StoreSettings(str(tmp_path / "store"))}
        async with serve_models(m=Endless([], capabilities=["tools"]), settings=settings) as running:
            await say(running.url)
            first = await running.gateway.budgets.spent(settings["keys"])
            return first, await raw(running.url, "/v1/chat/completions", CHAT)

    spent, (status, *_) = asyncio.run(go())
    assert spent["alice"].tokens > 10
    assert status == 429


def test_the_spending_of_many_keys_is_one_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written for /metrics, that takes long: beside the event loop."""
    threads = set[threading.Thread]()
    write = health.key_figures

    def writing(rows: Any) -> bytes:
        threads.add(threading.current_thread())
        return write(rows)

    monkeypatch.setattr(health, "key_figures", writing)

    async def go() -> None:
        keys = tuple(key(f"key{i}", tokens=10) for i in range(300))
        settings = GatewaySettings(
            {"m": ModelSettings("m", ("scripted:Hello.",))}, keys=keys, store=StoreSettings(str(tmp_path / "store"))
        )
        gateway = Gateway(settings)
        assert gateway.budgets
        reads = list[int]()
        read = gateway.budgets._read

        def reading(names: list[str], day: str) -> Any:
            reads.append(len(names))
            return read(names, day)

        monkeypatch.setattr(gateway.budgets, "_read", reading)
        gateway.budgets.spend(keys[7], None, lambda: Usage(5, 0))
        spent = await gateway.budgets.spent(keys)
        assert {name: one.tokens for name, one in spent.items() if one.tokens} == {"key7": 5}
        assert len(spent) == reads[0] == 300
        assert len(reads) == 1
        monitor = Key("eve", digest("eve"), metrics="all")
        exchange: Any = SimpleNamespace(key=monitor)
        assert b'toolspeak_key_spent{key="key7",unit="tokens"} 5.0' in await health._budgets(gateway, exchange)
        assert threading.current_thread() not in threads
        close(gateway)

    asyncio.run(go())


def test_a_key_sees_its_own_spending_and_a_monitor_all(serve_models: Serve, tmp_path: Path) -> None:
    keys = (
        key(tokens=1000), key("bob", tokens=50, money=2.5), Key("carol", digest("carol")),
        Key("eve", digest("eve"), metrics="all"),
    )  # fmt: skip

    async def say(url: str) -> list[str]:
        await raw(url, "/v1/chat/completions", CHAT)
        texts: list[str] = []
        for who in ("alice", "carol", "eve"):
            async with (
                aiohttp.ClientSession(headers={"x-api-key": who}) as session,
                session.get(url + "/metrics") as got,
            ):
                texts.append(await got.text())
        return texts

    (own, none, everything), _, _ = talk(serve_models, tmp_path, say, told(), keys=keys)
    rows = [line for line in everything.splitlines() if line.startswith("toolspeak_key_")]
    assert rows == [
        'toolspeak_key_spent{key="alice",unit="tokens"} 10.0', 'toolspeak_key_spent{key="bob",unit="tokens"} 0.0',
        'toolspeak_key_spent{key="bob",unit="money"} 0.0', 'toolspeak_key_budget{key="alice",unit="tokens"} 1000.0',
        'toolspeak_key_budget{key="bob",unit="tokens"} 50.0', 'toolspeak_key_budget{key="bob",unit="money"} 2.5',
    ]  # fmt: skip
    assert [line for line in own.splitlines() if line.startswith("toolspeak_key_")] == [rows[0], rows[3]]
    assert "toolspeak_key_" not in none


# ------------------------------------------------------------------ the configuration


FILE = f"""
[store]
path = "store.sqlite"
[models.m]
upstream = "local"
price = {{ input = 0.5, output = 1.5 }}
[models.free]
upstream = "local"
[keys.alice]
hash = "{HASH}"
models = ["m"]
budget = {{ tokens = 1_000_000, money = 5 }}
"""


def test_the_configuration_says_what_a_key_may_use() -> None:
    settings = parse_config(FILE)
    assert settings.keys[0].budget == Budget(1_000_000, 5.0)
    assert settings.models["m"].price == Price(0.5, 1.5)
    assert "key     alice: m; 1,000,000 tokens a day; 5.0 a day by the models' prices" in summary(settings)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('[store]\npath = "store.sqlite"', "", r"keys.alice.budget: budgets are counted in a file: expected \[store\]"),
        ('models = ["m"]\n', "", "keys.alice.budget.money: there is no price of free"),
        ("tokens = 1_000_000", "tokens = 0", "keys.alice.budget.tokens: expected"),
        ("tokens = 1_000_000", "token = 5", "unknown field. Did you mean 'tokens'"),
        ("input = 0.5, ", "", "models.m.price.input: expected the price of a million tokens"),
        ("output = 1.5", "output = -1", "models.m.price.output: expected"),
        ("models = [", 'metrics = "some"\nmodels = [', "keys.alice.metrics: expected one of own, all"),
    ],
)
def test_what_cannot_be_counted_is_told(old: str, new: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        parse_config(FILE.replace(old, new))


# ------------------------------------------------------------------ several processes


@pytest.fixture
def upstream() -> Iterator[str]:
    """The address of a server that gives the same reply to everybody, and says what it took."""
    rows = [
        {"choices": [{"index": 0, "delta": {"content": "Yes."}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}},
    ]
    body = "".join(f"data: {json.dumps(row)}\n\n" for row in rows) + "data: [DONE]\n\n"

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1#up"
    server.shutdown()
    server.server_close()


@pytest.mark.skipif(sys.platform == "win32", reason="workers are forked")
def test_workers_count_together(tmp_path: Path, upstream: str) -> None:
    """Three processes, asked by eight clients at once: what they spent is the sum of what the replies say, to the token.
    Once the budget is used up none of them answers, nor does one that is started later."""
    path = tmp_path / "gateway.toml"
    path.write_text(
        f'[server]\nworkers = 3\n[store]\npath = "store.sqlite"\n[models.m]\nupstream = "{upstream}"\nmode = "native"\n'
        f'[keys.alice]\nhash = "{hashed("alice")}"\nbudget = {{ tokens = 1000 }}\n'
    )

    def ask(url: str) -> int:
        """The tokens of an answer; the negative status of a refusal."""
        status, _, text = asyncio.run(raw(url, "/v1/chat/completions", CHAT))
        return json.loads(text)["usage"]["total_tokens"] if status == 200 else -status

    def summed() -> int:
        with suppress(sqlite3.OperationalError), closing(sqlite3.connect(tmp_path / "store.sqlite")) as database:
            return database.execute("SELECT coalesce(sum(tokens), 0) FROM key_spent").fetchone()[0]
        return 0  # nobody has spent anything yet

    spent = 0
    with serving(path) as url, ThreadPoolExecutor(8) as clients:
        while summed() < 1000:
            answers = list(clients.map(ask, [url] * 16))
            spent += sum(answer for answer in answers if answer > 0)
            assert {answer for answer in answers if answer < 0} <= {-429}
        until(lambda: summed() == spent)
        assert set(clients.map(ask, [url] * 16)) == {-429}
    assert 1000 <= spent == summed()
    with serving(path) as url:
        assert ask(url) == -429


@contextmanager
def serving(path: Path) -> Iterator[str]:
    """The address of `toolspeak serve` with a configuration."""
    process = Process("--config", str(path))
    try:
        until(lambda: process.get("/readyz") == 200)
        yield process.url
    finally:
        process.close()
