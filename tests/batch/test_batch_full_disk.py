"""A disk that takes no more ends a batch in order: what is done stays done, and the same call goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import toolspeak as ts

WORKER = """
import resource, signal, sys
import toolspeak as ts
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
if int(sys.argv[1]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
rows = ({"id": i, "text": "x" * 500} for i in range(600))
try:
    summary = ts.batch(rows, "out", model=ts.Scripted("y" * 500, repeat=True), shard=100)
except OSError as error:
    sys.exit(f"{type(error).__name__}: {error}")
print(summary.before, summary.done)
"""


def worker(folder: Path, limit: int) -> subprocess.CompletedProcess[str]:
    (folder / "worker.py").write_text(WORKER)
    command = [sys.executable, "worker.py", str(limit)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    full = worker(tmp_path, 150_000)  # of any one file: the journal is the first that grows so large
    assert full.returncode == 1
    assert full.stderr.startswith("OSError: out: ")
    assert "run the same command to continue" in full.stderr
    assert "Traceback" not in full.stderr
    done = [row["id"] for row in ts.read_batch(tmp_path / "out")]
    assert done == list(range(len(done)))
    assert 0 < len(done) < 600
    good = worker(tmp_path, 0)
    assert good.stdout.split() == [str(len(done)), "600"], good.stderr
    assert [row["id"] for row in ts.read_batch(tmp_path / "out")] == list(range(600))


def test_a_full_disk_at_a_shard_loses_nothing(tmp_path: Path) -> None:
    rows = [{"id": i, "text": "a"} for i in range(50)]
    ts.batch(rows[:20], tmp_path / "out", model=ts.Scripted("b", repeat=True), shard=10)
    # a directory in the place of the next shard cannot be replaced by a file
    (tmp_path / "out" / "part-00002.jsonl").mkdir()
    with pytest.raises(OSError, match="part-00002"):
        ts.batch(rows, tmp_path / "out", model=ts.Scripted("b", repeat=True), shard=10)
    (tmp_path / "out" / "part-00002.jsonl").rmdir()
    ts.batch(rows, tmp_path / "out", model=ts.Scripted("b", repeat=True), shard=10)
    assert [row["id"] for row in ts.read_batch(tmp_path / "out")] == list(range(50))
