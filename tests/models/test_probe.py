"""What a server can do: found out by asking it, remembered, and made use of."""

import asyncio
import gc
import json
import os
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import toolspeak as ts
from echoes import echoed
from toolspeak.errors import KeyRefused, ModelUnreachable, UnknownModel, UsageError
from toolspeak.events import CallStart, Event, TextDelta
from toolspeak.gateway.generation import sure
from toolspeak.models import read_all_dialects
from toolspeak.models.fallback import Adaptive
from toolspeak.models.http import Http
from toolspeak.models.pool import Pool
from toolspeak.models.servers import probe as probing
from toolspeak.models.servers.capabilities import Finding, ServerCapabilities, recall, remember
from toolspeak.models.servers.probe import NAMES, probe, server_capabilities
from toolspeak.models.speaker import Speaker
from toolspeak.models.strategy import Preferences, strategy
from toolspeak.types import Request, Tool

Serve = Callable[..., Any]

WEATHER = Tool("get_weather", "The weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
ASK = Request([{"role": "user", "content": "Weather in Xiamen?"}], (WEATHER,))
HERMES = (
    "{% if tools %}<tools>{% for t in tools %}{{ t | tojson }}{% endfor %}</tools>"
    'For each call return <tool_call>{"name": <name>, "arguments": <args>}</tool_call>{% endif %}'
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content %}{{ m.content }}{% endif %}"
    '{% for c in m.tool_calls or [] %}<tool_call>\n{"name": "{{ c.function.name }}", "arguments": '
    "{{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

PLAIN = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)


