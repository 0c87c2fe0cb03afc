"""The gateway as people start and stop it: a process of its own, asked over its socket, told by signals."""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import json
import os
import pty
import queue
import re
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from preloaded import Started
from toolspeak.gateway.access.keys import hashed
from toolspeak.gateway.serve import supervisor

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and forks")

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


class Slow:
    """An upstream that says a word and then nothing until it is let go."""

    def __init__(self, tmp_path: Path, drain: float) -> None:
        self.free = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(b'data: {"choices": [{"index": 0, "delta": {"content": "Well, "}}]}\n\n')
                    outer.free.wait(600)
                    row = '{"index": 0, "delta": {"content": "hello."}, "finish_reason": "stop"}'
                    self.wfile.write(b'data: {"choices": [%b]}\n\ndata: [DONE]\n\n' % row.encode())

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1#up"
        self.path = tmp_path / "gateway.toml"
        self.path.write_text(f'[models.m]\nupstream = "{self.url}"\nmode = "native"\n[limits]\ndrain = {drain}\n')
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.free.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def slow(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Slow]:
    made = Slow(tmp_path, getattr(request, "param", 600.0))
    try:
        yield made
    finally:
        made.close()


class Process:
    """`toolspeak serve`, running."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        command, env = ["serve", "--port", "0", *arguments], {**os.environ, **environment}
        self.process = Started(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env)
        self.lines: queue.Queue[str] = queue.Queue()
        self.said: list[str] = []
        self.reading = threading.Thread(target=self._read, daemon=True)
        self.reading.start()
        self.url = ""
        while not self.url:
            line = self.lines.get(timeout=120)
            found = re.search(r"serving .* at (http://[\w.]+:\d+)", line)
            self.url = found[1] if found else ""

    def _read(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.said.append(line)
            self.lines.put(line)

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").partition(":")
        return host, int(port)

    def get(self, path: str) -> int:
        return self.ask(path)[0]

    def ask(self, path: str, body: Any = None) -> tuple[int, dict[str, str], bytes]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as reply:
                return reply.status, dict(reply.headers), reply.read()
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), error.read()

    def stream(self) -> Any:
        """A streamed answer whose first event has come."""
        body = json.dumps({**CHAT, "stream": True}).encode()
        request = urllib.request.Request(self.url + "/v1/chat/completions", body, {"content-type": "application/json"})
        reply = urllib.request.urlopen(request, timeout=120)
        while b"Well" not in reply.readline():
            pass
        return reply

    def workers(self) -> list[int]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in children.read_text().split()]

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float = 600) -> int:
        """How it ended; all that it said has been read."""
        code = self.process.wait(seconds)
        self.reading.join(seconds)
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.wait()
        assert self.process.stderr
        self.process.stderr.close()


@pytest.fixture
def start() -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def go(*arguments: str, **environment: str) -> Process:
        started.append(Process(*arguments, **environment))
        until(lambda: started[-1].get("/readyz") == 200)
        return started[-1]

    try:
        yield go
    finally:
        for one in started:
            one.close()


def until(true: Callable[[], bool], seconds: float = 600) -> None:
    due = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < due
        time.sleep(0.02)


def gone(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_it_finishes_what_it_began(start: Callable[..., Process], slow: Slow, number: int) -> None:
    process = start("--config", str(slow.path))
    stream = process.stream()
    process.signal(number)
    until(lambda: process.get("/readyz") == 503)
    assert process.get("/livez") == 200
    status, headers, body = process.ask("/v1/chat/completions", CHAT)
    assert (status, headers["retry-after"], headers["connection"]) == (503, "1", "close")
    assert json.loads(body)["error"]["code"] == "shutting_down"
    slow.free.set()
    rest = stream.read()
    assert b"hello." in rest
    assert rest.endswith(b"data: [DONE]\n\n")
    assert process.wait() == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(process.address)


@pytest.mark.parametrize("slow", [0.3], indirect=True)
def test_what_does_not_end_by_itself_is_ended(start: Callable[..., Process], slow: Slow) -> None:
    process = start("--config", str(slow.path))
    stream = process.stream()
    process.signal(signal.SIGTERM)
    rest = stream.read().decode()
    assert "the gateway is shutting down" in rest
    assert "[DONE]" not in rest
    assert process.wait() == 0
    lines = [json.loads(line) for line in process.said if line.startswith("{")]
    assert any(line.get("code") == "shutting_down" and line["status"] == 200 for line in lines)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_second_signal_ends_it_at_once(start: Callable[..., Process], slow: Slow, workers: str) -> None:
    process = start("--config", str(slow.path), "--workers", workers)
    streams = [process.stream()]
    if workers == "1":
        streams.append(process.stream())
    process.signal(signal.SIGINT)
    count = "2 requests" if workers == "1" else "1 request"
    line = f"finishing {count}, for up to 600 s; a second Ctrl-C or signal ends at once"
    until(lambda: any(line in text for text in process.said))
    process.signal(signal.SIGINT)
    assert process.wait() == (130 if workers == "1" else 0)  # long before it would have drained
    for stream in streams:
        stream.close()


def test_an_end_without_requests_is_not_announced(start: Callable[..., Process], slow: Slow) -> None:
    process = start("--config", str(slow.path))
    process.signal(signal.SIGTERM)
    assert process.wait() == 0
    process.reading.join()
    assert not any("finishing" in text for text in process.said)


def test_an_idle_gateway_ends_though_clients_keep_their_connections(start: Callable[..., Process], slow: Slow) -> None:
    process = start("--config", str(slow.path))  # which would drain for ten minutes
    with socket.create_connection(process.address) as idle:
        idle.sendall(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n")
        with idle.makefile("rb") as reader:
            assert b"200" in reader.readline()
        process.signal(signal.SIGTERM)
        assert process.wait() == 0


def test_every_line_it_logs_is_json(start: Callable[..., Process]) -> None:
    process = start("--model", "m=scripted:hello")
    assert process.ask("/v1/chat/completions", CHAT)[0] == 200
    with socket.create_connection(process.address) as raw:
        raw.sendall(b"nonsense\r\n\r\n")
        assert b" 400 " in raw.recv(4096)
    process.signal(signal.SIGTERM)
    assert process.wait() == 0
    logged = [line for line in process.said if not line.startswith(("serving", "  "))]
    assert [json.loads(line)["route"] for line in logged if '"request"' in line] == ["/v1/chat/completions"]
    for line in logged:
        json.loads(line)


def test_a_server_that_is_slow_to_be_probed_does_not_keep_it_from_being_ready(
    start: Callable[..., Process], slow: Slow
) -> None:
    process = start("--model", f"m={slow.url}")  # returns when it is ready
    process.signal(signal.SIGTERM)
    assert process.wait() == 0


needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks into /proc")


def served(process: Process) -> set[str]:
    """The models that it serves."""
    status, _, body = process.ask("/v1/models")
    assert status == 200
    return {row["id"] for row in json.loads(body)["data"]}


def say(process: Process, model: str) -> str:
    status, _, body = process.ask("/v1/chat/completions", {**CHAT, "model": model})
    return json.loads(body)["choices"][0]["message"]["content"] if status == 200 else body.decode()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_told_to_hang_up_it_reads_its_configuration_again(
    start: Callable[..., Process], slow: Slow, workers: str
) -> None:
    process = start("--config", str(slow.path), "--workers", workers)
    stream = process.stream()
    kept = http.client.HTTPConnection(*process.address)

    def open_before() -> int:
        kept.request("GET", "/v1/models")
        return len(json.loads(kept.getresponse().read())["data"])

    assert open_before() == 1
    before = slow.path.read_text()
    slow.path.write_text(before + '[models.n]\nupstream = "scripted:Good morning."\n')
    process.signal(signal.SIGHUP)
    until(lambda: all(served(process) == {"m", "n"} for _ in range(8)))  # whichever worker is asked; one may be later
    until(lambda: say(process, "n") == "Good morning.")
    until(lambda: open_before() == 2)  # a connection that was open goes on
    kept.close()
    slow.free.set()
    assert b"hello." in stream.read()  # what was under way has ended well

    slow.path.write_text(before.replace("m]", "other]"))
    process.signal(signal.SIGHUP)
    until(lambda: all(served(process) == {"other"} for _ in range(8)))
    until(lambda: "there is no model 'n' here" in say(process, "n"))
    assert process.get("/readyz") == 200
    process.signal(signal.SIGTERM)
    assert process.wait() == 0


def test_a_configuration_that_is_wrong_is_not_put_to_use(start: Callable[..., Process], slow: Slow) -> None:
    process = start("--config", str(slow.path))
    good = slow.path.read_text()
    for wrong, said in [("[models.m]\nupstreem = 1\n", "upstreem"), ("[", "gateway.toml")]:
        slow.path.write_text(wrong)
        process.signal(signal.SIGHUP)
        until(lambda said=said: any("the old one stays" in line and said in line for line in process.said))
        assert served(process) == {"m"}
    slow.path.unlink()
    process.signal(signal.SIGHUP)
    until(lambda: sum("the old one stays" in line for line in process.said) == 3)
    slow.path.write_text('[server]\nhost = "127.0.0.2"\n' + good)
    process.signal(signal.SIGHUP)
    until(lambda: any("was reloaded" in line for line in process.said))
    assert any("a change of host takes effect after a restart" in line for line in process.said)
    assert served(process) == {"m"}


def test_a_newer_configuration_opens_nothing(start: Callable[..., Process], slow: Slow) -> None:
    """What others could reach needs a key still, though the newer configuration names no address, or is half written."""
    key = "a-key-of-twenty-letters-and-more"
    closed = f'[server]\nhost = "0.0.0.0"\n[keys.alice]\nhash = "{hashed(key)}"\n'
    slow.path.write_text(closed + slow.path.read_text())
    process = start("--config", str(slow.path))
    for count, text in enumerate(("", '[models.m]\nupstream = "scripted:Hello."\n', "[keys]\n"), 1):
        slow.path.write_text(text)
        process.signal(signal.SIGHUP)
        until(lambda count=count: sum("the old one stays" in line for line in process.said) == count)
        assert process.ask("/v1/chat/completions", CHAT)[0] == 401
    assert "could reach this gateway" in "".join(process.said)


def test_without_a_configuration_there_is_nothing_to_read_again(start: Callable[..., Process]) -> None:
    process = start("--model", "m=scripted:hello", TOOLSPEAK_API_KEY="")
    process.signal(signal.SIGHUP)
    until(lambda: any("no configuration file" in line for line in process.said))
    assert served(process) == {"m"}


@needs_proc
@pytest.mark.parametrize("workers", ["1", "2"])
def test_it_ends_with_its_terminal(slow: Slow, workers: str) -> None:
    command = [sys.executable, "-m", "toolspeak", "serve", "--port", "0", "-c", str(slow.path), "--workers", workers]
    master, slave = pty.openpty()
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(slave)
    seen = b""
    while b"curl" not in seen:
        seen += os.read(master, 4096)
    found = re.search(rb"http://([\w.]+):(\d+)", seen)
    assert found is not None
    host, port = found[1].decode(), int(found[2])

    def is_ready() -> bool:
        with contextlib.suppress(OSError), contextlib.closing(http.client.HTTPConnection(host, port)) as line:
            line.request("GET", "/readyz")
            return line.getresponse().status == 200
        return False

    until(is_ready)
    os.close(master)
    assert process.wait(600) == 0


@needs_proc
def test_workers_share_a_socket_and_their_figures_and_are_started_again(start: Callable[..., Process]) -> None:
    process = start("--model", "m=scripted:hello", "--workers", "2", TOOLSPEAK_API_KEY="")
    until(lambda: len(process.workers()) == 2)
    first, second = process.workers()
    for pid in (first, second):
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        assert command == Path(f"/proc/{process.process.pid}/cmdline").read_bytes()
    for _ in range(20):
        assert process.ask("/v1/models")[0] == 200
    row = re.compile(rb'toolspeak_requests_total\{model="",route="/v1/models",status="200"\} 20.0')
    until(lambda: bool(row.search(process.ask("/metrics")[2])))  # a request is counted once its answer is sent
    assert all(row.search(process.ask("/metrics")[2]) for _ in range(6))  # whichever is asked
    os.kill(first, signal.SIGKILL)
    until(lambda: len(process.workers()) == 2 and first not in process.workers())
    assert second in process.workers()
    until(lambda: any(line[:1] == "{" and f"worker {first} ended with code -9" in line for line in process.said))
    assert row.search(process.ask("/metrics")[2])  # what it had counted is not lost
    workers = process.workers()
    process.signal(signal.SIGTERM)
    assert process.wait() == 0
    assert all(gone(pid) for pid in workers)


def test_what_is_to_be_done_at_the_end_is_done_in_a_worker() -> None:
    code = """
