"""A server whose model calls functions well in one dialect and talks in all others."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import toolspeak as ts
from toolspeak.types import ToolCall
from toolspeak.wire.prompt.calls import write_calls

MARKS = {
    "tool-json": "tool_input",
    "function-name": "functionName",
    "hermes": "<tool_call>",
    "functools": "functools[",
    "pythonic": "func_name1(",
}
"""What stands in the prompt of each dialect alone."""


class OneDialect(ThreadingHTTPServer):
    """Knows the calls that each question wants, and writes them in its dialect alone; with `natively` it takes tools, and
    talks; `deaf` it has no chat. `asked` are the questions with the dialect that each came in ("" for others). After `stop_after` questions it
    refuses the key; at the one of number `hold_at` it sets `holding` and waits for `go_on`."""

    daemon_threads = True

    def __init__(self, dialect: str, cases: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.dialect = dialect
        self.wanted = {case["question"]: case["calls"] for case in cases}
        self.asked: list[tuple[str, str]] = []
        self.stop_after = self.hold_at = 10**9
        self.holding, self.go_on = threading.Event(), threading.Event()
        self.natively = self.deaf = False
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def name(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1#one"

    def answer(self, body: Mapping[str, Any]) -> str:
        messages = body["messages"]
        question, prompt = messages[-1]["content"], json.dumps(messages)
        spoken = next((name for name, mark in MARKS.items() if mark in prompt), "")
        if question in self.wanted:
            self.asked.append((spoken, question))
            if len(self.asked) == self.hold_at:
                self.holding.set()
                self.go_on.wait(120)
        calls = self.wanted.get(question)
        if not calls or spoken != self.dialect:
            return "Let us talk about the weather."
        return write_calls([ToolCall("c", call["name"], call["arguments"]) for call in calls], ts.dialect(spoken))


class Handler(BaseHTTPRequestHandler):
    server: OneDialect  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a header and a body are two small packets

    def log_message(self, *said: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._say({"data": [{"id": "one"}]} if self.path == "/v1/models" else None)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions" or self.server.deaf:
            return self._say(None)
        if len(self.server.asked) >= self.server.stop_after:
            return self._say({"error": {"message": "no such key", "type": "invalid_request_error"}}, 401)
        if body.get("tools") and not self.server.natively:
            return self._say({"error": {"message": "tools are not supported", "type": "invalid_request_error"}}, 400)
        text = self.server.answer(body)
        usage = {"prompt_tokens": len(json.dumps(body["messages"])) // 4, "completion_tokens": len(text) // 4}
        chunks = [
            {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage},
        ]
        lines = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
        return self._send(200, lines, "text/event-stream")

    def _say(self, value: Any, status: int = 200) -> None:
        if value is None:
            status, value = 404, {"error": {"message": "not found"}}
        self._send(status, json.dumps(value).encode(), "application/json")

    def _send(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
