"""The command line as people meet it: real processes, pipes, terminals and signals."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from world import TOOLSPEAK, WEATHER, Cli, Terminal

import preloaded

SRC = Path(__file__).resolve().parents[2] / "src"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own with a tools file, a state folder of its own, and no settings of whoever runs this."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SRC), os.environ.get("PYTHONPATH", "")]))
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TOOLSPEAK_MODEL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "weather.py").write_text(WEATHER, "utf-8")
    return tmp_path


@pytest.fixture
def cli() -> Cli:
    """`cli("ask", "Hi", stdin="…", NO_COLOR="1")`: a finished process, its output as text."""

    def run(*args: str, stdin: str | bytes = b"", **env: str) -> subprocess.CompletedProcess[str]:
        given = stdin.encode() if isinstance(stdin, str) else stdin
        together, seconds = {**os.environ, **env}, 800  # the embedded model is slow on a busy machine
        if preloaded.fits(env):
            done = preloaded.run(args, given, together, seconds)
        else:
            done = subprocess.run([*TOOLSPEAK, *args], input=given, capture_output=True, env=together, timeout=seconds)
        out, err = (text.decode("utf-8", "backslashreplace") for text in (done.stdout, done.stderr))
        assert "Traceback" not in err or "--debug" in args, err
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    return run


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    """`terminal("chat")`: a process on a terminal; it is gone when the test is."""
    made: list[Terminal] = []

    def start(*args: str, **more: str) -> Terminal:
        made.append(Terminal(*args, **more))
        return made[-1]

    yield start
    for one in made:
        one.close()


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    """`script(reply, reply)`: the name of a model that replies with these."""

    def write(*replies: str) -> str:
        path = tmp_path / "script.jsonl"
        path.write_text("".join(json.dumps(reply) + "\n" for reply in replies), "utf-8")
        return f"scripted:{path}"

    return write
