"""Ollama's API through the gateway, by its own Python package; and the gateway behind our own client of that API."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import ollama
import pytest

from toolspeak.api.embeddings import Vectors
from toolspeak.errors import StreamCut
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Finished, Logprobs, TextDelta, ThoughtDelta
from toolspeak.gateway.access.keys import digest
from toolspeak.gateway.config.settings import Key, ModelSettings
from toolspeak.models.http import Http
from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker
from toolspeak.types import Request, Tool, Usage

Serve = Callable[..., Any]
Talk = Callable[[ollama.AsyncClient], Awaitable[Any]]
QUESTION = [{"role": "user", "content": "Weather in Xiamen?"}]
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Xiamen"}}\n</tool_call>'
OTHER = CALL.replace("Xiamen", "Fuzhou")
PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


def weather(city: str) -> str:
    """The weather in a city.

    Args:
        city: The city.
    """
    return f"35 in {city}"


def hermes(*replies: str) -> Speaker:
    return Speaker(Scripted(replies), "hermes")


def native(*events: Any) -> Scripted:
    return Scripted([events], capabilities=["tools"])


def talk(serve_models: Serve, model: Any, say: Talk, headers: dict[str, str] | None = None, **settings: Any) -> Any:
    """What `say` makes of a client of a gateway in front of `model`."""

    async def go() -> Any:
        async with serve_models(settings=settings, m=model) as running:
            async with ollama.AsyncClient(running.url, headers=headers) as client:
                return await say(client)

    return asyncio.run(go())


async def streamed(client: ollama.AsyncClient, ask: str = "chat", **how: Any) -> list[Any]:
    return [part async for part in await getattr(client, ask)("m", **how, stream=True)]


# ------------------------------------------------------------------ chat


def test_words_whole_and_streamed(serve_models: Serve) -> None:
    async def say(client: ollama.AsyncClient) -> Any:
        return await client.chat("m", QUESTION), await streamed(client, messages=QUESTION)

    whole, parts = talk(serve_models, Scripted("Hello there", repeat=True), say)
    assert (whole.message.role, whole.message.content) == ("assistant", "Hello there")
    assert (whole.model, whole.done, whole.done_reason) == ("m", True, "stop")
    assert "".join(part.message.content for part in parts) == "Hello there"
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    for end in (whole, parts[-1]):
        assert min(end.total_duration, end.eval_duration, end.prompt_eval_duration, end.prompt_eval_count) > 0
        assert end.created_at.endswith("Z")


def test_the_stream_is_lines_of_json(serve_models: Serve) -> None:
    async def go() -> None:
        async with serve_models(m=Scripted("Hello there")) as running, aiohttp.ClientSession() as session:
            async with session.post(f"{running.url}/api/chat", json={"model": "m", "messages": QUESTION}) as response:
                assert response.headers["content-type"] == "application/x-ndjson"
                lines = (await response.text()).splitlines()
        assert [json.loads(line)["done"] for line in lines][-2:] == [False, True]

    asyncio.run(go())


@pytest.mark.parametrize("stream", [False, True])
def test_calls_and_their_results_fed_back(serve_models: Serve, stream: bool) -> None:
    """As the package's own examples do it: its message is sent back, and results name the tool alone."""
    model = hermes("Let me look. " + CALL + "\n" + OTHER, "35 in both.")

    async def say(client: ollama.AsyncClient) -> Any:
        turns: list[Any] = [*QUESTION]
        if stream:
            parts = await streamed(client, messages=turns, tools=[weather])
            calls = [call for part in parts for call in part.message.tool_calls or ()]
            text = "".join(part.message.content for part in parts)
            turns.append({"role": "assistant", "content": text, "tool_calls": calls})
        else:
            reply = await client.chat("m", turns, tools=[weather])
            calls = reply.message.tool_calls
            turns.append(reply.message)
        for call in calls:
            turns.append(
                {"role": "tool", "tool_name": call.function.name, "content": weather(**call.function.arguments)}
            )
        return calls, await client.chat("m", turns, tools=[weather])

    calls, last = talk(serve_models, model, say)
    assert [call.function.arguments for call in calls] == [{"city": "Xiamen"}, {"city": "Fuzhou"}]
    assert last.message.content == "35 in both."
    told = json.dumps(model.model.requests[1].messages)
    assert told.index("35 in Xiamen") < told.index("35 in Fuzhou")


