"""`toolspeak cases`: a recording becomes cases, a failing case becomes a test that fails as it did."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from world import Cli

import preloaded
import toolspeak as ts


def weather(city: str) -> str:
    """Get the current weather in a city."""
    return f"Sunny in {city}"


@pytest.fixture
def recording(place: Path) -> Path:
    """A run of two turns, a chat without tools, and a request that failed."""
    path = place / "small.jsonl"
    wanted = '{"tool": "weather", "tool_input": {"city": "Oslo"}}'
    model = ts.record(ts.Scripted([wanted, "Sunny.", "Hello!", ts.RateLimited("too many")]), path)
    ts.run("Weather in Oslo?", tools=[weather], model=model, temperature=0.3)
    ts.run("Hi", model=model)
    with pytest.raises(ts.RateLimited):
        ts.run("Weather in Rome?", tools=[weather], model=model, reask=[])
    return path


def pytest_at(place: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = ["-p", "pytest_toolspeak", "-p", "no:cacheprovider", "-q", *args]
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(Path(ts.__file__).parents[1])}
    done = preloaded.run(command, b"", env, 300, main="pytest:console_main", cwd=place)
    out, err = done.stdout.decode(), done.stderr.decode()
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def test_a_recording_becomes_cases_that_can_be_evaluated(place: Path, cli: Cli, recording: Path) -> None:
    done = cli("cases", "small.jsonl")
    first, second = map(json.loads, done.stdout.splitlines())
    assert (first["id"], first["calls"]) == ("small-1", [{"name": "weather", "arguments": {"city": "Oslo"}}])
    assert (second["calls"], len(second["messages"])) == ([], 3)
    assert "small-3: no tools were offered" in done.stderr
    assert "small-4: it has no whole reply: too many" in done.stderr
    (place / "cases.jsonl").write_text(done.stdout)
    measured = cli(
        "eval", "cases.jsonl", "--model", 'scripted:{"tool": "weather", "tool_input": {"city": "Oslo"}}', "--json"
    )
    assert measured.returncode == 0, measured.stderr


def test_a_recording_becomes_a_test_that_passes(place: Path, cli: Cli, recording: Path) -> None:
    done = cli("cases", "small.jsonl", "--test", "tests/test_small.py")
    assert "wrote tests/recordings/test_small/test_case-small-1-6727a4af.jsonl" in done.stderr
    recording.unlink()
    ran = pytest_at(place, "tests")
    assert "2 passed" in ran.stdout, ran.stdout
    again = cli("cases", "tests/test_small.jsonl", "--test", "tests/test_small.py")
    assert (again.returncode, "is there already" in again.stderr) == (2, True)


def test_a_failing_case_becomes_a_test_that_fails_as_it_did(place: Path, cli: Cli, recording: Path) -> None:
    lines = cli("cases", "small.jsonl", "--only", "small-1").stdout
    (place / "cases.jsonl").write_text(
        lines.replace('"city": "Oslo"', '"city": "Bergen"')
        + '{"id": "fine", "question": "Hi", "tools": [], "calls": []}\n'
    )
    script = place / "script.jsonl"
    script.write_text('{"tool": "weather", "tool_input": {"city": "Oslo"}}\n"Hello."\n')
    cli("eval", "cases.jsonl", "--model", f"scripted:{script}", "--out", "out")
    done = cli("cases", "cases.jsonl", "--failed", "out", "--test", "test_failures.py", "--model", "ollama:NAME")
    assert done.returncode == 0, done.stderr
    text = (place / "test_failures.py").read_text()
    assert "toolspeak_replay('ollama:NAME')" in text
    ran = pytest_at(place)
    assert "1 failed" in ran.stdout
    assert "Bergen" in ran.stdout
    assert "Oslo" in ran.stdout


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["missing.jsonl"], "does not exist"),
        (["small.jsonl", "--only", "small-9"], "there is no case 'small-9'. There are: small-1, small-2"),
        (["small.jsonl", "--test", "weather.py"], "expected the name of a file that pytest finds"),
        (["weather.py"], "line 1: not JSON"),
        (["small.jsonl", "--failed", "nowhere"], "holds no results of an evaluation"),
    ],
)
def test_what_cannot_be(cli: Cli, recording: Path, args: list[str], why: str) -> None:
    done = cli("cases", *args)
    assert done.returncode == 2
    assert why in done.stderr
