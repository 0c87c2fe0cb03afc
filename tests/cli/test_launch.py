"""`toolspeak launch`: how a coding agent is started, by a small program that stands in its place."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from world import Cli, Terminal

from preloaded import Started
from toolspeak.cli import main
from toolspeak.gateway.telemetry.client_summary import Tally

FAKE = f"""#!{sys.executable}
import json, os, pathlib, signal, sys, urllib.request

record = {{"argv": sys.argv[1:], "env": dict(os.environ), "files": {{}}}}
for word in sys.argv[1:]:
    if "/toolspeak-" in word and os.path.isfile(word):
        record["files"][os.path.basename(word)] = open(word).read()
pathlib.Path(os.environ["RECORD"]).write_text(json.dumps(record))
deed = sys.argv[-1]
if deed == "ask":
    body = {{"model": "a name of its own", "max_tokens": 99, "messages": [{{"role": "user", "content": sys.stdin.read()}}]}}
    url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    headers = {{"content-type": "application/json", "authorization": "Bearer " + os.environ["ANTHROPIC_AUTH_TOKEN"]}}
    asked = urllib.request.Request(url, json.dumps(body).encode(), headers)
    print(json.load(urllib.request.urlopen(asked))["content"][0]["text"])
    print("a word on the side", file=sys.stderr)
    try:
        urllib.request.urlopen(urllib.request.Request(url, b"{{}}", {{"content-type": "application/json"}}))
    except urllib.error.HTTPError as error:
        print(error.code)
if deed == "wait":
    def stop(number, _):
        print("stopped by", number, flush=True)
        sys.exit(5)
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    print("ready", flush=True)
    signal.pause()
