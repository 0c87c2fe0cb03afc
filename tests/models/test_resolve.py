"""Models by name: what each name means, and what is said of one that means nothing."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from toolspeak.errors import UnknownModel, UsageError
from toolspeak.events import TextDelta
from toolspeak.models.fallback import Adaptive
from toolspeak.models.http import Http
from toolspeak.models.http.providers import PROVIDERS
from toolspeak.models.resolve import model
from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker
from toolspeak.types import Request


def http(name: str, **options: Any) -> Http:
    made = model(name, **options)
    assert isinstance(made, Adaptive)
    return made.http


def answers(made: Any, count: int = 1) -> list[str]:
    async def one() -> str:
        return "".join([event.text async for event in made.stream(Request()) if isinstance(event, TextDelta)])

    return [asyncio.run(one()) for _ in range(count)]


@pytest.mark.parametrize(
    ("name", "url", "wanted"),
    [
        ("openai:gpt-5", "https://api.openai.com/v1", "gpt-5"),
        ("ollama:gemma3:4b", "http://localhost:11434", "gemma3:4b"),
        ("openrouter:vendor/model:free", "https://openrouter.ai/api/v1", "vendor/model:free"),
        ("vllm:", "http://localhost:8000/v1", None),
        ("lmstudio", "http://localhost:1234/v1", None),
        ("http://host:8000/v1#vendor/name", "http://host:8000/v1", "vendor/name"),
        ("https://host/v1", "https://host/v1", None),
        (" http://host:8000 ", "http://host:8000/v1", None),
        ("http://[::1]:8000/v1/#m", "http://[::1]:8000/v1", "m"),
        ("http://host/v1/chat/completions#m", "http://host/v1", "m"),
    ],
)
def test_names_of_servers(name: str, url: str, wanted: str | None) -> None:
    made = http(name)
    assert (made.address.public, made.model) == (url, wanted)


def test_a_model_is_shown_by_the_name_it_was_asked_for_with() -> None:
    assert http("ollama:gemma3").name == "ollama:gemma3"
    assert http("vllm").name == "vllm"
    assert http("http://user:pa55word@host:8000/v1#m").name == "http://host:8000/v1#m"


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("box", "http://box:11434"),
        ("box:99", "http://box:99"),
        (":99", "http://localhost:99"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("[::]:99", "http://[::1]:99"),
        ("[::1]", "http://[::1]:11434"),
        ("http://box:99/", "http://box:99"),
        ("https://box/under", "https://box:443/under"),
    ],
)
def test_ollama_host_in_all_its_forms(monkeypatch: pytest.MonkeyPatch, value: str, url: str) -> None:
    monkeypatch.setenv("OLLAMA_HOST", value)
    assert http("ollama:gemma3").address.public == url


def test_a_dialect_is_spoken_for() -> None:
    made = model("ollama:gemma3", dialect="hermes")
    assert isinstance(made, Adaptive)
    assert isinstance(made.model, Speaker)
    assert isinstance(made.model.model, Http)
    assert "tools" not in made.model.model.capabilities
    assert made.strategy.dialect is not None
    assert (made.strategy.way, made.strategy.dialect.name) == ("prompted", "hermes")
    assert isinstance(model("scripted:x", dialect="hermes"), Speaker)
    assert isinstance(model("http://host/v1#m", native=False), Http)
    assert isinstance(model("http://host/v1#m", api="completions"), Http)


def test_another_address_for_a_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://proxy:1/v1")
    assert http("openai:gpt-5").address.public == "http://proxy:1/v1"


def test_options_go_to_the_model() -> None:
    made = http("openai:gpt-5", key="sk-1", timeout=3, retries=0)
    assert (made.timeouts.first, made.retries) == (3, 0)
    assert "sk-1" not in repr(made)


def test_the_default_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSPEAK_MODEL", "scripted:hello")
    assert answers(model()) == ["hello"]


def test_a_model_is_itself() -> None:
    made = Scripted(["x"])
    assert model(made) is made
    with pytest.raises(UsageError, match="timeout cannot be set"):
        model(made, timeout=3)


def test_a_script_in_the_name() -> None:
    assert answers(model('scripted:{"tool": null}')) == ['{"tool": null}']
    assert answers(model("scripted:" + "x" * 5000)) == ["x" * 5000]


@pytest.mark.parametrize(
    "name", ["missing.jsonl", "missing.txt", "missing.json", "no/such/file.txt", "./missing", "../missing", "/missing", "~/missing-script"]
)  # fmt: skip
def test_a_missing_script_is_an_error(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name was the reply."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=rf"scripted:FILE.*{re.escape(name)}"):
        model(f"scripted:{name}")


@pytest.mark.parametrize(
    "text",
    [
        "Yes/no",
        "3/4",
        "</tool_call>",
        "/tools <b>",
        "See a.txt",
        "a\nb.txt",
        '{"file":"a.json"}',
        "{a}.txt",
        "~",
        "Hi.",
    ],
)
def test_a_text_is_no_file(text: str) -> None:
    assert answers(model(f"scripted:{text}")) == [text]


def test_scripts_have_any_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in ("my replies.txt", "script", "a.jsonl"):
        Path(path).write_text("one\n", "utf-8")
    for name in ("my replies.txt", "./script", "~/script", "~/a.jsonl", f"{tmp_path}/script"):
        assert answers(model(f"scripted:{name}")) == ["one"], name
    assert answers(model("scripted:script")) == ["script"]
    Path("list.json").write_text('[\n"one"\n]', "utf-8")
    with pytest.raises(UsageError, match=r"reads a \.jsonl or \.txt file"):
        model("scripted:list.json")


def test_a_single_text_is_the_only_reply() -> None:
    """Not one reply a letter."""
    assert answers(Scripted("No idea.")) == ["No idea."]


def test_a_script_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "script.jsonl"
    path.write_text('"one\\ntwo"\n\n{"tool": "w"}\nplain: 厦门\u2028\n', "utf-8")
    assert answers(model(f"scripted:{path}", repeat=True), 4) == [
        "one\ntwo",
        '{"tool": "w"}',
        "plain: 厦门\u2028",
        "plain: 厦门\u2028",
    ]
    path.write_text("[" * 100_000, "utf-8")
    assert answers(model(f"scripted:{path}")) == ["[" * 100_000]
    path.write_bytes(b"\xff\n")
    with pytest.raises(UsageError, match="cannot be read"):
        model(f"scripted:{path}")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("opnai:gpt-5", r"did you mean openai:gpt-5\?"),
        ("olama:gemma3", r"did you mean ollama:gemma3\?"),
        ("Ollama:gemma3", r"did you mean ollama:gemma3\?"),
        ("openai/gpt-5", r"did you mean openai:gpt-5\?"),
        ("gpt-4o", r"did you mean openai:gpt-4o\?"),
        ("claude-sonnet-4-5", r"did you mean anthropic:claude-sonnet-4-5\?"),
        ("gemma3", r"did you mean ollama:gemma3 or http://localhost:8000/v1#gemma3\?"),
        ("llama3.2:3b", r"did you mean ollama:llama3.2:3b or "),
        ("gpt-oss:20b", r"did you mean ollama:gpt-oss:20b or "),
        ("Qwen/Qwen2.5-7B-Instruct", r"did you mean vllm:Qwen/Qwen2.5-7B-Instruct or "),
        ("localhost:8000/v1", r"did you mean http://localhost:8000/v1\?"),
        ("127.0.0.1:8080#m", r"did you mean http://127.0.0.1:8080#m\?"),
        ("host.example.com/v1", r"did you mean http://host.example.com/v1\?"),
        ("http//host:8000/v1", r"did you mean http://host:8000/v1\?"),
        ("ollma", r"did you mean ollama:MODEL\?"),
        ("what is this", "expected local, local:/path/to.gguf, PROVIDER:MODEL such as ollama:"),
        ("weights/x.gguf", "did you mean local:weights/x.gguf"),
        ("weights/x.GGUF", "did you mean local:weights/x.GGUF"),
        ("/srv/models", "did you mean local:/srv/models"),
        (__file__, "is a .py file and no model; expected local, local:/path/to.gguf"),
        ("openai:", "name of a model after openai:"),
        ("", "no model is called ''"),
        ("scripted", "scripted:TEXT"),
        (7, "expected a model or the name of one, got int"),
    ],
)
def test_a_name_that_means_nothing(name: Any, words: str) -> None:
    with pytest.raises(UnknownModel, match=words):
        model(name)


def test_a_mistyped_address_is_shown_without_its_password() -> None:
    with pytest.raises(UnknownModel) as caught:
        model("htp://user:pa55word@host/v1")
    assert "pa55word" not in str(caught.value)
    with pytest.raises(UnknownModel, match=r"did you mean http://host:8000/v1\?") as caught:
        model("user:pa55word@host:8000/v1")
    assert "pa55word" not in str(caught.value)


def test_every_name_that_is_meant_can_be_used() -> None:
    for name in ("gpt-4o", "gemma3", "localhost:8000/v1#m", "Qwen/Qwen3-8B", "openai/gpt-5", "olama:x", "[::1]:8000"):
        with pytest.raises(UnknownModel) as caught:
            model(name)
        meant = str(caught.value).partition("did you mean ")[2].partition("?")[0].split(" or ")
        assert meant
        for one in meant:
            assert model(one).name


def test_a_key_for_a_model_that_takes_none() -> None:
    with pytest.raises(UsageError, match="a key is for a model over HTTP"):
        model("scripted:x", key="sk-1")


def test_every_provider_has_an_address() -> None:
    for name, provider in PROVIDERS.items():
        made = http(f"{name}:m")
        assert made.address.public == provider.url
        assert json.dumps(dict(provider.writing))
