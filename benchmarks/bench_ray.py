"""A table over HTTP with Ray on this machine, beside Ray's own HTTP stage and beside one process without Ray.

All ask the server of bench_batch, which answers every request with the same call. Each is timed with its start, on a cluster that
runs already: Ray's processes are many, so only the time on the clock compares them. Run it in an environment with Ray.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bench_batch

import toolspeak as ts

ROWS = int(os.environ.get("ROWS", "20000"))
CONCURRENCY = 64


def seconds(work: Callable[[str], object]) -> float:
    """The time that it takes to write the records of a table into a new directory."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        work(str(Path(folder, "out")))
        return time.monotonic() - began


def one_process(port: int) -> Callable[[str], object]:
    model = f"http://127.0.0.1:{port}/v1#m"
    return lambda out: ts.batch(
        bench_batch.table(ROWS), out, tools=bench_batch.TOOLS, model=model, concurrency=CONCURRENCY
    )


def on_cluster(port: int) -> Callable[[str], object]:
    model = f"http://127.0.0.1:{port}/v1#m"
    return lambda out: ts.ray.batch(
        bench_batch.table(ROWS), out, tools=bench_batch.TOOLS, model=model, concurrency=CONCURRENCY, workers=1
    )


def by_its_stage(port: int) -> Callable[[str], object]:
    """Ray's own: one actor, batches of 64; calls are taken as they come, unchecked."""
    from ray.data.llm import HttpRequestProcessorConfig, build_processor

    import ray

    described = [{"type": "function", "function": spec} for spec in ts.Toolbox(*bench_batch.TOOLS).list()]

    def ask(row: dict[str, Any]) -> dict[str, Any]:
        return {"payload": {"model": "m", "messages": [{"role": "user", "content": row["text"]}], "tools": described}}

    def read(row: dict[str, Any]) -> dict[str, Any]:
        calls = row["http_response"]["choices"][0]["message"]["tool_calls"]
        return {"id": row["id"], "calls": json.dumps([json.loads(call["function"]["arguments"]) for call in calls])}

    def work(out: str) -> None:
        config = HttpRequestProcessorConfig(
            url=f"http://127.0.0.1:{port}/v1/chat/completions", concurrency=1, batch_size=CONCURRENCY
        )
        processor = build_processor(config, preprocess=ask, postprocess=read)
        processor(ray.data.from_items(list(bench_batch.table(ROWS)))).write_parquet(out)

    return work


def rows() -> Iterator[tuple[str, str, str]]:
    """What each takes."""
    if importlib.util.find_spec("ray") is None:
        yield "Ray", "none", "pip install 'toolspeak[ray]'"
        return
    import ray

    ray.init(include_dashboard=False, log_to_driver=False, logging_level="error")
    command = [sys.executable, bench_batch.__file__]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        theirs = seconds(by_its_stage(port))
        yield "Ray's HTTP stage", f"{ROWS / theirs:,.0f}", "rows a second"
        for what, work in (("toolspeak on Ray, one worker", on_cluster), ("toolspeak in one process", one_process)):
            ours = seconds(work(port))
            yield what, f"{ROWS / ours:,.0f}", f"rows a second: {theirs / ours:.1f} times as fast as Ray's stage"
    finally:
        server.terminate()
        server.wait()
        ray.shutdown()
