"""What is measured: each server as a process on a core of its own, with what it has used of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "clients"))
sys.path.insert(0, str(ROOT / "src"))

from environments import Unavailable, python

LITELLM = ("litellm[proxy]==1.106.2", "uvloop==0.23.0", "orjson==3.13.0")
SLOWEST = 120.0
"""Seconds that a server may take until it listens."""


@dataclass
class Server:
    """A running server: where it listens, and what the kernel says of it."""

    port: int
    pid: int
    started: float

    def cpu(self) -> float:
        """Seconds of processor time so far."""
        threads = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9

    def memory(self) -> float:
        """Resident memory, in MB."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


def toolspeak(port: int, upstream: str, folder: Path) -> list[str]:
    """The gateway, tools written in a dialect into chat messages."""
    return [sys.executable, str(HERE / "spoken.py"), str(port), upstream]


def passthrough(port: int, upstream: str, folder: Path) -> list[str]:
    return [sys.executable, str(HERE / "passthrough.py"), str(port), upstream]


def litellm(port: int, upstream: str, folder: Path) -> list[str]:
    """LiteLLM's proxy, in an environment of its own. Raises Unavailable."""
    interpreter = python("litellm", LITELLM)
    config = folder / "litellm.yaml"
    config.write_text(
        "model_list:\n"
        f"  - model_name: m\n    litellm_params: {{model: openai/m, api_base: '{upstream}/v1', api_key: none}}\n"
        "litellm_settings: {telemetry: false, set_verbose: false, num_retries: 0}\n"
        "general_settings: {disable_spend_logs: true, dangerously_permit_weak_or_unset_master_key: true}\n",
        encoding="utf-8",
    )
    program = str(interpreter.parent / "litellm")
    return [program, "--config", str(config), "--port", str(port), "--host", "127.0.0.1", "--num_workers", "1"]


ENVIRONMENT = {"LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False"}


@contextmanager
def running(command: Callable[[int, str, Path], list[str]], upstream: str, core: int) -> Iterator[Server]:
    """A server that listens, pinned to one core; ended at the end."""
    folder = Path(tempfile.mkdtemp(prefix="bench-gateway-"))
    port = free_port()
    log = (folder / "log").open("wb")
    begun = time.perf_counter()
    process = subprocess.Popen(
        command(port, upstream, folder),
        env={**os.environ, **ENVIRONMENT, "PYTHONPATH": str(ROOT / "src")},
        stdout=log,
        stderr=log,
        start_new_session=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),  # noqa: PLW1509 - there are no threads yet
    )
    try:
        while not _listens(port):
            if process.poll() is not None or time.perf_counter() - begun > SLOWEST:
                said = (folder / "log").read_text(errors="replace").strip().splitlines()
                raise Unavailable(f"did not start: {(said or ['it said nothing'])[-1][:200]}")
            time.sleep(0.001)
        yield Server(port, process.pid, time.perf_counter() - begun)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        log.close()
        shutil.rmtree(folder, ignore_errors=True)


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
