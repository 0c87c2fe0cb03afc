"""`toolspeak tune`, as people meet it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from one_dialect import OneDialect
from tuned_tools import FILE

import preloaded

Speaks = Callable[[str], OneDialect]
Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools.py").write_text(FILE, "utf-8")

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        done = preloaded.run(args, b"", os.environ, 800)
        out, err = done.stdout.decode(), done.stderr.decode()
        assert "Traceback" not in err
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    return run


@pytest.mark.costly
def test_tuned_shown_followed_forgotten(cli: Cli, speaks: Speaks, kept: Path) -> None:
    name = speaks("hermes").name
    done = cli("tune", name, "--tools", "tools.py", "-n", "24")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["→", "hermes", "12/12", "12/12", "76–100", "%"] in [line[:6] for line in lines]
    assert ["tool-json", "3/12", "3/12"] in [line[:3] for line in lines]
    assert lines[-1][:2] == ["hermes:", "12"]
    (path,) = kept.iterdir()
    assert f"saved: {path}" in done.stderr

    shown = cli("tune", "--show")
    assert shown.stdout.startswith(f"{name}: hermes (tuned 2")
    whole = cli("tune", name, "--show")
    assert str(path) in whole.stdout
    assert "12/12" in whole.stdout
    assert json.loads(cli("tune", "--show", "--json").stdout)[0]["form"]["dialect"] == "hermes"

    call = cli("ask", "Add, please: a 30 and b 7.25.", "--tools", "tools.py", "--model", name, "--dry-run", "-v")
    assert call.stdout == 'add {"a": 30, "b": 7.25}\n'
    assert "is asked as it was tuned: hermes" in call.stderr
    explained = cli("ask", "Hi", "--tools", "tools.py", "--model", name, "--explain")
    assert f"asked: prompted in hermes in messages: as it was tuned: {path}" in explained.stdout

    path.write_text("{", "utf-8")
    call = cli("ask", "Hi", "--tools", "tools.py", "--model", name, "--dry-run")
    assert call.returncode == 0
    assert call.stderr.startswith(f"warning: the profile {path} is ignored: Expecting property name")
    assert len(call.stderr.splitlines()) == 1

    assert f"removed {path}" in cli("tune", name, "--forget").stderr
    assert f"{name} has no profile" in cli("tune", name, "--forget").stderr
    assert cli("tune", "--show").stdout == ""


def test_a_model_that_calls_nothing_right_is_told_so(cli: Cli, speaks: Speaks, kept: Path) -> None:
    done = cli("tune", speaks("none").name, "--tools", "tools.py", "-n", "24")
    assert done.returncode == 1
    assert "No strategy got a question right that needs a call" in done.stdout
    assert "no profile is stored" in done.stderr
    assert not kept.exists()


def test_a_dry_run_keeps_no_profile(cli: Cli, speaks: Speaks, kept: Path) -> None:
    done = cli("tune", speaks("pythonic").name, "--tools", "tools.py", "-n", "24", "--dry-run", "--json")
    told = json.loads(done.stdout)
    assert told["chosen"] == "pythonic"
    assert told["forms"][0]["held_back"] == [12, 12]
    (page,) = Path("tuning").glob("*/held-back/report.html")
    assert f"report: {page}" in done.stderr
    title = re.search("<title>(.*)</title>", page.read_text("utf-8"))
    assert title is not None
    assert title[1].startswith("How well pythonic, ")
    assert " on 12 cases of " in title[1]
    assert not kept.exists()


def test_the_questions_can_be_taken_as_cases(cli: Cli, speaks: Speaks) -> None:
    asked = cli("tune", "--ask", "--tools", "tools.py", "-n", "24")
    Path("mine.jsonl").write_text(asked.stdout, "utf-8")
    assert len(asked.stdout.splitlines()) == 24
    done = cli("tune", speaks("functools").name, "--tools", "tools.py", "--cases", "mine.jsonl", "--json")
    told = json.loads(done.stdout)
    assert (told["chosen"], told["questions"]) == ("functools", "mine.jsonl")


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        ([], 2, "no model: expected toolspeak tune MODEL"),
        (["local"], 2, "no tools: expected --tools FILE"),
        (["local", "-t", "tool.py"], 2, "there is no file tool.py. Did you mean tools.py?"),
        (["locale", "-t", "tools.py"], 2, "no model is called 'locale'"),
        (["local:none.gguf", "-t", "tools.py"], 1, "there is no model file none.gguf"),
        (["http://127.0.0.1:9/v1#m", "-t", "tools.py"], 1, "127.0.0.1:9"),
        (["local", "-t", "tools.py", "--cases", "none.jsonl"], 2, "there is no file none.jsonl"),
        (["local", "-t", "tools.py", "--cases", "tools.py"], 2, "tools.py, line 2: not JSON"),
        (["scripted:x", "-t", "tools.py", "-d", "hermse"], 2, "no dialect is called 'hermse'; near ones: hermes"),
        (["local", "--show", "--forget"], 2, "expected one of them"),
        (["--forget"], 2, "no model: expected"),
        (["--ask"], 2, "no tools"),
    ],
)
def test_wrong_input(cli: Cli, args: list[str], code: int, said: str) -> None:
    done = cli("tune", *args)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 4
