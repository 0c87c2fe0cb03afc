"""Every example runs on the embedded model and prints what it is there to show."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*EXPECTED, *ELSEWHERE}


@pytest.mark.parametrize("name", EXPECTED)
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
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert [part for part in EXPECTED[name] if part not in done.stdout] == [], done.stdout
