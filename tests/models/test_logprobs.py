"""Likelihoods over HTTP: the same numbers and the same calls as in process, and servers that tell wrong ones."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from aiohttp import web

import toolspeak as ts
from echoes import echoed, likelihood
from llama import served
from toolspeak.api.completions.prompt_scoring import beginning, read_tokens, weigh
from toolspeak.errors import ServerFailed
from toolspeak.models.fallback import Adaptive
from toolspeak.models.http import Http
from toolspeak.models.servers.capabilities import Finding, ServerCapabilities
from toolspeak.models.servers.logprob_scorer import LogprobScorer, ScoreMethod, find_score_method
from toolspeak.models.speaker import Speaker
from toolspeak.models.strategy import Preferences
from toolspeak.schema.infer import as_tools

KEY = "sk-likely-0123456789"
NOISE = 0.5
"""Nats. A processor computes a text read at once a little otherwise than one read piece by piece."""
SAID = (
    ("The capital of France is", " Paris"),
    ("The capital of France is", " purple zebra, 40 of them"),
    ("weather(city=", '"Xiamen"'),
    ("weather(city=", '"厦门"'),
    ("It is 30", "°C 🎉 in São Paulo"),
    ("厦门的天气", "怎么样？"),
)


# ------------------------------------------------------------------ a real llama.cpp


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server of the wheel's own, apart from the one that `local` is."""
    server = served(KEY)
    yield server.listening_address  # noqa: PT022 - the server lives as long as this frame


def weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """The weather in a city, now."""
    return f"20 {unit} in {city}"


def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


def remind(text: str, minutes: int, loud: bool = False) -> str:
    """Remind the user of something after some minutes."""
    return f"{text} {minutes} {loud}"


def mail(to: list[str], subject: str) -> str:
    """Send an email."""
    return f"{to} {subject}"


QUESTIONS: Sequence[tuple[str, tuple[Callable[..., Any], ...]]] = (
    ("What is the weather in Xiamen?", (weather, add)),
    ("Weather in Paris in fahrenheit, please.", (weather, add, remind, mail)),
    ("Will it rain in São Paulo?", (weather, add)),
    ("Add 3.5 and 40.", (weather, add)),
    ("What is 12 plus 7?", (weather, add, remind)),
    ("Remind me in 20 minutes to water the plants.", (weather, add, remind, mail)),
    ("In 5 minutes remind me of 'call mum'", (remind, mail)),
    ("Mail bob@acme.com and li@corp.org about the late invoice.", (remind, mail, add)),
    ("Send the subject 'Lunch' to eve@acme.com", (remind, mail)),
    ("Hello, how are you?", (weather, add)),
    ("Tell me a joke.", (weather, add, remind, mail)),
    ("厦门天气?", (weather, add)),
)


def test_the_same_numbers_over_http_as_in_process(url: str) -> None:
    from toolspeak.models.embedded.local import Local

    local, remote = Local(), LogprobScorer(Http(url, key=KEY), "forced")

    async def both() -> None:
        for prompt, text in SAID:
            (there,), (here,) = await remote.score(prompt, [text]), await local.score(prompt, [text])
            assert there == pytest.approx(here, abs=NOISE), text
            assert there < 0

    asyncio.run(both())


def test_the_parts_of_a_character_count(url: str) -> None:
    """A character of several tokens: the chain holds, whatever of it the server tells."""
    remote = LogprobScorer(Http(url, key=KEY), "forced")

    async def told() -> list[float]:
        whole = await remote.score("厦门的天气", ["怎么样"])
        first = await remote.score("厦门的天气", ["怎"])
        return [*whole, *first, *(await remote.score("厦门的天气怎", ["么样"]))]

    whole, first, rest = asyncio.run(told())
    assert whole == pytest.approx(first + rest, abs=NOISE)


@pytest.mark.costly
def test_the_same_calls_through_a_server_as_in_process(url: str) -> None:
    remote, local = ts.model(f"{url}/v1#any", key=KEY), ts.model("local")
    calls = 0
    for question, tools in QUESTIONS:
        there, here = (ts.decide(question, tools=tools, model=one, tries=1, max_tokens=32) for one in (remote, local))
        assert [(call.name, call.arguments) for call in there.calls] == [
            (call.name, call.arguments) for call in here.calls
        ], question
        calls += len(there.calls)
    assert calls >= len(QUESTIONS) * 5 // 12


