"""`toolspeak batch`: a table in, shards out, exit codes, Ctrl-C."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import toolspeak as ts
from preloaded import Started
from toolspeak.batch.summary import Summary
from toolspeak.cli import batch_view, main

TOOLS = """
def refund(order: int) -> str:
    "Refund an order."
    return "refunded"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, tools, and a script with a reply for each row."""
    monkeypatch.chdir(tmp_path)
    Path("tools.py").write_text(TOOLS)
    Path("in.csv").write_text("id,text\n" + "".join(f"{i},Refund order {i}\n" for i in range(20)))
    replies = [json.dumps({"tool": "refund", "tool_input": {"order": i}}) for i in range(20)]
    Path("replies.jsonl").write_text("".join(json.dumps(reply) + "\n" for reply in replies))
    return tmp_path


def test_a_table_becomes_calls(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOOLSPEAK_MODEL", "scripted:replies.jsonl")
    assert main(["batch", "in.csv", "out", "--tools", "tools.py", "--concurrency", "4"]) == 0
    assert capsys.readouterr().out == "20 of 20 rows in out; 0 tokens\n"
    calls = [json.loads(row["calls"])[0] for row in ts.read_batch("out")]
    assert [call["arguments"]["order"] for call in calls] == list(range(20))
    assert main(["batch", "in.csv", "out", "--tools", "tools.py", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["before"] == 20


def test_a_script_that_ends_leaves_errors_that_are_asked_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["batch", "in.csv", "out", "--tools", "tools.py", "--model", "scripted:replies.jsonl"]
    lines = Path("replies.jsonl").read_text().splitlines()
    Path("replies.jsonl").write_text("\n".join(lines[:15]))
    assert main(command) == 1
    assert capsys.readouterr() == (
        "20 of 20 rows in out; 5 errors (5 ModelError); 0 tokens\n",
        "the first error: ModelError: the script holds 15 replies and was asked for one more\n",
    )
    Path("replies.jsonl").write_text("\n".join(lines[15:]))
    assert main([*command, "--retry-errors"]) == 0
    calls = [json.loads(row["calls"])[0] for row in ts.read_batch("out")]
    assert [call["arguments"]["order"] for call in calls] == list(range(20))


def test_a_schema_is_extracted(folder: Path) -> None:
    Path("kinds.py").write_text("from dataclasses import dataclass\n\n@dataclass\nclass Order:\n    order: int\n")
    replies = [json.dumps({"tool": "record_order", "tool_input": {"order": i}}) for i in range(20)]
    Path("replies.jsonl").write_text("".join(json.dumps(reply) + "\n" for reply in replies))
    assert main(["batch", "in.csv", "out", "--schema", "kinds.py:Order", "--model", "scripted:replies.jsonl"]) == 0
    orders = [row["value"]["order"] for row in ts.read_batch("out")]  # rows are asked at once, so any may be first
    assert sorted(orders) == list(range(20))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--prompt", "body"],
            "in.csv: no column 'body'; the columns are: id, text. Name another one, or a text with columns in braces (--prompt",
        ),
        (["--id", "key"], "in.csv: no column 'key' for the id"),
        (["--schema", "none.json"], "none.json cannot be read: No such file or directory"),
        (["--schema", "bad.json"], "bad.json, line 1, column 2: not JSON"),
        (["--schema", "list.json"], "list.json: expected a JSON Schema, which is an object, received list"),
        (["--schema", "wrong.json"], "'banana' is no type of JSON Schema"),
        (
            ["--schema", "example.json"],
            "expected a JSON Schema, with `type` or another keyword, received {'order': 7}",
        ),
        (["--schema", "tools.py:refund"], "cannot extract a function: expected a type"),
        (["--schema", "tools.py:Nothing"], "tools.py has no Nothing"),
        (["--schema", "nothing"], "expected MODULE:NAME or FILE.py:NAME"),
        (["--verb", "extract"], "kind: expected a type or a JSON Schema"),
        (["--format", "xml"], "format: expected jsonl"),
        (["--price", "much"], "--price: expected IN,OUT"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(
    folder: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.json").write_text("{")
    Path("list.json").write_text("[]")
    Path("example.json").write_text('{"order": 7}')
    Path("wrong.json").write_text('{"type": "object", "properties": {"a": {"type": "banana"}}}')
    assert main(["batch", "in.csv", "out", "--model", "scripted:a", *arguments]) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert "Traceback" not in errors


def test_ctrl_c_finishes_what_is_under_way_and_is_raised(folder: Path) -> None:
    Path("slow.py").write_text(SLOW)
    process = subprocess.Popen([sys.executable, "slow.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not Path("asked.txt").exists() or Path("asked.txt").stat().st_size < 40:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    asked = Path("asked.txt").read_text().split()
    assert out == ""
    assert process.returncode == -signal.SIGINT
    assert f"KeyboardInterrupt: {len(asked)} rows in out; 0 tokens; interrupted\n" in errors
    assert sorted(row["id"] for row in ts.read_batch("out")) == sorted(map(int, asked))


def summary_of(**fields: Any) -> Summary:
    """A summary in the middle of a batch."""
    return Summary(Path("calls"), rows=100, done=40, seconds=20.0, **fields)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"limit": 16, "concurrency": 16}, "40 of 100 rows, 2.0 rows/s, about 0:30 min left"),
        (
            {"limit": 2, "concurrency": 16, "refusal": "429"},
            "40 of 100 rows, 2.0 rows/s, 2 of 16 at once: 429, about 0:30 min left",
        ),
        (
            {"limit": 1, "concurrency": 16, "refusal": "500", "refused": 75.0, "patience": 600.0},
            "40 of 100 rows, waiting: 500 for every request for 1:15 min, the job ends after 10 min",
        ),
    ],
)
def test_a_line_of_a_log_says_when_and_which_and_why(
    fields: dict[str, Any], line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(batch_view, "EVERY", 0)
    with batch_view.BatchProgress() as view:
        view.update(summary_of(**fields))
    assert re.fullmatch(rf"\d\d:\d\d:\d\d calls: {re.escape(line)}\n", capsys.readouterr().err)


def test_quiet_writes_no_progress(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(batch_view, "EVERY", 0)
    command = ["batch", "in.csv", "out", "--tools", "tools.py", "--model", "scripted:replies.jsonl"]
    assert main([*command, "--quiet"]) == 0
    written = capsys.readouterr()
    assert (written.out, written.err) == ("20 of 20 rows in out; 0 tokens\n", "")
    assert main(command) == 0
    assert " out: 20 of 20 rows" in capsys.readouterr().err


def test_ctrl_c_on_the_command_line_writes_the_summary(folder: Path) -> None:
    Path("many.csv").write_text("id,text\n" + "".join(f"{i},{i}\n" for i in range(50_000)))
    command = ["batch", "many.csv", "out", "--model", "scripted:a", "--json"]
    process = Started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not Path("out/.journal.sqlite3").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(out)["interrupted"] is True
    assert "interrupted: run the same command to continue" in errors


SLOW = """
import asyncio, json
import toolspeak as ts
from toolspeak.events import Finished, TextDelta

class Slow:
    name, capabilities = "slow", frozenset()
    async def stream(self, request):
        with open("asked.txt", "a") as file:
            file.write(request.messages[-1]["content"] + "\\n")
        await asyncio.sleep(0.1)
        yield TextDelta("fine")
        yield Finished("stop")

rows = ({"id": i, "text": str(i)} for i in range(100_000))
print(ts.batch(rows, "out", model=Slow(), concurrency=4))
"""
