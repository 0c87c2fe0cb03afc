"""`toolspeak serve` as people meet it: what it prints, what it refuses, and that it answers."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from world import Cli

from preloaded import Started
from toolspeak.cli import main
from toolspeak.cli.command_group import root
from toolspeak.cli.commands.serve import _hello, models_of, name_of  # pyright: ignore[reportPrivateUsage]
from toolspeak.gateway.config.load import read_config

QUESTION = {"messages": [{"role": "user", "content": "Hi"}]}


class Serving:
    """A gateway as a process; `told` is what it said until it listened."""

    def __init__(self, process: Started, told: str) -> None:
        self.process = process
        self.told = told
        found = re.search(r"at (http://\S+)", told)
        assert found, told
        self.url = found[1]

    def get(self, path: str, body: dict[str, Any] | None = None, **headers: str) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        sent = {"content-type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, data, sent), timeout=120) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def end(self) -> str:
        """Stops it, and gives what it said after it began to listen."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.communicate(timeout=120)[1]


@contextmanager
def serving(*args: str, **env: str) -> Iterator[Serving]:
    process = Started(
        ["serve", "--port", "0", *args], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        env={**os.environ, **env},
    )  # fmt: skip
    assert process.stderr
    told = ""
    try:
        while "curl" not in told:
            line = process.stderr.readline()
            assert line, told
            told += line
        yield Serving(process, told)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLSPEAK_GATEWAY_KEY", raising=False)


def test_it_serves_and_prints_lines_to_paste() -> None:
    with serving("--model", "m=scripted:Hello") as running:
        assert (
            running.get("/v1/chat/completions", {"model": "m", **QUESTION})[1]["choices"][0]["message"]["content"]
            == "Hello"
        )
        assert f"export OPENAI_BASE_URL={running.url}/v1 OPENAI_API_KEY=none" in running.told
        assert f"ANTHROPIC_BASE_URL={running.url}" in running.told
        curl = re.search(r"^\s*(curl .*)$", running.told, re.MULTILINE)
        assert curl
        body = re.search(r"-d '(.*)'$", curl[1])
        assert body
        assert json.loads(body[1])["model"] == "m"


def test_the_key_of_the_environment_is_needed_and_not_shown() -> None:
    with serving("--model", "m=scripted:Hello", TOOLSPEAK_GATEWAY_KEY="a-secret-key") as running:
        assert running.get("/v1/models")[0] == 401
        assert running.get("/v1/models", authorization="Bearer a-secret-key")[0] == 200
        assert "OPENAI_API_KEY=YOUR_KEY" in running.told
        assert "note:" not in running.told
        assert "a-secret-key" not in running.told + running.end()


def test_a_key_on_the_command_line_works_and_is_warned_of() -> None:
    with serving("--model", "m=scripted:Hello", "--api-key", "a-secret-key") as running:
        assert running.get("/v1/models", x_api_key="a-secret-key")[0] == 200
        assert running.get("/v1/models", x_api_key="other")[0] == 401
        assert "$TOOLSPEAK_GATEWAY_KEY" in running.told
        assert "a-secret-key" not in running.told