def test_a_result_belongs_to_the_first_call_of_its_tool_that_has_none(serve_models: Serve) -> None:
    model = native(TextDelta("ok"), Finished())
    calls = [{"function": {"name": name, "arguments": {"n": n}}} for n, name in enumerate(("a", "b", "a"))]
    results = [
        {"role": "tool", "tool_name": name, "content": text} for name, text in (("b", "1"), ("a", "0"), ("a", "2"))
    ]
    turns = [*QUESTION, {"role": "assistant", "tool_calls": calls}, *results]
    talk(serve_models, model, lambda client: client.chat("m", turns))
    messages = model.requests[0].messages
    numbers = {call["id"]: json.loads(call["function"]["arguments"])["n"] for call in messages[1]["tool_calls"]}
    assert [(numbers[row["tool_call_id"]], row["content"]) for row in messages[2:]] == [(1, "1"), (0, "0"), (2, "2")]


def test_a_wrong_call_is_repaired_before_it_is_told(serve_models: Serve) -> None:
    model = hermes(CALL.replace("city", "town"), CALL)
    reply = talk(serve_models, model, lambda client: client.chat("m", QUESTION, tools=[weather]))
    assert reply.message.tool_calls[0].function.arguments == {"city": "Xiamen"}
    assert len(model.model.requests) == 2


@pytest.mark.parametrize(("think", "thought"), [(None, "hm"), (True, "hm"), ("low", "hm"), (False, None)])
def test_thinking_is_told_unless_it_is_switched_off(serve_models: Serve, think: Any, thought: str | None) -> None:
    said = (ThoughtDelta("hm"), TextDelta("A"), Finished())
    model = Scripted([said, said], capabilities=["tools"])

    async def say(client: ollama.AsyncClient) -> Any:
        whole = await client.chat("m", QUESTION, think=think)
        turns = [*QUESTION, whole.message, {"role": "user", "content": "More"}]
        return whole.message, await streamed(client, messages=turns, think=think)

    message, parts = talk(serve_models, model, say)
    assert (message.thinking, message.content) == (thought, "A")
    assert ("".join(part.message.thinking or "" for part in parts) or None) == thought
    asked = [(request.thinking, request.sampling.get("reasoning_effort")) for request in model.requests]
    assert asked == [(None if think is None else think is not False, "low" if think == "low" else None)] * 2
    assert model.requests[1].messages[1].get("reasoning_content") == thought


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.mark.parametrize("ask", ["chat", "generate"])
def test_a_format_is_kept(serve_models: Serve, ask: str) -> None:
    model = Scripted(["no json", '{"city": 3}', '{"city": "Xiamen"}', "[", '{"a": 1}'])
    how = {"messages": QUESTION} if ask == "chat" else {"prompt": "Where?"}

    async def say(client: ollama.AsyncClient) -> Any:
        return [await getattr(client, ask)("m", **how, format=form) for form in (SCHEMA, "json")]

    replies = talk(serve_models, model, say)
    texts = [reply.message.content if ask == "chat" else reply.response for reply in replies]
    assert [json.loads(text) for text in texts] == [{"city": "Xiamen"}, {"a": 1}]


def test_images_are_passed_on(serve_models: Serve) -> None:
    model = Scripted("A cat.", repeat=True)

    async def say(client: ollama.AsyncClient) -> None:
        await client.chat("m", [{"role": "user", "content": "What is this?", "images": [PNG]}])
        await client.generate("m", "What is this?", images=[b"\xff\xd8\xff\xe0"])

    talk(serve_models, model, say)
    urls = [request.messages[0]["content"][1]["image_url"]["url"] for request in model.requests]
    assert urls == ["data:image/png;base64," + base64.b64encode(PNG).decode(), "data:image/jpeg;base64,/9j/4A=="]
    assert model.requests[0].messages[0]["content"][0] == {"type": "text", "text": "What is this?"}


