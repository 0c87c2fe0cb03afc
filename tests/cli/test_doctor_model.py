"""`toolspeak doctor MODEL`: one screen for a name, an address, a file; an exit status that scripts can use."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from world import Cli

from toolspeak.cli.doctor_checks import _seen  # pyright: ignore[reportPrivateUsage]
from toolspeak.models.servers.capabilities import Finding, ServerCapabilities
from toolspeak.models.strategy import strategy

HERMES = """\
{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content or '' }}{% for c in m.tool_calls or [] %}
<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
CHATML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"


def weights(path: Path, template: str) -> Path:
    """The head of a GGUF file, without weights."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    pairs = {"general.name": "Nobody 3B", "general.architecture": "nobody", "tokenizer.chat_template": template}
    body = b"".join(text(key) + struct.pack("<I", 8) + text(value) for key, value in pairs.items() if value)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, sum(map(bool, pairs.values()))) + body)
    return path


@pytest.fixture
def doctor(cli: Cli, place: Path) -> Callable[..., tuple[int, dict[str, str]]]:
    def ask(name: str, *options: str, **env: str) -> tuple[int, dict[str, str]]:
        done = cli("doctor", name, *options, TOOLSPEAK_CACHE=str(place / "cache"), **env)
        assert "Traceback" not in done.stdout
        assert len(done.stdout.splitlines()) <= 24
        assert all(line[0] in "✓✗·" for line in done.stdout.splitlines())
        rows = [line[2:].split(maxsplit=1) for line in done.stdout.replace("tried: ", "tried:").splitlines()]
        return done.returncode, dict(rows)

    return ask


Doctor = Callable[..., tuple[int, dict[str, str]]]


@pytest.mark.parametrize(
    ("template", "about", "asked"),
    [
        (HERMES, "it declares the dialect hermes", "hermes"),
        (CHATML, "it declares no known dialect", ""),
        ("", "none", ""),
    ],
)
def test_a_file(doctor: Doctor, place: Path, template: str, about: str, asked: str) -> None:
    for name in (str(weights(place / "nobody.gguf", template)), "nobody.gguf", "local:nobody.gguf"):
        code, rows = doctor(name)
        assert code == 0
        assert rows["model"].startswith("a GGUF file, run in this process")
        assert rows["about"].startswith("Nobody 3B, nobody")
        assert about in rows["template"]
        assert asked in rows["asked"]
        assert "toolspeak tune local:" in rows["change"]
        assert ("--dialect" in rows["change"]) == (template != HERMES)


def test_a_server_that_refuses_tools(doctor: Doctor, serve: Callable[..., str]) -> None:
    url = serve()
    code, rows = doctor(url)
    assert code == 0
    assert rows["probing"].startswith("about twenty-five small requests are sent")  # before anything is waited for
    assert rows["server"] == "not known by name, model m"
    assert "does not support tools" in rows["tools"]
    assert ": " in rows["asked"]
    assert "chat" in rows["tried:yes"]
    assert "tools" in rows["tried:no"]
    assert "--dialect NAME" in rows["change"]
    told = {row["name"]: row["detail"] for row in json.loads(_json(url))}
    assert told["asked"] == rows["asked"]


def _json(url: str) -> str:
    from click.testing import CliRunner

    from toolspeak.cli.command_group import root

    done = CliRunner().invoke(root, ["doctor", url, "--json"])
    assert done.exit_code == 0
    return done.stdout


def test_a_server_that_takes_tools(doctor: Doctor, serve: Callable[..., str]) -> None:
    code, rows = doctor(serve(calls=True))
    assert code == 0
    assert rows["asked"].startswith("native: ")
    assert rows["change"].startswith("no change is needed; `toolspeak tune http://")
    assert rows["saved"].startswith("until ")
    assert Path(rows["saved"].partition("to forget it, delete ")[2]).is_file()


def test_a_server_that_ignores_tools(doctor: Doctor, serve: Callable[..., str]) -> None:
    code, rows = doctor(serve(ignores=True))
    assert code == 0
    assert not rows["asked"].startswith("native: ")
    assert "tools" not in rows["tried:yes"].replace("streamed tools", "")
    assert "--dialect NAME" in rows["change"]


def test_a_server_that_may_ignore_tools_and_tells_no_tokens(doctor: Doctor, serve: Callable[..., str]) -> None:
    """It answers in words, and at once: it is no use to wait until it is less busy."""
    url = serve(ignores=True, tokens=0)
    _, rows = doctor(url)
    assert "tools" in rows["tried:unclear"]
    assert rows["change"].startswith("the model was offered tools and answered in text")
    assert "--dialect NAME" in rows["change"]
    assert f"toolspeak tune {url} " in rows["change"]
    assert "busy" not in rows["change"]


def test_a_server_that_tells_the_same_count_for_every_request(doctor: Doctor, serve: Callable[..., str]) -> None:
    _, rows = doctor(serve(ignores=True, tokens=3))
    assert "tools" in rows["tried:unclear"]
    assert "as many for every request" in rows["tools"]
    assert rows["change"].startswith("the model was offered tools and answered in text")


def test_a_server_whose_model_reads_tools_and_calls_none(cli: Cli, serve: Callable[..., str]) -> None:
    done = cli("doctor", f"{serve(ignores=True, reads_tools=True, models=('qwen3-8b',))}#qwen3-8b")
    rows = {line[2:].split()[0]: line for line in done.stdout.splitlines()}
    assert rows["tools"].startswith("· ")
    assert "but no call came" in rows["tools"]
    assert "no call was seen" in rows["change"]
    assert "--dialect hermes" in rows["change"]
    assert "no change is needed" not in done.stdout


def test_a_server_that_refuses_tools_though_the_dialect_is_known(doctor: Doctor, serve: Callable[..., str]) -> None:
    refusal = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
    _, rows = doctor(serve(models=("Qwen2.5-7B-Instruct",), refusal=refusal))
    assert "in hermes" in rows["asked"]
    assert "--dialect" not in rows["change"]
    assert "start vLLM with --enable-auto-tool-choice and the --tool-call-parser" in rows["change"]


def test_a_name_that_the_server_does_not_list(cli: Cli, serve: Callable[..., str]) -> None:
    url = serve(models=("Qwen2.5-7B-Instruct",))
    done = cli("doctor", f"{url}#qwen")
    rows = {line[2:].split()[0]: line for line in done.stdout.splitlines()}
    assert rows["server"].startswith("· ")
    assert "which the server does not list" in rows["server"]
    assert "Qwen2.5-7B-Instruct" in rows["models"]
    assert f"the server lists no model of this name: use {url}#Qwen2.5-7B-Instruct" in rows["change"]
    assert "✓ server" in cli("doctor", f"{url}#Qwen2.5-7B-Instruct").stdout


def test_a_server_with_several_models(doctor: Doctor, serve: Callable[..., str]) -> None:
    url = serve(models=("one", "two"))
    code, rows = doctor(url)
    assert code == 1
    assert "has the models one, two; name one" in rows["server"]
    code, rows = doctor(f"{url}#two")
    assert (code, rows["models"]) == (0, "one, two")


@pytest.mark.parametrize("name", ["http://127.0.0.1:9/v1", "127.0.0.1:9", "localhost:9/v1#m"])
def test_a_server_that_is_down(doctor: Doctor, name: str) -> None:
    code, rows = doctor(name)
    assert code == 1
    assert "no answer from the server" in rows["server"]
    code, rows = doctor(name, "--offline")
    assert code == 0
    assert rows["tried"] == "nothing was sent"


@pytest.mark.parametrize(
    ("size", "how"), [(135_000_000, "decided by likelihood"), (3_000_000_000, "read from the text")]
)
def test_what_to_change_says_how_calls_are_found_meanwhile(size: int, how: str) -> None:
    found = {"chat": Finding("yes"), "tools": Finding("no", "they are dropped")}
    seen = ServerCapabilities("http://x/v1", "m", "openai", found, "llama.cpp", parameters=size, score_way="echo")
    rows = {name: detail for name, _, detail in _seen("m", seen, strategy(seen.known))}
    assert f"calls are {how} meanwhile" in rows["change"]


def test_a_hosted_provider_is_not_probed(doctor: Doctor) -> None:
    code, rows = doctor("openai:gpt-5")
    assert (code, rows["key"]) == (1, "OPENAI_API_KEY is not set")
    code, rows = doctor("openai:gpt-5", OPENAI_API_KEY="sk-some-secret")
    assert code == 0
    assert rows["tried"] == "nothing was sent: a hosted provider is not probed"
    assert rows["asked"].startswith("native: ")
    assert "sk-some-secret" not in str(rows)


def test_the_embedded_model_that_is_not_here_yet(doctor: Doctor) -> None:
    code, rows = doctor("local")
    assert code == 0
    assert rows["about"] == "not fetched yet; `toolspeak models pull` does"
    assert rows["asked"].startswith("scored: ")


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("gpt-4o", 2, "did you mean openai:gpt-4o?"),
        ("", 2, "no model is called ''"),
        ("http://", 2, "expected an address"),
        ("absent.gguf", 1, "there is no model file absent.gguf"),
        ("plain.gguf", 1, "is no GGUF file"),
        ("local:folder", 1, "folder is a folder, and holds a.gguf. Expected: the path of a GGUF file"),
        ("./folder", 2, "did you mean local:./folder?"),
        ("plain.bin", 2, "did you mean local:plain.bin?"),
        ("./folder/app.py", 2, "./folder/app.py is a .py file and no model; expected local, local:/path/to.gguf"),
        ("tools", 2, "tools is a file and no model; expected"),
        ("said.jsonl", 2, "is a .jsonl file and no model; did you mean scripted:said.jsonl or replay:said.jsonl?"),
        ("htp://127.0.0.1:9/v1", 2, "did you mean http://127.0.0.1:9/v1"),
    ],
)
def test_a_name_that_means_nothing(cli: Cli, place: Path, name: str, code: int, words: str) -> None:
    (place / "folder").mkdir()
    for file in ("plain.gguf", "folder/a.gguf", "folder/app.py", "tools", "said.jsonl"):
        (place / file).write_bytes(b"text")
    (place / "plain.bin").write_bytes(b"GGUF")
    done = cli("doctor", name)
    assert done.returncode == code
    assert words in done.stdout + done.stderr
    assert len((done.stdout + done.stderr).splitlines()) == 1
