"""The verbs in a pipeline of Ray Data, and calls around its HTTP stage; prints what came as JSON.

python dataset_job.py ADDRESS PORT
"""

from __future__ import annotations

import json
import sys
from typing import Any

from ray.data.llm import HttpRequestProcessorConfig, build_processor

import ray
import toolspeak as ts

REPLY = '<tool_call>\n{"name": "refund", "arguments": {"order": 7}}\n</tool_call>'


def refund(order: int, urgent: bool = False) -> str:
    """Refund an order."""
    return ""


def decided() -> list[dict[str, Any]]:
    """Rows of several blocks, one of which has an error and one a text: their columns have one type all the same."""
    rows = [{"key": number, "question": f"Refund {number}" if number != 3 else None} for number in range(40)]
    asked = ray.data.from_items(rows, override_num_blocks=4).map_batches(
        ts.ray.Decide,
        fn_constructor_kwargs={
            "prompt": "question",
            "tools": [refund],
            "model": ts.model(ts.Scripted(REPLY, repeat=True), dialect="hermes"),
        },
        batch_size=16,
        num_cpus=0,
        compute=ray.data.ActorPoolStrategy(size=1),
    )
    return sorted(asked.take_all(), key=lambda row: row["key"])


def over_http(port: str) -> list[dict[str, Any]]:
    """The calls that a server gives which knows of none."""
    config = HttpRequestProcessorConfig(url=f"http://127.0.0.1:{port}/v1/chat/completions", concurrency=1, batch_size=8)
    processor = build_processor(
        config,
        preprocess=ts.ray.render([refund], "hermes", payload={"model": "m"}),
        postprocess=ts.ray.parse([refund], "hermes"),
    )
    rows = ray.data.from_items([{"id": number, "text": f"Refund {number}"} for number in range(20)])
    return sorted(processor(rows).take_all(), key=lambda row: row["id"])


if __name__ == "__main__":
    ray.init(sys.argv[1], log_to_driver=False)
    print(json.dumps({"decided": decided(), "over_http": over_http(sys.argv[2])}, default=list))