def test_a_file_with_flags_before_it(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('[server]\nport = 1\n[models.a]\nupstream = "scripted:A"\n[models.b]\nupstream = "scripted:B"\n')
    with serving("--config", str(file), "--model", "b=scripted:C", "--cors", "https://example.org") as running:
        names = [one["id"] for one in running.get("/v1/models")[1]["data"]]
        assert names == ["a", "b"]
        told = running.get("/v1/chat/completions", {"model": "b", **QUESTION})[1]
        assert told["choices"][0]["message"]["content"] == "C"


def test_a_key_made_here_opens_the_gateway(cli: Cli, tmp_path: Path) -> None:
    made = cli("serve", "--new-key", "alice")
    found = re.search(r"\bts-\S{40,}$", made.stderr.strip())
    assert found
    assert found[0] not in made.stdout
    file = tmp_path / "gateway.toml"
    file.write_text('[models.m]\nupstream = "scripted:Hello"\n\n' + made.stdout)
    with serving("--config", str(file)) as running:
        assert running.get("/v1/models", x_api_key=found[0])[0] == 200
        assert running.get("/v1/models", x_api_key=found[0] + "x")[0] == 401
    again = cli("serve", "--new-key", "alice", "--config", str(file))
    assert (again.returncode, again.stdout) == (2, "")
    assert "already has a key 'alice'" in again.stderr
    assert cli("serve", "--new-key", "bob", "--config", str(file)).stdout.startswith("\n[keys.bob]")


def test_a_key_is_made_where_the_secrets_of_models_are_missing(cli: Cli, tmp_path: Path) -> None:
    """The command reads the names of keys, and nothing else of the file."""
    file = tmp_path / "gateway.toml"
    model = '[models.m]\nupstream = "openai:x"\nkey = { env = "NO_SUCH_VARIABLE_HERE" }\n'
    file.write_text(model + "[keys.alice]\nhash = 'sha256:" + "0" * 64 + "'\n")
    made = cli("serve", "--new-key", "bob", "--config", str(file))
    assert (made.returncode, made.stdout.startswith("\n[keys.bob]")) == (0, True)
    assert "already has a key 'alice'" in cli("serve", "--new-key", "alice", "--config", str(file)).stderr
    assert "NO_SUCH_VARIABLE_HERE is not set" in cli("serve", "--check", str(file)).stderr
    for content, problem in (("keys = 3", "gateway.toml:1: keys: expected a table"), ("[", "it is not TOML")):
        file.write_text(content)
        wrong = cli("serve", "--new-key", "bob", "--config", str(file))
        assert (wrong.returncode, wrong.stdout) == (2, "")
        assert problem in wrong.stderr


@pytest.mark.parametrize("name", ['o"dd name', "Zoë", "🔑", "a\\b", "a.b", "back\x7fspace"])
def test_any_name_of_a_key_makes_lines_that_load(cli: Cli, tmp_path: Path, name: str) -> None:
    (file := tmp_path / "gateway.toml").write_text(
        '[models.m]\nupstream = "scripted:Hello"\n' + cli("serve", "--new-key", name).stdout, "utf-8"
    )
    assert name in cli("serve", "--check", str(file)).stdout


def test_check_tells_what_is_wrong_or_what_it_comes_to(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(cli("serve", "--sample").stdout)
    good = cli("serve", "--check", str(file))
    assert (good.returncode, good.stderr) == (0, "")
    assert "is valid" in good.stdout
    assert "small: local" in good.stdout
    file.write_text('[server]\nprot = 1\nhost = "0.0.0.0"\n[models.m]\nupstream = "nothing"\n')
    bad = cli("serve", "--check", str(file))
    assert (bad.returncode, bad.stdout) == (2, "")
    assert f"{file}:2: server.prot: unknown field. Did you mean 'port'?" in bad.stderr
    assert f"{file}:5: models.m.upstream: expected the name of a model" in bad.stderr
    file.write_text('[server]\nhost = "0.0.0.0"\n')
    assert "without a key" in cli("serve", "--check", str(file)).stderr
    opened = cli("serve", "--check", str(file), "--insecure")
    assert "key     none: anyone who can reach 0.0.0.0 can use the gateway" in opened.stdout
    here = cli("serve", "--check", str(file), "--host", "127.0.0.1", "--model", "a=scripted:x")
    assert "model   a: scripted:x" in here.stdout
    assert "anyone on this machine" in here.stdout
    assert cli("serve", "--check", str(tmp_path / "none.toml")).returncode == 2


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--workers", "0"], "0 is not in the range"),
        (["--port", "70000"], "70000 is not in the range"),
        (["--model", "m=nothing:x"], "no model is called 'nothing:x'"),
        (["--model", "m="], "expected --model NAME=SPEC"),
        (["--model", "m=scripted:a", "--model", "m=scripted:b"], "two models are called 'm'"),
        (["--model", "ollama:a/m", "--model", "http://gpu:8000/v1#m"], "'m': name each of them (--model NAME=SPEC)"),
        (["--host", "0.0.0.0"], "without a key"),
        (["--host", "192.0.2.1", "--insecure"], "cannot listen at 192.0.2.1"),
        (["--cors", "example.org"], "expected an origin"),
        (["--alias", "claude-*"], "expected --alias PATTERN=NAME"),
        (["--alias", "claude-*=none"], "the alias 'claude-*': expected a model that is served, got 'none'"),
        (["--default", "none"], "the default model: expected a model that is served, got 'none'"),
        (["--api-key", "a b"], "expected a key"),
        (["--config", "none.toml"], "No such file"),
        (["--check", "a.toml", "--config", "b.toml"], "leave out --config"),
        (["--new-key", " "], "expected a name for the key"),
        (["--model", "m=scripted:a", "--dialect", "hermse"], "near ones: hermes"),
    ],
)
def test_what_cannot_be_served_is_told_in_a_line(cli: Cli, args: list[str], said: str) -> None:
    done = cli("serve", *args)
    assert done.returncode == 2
    assert said in done.stderr
    assert len([line for line in done.stderr.splitlines() if "rror:" in line]) == 1


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("ollama:qwen3:8b", "qwen3-8b"), ("http://me:secret@gpu:8000/v1", "model"), ("https://gpu/v1#meta/llama-3", "llama-3"),
        ("local:/models/tiny.gguf", "tiny.gguf"), ("local", "local"), ("small=ollama:gemma3", "small"), ("scripted:…", "model"),
    ],
)  # fmt: skip
def test_a_model_without_a_name_is_called_by_the_end_of_its_specification(spec: str, name: str) -> None:
    """In `serve`, `ui` and `launch` alike."""
    assert list(models_of((spec,), None)) == [name]
    if not spec.startswith(name):
        assert name_of(spec) == name