sys.exit(7)
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory that must stay empty, and programs with the names of all agents."""
    programs, home = tmp_path / "programs", tmp_path / "home"
    programs.mkdir()
    home.mkdir()
    for name in ("claude", "codex", "opencode", "aider"):
        (programs / name).write_text(FAKE)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("RECORD", str(tmp_path / "record.json"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "the person's own")
    return home


def recorded() -> dict[str, Any]:
    return json.loads(Path(os.environ["RECORD"]).read_text("utf-8"))


def test_the_agent_has_the_terminals_place_and_the_gateway_answers_it(
    home: Path, cli: Cli, script: Callable[..., str]
) -> None:
    done = cli("launch", "claude", "--model", script("Hello."), "--", "-p", "ask", stdin="Hi")
    assert (done.returncode, done.stdout) == (7, "Hello.\n401\n")  # without the key nobody is let in
    said = done.stderr.splitlines()
    assert said[0] == "a word on the side"
    assert said[1].startswith("toolspeak: 2 requests to script.jsonl, 0 tool calls, ")
    assert said[2] == "  failed: invalid_api_key (401) 1"
    record = recorded()
    env, settings = record["env"], json.loads(record["files"]["settings.json"])
    assert record["argv"][0] == "--settings"
    assert record["argv"][2:] == ["-p", "ask"]
    assert settings["env"].items() <= env.items()
    assert settings["model"] == env["ANTHROPIC_MODEL"] == "script.jsonl"
    assert "ANTHROPIC_API_KEY" not in env
    assert not Path(record["argv"][1]).exists()
    assert not list(home.iterdir())


def test_a_server_that_is_down_is_told_before_the_agent_starts(home: Path, cli: Cli) -> None:
    done = cli("launch", "claude", "--model", "http://127.0.0.1:9/v1#m")
    assert done.returncode == 7
    assert done.stderr.splitlines()[0].startswith("warning: http://127.0.0.1:9/v1: it could not be probed: no answer")


def test_a_slow_server_is_waited_for_before_the_agent_starts(home: Path, serve: Callable[..., str]) -> None:
    answered = threading.Event()
    url = serve(answered=answered, ignores=True)
    process = Started(
        ["launch", "claude", "--model", f"{url}#m"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr
    assert process.stderr.readline().startswith(f"asking {url} whether the model gets tools")
    assert not Path(os.environ["RECORD"]).exists()
    answered.set()
    _, err = process.communicate(timeout=300)
    assert process.returncode == 7
    assert "warning" not in err
    assert Path(os.environ["RECORD"]).exists()


REFUSALS = {
    "key": (401, "Invalid API key", "no key was sent: set TOOLSPEAK_API_KEY"),
    "name": (
        404,
        "model 'qwen3-8' not found",
        "has no model 'qwen3-8'. Did you mean 'qwen3-8b'? It has qwen3-8b, other.",
    ),
}


@pytest.mark.parametrize("wrong", REFUSALS)
def test_no_agent_starts_where_each_of_its_requests_would_be_refused(
    home: Path, cli: Cli, serve: Callable[..., str], wrong: str
) -> None:
    code, message, expected = REFUSALS[wrong]
    url = serve(refuses=(code, message), models=("other", "qwen3-8b"))
    done = cli("launch", "claude", "--model", f"{url}#qwen3-8")
    assert done.returncode not in (0, 7)
    assert expected in done.stderr
    assert not Path(os.environ["RECORD"]).exists()


@pytest.mark.parametrize(("context", "warned"), [(16_000, True), (40_000, False)])
def test_a_context_that_is_too_small_is_told_before_the_agent_starts(
    home: Path, cli: Cli, tmp_path: Path, context: int, warned: bool
) -> None:
    (file := tmp_path / "g.toml").write_text(f'[models.m]\nupstream = "scripted:x"\ncontext = {context}\n', "utf-8")
    first = cli("launch", "claude", "-c", str(file)).stderr.splitlines()[0]
    wanted = "warning: the model's context has 16,000 tokens, and claude works from 40,000: "
    assert first.startswith(wanted) == warned
    assert first.startswith("toolspeak: 0 requests") != warned


Printed = Callable[..., list[list[str]]]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    """The lines that `--print` shows, each as the words that a shell makes of it."""

    def run(*args: str) -> list[list[str]]:
        assert main(["launch", *args]) == 0
        return [shlex.split(line, comments=True) for line in capsys.readouterr().out.splitlines()]

    return run


def test_an_agent_that_takes_values_as_arguments(printed: Printed) -> None:
    *_, command = printed("codex", "--model", "scripted:Hello", "--print", "--", "exec", "do it")
    values = dict(word.split("=", 1) for word in command[2:-2:2])
    assert set(command[1:-2:2]) == {"-c"}
    assert (command[0], *command[-2:]) == ("codex", "exec", "do it")
    assert values["model"] == '"Hello"'
    assert values["model_providers.toolspeak.wire_api"] == '"responses"'
    assert values["model_providers.toolspeak.base_url"] == '"http://127.0.0.1:8080/v1"'
    assert values["model_providers.toolspeak.env_key"] == '"TOOLSPEAK_AGENT_KEY"'


def test_a_misspelled_model_of_the_configuration(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text('[models.qwen3]\nupstream = "scripted:1"\n[models.other]\nupstream = "scripted:2"\n')
    assert main(["launch", "claude", "--config", str(config), "--model", "qwen33", "--print"]) == 2
    said = capsys.readouterr().err
    assert f"{config} has no model 'qwen33'. Did you mean 'qwen3'? It has qwen3, other. " in said
    assert said.index("'qwen3'") < said.index("ollama:qwen33")


def test_an_agent_that_takes_a_configuration_in_a_variable(printed: Printed, tmp_path: Path) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text('[models.one]\nupstream = "scripted:1"\n[models.two]\nupstream = "scripted:2"\ncontext = 30000\n')
    *_, key, variable, command = printed("opencode", "--config", str(config), "--model", "two", "--print")
    assert (key, command) == (["export", "TOOLSPEAK_AGENT_KEY=none"], ["opencode"])
    given = json.loads(variable[1].removeprefix("OPENCODE_CONFIG_CONTENT="))
    assert given["model"] == "toolspeak/two"
    [provider] = given["provider"].values()
    assert provider["options"]["baseURL"] == "http://127.0.0.1:8080/v1"
    assert provider["models"] == {"two": {"name": "two", "limit": {"context": 30000, "output": 7500}}}


def test_an_agent_that_takes_files(printed: Printed) -> None:
    *lines, command = printed("aider", "--model", "scripted:Hello", "--print", "--", "notes.txt")
    assert ["OPENAI_API_BASE=http://127.0.0.1:8080/v1"] in lines
    assert command[command.index("--env-file") + 1] == "toolspeak-agent/aider.env"
    assert command[command.index("--model") + 1] == "openai/Hello"
    assert command[-1] == "notes.txt"


def test_ctrl_c_is_the_agents(home: Path, terminal: Callable[..., Terminal]) -> None:
    shell = terminal("launch", "claude", "--model", "scripted:Hello", "--", "wait")
    shell.until("ready")
    shell.type("\x03")
    shell.until(f"stopped by {int(signal.SIGINT)}")
    assert shell.end()[0] == 5


def test_a_signal_to_the_command_reaches_the_agent(home: Path) -> None:
    command = ["launch", "claude", "--model", "scripted:Hello", "--", "wait"]
    process = Started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=120)
    assert (process.returncode, out) == (5, f"stopped by {int(signal.SIGTERM)}\n")


def test_one_that_is_not_installed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["launch", "codex", "--model", "scripted:Hello"]) == 1
    said = capsys.readouterr().err
    assert "codex is not installed" in said
    assert "npm install -g @openai/codex" in said


def test_the_setting_is_printed_and_nothing_started(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["launch", "claude", "--model", "ollama:family:8b", "--print", "--", "-p", "do it"]) == 0
    said = capsys.readouterr().out
    assert "toolspeak serve --model family-8b=ollama:family:8b --default family-8b" in said
    assert "export ANTHROPIC_BASE_URL=http://127.0.0.1:8080" in said
    assert said.splitlines()[-1] == "claude --settings toolspeak-agent/settings.json -p 'do it'"
    assert not Path(os.environ["RECORD"]).exists()


def test_a_dialect_is_the_models(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["launch", "claude", "--model", "ollama:family", "--dialect", "hermes", "--print"]
    assert main(asked) == 0
    assert "--default family --dialect hermes" in capsys.readouterr().out
    config = tmp_path / "gateway.toml"
    config.write_text('[models.family]\nupstream = "ollama:family"\n')
    assert main([*asked[:2], "--config", str(config), *asked[4:]]) == 2
    assert "--dialect applies to the model of --model" in capsys.readouterr().err


def test_the_summary_says_what_to_set_when_prompts_were_too_long() -> None:
    tally = Tally()
    assert len([*tally.summary("m")]) == 1
    tally.failures["invalid_api_key (401)"] += 1
    assert "context" not in "".join(tally.summary("m"))
    tally.failures["context_length_exceeded (400)"] += 3
    assert [*tally.summary("m")][-1].startswith("  too long: set the model's `context` in the configuration (--config)")