@pytest.mark.costly
def test_what_the_probe_finds_decides_alike(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSPEAK_CACHE", str(tmp_path))
    probed = Adaptive(Http(url, key=KEY), look=False)
    asyncio.run(probed.load())
    assert "134 million parameters" in probed.strategy.why or "135 million parameters" in probed.strategy.why
    reply = ts.decide("What is 12 plus 7?", tools=[weather, add], model=probed)
    assert [(call.name, call.arguments) for call in reply.calls] == [("add", {"a": 12, "b": 7})]


# ------------------------------------------------------------------ servers that repeat a prompt


class Echo:
    """Repeats prompts as vLLM and SGLang do; `how` it may go wrong."""

    def __init__(self, how: str = "right") -> None:
        self.how = how
        self.bodies: list[Any] = []

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if request.path != "/v1/completions":
            return web.json_response({"error": {"message": "not found"}}, status=404)
        self.bodies.append(await request.json())
        return web.json_response(echoed(self.bodies[-1], self.how))


def test_a_repeated_prompt_is_read(serve: Callable[..., Any]) -> None:
    async def main() -> None:
        async with serve(echo := Echo()) as server:
            model = LogprobScorer(Http(server.url, "m"), "echo")
            texts = [f" {word}" for word in ("Paris", "Rome", "Oslo")] + [", you say"] * 20
            scores = await model.score("The capital of France is", texts)
            await model.aclose()
        assert scores[0] == pytest.approx(-0.3)
        assert scores[1] == pytest.approx(likelihood(" is", " Rome"))
        assert scores[3] == pytest.approx(
            sum(likelihood(a, b) for a, b in ((" is", ","), (",", " you"), (" you", " say")))
        )
        assert len(scores) == 23
        assert [len(body["prompt"]) for body in echo.bodies] == [17, 8]

    asyncio.run(main())


def test_a_token_that_grew_together_counts_whole() -> None:
    assert beginning(["a", "="], ["a", '="', "x"]) == 1
    assert beginning(["a", "="], ["a", "=", "x"]) == 2


def method_of(serve: Callable[..., Any], server_of: Any) -> tuple[ScoreMethod | None, Finding]:
    """How a server can be asked for likelihoods, and the evidence."""

    async def main() -> tuple[ScoreMethod | None, Finding]:
        async with serve(server_of) as server:
            model = Http(server.url, "m", retries=0)
            try:
                return await find_score_method(model)
            finally:
                await model.aclose()

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("how", "way", "seen"),
    [
        ("right", "echo", "by echo"),
        ("deaf", None, "without its likelihoods"),
        ("blank", None, "without its likelihoods"),
        ("held", None, "as likely"),
        ("scaled", None, "parts make"),
    ],
)
def test_wrong_likelihoods_are_noticed(serve: Callable[..., Any], how: str, way: ScoreMethod | None, seen: str) -> None:
    found, evidence = method_of(serve, Echo(how))
    assert found == way
    assert seen in evidence.evidence


@pytest.mark.parametrize(
    "answer",
    [
        {"choices": [{"index": 0, "message": {"content": "Hi"}}]},  # as a server answers that knows one path
        {"tokens": [{"id": 1, "piece": ["x"]}]},
        {"tokens": [{"id": 1}, {"id": 2}], "choices": [{"logprobs": {"content": [{"id": 2, "token": "a"}]}}]},
        {"choices": [{"index": "first"}] * 4},
        {"choices": [{"logprobs": {"tokens": True}}] * 4},
    ],
)
def test_answers_of_another_form_are_no_likelihoods(serve: Callable[..., Any], answer: Any) -> None:
    async def reply(_: web.Request) -> web.Response:
        return web.json_response(answer)

    found, evidence = method_of(serve, reply)
    assert (found, evidence.answer) == (None, "no")


def test_likelihoods_of_other_tokens_are_refused() -> None:
    steps = weigh([(1, "whole")], [(1, "whole"), (2, "whole")], 9)
    body = next(steps)
    assert (body["prompt"], body["max_tokens"], body["grammar"]) == ([1], 1, "root ::= <[2]>")
    with pytest.raises(ServerFailed, match="other tokens"):
        steps.send({"choices": [{"logprobs": {"content": [{"id": 7, "token": "x", "logprob": -0.1}]}}]})
    with pytest.raises(ServerFailed, match="tokens of a text"):
        read_tokens({"tokens": ["a"]} | {"tokens": [{"no": 1}]})


