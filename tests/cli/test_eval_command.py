"""`toolspeak eval`, as people meet it: real processes, one of them killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from world import Cli, Terminal, wants

import toolspeak as ts
from preloaded import Started

SUM = {"name": "add", "arguments": {"a": 3, "b": 4}}
RIGHT = wants("add", a=3, b=4)
Script = Callable[..., str]


@pytest.fixture
def cases(place: Path) -> Path:
    """Six sums in a file, and the functions for them."""
    lines = [{"id": f"sum{i}", "question": f"3 + 4? ({i})", "calls": [SUM]} for i in range(6)]
    path = place / "cases.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return path


def kept(folder: str = "evaluation") -> list[dict[str, object]]:
    return [json.loads(line) for line in Path(folder, "cases.jsonl").read_text("utf-8").splitlines()]


def test_a_run_and_what_it_leaves(cli: Cli, cases: Path, script: Script) -> None:
    model = script(*[RIGHT] * 4, "It is seven.", wants("add", a=3, b=5))
    done = cli("eval", "cases.jsonl", "--tools", "weather.py", "--model", model)
    assert done.returncode == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["cases", "67", "%", "(30–90)", "4/6"] in lines
    assert ["no", "call", "1"] in lines
    assert ["wrong", "value", "1"] in lines
    assert (
        done.stderr.splitlines()[-1] == f"report: {Path('evaluation', 'report.html')}"
    )  # below the progress of a slow run
    records = kept()
    assert [record["case"] for record in records] == [f"sum{i}" for i in range(6)]
    assert "You have access to the following tools" in json.dumps(records[0]["steps"])
    assert "It is seven." in Path("evaluation/report.html").read_text("utf-8")
    again = cli("eval", "cases.jsonl", "--tools", "weather.py", "--model", model)
    assert again.stdout == done.stdout
    assert len(kept()) == 6
    told = cli("eval", "report", "evaluation", "--json")
    assert json.loads(told.stdout)[0]["all"]["right"] == 4


def test_cases_that_a_recording_does_not_hold_say_why(cli: Cli, cases: Path, place: Path) -> None:
    ts.decide("3 + 4?", model=ts.record(ts.Scripted(RIGHT), place / "other.jsonl"))
    done = cli("eval", "cases.jsonl", "--tools", "weather.py", "--model", "replay:other.jsonl")
    assert (
        "error: 6 cases of replay:other.jsonl have no answer, the first sum0: NotRecorded: other.jsonl has no answer to this"
        in done.stderr
    )
    assert "3 + 4? (0)" in done.stderr  # how it differs
    assert done.stderr.count("error: ") == 1


HOLD = """
import time
from pathlib import Path

def judged(reply):
    if Path("hold").exists() and len(Path("evaluation/cases.jsonl").read_text().splitlines()) == 3:
        Path("holding").touch()
        time.sleep(60)
    return reply.calls[0].arguments == {"a": 3, "b": 4}
