"""What each path shows to whom: nothing of models that a key may not use, and nothing of another key's data."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp

from toolspeak.errors import ServerFailed
from toolspeak.gateway.access.keys import digest
from toolspeak.gateway.config.settings import Batches, Budget, Key, PageSettings, StoreSettings
from toolspeak.gateway.endpoints.ui import API
from toolspeak.gateway.routes import ROUTES
from toolspeak.models.pool import Care, Pool
from toolspeak.models.scripted import Scripted

HIDDEN, BROKEN, OWNER, CANARY = "hidden-model", "hidden-broken", "key-of-the-owner", "canary-of-the-owner"
CHAT = {"model": HIDDEN, "messages": [{"role": "user", "content": CANARY}]}
BATCH = {"input_file_id": "{file}", "endpoint": "/v1/chat/completions", "completion_window": "24h"}
SAME_FOR_ALL = {"/", "/livez", "/api/version", f"{API}dialects"}
"""Paths that show every key the same, and nothing of models and keys."""
OF_MODELS = [
    ("/api/show", {"model": HIDDEN}),
    ("/v1/messages/count_tokens", {**CHAT, "max_tokens": 1}),
    ("/v1/chat/completions", CHAT),
]
OF_DATA = [
    ("/v1/responses", {"model": "m", "input": "More?", "previous_response_id": "{response}"}),
    ("/v1/responses", {"model": "m", "input": [{"type": "item_reference", "id": "{item}"}]}),
    ("/v1/batches", BATCH),
    (f"{API}report", {"name": f"{CANARY}.html"}),
]
"""Requests that show something by another method than GET."""
Ask = Callable[..., Awaitable[tuple[int, str]]]


def settings(folder: Path) -> dict[str, Any]:
    """Settings with everything that is kept. Besides the owner, a key has some models, another one has every model."""
    reports = folder / "reports"
    reports.mkdir()
    head = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    (reports / f"{CANARY}.html").write_text(f"{head}<title>{HIDDEN}</title>")
    several = ((OWNER, None), ("some", ("m",)), ("every", None))
    return {
        "keys": tuple(Key(name, digest(name), models, budget=Budget(tokens=1_000_000)) for name, models in several),
        "store": StoreSettings(str(folder / "store.sqlite"), responses=True),
        "batches": Batches(str(folder / "batches")),
        "ui": PageSettings(live=50, operators=(OWNER,), reports=str(reports)),
    }


def filled(value: Any, ids: dict[str, str]) -> Any:
    """Return a path or a body with the owner's ids. A parameter of a path that has none here is an error."""
    if isinstance(value, dict):
        return {name: filled(one, ids) for name, one in value.items()}
    if isinstance(value, list):
        return [filled(one, ids) for one in value]
    return value.format(**ids) if isinstance(value, str) else value


def with_data(
    serve_models: Callable[..., Any], folder: Path, work: Callable[[Any, Ask, dict[str, str]], Awaitable[None]]
) -> None:
    """Call `work` with a gateway, a function that makes a request with a key, and the ids of what the owner has."""

    async def go() -> None:
        broken = Scripted([ServerFailed("no", code=500)], capabilities=["tools"], repeat=True)
        models = {
            "m": Scripted("Yes.", repeat=True),
            HIDDEN: Scripted(f"{CANARY}!", repeat=True),
            BROKEN: Pool([broken], care=Care(attempts=1, failures=1)),
        }
        async with serve_models(settings=settings(folder), **models) as running, aiohttp.ClientSession() as http:

            async def ask(key: str, method: str, path: str, body: Any = None) -> tuple[int, str]:
                sent: dict[str, Any] = {"data": body} if isinstance(body, aiohttp.FormData) else {"json": body}
                headers = {"authorization": f"Bearer {key}"}
                async with http.request(method, running.url + path, headers=headers, **sent) as response:
                    return response.status, f"{dict(response.headers)}\n{await response.text()}"

            async def made(path: str, body: Any) -> Any:
                status, text = await ask(OWNER, "POST", path, body)
                assert status == 200, text
                return json.loads(text.partition("\n")[2])

            await made("/v1/chat/completions", CHAT)
            await ask(OWNER, "POST", "/v1/chat/completions", {**CHAT, "model": BROKEN})
            answer = await made("/v1/responses", {"model": HIDDEN, "input": CANARY, "store": True})
            upload = aiohttp.FormData({"purpose": "batch"})
            upload.add_field("file", f'{{"{CANARY}": 1}}\n', filename=f"{CANARY}.jsonl")
            file = await made("/v1/files", upload)
            batch = await made("/v1/batches", filled(BATCH, {"file": file["id"]}))
            ids = {
                "response": answer["id"],
                "item": answer["output"][0]["id"],
                "file": file["id"],
                "batch": batch["id"],
            }
            await work(running, ask, {**ids, "model": HIDDEN})

    asyncio.run(go())


def test_no_path_shows_a_key_another_model_or_the_data_of_another_key(
    serve_models: Callable[..., Any], tmp_path: Path
) -> None:
    """Whoever has the data sees some of it at each path, so the table leaves none out."""

    async def work(running: Any, ask: Ask, ids: dict[str, str]) -> None:
        paths = [route.path for route in ROUTES if route.method == "GET"]
        paths += [API + name for method, name in running.gateway.ui._routes if method == "GET"]
        shown: dict[str, dict[str, set[str]]] = {"some": {}, "every": {}, OWNER: {}}
        for key, seen in shown.items():
            for path in paths:
                sent = filled(path, ids) + ("?number=1" if path == f"{API}request" else "")
                _, text = await ask(key, "GET", sent)
                hidden = {HIDDEN, BROKEN, OWNER, CANARY, *ids.values()}
                seen[path] = {word for word in hidden if word in text and (key == OWNER or word not in sent)}
        assert {path: words for path, words in shown["some"].items() if words} == {}
        names = {HIDDEN, BROKEN}
        assert {path: words for path, words in shown["every"].items() if words - names} == {}
        assert {path for path, words in shown[OWNER].items() if not words} == SAME_FOR_ALL

    with_data(serve_models, tmp_path, work)


def test_no_request_goes_on_from_the_data_of_another_key(serve_models: Callable[..., Any], tmp_path: Path) -> None:
    async def work(_: Any, ask: Ask, ids: dict[str, str]) -> None:
        for path, body in (*OF_MODELS, *OF_DATA):
            strangers = ["some"] if (path, body) in OF_MODELS else ["some", "every"]
            for key in (*strangers, OWNER):
                status, text = await ask(key, "POST", filled(path, ids), filled(body, ids))
                assert (status == 200) is (key == OWNER), (key, path, text)
                assert key == OWNER or CANARY not in text.replace(f"{CANARY}.html", "")
        deleting = [("DELETE", route.path) for route in ROUTES if route.method == "DELETE"]
        for method, path in [("POST", "/v1/batches/{batch}/cancel"), *deleting]:
            for key in ("some", "every", OWNER):
                status, text = await ask(key, method, filled(path, ids))
                assert (status == 404) is (key != OWNER), (key, path, text)

    with_data(serve_models, tmp_path, work)