def test_the_dialect_of_the_models_is_a_flag(tmp_path: Path, cli: Cli) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from toolspeak import Dialect\nfrom toolspeak.wire.dialect import NAME, Json\n"
        'MINE = Dialect("mine", ("<call>", NAME, " ", Json(), "</call>"))\n', "utf-8"
    )  # fmt: skip
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tool = {"type": "function", "function": {"name": "weather", "parameters": schema}}
    body = {"model": "m", "messages": [{"role": "user", "content": "Weather in Oslo?"}], "tools": [tool]}
    said = '<call>weather {"city": "Oslo"}</call>'
    with serving("--model", f"m=scripted:{said}", "--dialect", str(mine)) as running:
        status, told = running.get("/v1/chat/completions", body)
    assert status == 200
    (call,) = told["choices"][0]["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"city": "Oslo"}
    file = tmp_path / "g.toml"
    file.write_text('[models.m]\nupstream = "scripted:x"\n', "utf-8")
    done = cli("serve", "--config", str(file), "--dialect", "hermes")
    assert (done.returncode, "set `dialect` of each model" in done.stderr) == (2, True)


def test_other_names_are_answered_by_flag() -> None:
    flags = ["--model", "a=scripted:from a", "--model", "b=scripted:from b", "--alias", "claude-*=b", "--default", "a"]
    with serving(*flags) as running:
        for name, text in (("claude-x", "from b"), ("gpt-9", "from a")):
            body = {"model": name, "messages": [{"role": "user", "content": "Hi"}]}
            status, told = running.get("/v1/chat/completions", body)
            assert status == 200
            assert told["choices"][0]["message"]["content"] == text


def test_a_busy_port_is_told_in_a_line(cli: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = cli("serve", "--model", "m=scripted:a", "--port", port)
    assert done.returncode == 2
    assert f"cannot listen at 127.0.0.1:{port}: Address already in use. Choose another port with --port" in done.stderr


def test_beyond_this_machine_with_a_key_or_insecure(cli: Cli) -> None:
    with serving("--model", "m=scripted:Hello", "--host", "0.0.0.0", "--insecure") as running:
        assert running.url.startswith("http://127.0.0.1:")
        assert running.get("/v1/models", host="gateway.example")[0] == 200
    with serving("--model", "m=scripted:Hello", "--host", "0.0.0.0", TOOLSPEAK_GATEWAY_KEY="k") as running:
        assert running.get("/v1/models")[0] == 401


def said_by(running: Serving, model: str) -> str:
    return running.get("/v1/chat/completions", {"model": model, **QUESTION})[1]["choices"][0]["message"]["content"]


@pytest.mark.parametrize("name", ["meta/llama", "org/team/model-1", "gemma3:4b", "local"])
def test_a_name_may_be_spelled_as_hubs_and_servers_spell_theirs(name: str) -> None:
    with serving("--model", f"{name}=scripted:1=1", "--alias", f"{name}-old={name}") as running:
        assert f"serving {name} at" in running.told
        assert said_by(running, name) == said_by(running, f"{name}-old") == "1=1"


@pytest.mark.parametrize(("spec", "name"), [("ollama:m=x", "m-x"), ("scripted:a=b", "a-b")])
def test_what_begins_as_a_model_is_no_name(spec: str, name: str) -> None:
    with serving("--model", spec) as running:
        assert f"serving {name} at" in running.told


def test_a_path_with_an_equals_sign_is_no_name(cli: Cli) -> None:
    assert "there is no model file /no=such.gguf" in cli("serve", "--model", "local:/no=such.gguf").stderr
    assert "did you mean local:./no=such.gguf?" in cli("serve", "--model", "./no=such.gguf").stderr


def test_a_script_that_is_served_never_runs_out(tmp_path: Path) -> None:
    file = tmp_path / "replies.txt"
    file.write_text("one\ntwo\n")
    with serving("--model", "text=scripted:Hello", "--model", f"file=scripted:{file}") as running:
        assert [said_by(running, "text") for _ in range(3)] == ["Hello"] * 3
        assert [said_by(running, "file") for _ in range(5)] == ["one", "two", "one", "two", "one"]


def test_an_address_is_a_name_too() -> None:
    with serving("--model", "http://localhost:9/v1?a=b#NAME") as running:
        assert "serving NAME at" in running.told


def test_what_was_recorded_is_replayed_without_the_model(tmp_path: Path, cli: Cli) -> None:
    folder, config, script = tmp_path / "recorded", tmp_path / "gateway.toml", tmp_path / "script.jsonl"
    script.write_text('{"tool": "weather", "tool_input": {"city": "Oslo"}}\n"Sunny."\n')
    config.write_text(f'[server]\ndefault_model = "o:x"\n[models."o:x"]\nupstream = "scripted:{script}"\n')
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tool = {"type": "function", "function": {"name": "weather", "parameters": schema}}
    body = {"model": "a/b", **QUESTION, "tools": [tool]}
    answers: list[list[Any]] = []
    for flags in (["--config", str(config), "--record", str(folder)], ["--replay", str(folder), "--default", "o:x"]):
        with serving(*flags) as running:
            bodies = [{**body, "messages": QUESTION["messages"] * n} for n in (1, 2)]
            answers.append([running.get("/v1/chat/completions", one)[1]["choices"] for one in bodies])
            if "--record" in flags:
                assert f"recorded in {folder}" in running.told
            else:
                status, missing = running.get("/v1/chat/completions", {**body, "temperature": 0.5})
                assert (status, "+temperature: 0.5" in missing["error"]["message"]) == (400, True)
    assert answers[0] == answers[1]
    assert answers[0][0][0]["message"]["tool_calls"][0]["function"]["name"] == "weather"
    (file,) = folder.iterdir()
    assert file.name == "o%3Ax.jsonl"
    assert file.stat().st_mode & 0o077 == 0
    missed = cli("ask", "--replay", str(file), "Hello?")
    assert missed.returncode == 2
    assert "+user: Hello?" in missed.stderr
    assert "use no --model" in cli("ask", "--replay", str(file), "--model", "local", "Hi").stderr
    (tmp_path / "empty").mkdir()
    assert "contains no recording" in cli("serve", "--replay", str(tmp_path / "empty")).stderr


@pytest.mark.parametrize("module", ["uvicorn", "httptools", "prometheus_client", "python_multipart"])
@pytest.mark.parametrize("command", [["serve", "--model", "m=scripted:Hi"], ["ui", "--model", "scripted:Hi"]])
def test_a_part_of_the_extra_is_not_enough(module: str, command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    done = CliRunner().invoke(root, [*command, "--port", "0"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"error: the gateway needs {module}: pip install 'toolspeak[server]'\n"


@pytest.mark.parametrize("command", ["serve", "ui"])
def test_a_wrong_model_is_an_error_before_there_is_an_address(command: str) -> None:
    done = CliRunner().invoke(root, [command, "--model", "nonsense", "--port", "0"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: no model is called 'nonsense'")


def test_a_missing_extra_for_the_selection_of_tools_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (file := tmp_path / "g.toml").write_text(
        '[models.small]\nupstream = "scripted:x"\ncontext = 4000\n[models.any]\nupstream = "scripted:x"\n', "utf-8"
    )
    assert main(["serve", "--check", str(file)]) == 0
    assert "search" not in capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    assert main(["serve", "--check", str(file)]) == 0
    (note,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note")]
    assert note.startswith("note    small: `context` cannot select tools without the extra `search`")
    assert note in _hello(read_config(str(file)), 8080)
