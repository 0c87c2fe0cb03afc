"""What it costs to look for results that are too large for a model, beside reading and writing the request that holds them.

    python benchmarks/gateway/paging.py

Every request is looked through; it is cut only where a result is more than a page. Times are the processor's, the best of
several.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from toolspeak.api import openai_chat
from toolspeak.gateway.body import checked_body
from toolspeak.gateway.config.settings import GatewayLimits
from toolspeak.models.http import Http
from toolspeak.models.scripted import Scripted
from toolspeak.search.paged_results import PagedResults

LARGE, SMALL = 128_000, 8_000
"""Tokens of the context of a model that reads all of these results whole, and of one that does not."""
CASES = ((10, 2_000), (100, 4_000), (100, 20_000), (400, 20_000))
"""Results, and characters of each."""
TEXTS = {"code": "x = f(y)\n", "Chinese": "厦门的天气"}
READ = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {"path": {}}}}}


def body(results: int, characters: int, text: str) -> dict[str, Any]:
    rows: list[Any] = [{"role": "user", "content": "Fix it"}]
    for i in range(results):
        call = {"name": "read", "arguments": json.dumps({"path": f"file{i}"})}
        rows.append({"role": "assistant", "content": None, "tool_calls": [{"id": f"c{i}", "type": "function", "function": call}]})  # fmt: skip
        rows.append({"role": "tool", "tool_call_id": f"c{i}", "content": (text * characters)[:characters]})
    return {"model": "m", "messages": rows, "tools": [READ]}


def milliseconds(work: Callable[[], object], times: int = 7) -> float:
    found: list[float] = []
    for _ in range(times):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return 1_000 * min(found)


def main() -> None:
    print(
        "| text | results | reading and writing, ms | looking, ms | cutting for 8,000 tokens, ms |\n|---|---|--:|--:|--:|"
    )
    limits, server = GatewayLimits(body=10**9), Http("http://127.0.0.1:9/v1", "m")
    for name, text in TEXTS.items():
        for results, characters in CASES:
            asked = body(results, characters, text)
            raw = json.dumps(asked, ensure_ascii=False).encode()
            request = openai_chat.read_request(asked).request
            read = milliseconds(lambda raw=raw: openai_chat.read_request(checked_body(raw, openai_chat.BODY, limits)))
            written = milliseconds(lambda request=request: server.body(request))
            large, small = (PagedResults(Scripted([""]), context=one, characters=None) for one in (LARGE, SMALL))
            looked = milliseconds(lambda large=large, request=request: large.needed(request))
            cut = milliseconds(lambda small=small, request=request: small.narrowed_now(request))
            shown = f"{results} of {characters:,} characters"
            print(f"| {name} | {shown} | {read + written:.1f} | {looked:.2f} | {cut:.1f} |", flush=True)


if __name__ == "__main__":
    main()
