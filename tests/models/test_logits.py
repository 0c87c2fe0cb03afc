"""llama.cpp by its C functions: the same likelihoods as its server tells, at once; and what happens where it cannot."""

from __future__ import annotations

import ctypes.util
from pathlib import Path

import pytest

import toolspeak as ts
from toolspeak.models.embedded import scoring as llama, weights
from toolspeak.models.embedded.local import LlamaServer, Local
from toolspeak.models.embedded.scoring import ABREAST, CACHED, Llama
from toolspeak.types import Request

xllamacpp = pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
pytest.importorskip("numpy", reason="the extra `local` is not installed")
if not weights.present():
    pytest.skip("the embedded model was not fetched: make fetch", allow_module_level=True)

LIBRARY = Path(xllamacpp.xllamacpp.__file__)
PROMPT = "A list of things that people ask for every day.\n# Request: "
ASKED = [
    "What is the weather in Lima?\n",
    "Book a table for 2 at 7 pm\n",
    "明天巴黎天气怎么样？\n",
    "purple seven of\n",
]
NOISE = 3.0
"""Nats by which the sums of a dozen tokens may differ: a model computes a little otherwise in a batch."""


@pytest.fixture(scope="module")
def server() -> LlamaServer:
    return Local()._server()  # pyright: ignore[reportPrivateUsage]


@pytest.fixture(scope="module")
def mind() -> Llama:
    return Llama(LIBRARY, weights.ensure(), 1024, 2)


def test_the_embedded_model_has_it(server: LlamaServer) -> None:
    assert server.llama


def test_likelihoods_are_those_that_the_server_tells(mind: Llama, server: LlamaServer) -> None:
    assert mind.score(PROMPT, ASKED) == pytest.approx([server.score(PROMPT, text) for text in ASKED], abs=NOISE)


