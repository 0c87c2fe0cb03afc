"""A Ray cluster of two nodes on this machine, each a process of its own; a driver and a worker are killed.

Runs by `make test-ray`, which sets RAY: Ray is large, and is installed into an environment of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import ray_environment
from ray_environment import ROOT

import toolspeak as ts

pytestmark = [
    pytest.mark.skipif(not os.environ.get("RAY"), reason="needs Ray: make test-ray"),
    pytest.mark.timeout(3600),
]
HERE = Path(__file__).parent
STARTS = 5
"""How often a node is started: Ray gives one up that is not known to the first within 30 seconds."""
PATIENCE = 1800.0
"""Seconds for what takes ten on a quiet machine: what is waited for is the end of a process, or what it does while it lives."""
ROWS = 4000


@pytest.fixture(scope="session")
def interpreter() -> Path:
    """The Python of an environment with Ray."""
    try:
        return ray_environment.interpreter()
    except ray_environment.Unavailable as error:
        pytest.skip(f"Ray: {error}")


@pytest.fixture(scope="session")
def env() -> dict[str, str]:
    """The environment of every process here. Nodes of one machine talk by its own address, which is not loopback's."""
    ray = {
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
        # on a busy machine a worker takes its time to start, and a node to answer: neither is dead
        "RAY_NUM_REDIS_GET_RETRIES": "1800",
        "RAY_DASHBOARD_STARTUP_TIMEOUT_S": "1800",
        "RAY_raylet_start_wait_time_s": "1800",
        "RAY_agent_register_timeout_ms": "1800000",
        "RAY_worker_register_timeout_seconds": "1800",
        "RAY_gcs_rpc_server_connect_timeout_s": "1800",
        # no more processes than are needed: each takes seconds to start
        "RAY_enable_worker_prestart": "0",
        "RAY_prestart_worker_first_driver": "0",
        "RAY_enable_metrics_collection": "0",
        "RAY_health_check_timeout_ms": "60000",
        "RAY_health_check_failure_threshold": "20",
    }
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), **ray}


def until(true: Callable[[], Any], what: str, *processes: subprocess.Popen[Any]) -> None:
    """Waits until something is so; the processes must live meanwhile."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE:.0f} s"
        assert all(process.poll() is None for process in processes), f"{what}: a process ended"
        time.sleep(0.1)


def _started(log: Path) -> int:
    """How many nodes have started."""
    return log.read_text().count("now block forever")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("", 0))
        return one.getsockname()[1]


@pytest.fixture(scope="session")
def address(interpreter: Path, env: dict[str, str]) -> Iterator[str]:
    """The address of a cluster of two nodes with one processor each."""
    port = free_port()
    start = [str(interpreter.with_name("ray")), "start", "--block", "--num-cpus=1", "--object-store-memory=100000000"]
    ways = [["--head", f"--port={port}", "--include-dashboard=false"], [f"--address=127.0.0.1:{port}"]]
    nodes: list[subprocess.Popen[Any]] = []
    # the sockets of Ray have long names already: a short folder
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp", ignore_cleanup_errors=True) as temporary:
        log = Path(temporary, "log.txt")
        output = log.open("w")
        try:
            for way in ways:
                place = [f"--temp-dir={temporary}"] if "--head" in way else []
                wanted = sum(node.poll() is None for node in nodes) + 1
                for _ in range(STARTS):
                    nodes.append(
                        node := subprocess.Popen([*start, *way, *place], env=env, stdout=output, stderr=output)
                    )
                    until(lambda: node.poll() is not None or _started(log) >= wanted, f"node {wanted}")  # noqa: B023
                    if node.poll() is None:
                        break
                else:
                    pytest.fail(f"node {wanted} does not start\n{log.read_text()[-3000:]}")
            yield f"127.0.0.1:{port}"
        finally:
            for node in reversed(nodes):
                node.terminate()  # which ends the processes of the node too
            for node in nodes:
                node.wait(60)
            output.close()


@contextlib.contextmanager
def started(command: list[str], env: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A driver, which is killed at the end of the block if it still runs."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=env, start_new_session=True, stdout=pipe, stderr=pipe, text=True) as driver:
        try:
            yield driver
        finally:
            if driver.poll() is None:
                os.killpg(driver.pid, signal.SIGKILL)


def asked(folder: Path) -> list[tuple[int, int]]:
    """The rows that were asked about so far, in order, each with the process that asked."""
    file = folder / "asked.txt"
    lines = file.read_text("ascii").splitlines() if file.exists() else []
    return [(int(number), int(process)) for number, process in map(str.split, lines)]


def done_ids(out: Path) -> list[int]:
    """The ids of the rows that are done."""
    return [row["id"] for row in ts.read_batch(out)] if (out / "_job.json").exists() else []


def test_every_id_comes_out_once_though_a_driver_and_a_worker_are_killed(
    interpreter: Path, env: dict[str, str], address: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command = [str(interpreter), str(HERE / "cluster_job.py"), str(ROWS), str(out), str(tmp_path), address]

    with started(command, env) as driver:
        until(lambda: done_ids(out), "the first block", driver)
    before = done_ids(out)
    assert 0 < len(before) < ROWS
    first = len(asked(tmp_path))

    (tmp_path / "gate-0").touch()
    with started(command, env) as driver:
        until(lambda: len(asked(tmp_path)) > first + 200, "rows of the second driver", driver)
        _, worker = asked(tmp_path)[-1]
        os.kill(worker, signal.SIGKILL)
        (tmp_path / "gate-1").touch()
        printed, said = driver.communicate(timeout=PATIENCE)
    assert driver.returncode == 0, said[-3000:]

    assert done_ids(out) == list(range(ROWS))
    rows = list(ts.read_batch(out))
    assert [row["error"] for row in rows] == [None] * ROWS
    assert all(json.loads(row["calls"])[0]["arguments"] == {"ticket": row["id"]} for row in rows)
    assert not {number for number, _ in asked(tmp_path)[first:]} & set(before), "rows that were done were asked again"
    assert not (out / ".ray").exists()
    assert json.loads(printed.splitlines()[-1])["done"] == ROWS


class Server(BaseHTTPRequestHandler):
    """Answers every request with a call in words."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        text = '<tool_call>\n{"name": "refund", "arguments": {"order": 7}}\n</tool_call>'
        body = json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing."""


@pytest.fixture
def server() -> Iterator[int]:
    """The port of a server that knows no tools."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as one:
        threading.Thread(target=one.serve_forever, daemon=True).start()
        yield one.server_port
        one.shutdown()