def test_options_reach_the_model_and_others_are_named(serve_models: Serve) -> None:
    model = Scripted("Hi", repeat=True)
    options = {
        "num_predict": 9, "seed": 7, "temperature": 0.5, "top_p": 0.5, "top_k": 3, "repeat_penalty": 1.5,
        "presence_penalty": 0.5, "stop": ["END"], "num_ctx": 4096,
    }  # fmt: skip

    async def go() -> str:
        async with serve_models(m=model) as running, aiohttp.ClientSession() as session:
            body = {"model": "m", "messages": QUESTION, "options": options, "stream": False, "keep_alive": "5m"}
            async with session.post(f"{running.url}/api/chat", json=body) as response:
                assert response.status == 200
                return response.headers["x-toolspeak-ignored"]

    assert asyncio.run(go()) == "keep_alive, options.num_ctx"
    seen = model.requests[0]
    assert (seen.max_tokens, seen.seed, seen.temperature, seen.stop) == (9, 7, 0.5, ("END",))
    assert seen.sampling == {"top_p": 0.5, "top_k": 3, "presence_penalty": 0.5, "repetition_penalty": 1.5}
    endless = {"num_predict": -1, "seed": -1}
    talk(serve_models, model, lambda client: client.chat("m", QUESTION, options=endless))
    assert (model.requests[1].max_tokens, model.requests[1].seed) == (None, None)


def test_likelihoods_and_what_was_spent(serve_models: Serve) -> None:
    rows = ({"token": "A", "logprob": -0.5, "top_logprobs": [{"token": "B", "logprob": -1.0}]},)
    said = (TextDelta("A"), Logprobs(rows), Finished("length", Usage(7, 5)))
    model = Scripted([said, said])

    async def say(client: ollama.AsyncClient) -> Any:
        how = {"messages": QUESTION, "logprobs": True, "top_logprobs": 1}
        return await client.chat("m", **how), (await streamed(client, **how))[-1]

    for end in talk(serve_models, model, say):
        assert [(row.token, row.top_logprobs[0].token) for row in end.logprobs] == [("A", "B")]
        assert (end.done_reason, end.prompt_eval_count, end.eval_count) == ("length", 7, 5)
    assert [request.logprobs for request in model.requests] == [1, 1]


# ------------------------------------------------------------------ generate


def test_a_prompt_is_answered_whole_and_streamed(serve_models: Serve) -> None:
    said = (ThoughtDelta("hm"), TextDelta("Blue"), Finished())
    model = Scripted([said, said])

    async def say(client: ollama.AsyncClient) -> Any:
        how = {"prompt": "Why?", "system": "Be brief"}
        return await client.generate("m", **how), await streamed(client, "generate", **how)

    whole, parts = talk(serve_models, model, say)
    assert (whole.response, whole.thinking, whole.done_reason) == ("Blue", "hm", "stop")
    assert "".join(part.response for part in parts) == "Blue"
    assert "".join(part.thinking or "" for part in parts) == "hm"
    assert [message["role"] for message in model.requests[0].messages] == ["system", "user"]


def test_a_raw_prompt_is_continued_byte_for_byte(serve_models: Serve) -> None:
    model = Scripted(["<tool_call> is text"], capabilities=["prompt"])
    reply = talk(serve_models, model, lambda client: client.generate("m", " Once <|im_start|>", raw=True))
    assert (reply.response, model.requests[0].prompt) == ("<tool_call> is text", " Once <|im_start|>")


def test_the_embedded_model_answers(serve_models: Serve) -> None:
    async def say(client: ollama.AsyncClient) -> Any:
        raw = await client.generate("m", "The capital of France is", raw=True, options={"num_predict": 3})
        return raw, await client.chat("m", QUESTION, tools=[weather])

    raw, reply = talk(serve_models, ModelSettings("m", ("local",)), say)
    assert " Paris" in raw.response
    assert (raw.done_reason, raw.eval_count) == ("length", 3)
    assert reply.message.tool_calls[0].function.arguments == {"city": "Xiamen"}


def test_nothing_to_answer_asks_to_load(serve_models: Serve) -> None:
    async def say(client: ollama.AsyncClient) -> Any:
        with pytest.raises(ollama.ResponseError, match="no model 'n'"):
            await client.generate("n")
        return await client.generate("m"), await client.chat("m", [])

    model = Scripted("Hi")
    replies = talk(serve_models, model, say)
    assert [(reply.done, reply.done_reason) for reply in replies] == [(True, "load")] * 2
    assert model.requests == []


# ------------------------------------------------------------------ models and vectors


class Embeds(Scripted):
    async def embed(self, texts: Any, *, dimensions: int | None = None) -> Vectors:
        return Vectors(tuple((0.25,) * (dimensions or 3) for _ in texts), 4)


