"""Models behind servers: what is recorded is what the server got, on each way of asking it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import toolspeak as ts
from llama import served
from toolspeak import evals
from toolspeak.evals import Contender

KEY = "a-key-for-the-tests"


def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


class Handler(BaseHTTPRequestHandler):
    """Adds 3 and 4 whatever is asked: natively where it may, else in words of the dialect."""

    takes_tools = True
    asked: list[dict[str, Any]]

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.send_error(404)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions":
            self.send_error(404)
            return
        if "tools" in body and not self.takes_tools:
            self.answer(400, json.dumps({"error": {"message": "this model does not support tools"}}))
            return
        self.asked.append(body)
        arguments = {"a": 3, "b": 4}
        if "tools" in body:
            name = body["tools"][0]["function"]["name"]  # a probe offers tools of its own
            call = {"index": 0, "id": "c", "function": {"name": name, "arguments": json.dumps(arguments)}}
            delta: dict[str, Any] = {"tool_calls": [call]}
        else:
            delta = {"content": json.dumps({"tool": "add", "tool_input": arguments})}
        chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]}
        usage = {"choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 9}}
        self.answer(200, "".join(f"data: {json.dumps(part)}\n\n" for part in (chunk, usage)) + "data: [DONE]\n\n")

    def answer(self, status: int, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream" if status == 200 else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture(params=[True, False], ids=["takes tools", "refuses tools"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, type[Handler]]]:
    made: type[Handler] = type("Made", (Handler,), {"takes_tools": request.param, "asked": []})
    serving = ThreadingHTTPServer(("127.0.0.1", 0), made)
    thread = threading.Thread(target=serving.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{serving.server_port}/v1#m", made
    serving.shutdown()
    thread.join()
    serving.server_close()


@pytest.fixture
def cases(tmp_path: Path) -> list[evals.Case]:
    line = {"question": "What is 3 plus 4?", "calls": [{"name": "add", "arguments": {"a": 3, "b": 4}}]}
    (tmp_path / "sums.jsonl").write_text("\n".join([json.dumps(line)] * 3), "utf-8")
    return evals.load(str(tmp_path / "sums.jsonl"), tools=ts.Toolbox(add))


def test_what_the_server_got(server: tuple[str, type[Handler]], cases: list[evals.Case], tmp_path: Path) -> None:
    name, handler = server
    settings = evals.Settings(prices={"": (1.0, 2.0)}, at_once=2)
    records = evals.run(cases, [Contender(name)], tmp_path / "out", settings)
    assert [record.right for record in records] == [True] * 3
    bodies = [step["ask"]["body"] for record in records for step in record.steps if step["came"].get("usage")]
    assert len(bodies) == 3
    assert all(body in handler.asked for body in bodies)
    assert ("tools" in bodies[0]) == handler.takes_tools
    third = min(records, key=lambda record: len(record.steps))  # two begin at once, and end in either order
    assert len(third.steps) == 1, "once refused, tools are not offered again"
    assert (third.prompt_tokens, third.completion_tokens, third.cost) == (30, 9, pytest.approx(48e-6))


@pytest.mark.costly
def test_a_llama_cpp_that_decides_by_likelihood(cases: list[evals.Case], tmp_path: Path) -> None:
    running = served(KEY)
    there = ts.model(f"{running.listening_address}/v1", key=KEY, timeout=6000)  # on a busy machine it answers late
    (record,) = evals.run(cases[:1], [Contender(there, title="served")], tmp_path / "out")
    (same,) = evals.run(cases[:1], [Contender("local")], tmp_path / "out")
    assert record.right
    assert same.calls == record.calls
    mine, theirs = ([step["score"] for step in evals.unpacked(one.steps) if "score" in step] for one in (same, record))
    assert [(score["prompt"], score["texts"]) for score in theirs] == [
        (score["prompt"], score["texts"]) for score in mine
    ]
    assert record.prompt_tokens == same.prompt_tokens > 500
