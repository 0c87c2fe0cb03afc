"""The command line as people meet it: real processes, pipes, terminals and signals."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from world import TOOLSPEAK, WEATHER, Cli, Terminal

import preloaded

SRC = Path(__file__).resolve().parents[2] / "src"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own with a tools file, a state folder of its own, and no settings of whoever runs this."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SRC), os.environ.get("PYTHONPATH", "")]))
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TOOLSPEAK_MODEL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "weather.py").write_text(WEATHER, "utf-8")
    return tmp_path


@pytest.fixture
def cli() -> Cli:
    """`cli("ask", "Hi", stdin="…", NO_COLOR="1")`: a finished process, its output as text."""

    def run(*args: str, stdin: str | bytes = b"", **env: str) -> subprocess.CompletedProcess[str]:
        given = stdin.encode() if isinstance(stdin, str) else stdin
        together, seconds = {**os.environ, **env}, 800  # the embedded model is slow on a busy machine
        if preloaded.fits(env):
            done = preloaded.run(args, given, together, seconds)
        else:
            done = subprocess.run([*TOOLSPEAK, *args], input=given, capture_output=True, env=together, timeout=seconds)
        out, err = (text.decode("utf-8", "backslashreplace") for text in (done.stdout, done.stderr))
        assert "Traceback" not in err or "--debug" in args, err
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    return run


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    """`terminal("chat")`: a process on a terminal; it is gone when the test is."""
    made: list[Terminal] = []

    def start(*args: str, **more: str) -> Terminal:
        made.append(Terminal(*args, **more))
        return made[-1]

    yield start
    for one in made:
        one.close()


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    """`script(reply, reply)`: the name of a model that replies with these."""

    def write(*replies: str) -> str:
        path = tmp_path / "script.jsonl"
        path.write_text("".join(json.dumps(reply) + "\n" for reply in replies), "utf-8")
        return f"scripted:{path}"

    return write


class Chat(BaseHTTPRequestHandler):
    """A chat server that refuses tools, or calls whatever tool is offered first."""

    protocol_version = "HTTP/1.1"
    models = ("m",)
    calls = False
    ignores = False
    tokens: int | None = None  # those that it tells for every request; None: it counts words
    reads_tools = False
    refusal = "this model does not support tools"
    refuses: tuple[int, str] | None = None  # every request, with this status and message
    answered = threading.Event()  # no request is answered before it is set
    answered.set()

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.answer(200, {"data": [{"id": name} for name in self.models]} if self.path == "/v1/models" else {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answered.wait()
        if self.refuses:
            self.answer(self.refuses[0], {"error": {"message": self.refuses[1]}})
            return
        message: dict[str, Any] = {"content": "hello"}
        if self.path != "/v1/chat/completions" or ("tools" in body and not (self.calls or self.ignores)):
            self.answer(400, {"error": {"message": self.refusal}})
            return
        if "tools" in body and self.calls:
            called = {"name": body["tools"][0]["function"]["name"], "arguments": '{"city": "Paris"}'}
            message = {"content": None, "tool_calls": [{"id": "c", "type": "function", "function": called}]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        tokens = sum(len(one["content"].split()) for one in body["messages"]) if self.tokens is None else self.tokens
        tokens += 60 if self.reads_tools and "tools" in body else 0
        self.answer(200, {"choices": [choice], "usage": {"prompt_tokens": tokens, "completion_tokens": 1}})

    def answer(self, status: int, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """`serve(calls=True)`: the address of such a server."""
    running: list[tuple[ThreadingHTTPServer, threading.Thread]] = []

    def start(**more: Any) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Chat,), more))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        running.append((server, thread))
        return f"http://127.0.0.1:{server.server_port}/v1"

    yield start
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()
