"""Images in `toolspeak ask` and `toolspeak chat`: a server gets them, a model of text refuses them."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from world import Cli

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(PNG).decode()}}
BODIES: list[dict[str, Any]] = []


class Sees(BaseHTTPRequestHandler):
    """A server of a model that sees; what it was asked is in BODIES."""

    def do_POST(self) -> None:
        BODIES.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        chunk = {"choices": [{"index": 0, "delta": {"content": "A cat."}, "finish_reason": "stop"}]}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def sees(place: Path) -> Iterator[str]:
    """The name of a model that sees; the picture `a.png` is there."""
    (place / "a.png").write_bytes(PNG)
    BODIES.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Sees) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1#sees"
        server.shutdown()


def questions() -> list[Any]:
    """What the user asked last, in each request."""
    return [body["messages"][-1]["content"] for body in BODIES]


def test_a_question_with_images(cli: Cli, sees: str) -> None:
    done = cli("ask", "What is this?", "--image", "a.png", "-i", "a.png", "-t", "weather.py", "-m", sees)
    assert (done.returncode, done.stdout) == (0, "A cat.\n")
    assert questions() == [[{"type": "text", "text": "What is this?"}, PART, PART]]


def test_a_conversation_with_images(cli: Cli, sees: str, place: Path) -> None:
    said = "What is this?\nAnd?\n/image a.png\nAnd this?\n/retry\n"
    done = cli("chat", "--image", "a.png", "-m", sees, stdin=said)
    assert (done.returncode, done.stdout.count("A cat.")) == (0, 4)
    this = [{"type": "text", "text": "And this?"}, PART]
    assert questions() == [[{"type": "text", "text": "What is this?"}, PART], "And?", this, this]
    more = cli("chat", "--continue", "-m", sees, stdin="More?\n")
    assert more.returncode == 0
    assert [row["content"] for row in BODIES[-1]["messages"] if row["role"] == "user"] == [
        *(questions()[at] for at in (0, 1, 2)), "More?",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none.png", "the image none.png cannot be read: No such file"),
        ("weather.py", "weather.py is not an image: expected one of png, jpeg, gif, webp"),
        (".", "cannot be read: Is a directory"),
    ],
)
def test_what_is_no_image_is_told(cli: Cli, name: str, said: str) -> None:
    for command in (["ask", "What?"], ["chat"]):
        done = cli(*command, "--image", name, "-m", "scripted:x", stdin="What?\n")
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr


def test_a_model_of_text_says_that_it_takes_none(cli: Cli, sees: str) -> None:
    done = cli("ask", "What is this?", "--image", "a.png", "-m", "local")
    assert done.returncode == 2
    assert "takes text alone" in done.stderr
