"""What the gateway answers beside chat: paths and methods, models, raw completions, embeddings."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import openai
import pytest
from aiohttp import web
from yarl import URL

from models.conftest import serving
from toolspeak.api.embeddings import read_reply
from toolspeak.gateway.config.settings import ModelSettings
from toolspeak.gateway.routes import ROUTES, find
from toolspeak.models.scripted import Scripted

Ask = Callable[[aiohttp.ClientSession, str], Awaitable[Any]]


def asked(serve_models: Callable[..., Any], ask: Ask, **models: Any) -> Any:
    """What `ask` gives, of a session with a gateway in front of `models`."""

    async def go() -> Any:
        async with serve_models(**models) as running, aiohttp.ClientSession() as session:
            return await ask(session, running.url)

    return asyncio.run(go())


def sent(serve_models: Callable[..., Any], method: str, path: str, **models: Any) -> tuple[int, Any, Any]:
    """Status, headers and JSON of one request."""

    async def ask(session: aiohttp.ClientSession, url: str) -> tuple[int, Any, Any]:
        async with session.request(method, URL(url + path, encoded=True)) as response:
            text = await response.text()
            return response.status, response.headers, await response.json() if text else None

    return asked(serve_models, ask, **(models or {"m": Scripted("Hi", repeat=True)}))


def sdk(running: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=running.url + "/v1", api_key="none", max_retries=0)


# ------------------------------------------------------------------ paths


def test_every_route_is_found_by_its_own_path() -> None:
    for route in ROUTES:
        path = re.sub(r"\{\w+\}", "a/b:c", route.path)
        routes, rest = find(path)
        assert routes[route.method] is route
        assert rest == ("a/b:c" if "{" in route.path else "")


@pytest.mark.parametrize(
    "path", ["//", "/v1", "/v1/", "/v1/models/", "//v1/models", "/v1/models/../chat", "/v1/models{model}"]
)
def test_a_path_that_is_none_is_told(path: str, serve_models: Callable[..., Any]) -> None:
    status, _, body = sent(serve_models, "GET", path)
    assert status == 404
    assert set(body["error"]) == {"message", "type", "param", "code"}


def test_a_path_that_is_nearly_one_says_which(serve_models: Callable[..., Any]) -> None:
    _, _, body = sent(serve_models, "POST", "/chat/completions")
    assert "Did you mean '/v1/chat/completions'" in body["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/chat/completions", "POST"),
        ("HEAD", "/v1/chat/completions", "POST"),
        ("POST", "/v1/models", "GET, HEAD"),
        ("DELETE", "/v1/models/m", "GET, HEAD"),
    ],
)
def test_another_method_is_told_which_there_are(
    method: str, path: str, allowed: str, serve_models: Callable[..., Any]
) -> None:
    status, headers, _ = sent(serve_models, method, path)
    assert (status, headers["allow"]) == (405, allowed)


def test_head_is_get_without_its_body(serve_models: Callable[..., Any]) -> None:
    status, headers, body = sent(serve_models, "HEAD", "/v1/models")
    assert (status, body) == (200, None)
    assert int(headers["content-length"]) > 50


# ------------------------------------------------------------------ models


def test_models_are_listed_and_shown(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        models = {"m": Scripted("Hi"), "org/name:7b": Scripted("Hi")}
        async with serve_models(**models) as running, sdk(running) as client:
            listed = await client.models.list()
            assert [model.id for model in listed.data] == ["m", "org/name:7b"]
            shown = await client.models.retrieve("org/name:7b")
            assert shown == listed.data[1]
            with pytest.raises(openai.NotFoundError, match="Did you mean 'org/name:7b'"):
                await client.models.retrieve("org/name")

    asyncio.run(go())


# ------------------------------------------------------------------ raw completions


def text_model(*replies: str) -> Scripted:
    return Scripted(replies, capabilities=["prompt"])


def test_a_prompt_is_continued_byte_for_byte(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        model = text_model("<tool_call> is text here")
        async with serve_models(m=model) as running, sdk(running) as client:
            reply = await client.completions.create(
                model="m", prompt=" Once <|im_start|>", max_tokens=9, temperature=0.5, stop=["END"], logprobs=2,
                seed=7, top_p=0.5, presence_penalty=0.5,
            )  # fmt: skip
        assert reply.choices[0].text == "<tool_call> is text here"
        assert (reply.object, reply.choices[0].finish_reason) == ("text_completion", "stop")
        seen = model.requests[0]
        assert (seen.prompt, seen.max_tokens, seen.temperature, seen.stop) == (" Once <|im_start|>", 9, 0.5, ("END",))
        assert (seen.logprobs, seen.seed, seen.sampling) == (2, 7, {"top_p": 0.5, "presence_penalty": 0.5})

    asyncio.run(go())


def test_completions_stream_each_prompt_and_its_usage(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        model = text_model("one", "two")
        async with serve_models(m=model) as running, sdk(running) as client:
            stream = await client.completions.create(
                model="m", prompt=["A", "B"], echo=True, stream=True, stream_options={"include_usage": True}
            )
            texts, usage = {0: "", 1: ""}, None
            async for chunk in stream:
                for choice in chunk.choices:
                    texts[choice.index] += choice.text
                usage = chunk.usage
        assert texts == {0: "Aone", 1: "Btwo"}
        assert usage is not None
        assert [request.prompt for request in model.requests] == ["A", "B"]

    asyncio.run(go())


def test_a_chat_model_takes_no_prompt(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with serve_models(m=Scripted("Hi")) as running, sdk(running) as client:
            with pytest.raises(openai.BadRequestError, match="accepts messages, but no raw prompt") as refused:
                await client.completions.create(model="m", prompt="x")
        assert refused.value.param == "prompt"

    asyncio.run(go())


def test_the_embedded_model_continues_a_prompt(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with serve_models(m=ModelSettings("m", ("local",))) as running, sdk(running) as client:
            reply = await client.completions.create(model="m", prompt="The capital of France is", max_tokens=3)
        assert " Paris" in reply.choices[0].text
        assert (reply.choices[0].finish_reason, reply.usage.completion_tokens) == ("length", 3)

    asyncio.run(go())


# ------------------------------------------------------------------ embeddings

ROWS = [[0.25, -1.5, 3.0], [1.0, 0.0, 2.0]]


def vectors(*rows: list[float]) -> web.Response:
    data = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)]
    return web.json_response({"object": "list", "data": data[::-1], "usage": {"prompt_tokens": 5, "total_tokens": 5}})


@asynccontextmanager
async def in_front_of(serve_models: Callable[..., Any], spec: str, *answers: Any) -> AsyncIterator[tuple[Any, Any]]:
    """A server that answers so, and an SDK client of a gateway in front of it; `spec` with {url} is its name."""
    async with serving(*answers) as server:
        settings = ModelSettings("m", (spec.format(url=server.url),))
        async with serve_models(m=settings, chat=Scripted("Hi")) as running, sdk(running) as client:
            yield server, client


@pytest.mark.parametrize("encoding", ["float", None])  # without a word the SDK asks for base64 and decodes it
def test_embeddings_of_a_server_are_passed_on(encoding: str | None, serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with in_front_of(serve_models, "{url}/v1#up", vectors(*ROWS)) as (server, client):
            wanted = {"encoding_format": encoding} if encoding else {}
            reply = await client.embeddings.create(model="m", input=["a", "b"], dimensions=3, **wanted)
        assert [row.embedding for row in reply.data] == ROWS
        assert (reply.model, reply.usage.prompt_tokens) == ("m", 5)
        assert server.paths == ["POST /v1/embeddings"]
        assert server.bodies[0] == {"model": "up", "input": ["a", "b"], "encoding_format": "float", "dimensions": 3}

    asyncio.run(go())


def test_embeddings_of_ollama(serve_models: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        answer = web.json_response({"embeddings": ROWS[:1], "prompt_eval_count": 4})
        async with serving(answer) as server:
            monkeypatch.setenv("OLLAMA_HOST", server.url)
            async with serve_models(m=ModelSettings("m", ("ollama:e",))) as running, sdk(running) as client:
                reply = await client.embeddings.create(model="m", input="a")
            assert reply.data[0].embedding == ROWS[0]
            assert (server.paths, reply.usage.prompt_tokens) == (["POST /api/embed"], 4)
            assert server.bodies[0] == {"model": "e", "input": ["a"], "truncate": False}

    asyncio.run(go())


@pytest.mark.parametrize(
    ("fields", "error", "said"),
    [
        ({"model": "chat"}, openai.BadRequestError, "'chat' has no embeddings"),
        ({"model": "none"}, openai.NotFoundError, "no model 'none'"),
        ({"input": []}, openai.BadRequestError, "input"),
        ({"input": ""}, openai.BadRequestError, "input"),
        ({"input": [1, 2]}, openai.BadRequestError, "input"),
        ({"input": ["a"] * 2049}, openai.BadRequestError, "input"),
        ({"dimensions": 0}, openai.BadRequestError, "dimensions"),
        ({"dimensions": 2}, openai.BadRequestError, "has only vectors of 3 numbers"),
        ({"encoding_format": "hex"}, openai.BadRequestError, "encoding_format"),
    ],
)
def test_embeddings_refused(
    fields: dict[str, Any], error: type[Exception], said: str, serve_models: Callable[..., Any]
) -> None:
    async def go() -> None:
        async with in_front_of(serve_models, "{url}/v1#up", vectors(ROWS[0])) as (_, client):
            with pytest.raises(error, match=said):
                await client.embeddings.create(**{"model": "m", "input": "a", **fields})

    asyncio.run(go())


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (web.json_response({"error": {"message": "slow down"}}, status=429, headers={"Retry-After": "99"}), 429),
        (web.json_response({"error": "boom"}, status=500), 502),
        (web.json_response({"data": []}), 502),
        (web.json_response({"data": [{"index": 0, "embedding": ["x"]}]}), 502),
        (web.json_response({"data": [{"index": 0, "embedding": [True]}]}), 502),
        (web.Response(body=b'{"data": [{"index": 0, "embedding": [1e999]}]}'), 502),
        (web.json_response({"data": [{"index": 0, "embedding": [1e300]}]}), 502),
        (web.Response(body=b"<html>no</html>"), 502),
    ],
)
def test_what_a_server_says_instead_of_vectors(
    answer: web.Response, status: int, serve_models: Callable[..., Any]
) -> None:
    async def go() -> None:
        async with in_front_of(serve_models, "{url}/v1#up", answer) as (server, client):
            with pytest.raises(openai.APIStatusError) as told:
                await client.embeddings.create(model="m", input="a")
        assert told.value.status_code == status
        assert server.url.removeprefix("http://") not in str(told.value.body)

    asyncio.run(go())


@pytest.mark.parametrize("status", [404, 405, 501])  # 501: llama.cpp
def test_a_server_without_embeddings_is_told_by_the_field(status: int, serve_models: Callable[..., Any]) -> None:
    answer = web.json_response({"error": {"message": "start it with --embeddings"}}, status=status)

    async def go() -> None:
        async with in_front_of(serve_models, "{url}/v1#up", answer) as (server, client):
            with pytest.raises(openai.BadRequestError, match=r"'m' has no embeddings: .*start it with") as told:
                await client.embeddings.create(model="m", input="a")
        assert (told.value.param, told.value.code) == ("model", "unsupported_parameter")
        assert server.url.removeprefix("http://") not in str(told.value.body)
        assert len(server.paths) == 1, "it was asked again"

    asyncio.run(go())


def test_a_text_that_is_too_long_for_embeddings_is_told_by_the_field(serve_models: Callable[..., Any]) -> None:
    answer = web.json_response({"error": {"message": "maximum context length is 512 tokens"}}, status=400)

    async def go() -> None:
        async with in_front_of(serve_models, "{url}/v1#up", answer) as (_, client):
            with pytest.raises(openai.BadRequestError) as told:
                await client.embeddings.create(model="m", input="a")
        assert (told.value.param, told.value.code) == ("input", "context_length_exceeded")

    asyncio.run(go())


def test_vectors_in_base64_are_read_from_a_server() -> None:
    raw = base64.b64encode(struct.pack("<3f", *ROWS[0])).decode()
    body = {"data": [{"index": 0, "embedding": raw}], "usage": {"prompt_tokens": 1}}
    assert [list(row) for row in read_reply(body, 1).rows] == [list(ROWS[0])]


def test_a_client_that_leaves_closes_the_server_s_work(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        began = asyncio.Event()

        async def slow(_: web.Request) -> web.StreamResponse:
            began.set()
            await asyncio.sleep(60)
            raise AssertionError

        async with in_front_of(serve_models, "{url}/v1#up", slow) as (server, client):
            asking = asyncio.create_task(client.embeddings.create(model="m", input="a"))
            await began.wait()
            asking.cancel()
            async with asyncio.timeout(60):
                await server.aborted.wait()

    asyncio.run(go())


def raw(url: str) -> ModelSettings:
    return ModelSettings("m", (f"{url}/v1#up",), mode="raw", dialect="hermes")


def test_a_server_of_raw_completions_is_given_the_very_prompt(serve_models: Callable[..., Any]) -> None:
    chunks = [{"index": 0, "text": " time", "finish_reason": None}, {"index": 0, "text": "", "finish_reason": "stop"}]
    answer = "".join(f"data: {json.dumps({'choices': [chunk]})}\n\n" for chunk in chunks).encode() + b"data: [DONE]\n\n"

    async def go() -> None:
        async with serving(answer) as server, serve_models(m=raw(server.url)) as running, sdk(running) as client:
            reply = await client.completions.create(model="m", prompt="Once <|im_end|>", top_p=0.5, logprobs=1)
        assert reply.choices[0].text == " time"
        asked = server.bodies[-1]
        assert (server.paths[-1], asked["prompt"]) == ("POST /v1/completions", "Once <|im_end|>")
        assert (asked["top_p"], asked["logprobs"], asked["model"]) == (0.5, 1, "up")

    asyncio.run(go())


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_stops_the_continuation(stream: bool, serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        began = asyncio.Event()

        async def slow(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            await response.write(b'data: {"choices": [{"index": 0, "text": "a", "finish_reason": null}]}\n\n')
            began.set()
            await asyncio.sleep(60)
            raise AssertionError

        async with serving(slow) as server, serve_models(m=raw(server.url)) as running:
            async with aiohttp.ClientSession() as session:
                body = {"model": "m", "prompt": "x", "stream": stream}
                asking = asyncio.create_task(session.post(f"{running.url}/v1/completions", json=body))
                await began.wait()
                if stream:
                    (await asking).close()
                else:
                    asking.cancel()
            async with asyncio.timeout(60):
                await server.aborted.wait()

    asyncio.run(go())


def test_what_is_missing_in_the_settings_names_no_server(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with serving(web.json_response({}, status=404)) as server, serve_models(m=raw(server.url)) as running:
            async with sdk(running) as client:
                with pytest.raises(openai.APIStatusError, match="does not tell its chat template") as told:
                    await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}])
        assert server.url.removeprefix("http://") not in str(told.value.body)

    asyncio.run(go())