def test_models_are_listed_and_shown(serve_models: Serve) -> None:
    async def go() -> None:
        settings = {"aliases": {"alias": "m"}}
        models = {"m": Scripted("Hi", repeat=True), "n:7b": ModelSettings("n:7b", ("local",), context=4096)}
        async with serve_models(settings=settings, **models) as running, ollama.AsyncClient(running.url) as client:
            rows = (await client.list()).models
            assert [row.model for row in rows] == ["m", "n:7b", "alias"]
            assert len({row.digest for row in rows}) == 3
            shown = await client.show("n:7b")
            assert shown.capabilities == ["completion", "tools"]
            assert shown.modelinfo["toolspeak.context_length"] == 4096
            assert (await client.chat("m:latest", QUESTION)).message.content == "Hi"
            with pytest.raises(ollama.ResponseError, match="Did you mean 'n:7b'") as missing:
                await client.show("n:8b")
            assert missing.value.status_code == 404

    asyncio.run(go())


def raw(serve_models: Serve, *requests: tuple[str, str, Any], **settings: Any) -> list[tuple[int, str, bytes]]:
    """The status, content type and body of each answer of a gateway with the models `m` and `n:7b`."""
    models = {"m": Scripted("Hi", repeat=True), "n:7b": ModelSettings("n:7b", ("scripted:Yes",), context=4096)}

    async def go() -> list[tuple[int, str, bytes]]:
        async with serve_models(settings=settings, **models) as running, aiohttp.ClientSession() as session:
            found: list[tuple[int, str, bytes]] = []
            for method, path, body in requests:
                async with session.request(method, running.url + path, json=body) as response:
                    found.append((response.status, response.headers["content-type"], await response.read()))
            return found

    return asyncio.run(go())


def test_a_client_sees_that_a_server_runs(serve_models: Serve) -> None:
    got, head, post = raw(serve_models, ("GET", "/", None), ("HEAD", "/", None), ("POST", "/", {}))
    assert got == (200, "text/plain; charset=utf-8", b"Ollama is running")
    assert head == (200, "text/plain; charset=utf-8", b"")
    assert post[0] == 405


def test_models_are_loaded_and_stay(serve_models: Serve) -> None:
    async def go() -> Any:
        models = {"m": Scripted("Hi"), "n:7b": ModelSettings("n:7b", ("scripted:Yes",), context=4096)}
        async with serve_models(**models) as running, ollama.AsyncClient(running.url) as client:
            return (await client.list()).models, (await client.ps()).models

    listed, loaded = asyncio.run(go())
    assert [(row.model, row.name, row.context_length, row.size_vram) for row in loaded] == [
        ("m", "m", 0, 0),
        ("n:7b", "n:7b", 4096, 0),
    ]
    assert [row.digest for row in loaded] == [row.digest for row in listed]
    assert all(row.expires_at.year > 2200 for row in loaded)


def go_show(name: str) -> dict[str, Any]:
    """The question for a model as the client written in Go sends it: its name is in an old field."""
    return {"model": "", "system": "", "template": "", "verbose": False, "options": None, "name": name}


def test_what_the_go_client_sends(serve_models: Serve) -> None:
    """`ollama run n:7b Hi`: it looks at the model, loads it, and asks."""
    fields = {"model": "n:7b", "suffix": "", "system": "", "template": "", "options": {}}
    shown, other, near, loaded, asked, chatted = raw(
        serve_models,
        ("POST", "/api/show", go_show("n:7b")),
        ("POST", "/api/show", {"name": "n:7b"}),
        ("POST", "/api/show", go_show("n:8b")),
        ("POST", "/api/generate", {**fields, "prompt": ""}),
        ("POST", "/api/generate", {**fields, "prompt": "Hi", "think": False, "keep_alive": "5m"}),
        ("POST", "/api/chat", {"model": "n:7b", "messages": QUESTION, "options": None}),
    )
    assert json.loads(shown[2])["model_info"]["toolspeak.context_length"] == 4096
    assert other[2] == shown[2]
    assert (near[0], "Did you mean 'n:7b'" in json.loads(near[2])["error"]) == (404, True)
    assert json.loads(loaded[2])["done_reason"] == "load"
    assert "".join(json.loads(line)["response"] for line in asked[2].splitlines()) == "Yes"
    assert "".join(json.loads(line)["message"]["content"] for line in chatted[2].splitlines()) == "Yes"


@pytest.mark.parametrize("body", [{}, {"model": None}, {"name": None}, {"model": 1}, {"name": ["m"]}, go_show("")])
def test_a_model_that_is_not_named_is_refused(serve_models: Serve, body: dict[str, Any]) -> None:
    ((status, _, told),) = raw(serve_models, ("POST", "/api/show", body))
    assert status == (404 if body.get("name") == "" else 400)
    assert ("name" if isinstance(body.get("name"), list) else "model") in json.loads(told)["error"]