import atexit, os, signal
from toolspeak.gateway.serve.supervisor import supervise
def work(_):
    atexit.register(lambda: os.write(1, b"bye"))
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    os.kill(os.getppid(), signal.SIGTERM)
    signal.sigwait([signal.SIGTERM])
supervise(1, work)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "bye"), done.stderr


@needs_proc
def test_workers_finish_what_they_began(start: Callable[..., Process], slow: Slow) -> None:
    process = start("--config", str(slow.path), "--workers", "2")
    streams = [process.stream() for _ in range(4)]
    process.signal(signal.SIGTERM)
    time.sleep(0.2)
    slow.free.set()
    assert all(stream.read().endswith(b"data: [DONE]\n\n") for stream in streams)
    assert process.wait() == 0


@needs_proc
def test_workers_end_when_their_supervisor_is_killed(start: Callable[..., Process]) -> None:
    process = start("--model", "m=scripted:hello", "--workers", "2")
    until(lambda: len(process.workers()) == 2)
    workers = process.workers()
    process.signal(signal.SIGKILL)
    process.wait()
    until(lambda: all(gone(pid) for pid in workers))


def test_workers_that_cannot_start_are_not_started_for_ever() -> None:
    code = (
        "from toolspeak.gateway.serve.supervisor import supervise\ndef work(_): raise OSError('no')\nsupervise(2, work)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "could not start" in done.stderr


def test_the_embedded_model_is_loaded_while_requests_wait(start: Callable[..., Process]) -> None:
    pytest.importorskip("xllamacpp")
    process = Process("--model", "m=local")
    try:
        until(lambda: _answers(process))
        early = process.get("/readyz")
        status, _, body = process.ask("/v1/chat/completions", {**CHAT, "max_tokens": 4})
        assert (status, bool(json.loads(body)["choices"])) == (200, True)
        assert early in (200, 503)
        until(lambda: process.get("/readyz") == 200)
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
    finally:
        process.close()


def _answers(process: Process) -> bool:
    try:
        return process.get("/livez") == 200
    except OSError:
        return False


def test_folders_of_killed_supervisors_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR", raising=False)
    abandoned, used, begun = (tmp_path / f"toolspeak-metrics-{name}" for name in ("abandoned", "used", "begun"))
    for folder in (abandoned, used, begun):
        folder.mkdir()
    (abandoned / ".lock").touch()
    with (used / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with supervisor._metrics_directory():
            ours = Path(os.environ["PROMETHEUS_MULTIPROC_DIR"])
            assert {*tmp_path.iterdir()} == {used, begun, ours}
            supervisor._remove_abandoned()
            assert ours.is_dir()
    assert {*tmp_path.iterdir()} == {used, begun}
