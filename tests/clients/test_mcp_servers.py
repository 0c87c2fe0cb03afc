"""MCP servers that people use, from the registries: their tools listed, called, and their ends seen."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")
sys.path.insert(0, str(Path(__file__).parent))

from environments import Unavailable
from roster import SERVERS, server

import toolspeak as ts

PATIENT = 600.0


@pytest.fixture
def start() -> Callable[..., Any]:
    """`start("mcp-server-time", *arguments)`: its tools; the test is skipped where the server is not there."""

    def tools(name: str, *args: str, **how: Any) -> Any:
        return ts.mcp([program(name), *args], timeout=PATIENT, pins=False, **how)

    return tools


def program(name: str) -> str:
    try:
        return server(name)
    except Unavailable as why:
        pytest.skip(f"{name}: {why}")


def call(box: Any, name: str, **arguments: Any) -> Any:
    return box.call({"name": name, "arguments": arguments})


@pytest.mark.parametrize("name", SERVERS)
def test_its_definitions_are_taken_and_pinned(name: str, start: Any, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    args = {"server-filesystem": [str(tmp_path)], "mcp-server-git": ["--repository", str(tmp_path)]}.get(name, [])
    for _ in range(2):
        with ts.mcp([program(name), *args], timeout=PATIENT, pins=tmp_path / "pins.json") as box:
            assert len(box)
            assert all(one.description for one in box)


def test_everything(start: Any) -> None:
    with start("server-everything") as box:
        assert call(box, "echo", message="hi") == "Echo: hi"
        assert call(box, "get-sum", a=2, b=3) == "The sum of 2 and 3 is 5."
        assert set(call(box, "get-structured-content", location="New York")) == {
            "temperature",
            "conditions",
            "humidity",
        }
        assert "[image, image/png, 4,033 bytes]" in call(box, "get-tiny-image")
        assert "[resource demo://resource/dynamic/text/1]" in call(
            box, "get-resource-reference", resourceType="Text", resourceId=1
        )
        assert call(box, "trigger-long-running-operation", duration=0.2, steps=2).startswith("Long running")
        with pytest.raises(ts.InvalidCall):
            call(box, "get-sum", a="two", b=3)


@contextmanager
def everything_over_http() -> Iterator[str]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [program("server-everything"), "streamableHttp"]
    with subprocess.Popen(
        command, env={**os.environ, "PORT": str(port)}, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as running:
        assert running.stderr is not None
        for line in running.stderr:
            if str(port) in line:
                break
        threading.Thread(target=running.stderr.read, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            running.kill()


def test_everything_over_http(start: Any) -> None:
    with everything_over_http() as url, ts.mcp(url, timeout=PATIENT, pins=False) as box:
        assert call(box, "echo", message="hi") == "Echo: hi"
        assert call(box, "trigger-long-running-operation", duration=0.2, steps=2).startswith("Long running")


def test_filesystem(start: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    with start("server-filesystem", str(tmp_path)) as box:
        assert "a.txt" in call(box, "list_directory", path=str(tmp_path))
        assert call(box, "read_text_file", path=str(tmp_path / "a.txt")) == "hello"
        with pytest.raises(ts.ToolError, match="Access denied"):
            call(box, "read_text_file", path="/etc/hostname")


def test_memory(start: Any, tmp_path: Path) -> None:
    with start("server-memory", env={"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}) as box:
        call(box, "create_entities", entities=[{"name": "Ada", "entityType": "person", "observations": ["counts"]}])
        assert call(box, "read_graph")["entities"][0]["name"] == "Ada"


def test_time(start: Any) -> None:
    with start("mcp-server-time") as box:
        assert call(box, "get_current_time", timezone="Asia/Shanghai")["timezone"] == "Asia/Shanghai"
        with pytest.raises(ts.ToolError, match="Invalid timezone"):
            call(box, "get_current_time", timezone="Mars/Olympus")


def test_git(start: Any, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "a.txt").write_text("hello")
    with start("mcp-server-git", "--repository", str(tmp_path)) as box:
        assert "a.txt" in call(box, "git_status", repo_path=str(tmp_path))


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"<html><body><p>A page of this machine.</p></body></html>"
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def test_fetch(start: Any) -> None:
    with HTTPServer(("127.0.0.1", 0), Page) as pages:
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        with start("mcp-server-fetch", "--allow-private-ips") as box:
            assert "A page of this machine." in call(box, "fetch", url=f"http://127.0.0.1:{pages.server_port}/")
        pages.shutdown()