def test_vectors(serve_models: Serve) -> None:
    async def say(client: ollama.AsyncClient) -> Any:
        with pytest.raises(ollama.ResponseError, match="input") as refused:
            await client.embed("m", [])
        assert refused.value.status_code == 400
        return await client.embed("m", ["a", "b"], dimensions=2), await client.embed("m", "a")

    several, one = talk(serve_models, Embeds("Hi"), say)
    assert several.embeddings == [[0.25, 0.25]] * 2
    assert (one.embeddings, one.prompt_eval_count, one.model) == ([[0.25] * 3], 4, "m")
    with pytest.raises(ollama.ResponseError, match="'m' has no embeddings"):
        talk(serve_models, Scripted("Hi"), lambda client: client.embed("m", "a"))


# ------------------------------------------------------------------ errors, keys, pages of other origins


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("/api/chat", {}, "model"),
    ("/api/chat", {"model": "m", "messages": [{"role": "tool", "content": "x", "tool_name": "f"}]}, "no call of the tool 'f'"),
    ("/api/chat", {"model": "m", "messages": [{"role": "user", "images": ["!"]}]}, "expected an image in base64"),
    ("/api/chat", {"model": "m", "messages": [{"role": "system", "images": ["AAAA"]}]}, "messages of the user"),
    ("/api/chat", {"model": "m", "messages": QUESTION, "think": "hard"}, "think"),
    ("/api/chat", {"model": "m", "messages": QUESTION, "options": {"temperature": "hot"}}, "options.temperature"),
    ("/api/chat", {"model": "m", "messages": QUESTION, "tools": [{"function": {"name": ""}}]}, "tools.0.function.name"),
    ("/api/generate", {"model": "m", "prompt": "x", "suffix": "y"}, "suffix: "),
    ("/api/generate", {"model": "m", "prompt": "x", "template": "y"}, "template: "),
    ("/api/generate", {"model": "m", "prompt": "x", "context": [1]}, "send the whole conversation to /api/chat"),
    ("/api/generate", {"model": "m", "prompt": "x", "raw": True, "system": "y"}, "system: a raw prompt"),
    ("/api/generate", {"model": "m", "prompt": "x", "raw": True}, "accepts messages, but no raw prompt"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "said"), REFUSED)
def test_what_cannot_be_is_refused_in_ollama_s_form(
    serve_models: Serve, path: str, body: dict[str, Any], said: str
) -> None:
    async def go() -> tuple[int, Any]:
        async with serve_models(m=Scripted("Hi")) as running, aiohttp.ClientSession() as session:
            async with session.post(running.url + path, json=body) as response:
                return response.status, await response.json()

    status, told = asyncio.run(go())
    assert (status, list(told)) == (400, ["error"])
    assert said in told["error"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("POST", "/api/pull", 404), ("DELETE", "/api/delete", 404), ("GET", "/api/me", 404), ("GET", "/api/chat", 405)],
)
def test_what_is_not_offered_is_told_in_ollama_s_form(serve_models: Serve, method: str, path: str, status: int) -> None:
    async def go() -> tuple[int, Any]:
        async with serve_models(m=Scripted("Hi")) as running, aiohttp.ClientSession() as session:
            async with session.request(method, running.url + path) as response:
                return response.status, await response.json()

    came, told = asyncio.run(go())
    assert (came, type(told["error"])) == (status, str)


class Breaks(Scripted):
    async def stream(self, request: Request) -> Any:
        yield TextDelta("half of")
        yield CallStart("weather", "x")
        yield ArgumentsDelta('{"ci')
        raise StreamCut("x")


def test_errors_before_and_in_a_stream(serve_models: Serve) -> None:
    async def say(client: ollama.AsyncClient) -> list[str]:
        with pytest.raises(ollama.ResponseError, match="no model 'n'") as missing:
            await client.chat("n", QUESTION)
        assert missing.value.status_code == 404
        said: list[str] = []

        async def hear() -> None:
            async for part in await client.chat("m", QUESTION, tools=[weather], stream=True):
                said.append(part.message.content)

        with pytest.raises(ollama.ResponseError, match="broke off"):
            await hear()
        return said

    assert talk(serve_models, Breaks([], capabilities=["tools"]), say) == ["half of"]