"""


def test_killed_in_the_middle_it_goes_on(cli: Cli, place: Path, script: Script) -> None:
    (place / "hold_on.py").write_text(HOLD, "utf-8")
    lines = [{"question": f"3 + 4? ({i})", "match": "hold_on:judged"} for i in range(6)]
    (place / "held.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    (place / "hold").touch()
    command = ("eval", "held.jsonl", "--tools", "weather.py:add", "--model", script(*[RIGHT] * 6))
    process = Started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end = time.monotonic() + 120
    while not (place / "holding").exists() and time.monotonic() < end:
        time.sleep(0.02)
    busy = cli(*command)
    assert busy.returncode == 2
    assert "another evaluation is writing to evaluation" in busy.stderr
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    before = Path("evaluation/cases.jsonl").read_bytes()
    assert before.count(b"\n") == 3
    with Path("evaluation/cases.jsonl").open("ab") as file:
        file.write(b'{"case": "held:4", "gro')
    (place / "hold").unlink()
    done = cli(*command)
    assert done.returncode == 0, done.stderr
    assert Path("evaluation/cases.jsonl").read_bytes().startswith(before)
    assert [record["case"] for record in kept()] == [f"held:{i}" for i in range(1, 7)]
    assert "6/6" in done.stdout


def test_interrupted_it_says_what_is_kept(terminal: Callable[..., Terminal], place: Path, script: Script) -> None:
    (place / "hold_on.py").write_text(HOLD, "utf-8")
    lines = [{"question": f"3 + 4? ({i})", "match": "hold_on:judged"} for i in range(6)]
    (place / "held.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    (place / "hold").touch()
    screen = terminal("eval", "held.jsonl", "--tools", "weather.py:add", "--model", script(*[RIGHT] * 6))
    screen.until("3/6")
    screen.interrupt()
    code, said = screen.end()
    assert code == 130
    assert "stopped: 3 of 6 are saved in evaluation; run the same command to continue" in said


def test_two_runs_compared(cli: Cli, cases: Path, script: Script) -> None:
    offered = ("--tools", "weather.py")
    cli("eval", "cases.jsonl", *offered, "--model", script(*["no"] * 6), "--out", "before")
    cli("eval", "cases.jsonl", *offered, "--model", script(*[RIGHT] * 6), "--out", "after")
    done = cli("eval", "diff", "before", "after", "--cases", "2")
    assert done.returncode == 0
    assert "More than noise" in done.stdout
    assert "6 cases won, 0 lost of 6, p = 0.031" in done.stdout
    assert done.stdout.count("    after   add") == 2
    assert "… and 4 more changed" in done.stdout
    told = json.loads(cli("eval", "diff", "before", "after", "--json").stdout)
    assert told[0]["won"] == [f"sum{i}" for i in range(6)]


def test_models_and_dialects(cli: Cli, cases: Path, script: Script) -> None:
    model = script(*[RIGHT] * 6)
    done = cli(
        "eval", "cases.jsonl", "-t", "weather.py", "-m", model, "-d", "own", "-d", "react", "--price", "1,2", "--json"
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [one["contender"] for one in told] == [model, f"{model} · react"]
    assert [one["all"]["right"] for one in told] == [6, 0]
    assert told[0]["cost"] is None, "the scripted model tells no tokens"


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["eval", "run"], 2, "no cases: expected a file of JSON lines, or bfcl:CATEGORY"),
        (["eval", "none.jsonl"], 2, "there is no file none.jsonl"),
        (["eval", "cases.jsonl"], 2, "cases.jsonl, line 1: no tools: give them in the line"),
        (["eval", "cases.jsonl", "-t", "weather.py:weather"], 2, "line 1: calls: no tool is called 'add'"),
        (["eval", "cases.jsonl", "-t", "weather.py", "-m", "locale"], 2, "no model is called 'locale'"),
        (["eval", "cases.jsonl", "-t", "weather.py", "-m", "scripted:x", "-d", "hermse"], 2, "hermse"),
        (["eval", "cases.jsonl", "-t", "weather.py", "-m", "scripted:x", "-m", "scripted:x"], 2, "two contenders"),
        (["eval", "cases.jsonl", "-t", "weather.py", "-m", "http://127.0.0.1:9/v1#m"], 1, "127.0.0.1:9"),
        (["eval", "cases.jsonl", "--temperature", "hot"], 2, "--temperature: expected a number from 0 on, or default"),
        (["eval", "cases.jsonl", "--price", "cheap"], 2, "--price: expected IN,OUT"),
        (["eval", "bfcl:nothing"], 2, "no category of BFCL is called nothing"),
        (["eval", "diff", "here"], 2, "here holds no results of an evaluation"),
        (["eval", "report", "here"], 2, "here holds no results of an evaluation"),
    ],
)
def test_wrong_input(cli: Cli, cases: Path, args: list[str], code: int, said: str) -> None:
    done = cli(*args)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 4


def test_a_server_that_is_gone_leaves_what_was_done(cli: Cli, cases: Path) -> None:
    done = cli("eval", "cases.jsonl", "-t", "weather.py", "-m", "http://127.0.0.1:9/v1#m")
    assert done.returncode == 1
    assert "stopped" not in done.stderr, "nothing was done"
    assert os.listdir("evaluation") != []