def test_the_verbs_in_a_pipeline_and_calls_around_a_stage(
    interpreter: Path, env: dict[str, str], address: str, server: int
) -> None:
    command = [str(interpreter), str(HERE / "dataset_job.py"), address, str(server)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-3000:]
    came = json.loads(done.stdout.splitlines()[-1])
    decided, over_http = came["decided"], came["over_http"]
    assert [row["key"] for row in decided] == list(range(40))
    assert [row["key"] for row in decided if row["error"]] == [3]
    assert all(json.loads(row["calls"])[0]["arguments"] == {"order": 7} for row in decided if row["key"] != 3)
    assert [row["id"] for row in over_http] == list(range(20))
    assert all(json.loads(row["calls"])[0]["arguments"] == {"order": 7} for row in over_http)
    assert all("payload" not in row for row in over_http)


def test_the_command_on_a_cluster(interpreter: Path, env: dict[str, str], address: str, tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text("def refund(order: int) -> str:\n    'Refund an order.'\n    return ''\n")
    lines = [*(json.dumps({"id": f"t{number}", "text": "Refund 7"}) for number in range(30)), "{broken"]
    (tmp_path / "tickets.jsonl").write_text("\n".join(lines))
    (tmp_path / "replies.jsonl").write_text('{"tool": "refund", "tool_input": {"order": 7}}\n' * 30)
    command = [
        str(interpreter),
        "-m",
        "toolspeak",
        "batch",
        "tickets.jsonl",
        "out",
        "--tools",
        "tools.py",
        "--workers",
        "1",
    ]
    command += ["--model", "scripted:replies.jsonl", "--ray", "--address", address]

    def run() -> tuple[int, str]:
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=PATIENCE)
        return done.returncode, done.stdout

    assert run() == (1, "31 of 31 rows in out; 1 error (1 UnreadableRow); 0 tokens\n")
    assert run() == (1, "31 of 31 rows in out; 30 of them from before; 1 error (1 UnreadableRow); 0 tokens\n")
    rows = list(ts.read_batch(tmp_path / "out"))
    assert [row["id"] for row in rows] == [*(f"t{number}" for number in range(30)), "row 31"]
