"""Connects to a cluster: the one at an address, the one on this machine, or a new one for the job."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import re
import socket
import threading
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from ..errors import MissingExtra, ModelError, UsageError

QUIET = {"RAY_BACKEND_LOG_LEVEL": "fatal", "RAY_USAGE_STATS_ENABLED": "0"}
"""Default settings of Ray: no output on the terminal, and no usage reports."""
HOST_PORT = re.compile(r"([^/]+):(\d+)").fullmatch
LOOK, LOST = 5.0, 30.0
"""Seconds between two looks at whether a cluster is there, and without one until a job on it ends. After a minute Ray ends
the process, without a word."""
ENDING = 10.0
"""The time limit in seconds for disconnecting from a cluster."""
HINT = "Start one with `ray start --head`, or leave the address out: a cluster on this machine is then used or started"


def library(name: str) -> Any:
    """Return a module of Ray. Raises MissingExtra if Ray Data is not installed."""
    for variable, value in QUIET.items():
        os.environ.setdefault(variable, value)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra("A cluster needs Ray Data: pip install 'toolspeak[ray]'") from error


def check_address(address: str | None) -> None:
    """Raises MissingExtra without Ray, UsageError for an address without a listener: Ray itself would try for a minute."""
    library("ray.data")
    if address in (None, "auto", "local"):
        return
    if HOST_PORT(address) is None:
        raise UsageError(
            f"address: expected HOST:PORT of a Ray cluster, as `ray start --head` shows it, received {address!r:.80}"
        )
    try:
        _connect(address, 10)
    except (OSError, OverflowError) as error:
        raise UsageError(f"address: nobody listens at {address}: {error}. {HINT}") from None


@dataclass(slots=True)
class Cluster:
    """A cluster to which this process is connected: its address as HOST:PORT, and its number of machines."""

    address: str
    machines: int
    seen: float = field(default_factory=time.monotonic)
    looked: float = field(default_factory=time.monotonic)

    async def check(self) -> None:
        """Check every LOOK seconds whether the cluster exists. Raises ModelError if nothing has listened for LOST
        seconds."""
        if time.monotonic() - self.looked < LOOK:
            return
        try:
            await asyncio.to_thread(_connect, self.address, LOOK)
            self.seen = time.monotonic()
        except (OSError, OverflowError) as error:
            if time.monotonic() - self.seen > LOST:
                raise ModelError(
                    f"the cluster is gone: nobody has listened at {self.address} for {LOST:.0f} s ({error}). What was done is "
                    "saved: run the same command again once there is a cluster"
                ) from None
        self.looked = time.monotonic()


@contextlib.contextmanager
def cluster(address: str | None) -> Generator[Cluster]:
    """Yield a connection to a cluster. A cluster that existed before is left running.

    Raises MissingExtra without Ray, UsageError if no cluster answers at the address.
    """
    library("ray.data")
    ray = library("ray")
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    ours = not ray.is_initialized()
    if ours:
        try:
            ray.init(address, include_dashboard=False, log_to_driver=False, logging_level="error")
        except (ConnectionError, ValueError, RuntimeError, OSError) as error:
            where = f"no Ray cluster at {address}" if address else "no Ray cluster could be used or started here"
            raise UsageError(f"{where}: {_first_line(error)}. {HINT}") from error
    try:
        machines = sum(bool(node["Alive"]) for node in ray.nodes())
        yield Cluster(ray.get_runtime_context().gcs_address, machines)
    finally:
        if ours:
            ending = threading.Thread(target=ray.shutdown, daemon=True)  # it may wait for a cluster that is gone
            ending.start()
            ending.join(ENDING)


def _connect(address: str, seconds: float) -> None:
    """Connect to HOST:PORT, and disconnect. Raises OSError and OverflowError if that fails within the time limit."""
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".")[:300] if lines else type(error).__name__