# ------------------------------------------------------------------ who decides by likelihood


class Dropping:
    """A llama.cpp that tells its template, and lays `tools` out or drops them."""

    def __init__(self, *, knows: bool, parameters: int = 0) -> None:
        self.knows = knows
        self.parameters = parameters
        self.paths: list[str] = []

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.paths.append(request.path)
        body = json.loads(await request.read() or b"{}")
        match request.path:
            case "/props":
                return web.json_response({"default_generation_settings": {}, "chat_template": "x", "total_slots": 3})
            case "/apply-template":
                tools = body["tools"][0]["function"]["name"] if self.knows else ""
                return web.json_response({"prompt": f"<user>{tools}"})
            case "/v1/completions":
                return await Echo()(request)
            case "/v1/models":
                return web.json_response({"data": [{"id": "m", "meta": {"n_params": self.parameters}}]})
            case _:
                pass
        return web.json_response({"error": {"message": "not found"}}, status=404)


@pytest.mark.parametrize(
    ("knows", "parameters", "way"),
    [
        (True, 135_000_000, "native"),
        (False, 135_000_000, "scored"),
        (False, 500_000_000, "prompted"),
        (False, 0, "prompted"),
    ],
)
def test_a_server_that_would_drop_tools(serve: Callable[..., Any], knows: bool, parameters: int, way: str) -> None:
    async def main() -> Adaptive:
        async with serve(Dropping(knows=knows, parameters=parameters)) as server:
            model = Adaptive(Http(server.url, "m", retries=0))
            try:
                await model.look()
                return model
            finally:
                await model.aclose()

    model = asyncio.run(main())
    assert model.strategy.way == way
    if way == "scored":
        assert isinstance(model.model, Speaker)
        assert isinstance(model.model.model, LogprobScorer)
        assert (model.model.model.way, model.model.model.abreast) == ("echo", 4)
    if way != "native":
        assert {"prompt", "schema", "grammar", "tools"} <= model.capabilities
        assert "drops them" in model.strategy.why or way == "scored"


@pytest.mark.parametrize("tools", [False, True])
def test_a_server_is_looked_at_before_tools_alone(serve: Callable[..., Any], tools: bool) -> None:
    paths: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        paths.append(request.path)
        frame = {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}
        return web.Response(text=f"data: {json.dumps(frame)}\n\n", content_type="text/event-stream")

    async def main() -> None:
        async with serve(answer) as server:
            model = Adaptive(Http(server.url, "m"))
            for _ in range(2):
                asked = ts.Request([{"role": "user", "content": "Hi"}], as_tools([add]) if tools else None)
                _ = [event async for event in model.stream(asked)]
            await model.aclose()

    asyncio.run(main())
    assert paths == ["/props"] * tools + ["/v1/chat/completions"] * 2


def known(template: str, **fields: Any) -> ServerCapabilities:
    found = {"chat": Finding("yes"), "tools": Finding("no", "dropped"), "completions": Finding("yes")}
    return ServerCapabilities(
        "http://h/v1", "m", "openai", found, template=template, score_way="forced", slots=2, **fields
    )


def test_the_template_decides_whether_likelihoods_do() -> None:
    plain = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    made = Adaptive(Http("http://h/v1", "m"), server_capabilities=known(plain, parameters=135_000_000))
    assert isinstance(made.model, Speaker)
    assert isinstance(made.model.model, LogprobScorer)
    assert (made.strategy.way, made.model.model.way, made.model.model.abreast) == ("scored", "forced", 2)
    named = Adaptive(Http("http://h/v1", "m"), Preferences("prompted", "hermes"), server_capabilities=known(plain))
    assert isinstance(named.model, Speaker)
    assert not isinstance(named.model.model, LogprobScorer)  # who names a dialect is given it
    assert "score" in known(plain).capabilities
    for unknown in (known(plain), known("", parameters=135_000_000_000)):
        assert Adaptive(Http("http://h/v1", "m"), server_capabilities=unknown).strategy.way == "prompted"