FETCHED = os.environ["TOOLSPEAK_CACHE"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLSPEAK_CACHE", str(tmp_path))
    return tmp_path


def frame(text: str | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    delta = {"content": text} if text else {}
    return {"choices": [{"index": 0, "delta": {**delta, **more}, "finish_reason": finish}]}


class Persona:
    """A server that can do what its fields say."""

    name = "hermes-3"
    tools = "native"  # native, text, dropped, refused
    choice = True
    schema = True
    wordy = False  # writes so many blanks that its reply to a schema is cut
    grammar = "structured_outputs"
    stop = True
    system = True
    hello = "hello"
    deaf = False  # takes a system prompt, and does not follow it
    usage = True
    tokens = 0  # it tells these for every request
    chat = True
    completions = True
    score = True
    template = ""
    pieces = ('{"city": ', '"Paris"}')  # of a call's arguments, which arrive together
    delay = 0.0

    def __init__(self, **fields: Any) -> None:
        self.asked: list[tuple[str, Any]] = []
        vars(self).update(fields)

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read() or b"null")
        self.asked.append((request.path, body))
        await asyncio.sleep(self.delay)
        match request.path:
            case "/v1/models":
                return web.json_response({"data": [{"id": self.name}]})
            case "/props" if self.template:
                return web.json_response({"default_generation_settings": {}, "chat_template": self.template})
            case "/v1/chat/completions" if self.chat:
                return self.answer(body)
            case "/v1/completions" if self.completions and body.get("echo") and self.score:
                return web.json_response(echoed(body))
            case "/v1/completions" if self.completions:
                return self.sse({"choices": [{"index": 0, "text": " 5, 6", "finish_reason": "length"}]})
            case "/v1/embeddings":
                return web.json_response({"data": [{"embedding": [0.1, 0.2]}]})
        return web.json_response({"error": {"message": "not found"}}, status=404)

    def sse(self, *payloads: Any) -> web.Response:
        text = "".join(f"data: {json.dumps(payload)}\n\n" for payload in payloads) + "data: [DONE]\n\n"
        return web.Response(text=text, content_type="text/event-stream")

    def answer(self, body: dict[str, Any]) -> web.Response:
        tools = body.get("tools")
        if tools and self.tools == "refused":
            return web.json_response({"error": {"message": '"auto" tool choice requires --enable'}}, status=400)
        if any(message["role"] == "system" for message in body["messages"]) and not self.system:
            return web.json_response({"error": {"message": "System role not supported"}}, status=400)
        read = sum(len(message["content"].split()) for message in body["messages"])
        read += 60 * len(tools) if tools and self.tools != "dropped" else 0
        read = self.tokens or read
        usage = {"choices": [], "usage": {"prompt_tokens": read, "completion_tokens": 5}} if self.usage else {}
        return self.sse(*self.reply(body, tools), usage)

    def reply(self, body: dict[str, Any], tools: Any) -> list[dict[str, Any]]:
        if (form := body.get("response_format")) and self.schema:
            name, inner = next(iter(form["json_schema"]["schema"]["properties"].items()))
            if self.wordy:
                return [frame(f'{{\n\n  "{name}"\n\n'), frame(finish="length")]
            return [frame(json.dumps({name: inner["const"]})), frame(finish="stop")]
        if (grammar := body.get(self.grammar)) and self.grammar:
            text = grammar["grammar"] if isinstance(grammar, dict) else grammar
            return [frame(text.split('"')[1]), frame(finish="stop")]
        if body.get("stop") and self.stop:
            return [frame("alpha beta "), frame(finish="stop")]
        if "alpha" in body["messages"][0]["content"]:
            return [frame("alpha beta gamma delta"), frame(finish="stop")]
        if "zebra" in body["messages"][0]["content"] and not self.deaf:
            return [frame("zebra"), frame(finish="stop")]
        wanted = self.wanted(body, tools)
        if not wanted:
            rows = [frame(self.hello), frame(finish="stop")]
            if body.get("logprobs"):
                rows[0]["choices"][0]["logprobs"] = {"content": [{"token": "hello", "logprob": -0.1}]}
            return rows
        if self.tools == "text":
            call = json.dumps({"name": wanted[0], "arguments": {"city": "Paris"}})
            return [frame(f"<tool_call>\n{call}\n</tool_call>"), frame(finish="stop")]
        rows = []
        for i, name in enumerate(wanted):
            for piece in self.pieces:
                function = {"name": name, "arguments": piece}
                rows.append(frame(tool_calls=[{"index": i, "id": f"call_{i}", "function": function}]))
        return [*rows, frame(finish="tool_calls")]

    def wanted(self, body: dict[str, Any], tools: Any) -> list[str]:
        if not tools or self.tools == "dropped":
            return []
        choice = body.get("tool_choice")
        if isinstance(choice, dict) and self.choice:
            return [choice["function"]["name"]]
        if "weather" in body["messages"][-1]["content"] or (choice == "required" and self.choice):
            return ["get_weather"] * (2 if "Rome" in body["messages"][-1]["content"] else 1)
        return []


def probed(serve: Serve, persona: Persona, timeout: float | None = None) -> ServerCapabilities:
    async def main() -> ServerCapabilities:
        async with serve(persona) as server:
            return await probe(Http(server.url + "/v1", timeout=timeout))

    return asyncio.run(asyncio.wait_for(main(), 600))


def answers(known: ServerCapabilities) -> dict[str, str]:
    return {name: finding.answer for name, finding in known.findings.items()}


def test_a_server_that_can_do_everything(serve: Serve) -> None:
    persona = Persona(template=HERMES, grammar="grammar")
    known = probed(serve, persona)
    assert answers(known) == dict.fromkeys(NAMES, "yes") | {"tags": "no"}  # llama.cpp takes none
    assert list(known.findings) == list(NAMES)
    assert all(finding.evidence for finding in known.findings.values())
    assert (known.model, known.models, known.server) == ("hermes-3", ("hermes-3",), "llama.cpp")
    assert known.grammar_field == "grammar"
    assert known.capabilities == {"tools", "required", "schema", "grammar", "free", "score"}
    assert known.score_way == "echo"
    assert strategy(known.known).way == "native"
    assert len(persona.asked) <= 26
    assert all((body or {}).get("max_tokens", 0) <= 96 for _, body in persona.asked)


@pytest.mark.parametrize("pieces", [('{"city": "Paris"}',), ('{"ci', 'ty"', ": ", '"Paris"}')])
def test_a_call_is_streamed_where_its_arguments_come_in_pieces(serve: Serve, pieces: tuple[str, ...]) -> None:
    """However close together they come."""
    found = probed(serve, Persona(pieces=pieces)).findings["streamed tools"]
    assert found.answer == ("yes" if len(pieces) > 1 else "no")
    assert f"in {len(pieces)} piece" in found.evidence


def test_a_call_of_a_tool_that_was_not_offered_shows_no_tools(serve: Serve) -> None:
    class Stubborn(Persona):
        def wanted(self, body: dict[str, Any], tools: Any) -> list[str]:
            return ["stock"] if tools else []

    found = probed(serve, Stubborn()).findings
    assert found["tools"].answer == "no"
    assert found["tools"].evidence.endswith("which was not offered")
    assert found["streamed tools"].answer == "no"
    assert "get_weather was offered, and it called stock" in found["streamed tools"].evidence


@pytest.mark.parametrize(
    ("name", "fields", "answer"),
    [
        ("get_wether", {}, "yes"), ("getWeather", {}, "yes"), ("weather", {}, "yes"), ("stock", {}, "no"),
        ("get_wether", {"usage": False}, "no"), ("get_wether", {"tokens": 40}, "no"),
    ],
)  # fmt: skip
def test_a_misspelled_tool_shows_tools_if_more_tokens_were_read(
    serve: Serve, name: str, fields: dict[str, Any], answer: str
) -> None:
    """The model was said to get no tools, for a day."""

    class Careless(Persona):
        def wanted(self, body: dict[str, Any], tools: Any) -> list[str]:
            return [name] if tools else []

    known = probed(serve, Careless(**fields))
    tools = known.findings["tools"]
    assert tools.answer == answer
    assert f"called {name}(" in tools.evidence
    assert ("more tokens), but it called" in tools.evidence) is (answer == "yes")
    assert (strategy(known.known).way == "native") is (answer == "yes")


def test_what_is_taken_and_not_held_to_is_not_believed(serve: Serve) -> None:
    known = probed(serve, Persona(choice=False, schema=False, grammar="", stop=False, usage=False, score=False))
    found = answers(known)
    assert {name for name, answer in found.items() if answer == "no"} == {
        "required", "named", "schema", "grammar", "stop", "usage", "score", "tags", "template",
    }  # fmt: skip
    assert known.capabilities == {"tools"}
    assert strategy(known.known).way == "native"


@pytest.mark.parametrize(
    ("persona", "mode", "why"),
    [
        (Persona(tools="text"), ("native", "messages"), "get_weather"),
        (Persona(tools="dropped"), ("prompted", "messages"), "taken and dropped"),
        (Persona(tools="dropped", template=PLAIN), ("prompted", "messages"), "its name"),  # of unknown size
        (Persona(tools="dropped", hello="he called get_weather()"), ("prompted", "messages"), "taken and dropped"),
        (
            Persona(tools="dropped", template=PLAIN, score=False),
            ("prompted", "messages"),
            "because none reach the model otherwise",
        ),
        (Persona(tools="refused"), ("prompted", "messages"), "requires --enable"),
        (Persona(tools="refused", completions=False, template=HERMES), ("prompted", "messages"), "requires --enable"),
        (Persona(tools="refused", template=HERMES), ("prompted", "template"), "its template"),
        (Persona(chat=False), ("prompted", "exact"), "it does not answer chat requests"),
    ],
)
def test_the_way_that_is_chosen(serve: Serve, persona: Persona, mode: tuple[str, str], why: str) -> None:
    chosen = strategy(probed(serve, persona).known)
    assert (chosen.way, "template" if chosen.template else "exact" if chosen.exact else "messages") == mode
    assert why in chosen.why


def test_the_readers_of_all_dialects_are_made_beside_the_event_loop(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, seen, real = threading.get_ident(), set[bool](), read_all_dialects.Decoder

    def made(*args: Any) -> Any:
        seen.add(threading.get_ident() == here)
        return real(*args)

    read_all_dialects._begun_by.cache_clear()
    monkeypatch.setattr(read_all_dialects, "Decoder", made)
    probed(serve, Persona(name="of no known family", tools="dropped"))
    assert seen == {False}


def test_a_token_count_that_never_changes_is_no_evidence(serve: Serve) -> None:
    known = probed(serve, Persona(tools="dropped", tokens=3))
    assert known.findings["tools"].answer == "unclear"
    assert "as many for every request" in known.findings["tools"].evidence
    assert probed(serve, Persona(tools="dropped")).findings["tools"].answer == "no"


ANTHROPIC = (
    'event: message_start\ndata: {"type": "message_start", "message": {"usage": {"input_tokens": 9}}}\n\n'
    'event: content_block_start\ndata: {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}\n\n'
    'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}}\n\n'
    'event: message_delta\ndata: {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}\n\n'
    'event: message_stop\ndata: {"type": "message_stop"}\n\n'
)
OLLAMA = '{"message": {"content": "hello"}, "done": true, "prompt_eval_count": 9, "eval_count": 1}\n'
RESPONSES = (
    'data: {"type": "response.output_text.delta", "output_index": 0, "delta": "hello"}\n\n'
    'data: {"type": "response.completed", "response": {"status": "completed", "usage": {"input_tokens": 9}}}\n\n'
)


@pytest.mark.parametrize(("api", "text"), [("anthropic", ANTHROPIC), ("ollama", OLLAMA), ("responses", RESPONSES)])
def test_other_apis(serve: Serve, api: Any, text: str) -> None:
    async def main() -> ServerCapabilities:
        async def answer(request: web.Request) -> web.StreamResponse:
            path = request.path
            if request.method == "GET" or path.endswith("/completions"):
                return web.json_response({"error": "not found"}, status=404)
            tokens = 10 + ("system" in await request.text())
            return web.Response(text=text.replace(": 9", f": {tokens}"), content_type="text/event-stream")

        async with serve(answer) as server:
            return await probe(Http(server.url, "m", api=api))

    known = asyncio.run(asyncio.wait_for(main(), 600))
    assert (known.api, known.can("chat"), known.can("grammar")) == (api, True, False)
    assert strategy(known.known).line.startswith("prompted in tool-json in messages")
    assert "dropped" in known.findings["tools"].evidence


def test_a_refusal_is_an_answer(serve: Serve) -> None:
    found = probed(serve, Persona(system=False, completions=False)).findings
    assert found["system"].answer == "no"
    assert "System role not supported" in found["system"].evidence
    assert found["completions"].answer == "no"
    assert found["tools"].answer == "yes"


def test_silence_of_one_thing_is_an_answer(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "EACH", 12.0)  # waited for by one question alone; the others have it to answer

    class Slow(Persona):
        async def __call__(self, request: web.Request) -> web.StreamResponse:
            if b"response_format" in await request.read():
                await asyncio.sleep(60)
            return await super().__call__(request)

    found = probed(serve, Slow()).findings
    assert found["schema"].answer == "unclear"
    assert "did not start to answer" in found["schema"].evidence
    assert found["tools"].answer == "yes"


def test_a_slow_server_is_asked_no_more_when_the_time_is_over(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "WHOLE", 0)
    persona = Persona(template=HERMES)
    found = probed(serve, persona).findings
    assert found["chat"].answer == found["completions"].answer == "yes"
    late = [name for name in NAMES if "too slowly" in found[name].evidence]
    assert late == [name for name in NAMES if name not in ("chat", "usage", "completions", "template", "tags")]
    assert len([path for path, body in persona.asked if body]) == 2


def test_a_server_that_may_take_long_is_given_longer(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "WHOLE", 1e-6)
    known = probed(serve, Persona(template=HERMES), timeout=300e9)
    assert [name for name in NAMES if "too slowly" in known.findings[name].evidence] == []


def test_a_probe_that_is_cancelled_leaves_nothing_behind(serve: Serve) -> None:
    """Its questions wait for their turn: none of them was begun and forgotten."""

    async def main() -> None:
        tools = asyncio.Event()

        class Waiting(Persona):
            async def __call__(self, request: web.Request) -> web.StreamResponse:
                if b"zq7" in await request.read() or b"get_weather" in await request.read():
                    tools.set()
                    await asyncio.sleep(60)
                return await super().__call__(request)

        async with serve(Waiting()) as server:
            probed = asyncio.create_task(probe(Http(server.url + "/v1")))
            await tools.wait()
            probed.cancel()
            with pytest.raises(asyncio.CancelledError):
                await probed

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        asyncio.run(main())
        gc.collect()
    assert [str(one.message) for one in seen if "never awaited" in str(one.message)] == []


@pytest.mark.parametrize(
    ("persona", "name", "answer", "words"),
    [
        (Persona(choice=False), "required", "no", "a call of get_weather was required, and it said 'hello'"),
        (Persona(choice=False), "named", "no", "a call of get_time was required, and it called get_weather"),
        (Persona(wordy=True), "schema", "unclear", "cut before its end: it said"),
        (Persona(schema=False), "schema", "no", "not held to the schema, it said 'hello'"),
        (Persona(stop=False), "stop", "no", "it wrote the stop string: said 'alpha beta gamma delta'"),
        (Persona(deaf=True), "system", "unclear", "taken without an error, and not followed: it said 'hello'"),
    ],
)
def test_evidence_says_what_was_wanted(serve: Serve, persona: Persona, name: str, answer: str, words: str) -> None:
    finding = probed(serve, persona).findings[name]
    assert (finding.answer, finding.evidence[: len(words)]) == (answer, words)


def test_a_server_that_cannot_be_asked_is_told(serve: Serve) -> None:
    async def main() -> None:
        with pytest.raises(ModelUnreachable, match=r"127\.0\.0\.1:9/v1"):
            await probe(Http("http://127.0.0.1:9/v1"))
        async with serve(web.json_response({"error": "who are you"}, status=401)) as server:
            with pytest.raises(KeyRefused, match="TOOLSPEAK_API_KEY"):
                await probe(Http(server.url, "m"))
        async with serve(web.json_response({"data": [{"id": "a"}, {"id": "b"}]})) as server:
            with pytest.raises(UnknownModel, match="the models a, b"):
                await probe(Http(server.url))

    asyncio.run(main())


def test_what_was_seen_is_remembered_for_a_day(serve: Serve, cache: Path) -> None:
    async def main() -> None:
        persona = Persona()
        async with serve(persona) as server:
            model = Http(server.url.replace("//", "//user:pa55word@"), "hermes-3", key="sk-canary-0123456789")
            known = await server_capabilities(model)
            asked = len(persona.asked)
            assert await server_capabilities(model) == known
            assert len(persona.asked) == asked
            assert (await server_capabilities(model, anew=True)).at > known.at
            assert len(persona.asked) > asked
            kept = "".join(path.read_text() for path in cache.rglob("*.json"))
            assert "hermes-3" in kept
            assert "canary" not in kept
            assert "pa55word" not in kept

    asyncio.run(main())


def test_what_is_kept_may_be_broken_old_or_of_another(cache: Path) -> None:
    known = ServerCapabilities(
        "http://h/v1", "m", "openai", {"tools": Finding("yes", "seen")}, models=("m",), at=time.time()
    )
    assert recall("http://h/v1", "m") is None
    remember(known)
    assert recall("http://h/v1", "m") == known
    assert recall("http://h/v1", "other") is None
    assert recall("http://h/v1", "m", age=0) is None
    remember(replace(known, at=time.time() - 2 * 86400))
    assert recall("http://h/v1", "m") is None
    (path,) = cache.rglob("*.json")
    for text in ("", "{", "[]", '{"form": 1}', '{"form": 0, "found": {}, "models": []}', '{"found": 3, "models": 1}'):
        path.write_text(text)
        assert recall("http://h/v1", "m") is None
    assert [one.name for one in cache.rglob("*") if one.is_file()] == [path.name]  # no half of a file is left
    remember(known)
    path.write_text(path.read_text().replace('"context": 0', '"context": null'))
    assert recall("http://h/v1", "m") is None
    remember(known)
    assert recall("http://h/v1", "m") == known


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_cache_that_cannot_be_written_to_is_done_without(cache: Path) -> None:
    cache.chmod(0o500)
    remember(ServerCapabilities("http://h/v1", "m", "openai", at=time.time()))
    assert recall("http://h/v1", "m") is None


def test_two_writers_leave_a_whole_file(cache: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    made = [
        ServerCapabilities("http://h/v1", "m", "openai", template=str(i) * 50_000, at=time.time()) for i in range(8)
    ]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(remember, made * 5))
    assert recall("http://h/v1", "m") in made


async def ask(model: Any, request: Request = ASK) -> list[Event]:
    return [event async for event in model.stream(request)]


def test_auto_finds_its_mode_and_uses_what_was_found(serve: Serve) -> None:
    async def main() -> None:
        persona = Persona(tools="refused", grammar="guided_grammar")
        async with serve(persona) as server:
            made = Adaptive(Http(server.url, retries=0), look=False)
            assert made.strategy.way == "native"
            await made.load()
            assert isinstance(made.model, Speaker)
            assert made.model.dialect.name == "hermes"  # by the model's name
            assert sure(replace(ASK, choice="required"), Pool([made]))
            persona.asked.clear()
            await ask(made, replace(ASK, choice="required"))
            (path, body) = persona.asked[0]
            assert path == "/v1/chat/completions"
            assert "tools" not in body
            assert "root ::=" in body["guided_grammar"]
            await made.aclose()

    asyncio.run(main())


@pytest.mark.parametrize("name", ["", "hermes-3"])
def test_what_was_probed_decides_whether_or_not_the_model_is_named(serve: Serve, name: str) -> None:
    async def main() -> None:
        persona = Persona()
        persona.tools = "refused"
        async with serve(persona) as server:
            await server_capabilities(Http(server.url))
            model = Adaptive(Http(server.url, name))
            if name:  # it is told before anything is sent
                assert model.strategy.way == "prompted"
            persona.asked.clear()
            await model.look()
            assert model.strategy.way == "prompted"
            assert [path for path, _ in persona.asked if "chat" in path] == []

    asyncio.run(main())


def test_what_was_probed_is_told_without_a_name_and_looked_at_again_where_the_model_is_another(serve: Serve) -> None:
    async def main() -> None:
        persona = Persona(tools="refused")
        async with serve(persona) as server:
            seen = await server_capabilities(Http(server.url))
            assert Adaptive(Http(server.url)).strategy.line == strategy(seen.known).line
            several = replace(seen, models=("hermes-3", "qwen"), address=f"{server.url}/several")
            remember(several)
            assert Adaptive(Http(several.address)).strategy.way == "native"
            later = Adaptive(Http(server.url))
            persona.name = "another"
            await later.look()
            assert later.strategy.way == "native"
            assert later.http.model == "another"

    asyncio.run(main())


def test_auto_takes_the_template_that_a_server_tells(serve: Serve) -> None:
    async def main() -> None:
        persona = Persona(tools="refused", template=HERMES, grammar="grammar")
        async with serve(persona) as server:
            made = Adaptive(Http(server.url, retries=0), look=False)
            await made.load()
            assert isinstance(made.model, Speaker)
            assert made.model.template == HERMES
            persona.asked.clear()
            await ask(made, replace(ASK, choice="required"))
            (path, body) = persona.asked[0]
            assert path == "/v1/completions"
            assert body["prompt"].endswith("<|im_start|>assistant\n")
            assert "get_weather" in body["prompt"]
            assert "root ::=" in body["grammar"]
            raw = Adaptive(Http(server.url, "hermes-3", retries=0), Preferences("prompted", exact=True))
            await ask(raw)
            assert persona.asked[-1][1]["prompt"] == body["prompt"]

    asyncio.run(main())


def test_raw_without_a_template_is_told_plainly(serve: Serve) -> None:
    async def main() -> None:
        async with serve(Persona()) as server:
            made = Adaptive(Http(server.url, "m", retries=0), Preferences("prompted", exact=True))
            await made.load()
            with pytest.raises(UsageError, match="does not tell its chat template"):
                await ask(made)

    asyncio.run(main())


def test_a_server_that_is_down_is_probed_again(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolspeak.models.fallback.AGAIN", 0.05)

    async def main() -> None:
        persona = Persona()
        down = True

        async def answer(request: web.Request) -> web.StreamResponse:
            return web.json_response({}, status=503) if down else await persona(request)

        async with serve(answer) as server:
            made = Adaptive(Http(server.url, "hermes-3", retries=0), look=False)
            await made.load()
            assert made.strategy.way == "native"
            assert "could not be probed" in made.strategy.why
            down = False
            while "could not be probed" in made.strategy.why:
                await asyncio.sleep(0.02)
            await made.aclose()

    asyncio.run(asyncio.wait_for(main(), 600))


def test_a_call_left_in_the_text_is_heard(serve: Serve) -> None:
    async def main() -> None:
        async with serve(Persona(tools="text")) as server:
            made = Adaptive(
                Http(server.url, retries=0), look=False
            )  # the model's name is asked for, and tells the dialect
            events = await ask(made, replace(ASK, messages=[{"role": "user", "content": "weather?"}]))
            assert [event.name for event in events if isinstance(event, CallStart)] == ["get_weather"]
            assert "call-in-text" in str(events)
            assert events[-1].finish == "tool_calls"  # type: ignore[union-attr]
            texts = [event.text for event in events if isinstance(event, TextDelta)]
            assert "".join(texts) == ""
            silent = await ask(made, replace(ASK, choice="none", messages=[{"role": "user", "content": "weather?"}]))
            # It is read as a call, which no verb makes then: its markup is no answer.
            assert not [event for event in silent if isinstance(event, TextDelta)]
            reply = await ts.adecide("weather?", tools=ASK.tools, model=made, choice="none", tries=1)
            assert (reply.text, reply.calls) == ("", ())

    asyncio.run(main())


@pytest.mark.costly
def test_llama_cpp_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "LONGEST", 8)
    for bound in ("FIRST", "EACH", "WHOLE"):  # however slow this machine is
        monkeypatch.setattr(probing, bound, 3600.0)
    pytest.importorskip("xllamacpp")
    from toolspeak.models.embedded import weights
    from toolspeak.models.embedded.local import Local

    monkeypatch.setenv("TOOLSPEAK_CACHE", FETCHED)
    if not weights.present():
        pytest.skip("the embedded model is not here")
    server = Local()._server()

    async def main() -> ServerCapabilities:
        return await probe(Http(server.server.listening_address + "/v1", key=server.key))

    known = asyncio.run(main())
    assert known.server == "llama.cpp"
    assert known.findings["schema"].answer != "no"  # unclear where the model writes blanks to the end
    assert {"chat", "completions", "grammar", "usage", "logprobs", "template"} <= {
        n for n in known.findings if known.can(n)
    }
    assert known.grammar_field == "grammar"
    assert known.findings["tools"].answer == "no"  # its template drops them
    assert strategy(known.known).way == "scored"
