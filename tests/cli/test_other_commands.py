"""`toolspeak models`, `doctor`, `completion`, and what holds for all commands."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from world import TOOLSPEAK, Cli, Terminal

import toolspeak
from toolspeak.cli.command_group import COMMANDS, root
from toolspeak.models.embedded.weights import SMOLLM2


def run(*args: str, stdin: str = "", **env: str) -> Result:
    return CliRunner().invoke(root, args, input=stdin, env=env)


def test_version_and_help_load_little() -> None:
    code = (
        "import sys; from toolspeak.cli import main\n"
        "for args in (['--version'], ['--help']): main(args)\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    lines = done.stdout.splitlines()
    assert lines[0] == f"toolspeak {toolspeak.__version__}"
    assert {"pydantic", "rich", "aiohttp", "jsonschema_rs"}.isdisjoint(lines[-1].split())


@pytest.mark.parametrize("interrupted", ["click", "toolspeak.errors", "toolspeak.cli.commands.ask"])
def test_ctrl_c_during_an_import_is_silent(interrupted: str) -> None:
    """Each of these stands for the moment when the signal comes: its import sends it."""
    code = (
        "import importlib.abc, os, signal, sys\n"
        "class Interrupts(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == {interrupted!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "from toolspeak.cli import main\n"
        "sys.exit(main(['ask', 'Hi', '--model', 'scripted:Hi']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_little_is_imported_before_ctrl_c_is_caught() -> None:
    code = "import sys; before = set(sys.modules); import toolspeak.cli; print(*(sys.modules.keys() - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    slow = {"typing", "re", "click", "pathlib", "inspect", "dataclasses"}
    assert slow.isdisjoint(done.stdout.split())
    assert {name for name in done.stdout.split() if "toolspeak" in name} == {
        "toolspeak",
        "toolspeak.cli",
        "toolspeak.cli.exit_codes",
    }


@pytest.mark.parametrize("command", [*([name] for name in COMMANDS), ["models", "list"], ["models", "pull"]])
def test_every_command_has_help_with_an_example(command: list[str]) -> None:
    done = run(*command, "--help")
    assert done.exit_code == 0
    assert f"toolspeak {command[0]}" in done.stdout.partition("\n")[2]
    assert "--debug" in done.stdout


def every_command(command: click.Command, *path: str) -> Iterator[tuple[str, ...]]:
    """The paths of all commands."""
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from every_command(inner, *path, name)


@pytest.mark.parametrize("path", list(every_command(root)), ids=" ".join)
def test_help_fits_80_columns_and_says_all(path: tuple[str, ...]) -> None:
    done = run(*path, "--help", COLUMNS="80")
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []
    assert not re.search(r"[a-z,]\.\.\.$", done.stdout, re.MULTILINE)  # a summary that was cut


def test_wrong_usage() -> None:
    for args in (["bogus"], ["ask", "--bogus"], ["call"], ["models", "bogus"], ["completion", "bogus"]):
        assert run(*args).exit_code == 2


def test_a_bug_is_told_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def bug(*_: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr("toolspeak.models.embedded.weights.path_of", bug)
    done = run("models", "path")
    assert (done.exit_code, done.stderr) == (1, "error: KeyError: 'oops' (use --debug to see the traceback)\n")
    assert "Traceback" in run("--debug", "models", "path").stderr
    assert "Traceback" in run("models", "path", "--debug").stderr


def test_logging_goes_to_standard_error(cli: Cli) -> None:
    done = cli("ask", "hi", "-m", "http://127.0.0.1:9/v1#x", "-vv")
    assert "toolspeak" in done.stderr.partition("error: ")[0]
    assert done.stdout == ""


# ------------------------------------------------------------------ models


def test_models_are_listed() -> None:
    rows = {row["name"]: row for row in json.loads(run("models", "list").stdout)}
    assert rows["openai:MODEL"]["ready"] is False
    assert "secret" not in run("models", "list", OPENAI_API_KEY="secret-key").stdout
    rows = {row["name"]: row for row in json.loads(run("models", "list", OPENAI_API_KEY="secret-key").stdout)}
    assert rows["openai:MODEL"]["ready"] is True


def test_models_are_a_table_on_a_terminal(terminal: Callable[..., Terminal]) -> None:
    code, seen = terminal("models", "list", COLUMNS="160").end()
    assert code == 0
    assert "http://host:8000/v1#MODEL" in seen
    assert "[" not in seen.replace("\x1b[", "")


def test_the_embedded_file_can_be_removed(place: Path, terminal: Callable[..., Terminal]) -> None:
    cache = place / "cache"
    cache.mkdir()
    path = cache / SMOLLM2.file
    assert run("models", "path", TOOLSPEAK_CACHE=str(cache)).stdout == f"{path}\n"
    path.write_bytes(b"GGUF")
    done = run("models", "rm", TOOLSPEAK_CACHE=str(cache), stdin="n\n")
    assert (done.exit_code, path.exists()) == (2, True)
    assert "add --yes" in done.stderr
    one = terminal("models", "rm", TOOLSPEAK_CACHE=str(cache))
    one.until("[y/N]: ")
    one.type("n\n")
    code, seen = one.end()
    assert (code, "kept" in seen, path.exists()) == (0, True, True)
    assert run("models", "rm", "--yes", TOOLSPEAK_CACHE=str(cache)).exit_code == 0
    assert not path.exists()
    assert "is not there" in run("models", "rm", "--yes", TOOLSPEAK_CACHE=str(cache)).stderr


# ------------------------------------------------------------------ doctor


def doctor(*args: str, **env: str) -> tuple[int, dict[str, dict[str, str]]]:
    done = run("doctor", "--json", *args, **env)
    return done.exit_code, {row["name"]: row for row in json.loads(done.stdout)}


def test_doctor_tells_where_the_package_is(place: Path) -> None:
    """It told the folder of its command line."""
    _, told = doctor("--offline", TOOLSPEAK_CACHE=str(place / "none"))
    assert told["toolspeak"]["detail"].endswith(f" at {Path(toolspeak.__path__[0])}")


def test_doctor_tells_names_of_keys_and_never_values(place: Path) -> None:
    code, told = doctor(TOOLSPEAK_CACHE=str(place / "none"), OPENAI_API_KEY="sk-secret", OLLAMA_HOST="127.0.0.1:9")
    assert code == 0, told
    assert told["keys"]["detail"] == "OPENAI_API_KEY set"
    assert "sk-secret" not in json.dumps(told)
    assert told["weights"]["state"] == "told"
    assert "not reachable at http://127.0.0.1:9" in told["ollama"]["detail"]
    code, told = doctor("--offline", TOOLSPEAK_CACHE=str(place / "none"), TOOLSPEAK_MODEL="http://u:pass@h/v1#m")
    assert (code, told["TOOLSPEAK_MODEL"]["detail"]) == (0, "http://h/v1")
    assert "ollama" not in told


def test_doctor_fails_when_something_needed_is_broken(place: Path) -> None:
    (place / SMOLLM2.file).write_bytes(b"GGUF")
    code, told = doctor("--offline", TOOLSPEAK_CACHE=str(place))
    assert (code, told["weights"]["state"]) == (1, "broken")
    assert "(4 bytes)" in told["weights"]["detail"]


def test_doctor_asks_the_embedded_model(cli: Cli) -> None:
    done = cli("doctor", "--offline")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✓ local model      answers" in done.stdout


# ------------------------------------------------------------------ completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_code(shell: str) -> None:
    done = run("completion", shell)
    assert done.exit_code == 0
    assert "_TOOLSPEAK_COMPLETE" in done.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("toolspeak d", "doctor"),
        ("toolspeak ask -m oll", "ollama:"),
        ("toolspeak models p", "pull"),
        ("toolspeak tools w", "w"),
    ],
)
def test_completion_answers(words: str, expected: str) -> None:
    env = {"_TOOLSPEAK_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    import os

    done = subprocess.run(TOOLSPEAK, capture_output=True, text=True, env={**os.environ, **env}, timeout=60)
    assert expected in done.stdout
