"""Every example runs on the embedded model and prints what it is there to show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

COSTLY = {"restrict.py", "stream.py"}
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
ELSEWHERE = {
    "demo.py": "its transcript stands in the README, and test_docs.py compares them",
    "any_model_by_prompt.py": "compat/test_any_model_by_prompt.py runs it against a server",
}
MAX_LINES = 40

EXPECTED = {
    "weather.py": ["Xiamen", "21 °C"],
    "stream.py": ['add {"a": 17, "b": 25} -> 42\n', "42."],
    "extract.py": ["Person(name='Alice', age=31)"],
    "restrict.py": [
        """Toolbox(read_file, delete_file) wants ['delete_file {"name": "plan.txt"}']""",
        'there is no tool "delete_file"',
        "notes.txt, plan.txt",
    ],
}


def marked(name: str) -> Any:
    """An example as a parameter of a test."""
    return pytest.param(name, marks=[pytest.mark.costly] if name in COSTLY else [])


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*EXPECTED, *ELSEWHERE}


@pytest.mark.parametrize("name", [marked(name) for name in EXPECTED])
def test_example(name: str, tmp_path: Path) -> None:
    path = EXAMPLES / name
    assert len(path.read_text("utf-8").splitlines()) <= MAX_LINES
    env = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        encoding="utf-8",
        timeout=800,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert [part for part in EXPECTED[name] if part not in done.stdout] == [], done.stdout


# ------------------------------------------------------------------ through the gateway

THROUGH_GATEWAY = {
    "openai_sdk.py": ['the model calls weather({"city": "Xiamen"})\n', "21 °C"],
    "call.sh": ['"name":"weather","arguments":"{\\"city\\": \\"Xiamen\\"}"', '"finish_reason":"tool_calls"'],
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a gateway that serves the embedded model."""
    command = [sys.executable, "-m", "toolspeak", "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path_factory.mktemp("gateway"), stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            said = server.stderr.readline()
            found = re.search(r"at (http://\S+)", said)
            assert found, said + server.stderr.read()
            yield found[1]
        finally:
            server.terminate()


def test_every_example_through_the_gateway_is_run() -> None:
    assert {path.name for path in (EXAMPLES / "gateway").iterdir()} == {*THROUGH_GATEWAY}


@pytest.mark.parametrize("name", THROUGH_GATEWAY)
def test_example_through_the_gateway(name: str, gateway: str, tmp_path: Path) -> None:
    path = EXAMPLES / "gateway" / name
    assert len(path.read_text("utf-8").splitlines()) <= MAX_LINES
    env = {**os.environ, "PYTHONIOENCODING": "utf-8", "OPENAI_BASE_URL": f"{gateway}/v1", "OPENAI_API_KEY": "none"}
    command = ["sh", str(path)] if path.suffix == ".sh" else [sys.executable, "-W", "error", str(path)]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, encoding="utf-8", timeout=800)
    assert done.returncode == 0, done.stderr + done.stdout
    assert [part for part in THROUGH_GATEWAY[name] if part not in done.stdout] == [], done.stdout
