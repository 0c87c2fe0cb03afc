"""Text that must match a schema streams only if the model is known to enforce the schema; else it is held back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from replies import frames, native
from toolspeak.events import Event, Finished, Noted, TextDelta
from toolspeak.gateway.text_gate import TextGate
from toolspeak.models.fallback import Adaptive
from toolspeak.models.http import Http
from toolspeak.models.http.providers import PROVIDERS
from toolspeak.types import Note, Request

Serve = Callable[..., Any]
SHIP: dict[str, Any] = {
    "type": "object", "properties": {"ship": {"type": "string"}, "masts": {"type": "integer"}},
    "required": ["ship", "masts"], "additionalProperties": False,
}  # fmt: skip
VALUE = {"ship": "Vasa", "masts": 3}
AMONG_WORDS = f"Of course! Here you go:\n```json\n{json.dumps(VALUE)}\n```\nIs there more?"
WRONG = 'Here it is:\n```json\n{"ship": "Vasa", "masts": "three"}\n```'
BARE_WRONG = '{"ship": "Vasa", "masts": "three"}'
TURN = {"model": "m", "messages": [{"role": "user", "content": "Which ship sank in 1628?"}]}
NAMED = {"name": "ship", "schema": SHIP}
APIS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", TURN | {"response_format": {"type": "json_schema", "json_schema": NAMED}}),
    "json_object": ("/v1/chat/completions", TURN | {"response_format": {"type": "json_object"}}),
    "responses": (
        "/v1/responses",
        {"model": "m", "input": "Which ship?", "text": {"format": {"type": "json_schema", **NAMED}}},
    ),
    "messages": (
        "/v1/messages",
        TURN | {"max_tokens": 200, "output_config": {"format": {"type": "json_schema", "schema": SHIP}}},
    ),
    "ollama": ("/api/chat", TURN | {"format": SHIP}),
}


class Server:
    """A model server with texts in pieces. It ignores the schema of a request, or writes a value of it (`enforces`)."""

    def __init__(self, *texts: str, enforces: bool = False) -> None:
        self.texts = list(texts)
        self.enforces = enforces

    async def answer(self, request: web.Request) -> web.Response:
        if request.path == "/v1/models":
            return web.json_response({"data": [{"id": "m"}]})
        body = json.loads(await request.read() or b"null")
        if request.path != "/v1/chat/completions":
            return web.json_response({"error": {"message": "not found"}}, status=404)
        text = self.text(body)
        pieces = [text[at : at + 5] for at in range(0, len(text), 5)]
        rows = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
        usage = {"prompt_tokens": 20, "completion_tokens": 10}
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage}
        return web.Response(body=frames(*rows, end), content_type="text/event-stream")

    def text(self, body: dict[str, Any]) -> str:
        form = body.get("response_format")
        if form and self.enforces:
            properties = form["json_schema"]["schema"]["properties"] if "json_schema" in form else {}
            return json.dumps(VALUE if "ship" in properties else dict.fromkeys(properties, "kx4"))
        if "ship" in str(body["messages"]):
            return self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        return "Hello."


def asked(serve_models: Serve, server: Server, api: str, *, stream: bool, probed: bool = True) -> tuple[list[str], str]:
    """The pieces of text that a client of the gateway gets, and all that it gets."""

    async def go() -> tuple[list[str], str]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", server.answer)
        async with TestServer(app, host="127.0.0.1") as upstream, ClientSession() as client:
            http = Http(f"http://127.0.0.1:{upstream.port}/v1", "m", retries=0)
            http.in_pieces = True
            model = Adaptive(http)
            if probed:
                await model.load()
            async with serve_models(m=model) as gateway:
                path, body = APIS[api]
                async with client.post(gateway.url + path, json=body | {"stream": stream}) as answer:
                    raw = await answer.text()
            return texts_of(raw, api) if stream else [text_of(json.loads(raw), api)], raw

    return asyncio.run(go())


def text_of(row: dict[str, Any], api: str) -> str:
    match api:
        case "responses":
            return "".join(part["text"] for item in row["output"] for part in item.get("content", ()))
        case "messages":
            return "".join(block["text"] for block in row["content"])
        case "ollama":
            return row["message"]["content"]
        case _:
            return row["choices"][0]["message"]["content"]


def texts_of(raw: str, api: str) -> list[str]:
    rows = [json.loads(line.removeprefix("data: ")) for line in raw.splitlines() if line.startswith(("data: {", "{"))]
    if api == "ollama":
        texts = [row.get("message", {}).get("content") for row in rows]
    elif api == "responses":
        texts = [row["delta"] for row in rows if row["type"] == "response.output_text.delta"]
    elif api == "messages":
        texts = [row["delta"].get("text") for row in rows if row["type"] == "content_block_delta"]
    else:
        texts = [choice["delta"].get("content") for row in rows for choice in row.get("choices", ())]
    return [text for text in texts if text]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("probed", [True, False])
def test_a_server_that_ignores_the_schema_is_checked_before_a_word_streams(
    serve_models: Serve, api: str, probed: bool
) -> None:
    for texts in ([AMONG_WORDS], [WRONG, AMONG_WORDS], [BARE_WRONG, AMONG_WORDS]):
        if api == "json_object" and texts[0] != AMONG_WORDS:
            continue  # any object is one of its values
        for stream in (False, True):
            pieces, raw = asked(serve_models, Server(*texts), api, stream=stream, probed=probed)
            assert [json.loads(piece) for piece in pieces] == [VALUE], raw
            assert "Of course" not in raw
            assert "Here it is" not in raw


@pytest.mark.parametrize("api", APIS)
def test_a_server_that_was_seen_to_enforce_the_schema_streams(serve_models: Serve, api: str) -> None:
    pieces, raw = asked(serve_models, Server("no", enforces=True), api, stream=True)
    assert json.loads("".join(pieces)) == ({} if api == "json_object" else VALUE), raw
    assert len(pieces) > 1 or api == "json_object"
    pieces, _ = asked(serve_models, Server("no", enforces=True), api, stream=True, probed=False)
    assert len(pieces) == 1


def test_a_request_without_a_valid_reply_is_logged_with_its_tokens(serve_models: Serve) -> None:
    async def go() -> list[tuple[str, int, int]]:
        seen: list[tuple[str, int, int]] = []
        async with serve_models(m=native("one", "two", "three", repeat=True)) as gateway, ClientSession() as client:
            ended = gateway.gateway.observer.end

            def end(record: Any, *rest: Any, **more: Any) -> None:
                seen.append((record.code, record.tokens_in, record.tokens_out))
                ended(record, *rest, **more)

            gateway.gateway.observer.end = end
            path, body = APIS["chat"]
            for stream in (False, True):
                await (await client.post(gateway.url + path, json=body | {"stream": stream})).read()
        return seen

    for code, read, written in asyncio.run(go()):
        assert code == "no_valid_reply"
        assert read > 0
        assert written > 0


# ------------------------------------------------------------------ the gate


def passed(can: set[str], *events: Event, schema: dict[str, Any] | None = SHIP, whole: bool = False) -> list[str]:
    gate = TextGate(Request([], schema=schema), can, whole=whole)
    out: list[str] = []
    for event in events:
        if isinstance(event, Noted):
            gate.note(event.note)
        elif isinstance(event, TextDelta):
            out += [one.text for one in gate.take(event) if isinstance(one, TextDelta)]
        else:
            assert isinstance(event, Finished)
    return out


def test_the_gate_opens_only_for_text_that_is_constrained() -> None:
    able, blank, brace, word = {"schema", "enforced"}, TextDelta("\n "), TextDelta('{"a'), TextDelta("Sure")
    assert passed({"schema"}, brace) == []
    assert passed(able, blank, brace, word) == ["\n ", '{"a', "Sure"]
    assert passed(able, brace, whole=True) == []
    assert passed(able, blank, word, brace) == []
    assert passed(able, word, Noted(Note("re-asked", "told")), brace) == ['{"a']
    assert passed(able, Noted(Note("schema-simplified", "pattern")), brace) == []
    assert passed(able, TextDelta("[1]"), schema={"type": "array"}) == ["[1]"]
    assert passed(set(), word, schema=None) == ["Sure"]


def test_a_hosted_api_that_enforces_strict_schemas_streams_these_alone() -> None:
    openai = Http("https://api.openai.com/v1", "gpt-5", provider=PROVIDERS["openai"])
    other = Http("http://127.0.0.1:1/v1", "gpt-5", provider=PROVIDERS["openai"])
    brace = TextDelta("{")
    loose = {"type": "object", "properties": {"ship": {"type": "string"}}}
    assert passed({*openai.capabilities}, brace) == ["{"]
    assert passed({*openai.capabilities}, brace, schema=loose) == []
    assert passed({*other.capabilities}, brace) == []
