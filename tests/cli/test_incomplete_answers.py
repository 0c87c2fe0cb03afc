"""Answers that were cut off: a note says what to do, and the exit code differs from that of a whole answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from world import Cli

CUT = "stopped: the reply was cut off at 7 tokens; to allow more: --max-tokens, or a longer context of the server"


class Cuts(BaseHTTPRequestHandler):
    """A server whose replies end in the middle, for the reason that the model's name says."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        usage = {"prompt_tokens": 500, "completion_tokens": 7}
        choice = {"index": 0, "delta": {"content": "The first half"}, "finish_reason": body["model"]}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(f"data: {json.dumps({'choices': [choice], 'usage': usage})}\n\ndata: [DONE]\n\n".encode())

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Cuts) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def test_an_answer_that_was_cut_is_no_success(cli: Cli, url: str) -> None:
    for more in ([], ["-t", "weather.py"], ["-t", "weather.py", "--dry-run"]):
        done = cli("ask", "hi", "-m", f"{url}#length", *more)
        assert (done.returncode, done.stdout) == (3, "The first half\n"), more
        assert done.stderr.splitlines() == [CUT]
    done = cli("ask", "hi", "-m", f"{url}#length", "--json")
    assert (done.returncode, json.loads(done.stdout)["finish"]) == (3, "length")
    assert done.stderr.splitlines() == [CUT]


def test_a_chat_says_that_an_answer_was_cut(cli: Cli, url: str) -> None:
    assert CUT in cli("chat", "-m", f"{url}#length", stdin="hi\n").stderr


def test_a_batch_counts_answers_that_were_cut(cli: Cli, url: str, place: Path) -> None:
    (place / "rows.jsonl").write_text('{"q": "a"}\n{"q": "b"}\n')
    for finish, cut in (("length", 2), ("stop", 0)):
        batch = ("batch", "rows.jsonl", finish, "-m", f"{url}#{finish}", "--prompt", "{q}", "--no-id", "--quiet")
        assert json.loads(cli(*batch, "--json").stdout)["cut"] == cut
    done = cli("batch", "rows.jsonl", "again", "-m", f"{url}#length", "--prompt", "{q}", "--no-id", "--quiet")
    assert "; 2 answers cut off (more fits with a higher max_tokens, or a longer context); " in done.stdout


def test_a_filter_of_the_server_is_named(cli: Cli, url: str) -> None:
    done = cli("ask", "hi", "-m", f"{url}#content_filter")
    assert (done.returncode, done.stdout) == (3, "The first half\n")
    assert done.stderr == "stopped: the reply was cut off by the content filter of the model's server\n"


def test_a_whole_answer_is_a_success(cli: Cli, url: str) -> None:
    done = cli("ask", "hi", "-m", f"{url}#stop")
    assert (done.returncode, done.stderr) == (0, "")
