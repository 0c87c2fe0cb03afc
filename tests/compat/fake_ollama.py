"""A small server with Ollama's `/api/generate`, on loopback, that answers from a script."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FakeOllama:
    """`answers` are texts, or (status, body) pairs; the last one is repeated. `requests` holds what came."""

    def __init__(self, *answers: str | tuple[int, bytes]) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.url = ""

    def answer(self, path: str, body: bytes) -> tuple[int, bytes]:
        self.requests.append((path, json.loads(body)))
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if isinstance(answer, tuple):
            return answer
        whole = {"model": self.requests[-1][1]["model"], "response": answer, "done": True, "done_reason": "stop"}
        return 200, json.dumps(whole).encode()


@contextmanager
def serving(*answers: str | tuple[int, bytes]) -> Iterator[FakeOllama]:
    fake = FakeOllama(*answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, body = fake.answer(self.path, self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        fake.url = f"http://127.0.0.1:{server.server_address[1]}/"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield fake
        finally:
            server.shutdown()
            thread.join()
