"""What holds a reply to its calls, in each server's own words: the requests as servers take them, and a real model."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, Literal

import pytest
from aiohttp import web

import toolspeak as ts
from toolspeak.models.base import Model
from toolspeak.models.embedded import weights
from toolspeak.models.fallback import Adaptive
from toolspeak.models.http import Http
from toolspeak.models.servers.capabilities import Finding, ServerCapabilities
from toolspeak.models.servers.probe import probe
from toolspeak.models.strategy import Preferences
from toolspeak.schema.infer import as_tools
from toolspeak.types import Request

llguidance = pytest.importorskip("llguidance")


def weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """The weather in a city."""
    return f"20 {unit} in {city}"


def clock(city: str) -> str:
    """The time in a city."""
    return f"noon in {city}"


TOOLS = tuple(as_tools([weather, clock]) or ())


def as_json(name: str) -> str:
    """A call as the dialect for any model writes it."""
    return json.dumps({"tool": name, "tool_input": {"city": "Rome"}, "message": ""})


SERVERS: dict[str, dict[str, Any]] = {
    "llama.cpp": {"grammar_field": "grammar", "schema_field": "json_schema"},
    "vllm": {"grammar_field": "structured_outputs", "tag_field": "response_format"},
    "sglang": {"grammar_field": "ebnf", "tag_field": "response_format"},
}


def known(server: str, *, native: bool = False, schema: bool = True) -> ServerCapabilities:
    found = {
        "chat": "yes",
        "tools": "yes" if native else "no",
        "schema": "yes" if schema else "no",
        "completions": "yes",
    }
    findings = {name: Finding(answer) for name, answer in found.items()}  # type: ignore[arg-type]
    return ServerCapabilities("http://h/v1", "m", "openai", findings, server=server, **SERVERS.get(server, {}))


def sent(model: Model, choice: str = "auto", **more: Any) -> dict[str, Any]:
    """The body of the first request."""
    told = ts.explain("Weather in Rome?", tools=[weather, clock], model=model, choice=choice, **more)
    return json.loads(told.body)


def takes(form: str, text: str) -> bool:
    matcher = llguidance.LLMatcher(llguidance.LLTokenizer("byte"), form)
    return matcher.try_consume_tokens(list(text.encode())) == len(text.encode()) and matcher.is_accepting()


@pytest.mark.parametrize("choice", ["required", "clock"])
@pytest.mark.parametrize(
    ("server", "text"),
    [
        ("llama.cpp", lambda body: body["grammar"]),
        ("vllm", lambda body: body["structured_outputs"]["grammar"]),
        ("sglang", lambda body: body["ebnf"]),
    ],
)
def test_a_call_that_must_come(server: str, text: Callable[[Any], str], choice: str) -> None:
    body = sent(
        Adaptive(
            Http("http://h/v1", "m"), Preferences("prompted", "hermes", exact=False), server_capabilities=known(server)
        ),
        choice,
    )
    assert "tools" not in body
    assert "tool_choice" not in body
    assert text(body).startswith("root ::=") or "\nroot ::=" in text(body)
    assert ("weather" in text(body)) == (choice == "required")
    assert "text-0" not in text(body)  # no words may come first


def test_words_may_come_first_where_the_choice_is_free() -> None:
    body = sent(
        Adaptive(
            Http("http://h/v1", "m"),
            Preferences("prompted", "hermes", exact=False),
            server_capabilities=known("llama.cpp"),
        )
    )
    assert "text" in body["grammar"]
    for server in ("vllm", "sglang"):
        body = sent(
            Adaptive(
                Http("http://h/v1", "m"),
                Preferences("prompted", "hermes", exact=False),
                server_capabilities=known(server),
            )
        )
        tag = body["response_format"]
        assert tag["type"] == "structural_tag"
        assert "<tool_call>" in json.dumps(tag["format"])
        assert not {"structured_outputs", "ebnf", "grammar"} & body.keys()
    # nothing is known: nothing is sent that a server may refuse
    body = sent(Adaptive(Http("http://h/v1", "m"), Preferences("prompted", "hermes", exact=False)))
    assert not {"structured_outputs", "ebnf", "grammar", "response_format"} & body.keys()


def test_beside_a_prompt_too() -> None:
    body = sent(
        Adaptive(
            Http("http://h/v1", "m"),
            Preferences("prompted", "hermes", exact=True),
            server_capabilities=known("llama.cpp"),
        )
    )
    assert "prompt" in body
    assert "root ::=" in body["grammar"]
    body = sent(
        Adaptive(
            Http("http://h/v1", "m"), Preferences("prompted", "hermes", exact=True), server_capabilities=known("sglang")
        )
    )
    assert body["response_format"]["type"] == "structural_tag"


@pytest.mark.parametrize(("choice", "fits"), [("required", ["weather", "clock"]), ("clock", ["clock"])])
def test_a_server_that_takes_a_schema_alone(choice: str, fits: list[str]) -> None:
    body = sent(
        Adaptive(Http("http://h/v1", "m"), Preferences("prompted", exact=False), server_capabilities=known("")), choice
    )
    grammar = llguidance.LLMatcher.grammar_from_json_schema(
        json.dumps(body["response_format"]["json_schema"]["schema"])
    )
    for name in ("weather", "clock", "other"):
        assert takes(grammar, as_json(name)) == (name in fits)


def test_ollama_is_held_by_its_format() -> None:
    model = ts.model("ollama:m")
    body = sent(model, "required")
    assert "tools" not in body
    assert takes(llguidance.LLMatcher.grammar_from_json_schema(json.dumps(body["format"])), as_json("weather"))
    assert "tools" in sent(model)  # free to call or not, it is offered them natively
    assert "format" not in sent(model)


def test_ollama_calls_when_it_must(serve: Callable[..., Any]) -> None:
    said = json.dumps({"message": {"content": as_json("clock")}, "done": True})

    async def main() -> None:
        async with serve(web.Response(text=said + "\n")) as server:
            model = Adaptive(Http(server.url, "m", api="ollama"))
            call = await ts.acall("What time is it in Rome?", tools=[weather, clock], model=model)
            assert (call.name, call.arguments) == ("clock", {"city": "Rome"})
            assert server.bodies[-1]["format"]

    asyncio.run(main())


def test_a_native_server_that_does_not_hold_to_a_choice() -> None:
    model = Adaptive(Http("http://h/v1", "m"), server_capabilities=known("llama.cpp", native=True))
    assert model.demanding is not None
    assert "required" in model.capabilities
    assert "tools" in sent(model)
    assert "grammar" not in sent(model)
    assert "root ::=" in sent(model, "required")["grammar"]
    plain = Adaptive(Http("http://h/v1", "m"), server_capabilities=known("", native=True, schema=False))
    assert plain.demanding is None


# ------------------------------------------------------------------ what the probe finds of tags


class Tagged:
    """A vLLM that holds to structural tags, or takes them and does not."""

    def __init__(self, *, holds: bool) -> None:
        self.holds = holds

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/version":
            return web.json_response({"version": "0.12.0"})
        if request.path == "/v1/models":
            return web.json_response({"data": [{"id": "m"}]})
        if request.path != "/v1/chat/completions":
            return web.json_response({"error": {"message": "not found"}}, status=404)
        body = await request.json()
        form: dict[str, Any] = body.get("response_format") or {}
        text = "Hello"
        if form.get("type") == "structural_tag":
            assert form["format"]["type"]  # the form that xgrammar reads today
            text = (
                '<tool_call>\n{"name": "zq7_tool", "arguments": {"zq7": "kx4"}}\n</tool_call>' if self.holds else "Hi"
            )
        frame = {"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]}
        return web.Response(text=f"data: {json.dumps(frame)}\n\n", content_type="text/event-stream")


@pytest.mark.parametrize("holds", [True, False])
def test_the_probe_asks_for_tags(serve: Callable[..., Any], holds: bool) -> None:
    async def main() -> ServerCapabilities:
        async with serve(Tagged(holds=holds)) as server:
            return await probe(Http(server.url))

    found = asyncio.run(main())
    assert found.server == "vllm"
    assert (found.tag_field == "response_format") == holds
    assert ("tags" in found.capabilities) == holds


# ------------------------------------------------------------------ a real model

SHOTS = "".join(
    f'Q: What is the weather in {city}?\nA: Let me look.\n<tool_call>\n{{"name": "weather", "arguments": '
    f'{{"town": "{city}"}}}}\n</tool_call>\n\n'
    for city in ("Rome", "Oslo", "Bonn")
)


@pytest.fixture
def local() -> Any:
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    if not weights.present():
        pytest.skip("the embedded model's weights are not here")
    from toolspeak.models.embedded.local import Local

    return Local()


@pytest.mark.costly
def test_a_real_model_speaks_freely_and_then_calls_as_it_must(local: Any) -> None:
    """Its examples call the argument `town`, which the tool does not know."""
    grammar = ts.grammar("hermes", TOOLS, "auto", "gbnf", parallel=False)
    prompt = SHOTS + "Q: What is the weather in Paris?\nA:"

    async def text(**held: Any) -> str:
        asked = Request(prompt=prompt, max_tokens=60, temperature=0.0, stop=("\n\nQ:",), **held)
        return "".join([event.text async for event in local.stream(asked) if isinstance(event, ts.TextDelta)])

    free, held = asyncio.run(text()), asyncio.run(text(grammar=grammar))
    assert '"town": "Paris"' in free
    reply = ts.parse(held, "hermes", TOOLS)
    assert reply.text.strip() == "Let me look."
    assert [(call.name, call.arguments["city"]) for call in reply.calls] == [("weather", "Paris")]


@pytest.mark.costly
@pytest.mark.parametrize("dialect", ["hermes", "qwen3-coder"])
def test_a_real_model_writes_the_text_of_a_custom_tool_by_its_grammar(local: Any, dialect: str) -> None:
    """A model of 135 million parameters, which would not write such a text by itself."""
    lark = 'start: "*** Begin\\n" line line? "*** End"\nline: ("+" | "-") /[a-z]{1,8}/ "\\n"\n'
    schema = {"type": "string", "x-lark": lark}
    parameters = {
        "type": "object",
        "properties": {"input": schema},
        "required": ["input"],
        "additionalProperties": False,
    }
    patch = ts.Tool("patch", "Changes files.", parameters)
    grammar = ts.grammar(dialect, [patch], "patch", "gbnf", parallel=False, thinking=False)
    prompt = "The tool that adds the line hello:\n"

    async def text() -> str:
        asked = Request(prompt=prompt, max_tokens=120, temperature=0.0, grammar=grammar)
        return "".join([event.text async for event in local.stream(asked) if isinstance(event, ts.TextDelta)])

    [call] = ts.parse(asyncio.run(text()), dialect, [patch]).calls
    assert call.arguments["input"].startswith("*** Begin\n")
    assert not ts.Toolbox(patch).validate(call).problems


@pytest.mark.costly
def test_a_schema_that_llama_cpp_would_drop_is_simplified(local: Any) -> None:
    schema = {
        "type": "object",
        "properties": {
            "code": {"type": "string", "pattern": "^(?!x)[a-z]+$"},
            "n": {"type": "integer", "multipleOf": 5},
        },
        "required": ["code", "n"],
        "not": {"required": ["other"]},
    }

    async def main() -> tuple[str, list[str]]:
        asked = Request(prompt="A code and a number, as JSON: ", max_tokens=60, temperature=0.0, schema=schema)
        events = [event async for event in local.stream(asked)]
        notes = [event.note.rule for event in events if isinstance(event, ts.Noted)]
        return "".join(event.text for event in events if isinstance(event, ts.TextDelta)), notes

    said, notes = asyncio.run(main())
    assert said.lstrip().startswith("{")
    assert '"code"' in said
    assert notes == ["schema-simplified"]