def test_a_key_is_asked_for(serve_models: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = (Key("k", digest("a-key-of-twenty-letters-and-more")),)
    with pytest.raises(ollama.ResponseError) as refused:
        talk(serve_models, Scripted("Hi"), lambda client: client.list(), keys=keys)
    assert (refused.value.status_code, "key" in refused.value.error) == (401, True)
    monkeypatch.setenv("OLLAMA_API_KEY", "a-key-of-twenty-letters-and-more")
    rows = talk(serve_models, Scripted("Hi"), lambda client: client.list(), keys=keys)
    assert [row.model for row in rows.models] == ["m"]


@pytest.mark.parametrize("allowed", [True, False])
def test_pages_of_other_origins_ask_first(serve_models: Serve, allowed: bool) -> None:
    origin = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    settings = {"cors": ("https://app.example",)} if allowed else {}

    async def go() -> Any:
        async with serve_models(settings=settings, m=Scripted("Hi")) as running, aiohttp.ClientSession() as session:
            async with session.options(f"{running.url}/api/chat", headers=origin) as response:
                return response.headers.get("access-control-allow-origin")

    assert asyncio.run(go()) == ("https://app.example" if allowed else None)


@pytest.mark.parametrize(
    ("kind", "more", "status"),
    [
        ("application/x-www-form-urlencoded", {}, 200),
        ("text/plain", {}, 200),
        ("text/plain", {"Origin": "null"}, 415),
        ("text/plain", {"Origin": "https://app.example"}, 415),
        ("application/x-www-form-urlencoded", {"Sec-Fetch-Site": "same-site"}, 415),
    ],
)
@pytest.mark.parametrize("path", ["chat", "generate", "show"])
def test_a_body_without_a_type_is_taken_from_what_is_no_browser(
    serve_models: Serve, kind: str, more: dict[str, str], status: int, path: str
) -> None:
    """Ollama's own examples for curl name none, and curl then sends that of a form."""
    body = json.dumps({"model": "m", "messages": QUESTION, "prompt": "Hi", "stream": False})

    async def go() -> int:
        async with serve_models(m=Scripted("Hello")) as running, aiohttp.ClientSession() as session:
            headers = {"Content-Type": kind, **more}
            async with session.post(f"{running.url}/api/{path}", data=body, headers=headers) as response:
                return response.status

    assert asyncio.run(go()) == status


def test_a_slow_model_keeps_the_line_alive(serve_models: Serve) -> None:
    """Signs of life are space: a client that reads every line as JSON sees none of them."""

    class Slow(Scripted):
        async def stream(self, request: Request) -> Any:
            await go_on.wait()
            yield TextDelta("late")
            yield Finished()

    go_on = asyncio.Event()

    async def go() -> Any:
        from toolspeak.gateway.config.settings import GatewayLimits

        limits = GatewayLimits(first=0.05, keep_alive=0.05)
        async with serve_models(settings={"limits": limits}, m=Slow([])) as running:
            async with aiohttp.ClientSession() as session:
                async with session.post(
                    f"{running.url}/api/chat", json={"model": "m", "messages": QUESTION}
                ) as response:
                    first = await response.content.readexactly(2)
                    go_on.set()
                    return first, await response.content.read()

    first, rest = asyncio.run(go())
    assert first.strip() == b""
    assert [json.loads(line)["done"] for line in rest.splitlines()] == [False, True]


def test_our_own_client_of_the_api_reads_it(serve_models: Serve) -> None:
    """A gateway behind a gateway: what is written here is read by `api/ollama`'s other half."""
    said = (
        ThoughtDelta("hm"),
        TextDelta("A"),
        CallStart("weather", "x"),
        ArgumentsDelta('{"city": "Rome"}'),
        CallEnd(),
    )
    model = native(*said, Finished("tool_calls", Usage(7, 5)))

    async def go() -> list[Any]:
        async with serve_models(m=model) as running:
            upstream = Http(running.url, "m", api="ollama")
            asked = Request(QUESTION, tools=(Tool("weather", parameters=SCHEMA),), max_tokens=9, thinking=True)
            return [event async for event in upstream.stream(asked)]

    events = asyncio.run(go())
    assert events[:3] == [ThoughtDelta("hm"), TextDelta("A"), CallStart("weather", events[2].id)]
    assert events[-1] == Finished("tool_calls", Usage(7, 5))
    assert (model.requests[0].max_tokens, model.requests[0].thinking) == (9, True)