def test_many_at_once_are_what_each_is_alone(mind: Llama) -> None:
    texts = [
        f"{city} {number}\n" for city in ("Lima", "東京") for number in range(ABREAST // 2 + 1)
    ]  # more than abreast
    at_once = mind.score(PROMPT, texts)
    alone = [value for text in texts for value in mind.score(PROMPT, [text]) or ()]
    assert at_once == pytest.approx(alone, abs=NOISE / 3)


def test_a_text_whose_beginning_grows_together_with_the_prompt(mind: Llama, server: LlamaServer) -> None:
    for prompt, text in (
        ("The capital of Fr", "ance is Paris"),
        ("It is 12", "34 now"),
        ("Say: ", " yes"),
        ("naï", "ve é"),
    ):
        assert mind.score(prompt, [text]) == pytest.approx([server.score(prompt, text)], abs=NOISE)


def test_what_was_asked_before_changes_nothing(mind: Llama) -> None:
    before = mind.score(PROMPT, ASKED[:1])
    for number in range(CACHED + 1):
        assert mind.score(f"{number} other things, {PROMPT}", ASKED[1:2])
    for other in ("A list of", "A list of things that nobody", PROMPT + "What is", "Z"):
        assert mind.score(other, [" and so on"])
    assert mind.score(PROMPT, ASKED[:1]) == pytest.approx(before, abs=NOISE / 3)


@pytest.mark.costly
def test_what_was_asked_longest_ago_gives_way(mind: Llama) -> None:
    long = "one two three four five six seven eight nine ten. "
    for number in range(3):
        prompt = f"{number}. " + long * 36
        assert 380 < len(mind.tokens(prompt)) < 500
        assert mind.score(prompt, [" The end", " And so on"])


def test_what_does_not_fit_is_left_to_the_server(
    mind: Llama, monkeypatch: pytest.MonkeyPatch, server: LlamaServer
) -> None:
    long = "one two three four five six seven eight nine ten. " * 100
    before = mind.evaluated
    assert mind.score(long, [" The end"]) is None
    assert mind.write(long, ["."], 5) is None
    assert mind.score(PROMPT, [long]) is None
    assert mind.score("", ["word"]) is None
    assert mind.write("", ["."], 5) is None
    assert mind.evaluated == before, "what cannot fit is not begun"
    assert mind.score(PROMPT, ASKED[:1])
    assert mind.score(PROMPT, []) == []
    monkeypatch.setattr(mind, "score", lambda *_: None)
    monkeypatch.setitem(server.__dict__, "llama", mind)
    assert server.scores(PROMPT, [" The end"])[0] < 0


@pytest.mark.parametrize(
    ("prompt", "stop", "most"),
    [
        ('weather(city="Lima")\nweather(city="', ('"', "\n"), 12),
        ("one, two, three, four,", (",",), 20),
        ("Once upon a time", (), 3),
        ("1, 2, 3, 4,", (), 12),
    ],
)
def test_it_writes_what_the_server_writes(
    mind: Llama, prompt: str, stop: tuple[str, ...], most: int, server: LlamaServer
) -> None:
    made = mind.write(prompt, stop, most)
    body = {"prompt": prompt, "max_tokens": most, "temperature": 0, "stop": list(stop)}
    told = server.server.handle_completions(body)
    assert made
    assert made.text == told["choices"][0]["text"]
    assert made.finish == told["choices"][0]["finish_reason"]
    assert made.usage.completion_tokens == told["usage"]["completion_tokens"]
    assert made.usage.prompt_tokens == told["usage"]["prompt_tokens"]


def test_half_a_surrogate_pair_is_no_error(mind: Llama, server: LlamaServer) -> None:
    assert mind.score(PROMPT + "\ud800", [" \udfff and"])
    assert server.score(PROMPT + "\ud800", " and") < 0


@pytest.mark.parametrize("question", ["", " ", "?!"])
def test_a_request_without_a_word_calls_nothing(question: str) -> None:
    def weather(city: str) -> str:
        """The weather in a city."""
        return city

    assert ts.decide(question, tools=[weather], model=Local(), max_tokens=2).calls == ()


def test_characters_of_several_tokens_are_written_whole(mind: Llama) -> None:
    made = mind.write("你好！你好！你好！", (), 9)
    assert made
    assert made.text
    assert "�" not in made.text


def test_another_library_is_none(server: LlamaServer) -> None:
    assert llama.load(Path(ctypes.util.__file__), weights.ensure(), 512, 1, server.score) is None


def test_other_likelihoods_are_not_trusted() -> None:
    assert llama.load(LIBRARY, weights.ensure(), 512, 1, lambda _prompt, _text: -1e3) is None


@pytest.mark.parametrize("name", ["HEAD", "SWITCHES"])
def test_settings_that_are_laid_out_otherwise_are_not_touched(
    monkeypatch: pytest.MonkeyPatch, name: str, server: LlamaServer
) -> None:
    monkeypatch.setattr(llama, name, b"\7" * 9)
    assert llama.load(LIBRARY, weights.ensure(), 512, 1, server.score) is None


def test_a_large_file_is_not_loaded_twice(monkeypatch: pytest.MonkeyPatch, server: LlamaServer) -> None:
    monkeypatch.setattr(llama, "LARGEST_FILE", 1000)
    assert llama.load(LIBRARY, weights.ensure(), 512, 1, server.score) is None


def test_no_model_no_llama(tmp_path: Path, server: LlamaServer) -> None:
    file = tmp_path / "none.gguf"
    file.write_bytes(b"GGUF")
    assert llama.load(LIBRARY, file, 512, 1, server.score) is None


def test_without_it_the_server_tells(monkeypatch: pytest.MonkeyPatch, server: LlamaServer) -> None:
    monkeypatch.setitem(server.__dict__, "llama", None)
    assert server.scores(PROMPT, ASKED[:2]) == pytest.approx(
        [server.score(PROMPT, text) for text in ASKED[:2]], abs=NOISE
    )
    assert server.write(Request(prompt=PROMPT, max_tokens=3, temperature=0)) is None
