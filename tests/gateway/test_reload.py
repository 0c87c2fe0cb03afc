"""A gateway in the place of another. How a process is told to change them is in `test_process`."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from test_process import Process, Slow, slow as slow, start as start

from listening import listening
from toolspeak.audit import audit as decided
from toolspeak.gateway.access.keys import digest, hashed
from toolspeak.gateway.app import Gateway
from toolspeak.gateway.config.settings import Audit, GatewayLimits, GatewaySettings, Key, ModelSettings, StoreSettings
from toolspeak.gateway.endpoints import health
from toolspeak.gateway.endpoints.health import PROBES, Readiness
from toolspeak.gateway.serve.reload import Reloadable
from toolspeak.gateway.telemetry.audit_database import close_audit
from toolspeak.models.pool import Pool
from toolspeak.models.scripted import Scripted
from toolspeak.types import ToolCall


def probing() -> list[asyncio.Task[Any]]:
    """What goes on probing a server that is down."""
    return [task for task in asyncio.all_tasks() if "_keep_trying" in repr(task.get_coro())]


def test_a_server_that_is_down_is_probed_by_the_gateway_in_use_alone() -> None:
    def settings() -> GatewaySettings:
        return GatewaySettings({"m": ModelSettings("m", ("http://127.0.0.1:9/v1#m",))})

    async def main() -> None:
        app = Reloadable(Gateway(settings()), settings)
        app.begin()
        for _ in range(2):
            before = app.gateway
            while before.readiness.loading or not probing():
                await asyncio.sleep(0.01)
            app.reload()
            while app.gateways == {before} or len(app.gateways) > 1:
                await asyncio.sleep(0.01)
            assert app.gateway is not before
            async with asyncio.timeout(600):
                while len(probing()) != 1:
                    await asyncio.sleep(0.01)
        app.gateway.models.stop()
        await app.end()

    asyncio.run(main())


@pytest.mark.parametrize("silent", [False, True], ids=["server that answers", "server that never answers"])
def test_keys_and_limits_apply_before_the_servers_of_models_have_answered(
    silent: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A revoked key was good until the probe of the slowest server had ended, and the next reload waited for that too."""
    monkeypatch.setenv("TOOLSPEAK_CACHE", str(tmp_path))
    monkeypatch.setattr(health, "PROBING", 0.01)
    names = ["alice", "bob", "carol"]
    models = {"plain": ModelSettings("plain", ("scripted:Before.",))}

    def settings() -> GatewaySettings:
        keys = tuple(Key(name, digest(SECRETS[name])) for name in names)
        return GatewaySettings(models, keys=keys, limits=GatewayLimits(running=len(names)))

    async def main(url: str) -> None:
        models["hung"] = ModelSettings("hung", (url,))
        app = Reloadable(Gateway(settings()), settings)
        app.begin()
        if not silent:
            await app.gateway.readiness.loaded.wait()
        models["plain"] = ModelSettings("plain", ("scripted:After.",))
        for _ in range(2):
            names.pop()
            before, stood_in = app.gateway, app.gateway.models.served["hung"]
            ready = before.readiness.loading
            app.reload()
            while app.gateway is before:
                await asyncio.sleep(0.01)
            assert [key.name for key in app.gateway.settings.keys] == names
            assert app.gateway.settings.limits.running == len(names)
            assert app.gateway.readiness.loading is ready  # a reload makes no gateway unready
            if silent:
                assert not app.gateway.readiness.loaded.is_set()
                assert app.gateway.models.served["hung"] is stood_in
                while "to answer their probe: hung" not in caplog.text:
                    await asyncio.sleep(0.01)
                caplog.clear()
            while app.gateway.models.served["plain"].settings is not models["plain"]:
                await asyncio.sleep(0.01)
        await app.end()
        app.gateway.models.stop()

    async def answer(request: web.Request) -> web.Response:
        if silent:
            await asyncio.Event().wait()
        return web.Response(status=404)

    async def around() -> None:
        async with asyncio.timeout(600), listening(answer) as url:
            await main(f"{url}/v1#m")

    asyncio.run(around())


def test_reloads_that_wait_are_one() -> None:
    reads = 0

    def settings() -> GatewaySettings:
        nonlocal reads
        reads += 1
        return GatewaySettings({"m": ModelSettings("m", ("scripted:Hello.",))})

    async def main() -> None:
        app = Reloadable(Gateway(settings()), settings)
        app.begin()
        before = app.gateway
        for _ in range(20):
            app.reload()
        while app.gateway is before or len(app.gateways) > 1:
            await asyncio.sleep(0.01)
        assert reads == 2
        app.reload()
        while reads == 2:
            await asyncio.sleep(0.01)
        await app.end()

    asyncio.run(main())


def test_thousands_of_servers_are_probed_a_few_at_once() -> None:
    probed = running = most = 0

    class Probed(Scripted):
        async def load(self) -> None:
            nonlocal probed, running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1
            probed += 1

    async def main() -> None:
        models: Any = SimpleNamespace(
            built={str(i): SimpleNamespace(model=Pool([Probed(["Hello."])])) for i in range(300)},
            loaded=lambda name: None,
        )
        await Readiness().load(models)

    asyncio.run(main())
    assert probed == 300
    assert most <= PROBES


SECRETS = {name: f"a-key-of-{name}-with-twenty-letters" for name in ("alice", "bob", "carol")}


def keyed(*names: str) -> str:
    return "".join(f'[keys.{name}]\nhash = "{hashed(SECRETS[name])}"\n' for name in names)


def test_requests_of_a_key_that_is_revoked_end(start: Callable[..., Process], slow: Slow) -> None:
    """At once, in the queue or running, under an earlier configuration too; those of others go on."""
    fixed = slow.path.read_text() + "running = 2\n"
    slow.path.write_text(fixed + keyed("alice", "bob"))
    process = start("--config", str(slow.path))

    async def ask(client: aiohttp.ClientSession, who: str, *, stream: bool = False) -> tuple[int, str]:
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": stream}
        headers = {"authorization": f"Bearer {SECRETS[who]}"}
        async with client.post(process.url + "/v1/chat/completions", json=body, headers=headers) as reply:
            return reply.status, await reply.text()

    async def main() -> None:
        async with aiohttp.ClientSession() as client:

            async def until(path: str, text: str) -> None:
                headers = {"authorization": f"Bearer {SECRETS['bob']}"}
                while True:
                    async with client.get(process.url + path, headers=headers) as reply:
                        if text in await reply.text():
                            return
                    await asyncio.sleep(0.02)

            other = asyncio.create_task(ask(client, "bob"))
            running = asyncio.create_task(ask(client, "alice", stream=True))
            await until("/metrics", "toolspeak_running 2.0")
            waiting = asyncio.create_task(ask(client, "alice"))
            await until("/metrics", "toolspeak_waiting 1.0")
            slow.path.write_text(fixed + keyed("alice", "bob") + '[models.n]\nupstream = "scripted:Good morning."\n')
            process.signal(signal.SIGHUP)
            await until("/v1/models", '"n"')
            assert not running.done()
            slow.path.write_text(fixed + keyed("bob"))  # applied while requests of the first configuration run
            process.signal(signal.SIGHUP)
            status, text = await running
            assert status == 200  # it was a stream
            assert "this API key is no longer valid" in text
            status, text = await waiting
            assert status == 401
            assert "this API key is no longer valid" in text
            assert not other.done()
            slow.free.set()
            assert "Well, hello." in (await other)[1]

    asyncio.run(main())


def test_settings_that_are_refused_leave_the_audit_as_it_is(tmp_path: Path) -> None:
    """The store of the newer settings is a folder. They named no audit, so the file in use was closed for good."""
    audit = Audit(str(tmp_path / "audit.sqlite"))
    models = {"m": ModelSettings("m", ("scripted:Hello.",))}
    call = ToolCall("c0", "look", {})

    async def main() -> None:
        app = Reloadable(
            Gateway(GatewaySettings(models, audit=audit)),
            lambda: GatewaySettings(models, store=StoreSettings(str(tmp_path), responses=True)),
        )
        app.begin()
        before = app.gateway
        app.reload()
        while app._reloads:
            await asyncio.sleep(0.01)
        assert app.gateway is before
        decided(call, None, "allowed")
        await app.end()

    try:
        asyncio.run(main())
    finally:
        close_audit()
    with closing(sqlite3.connect(audit.path)) as database:
        assert database.execute("SELECT count(*) FROM audit").fetchone() == (1,)
