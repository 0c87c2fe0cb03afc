"""OpenAPI documents of servers in the user's own network, on the command line."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from world import Cli

LIGHT = {"get": {"operationId": "get_light", "summary": "The light.", "responses": {"200": {"description": "ok"}}}}
DOCUMENT: dict[str, Any] = {"openapi": "3.0.3", "info": {"title": "t", "version": "1"}, "paths": {"/light": LIGHT}}


class Home(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps(DOCUMENT if self.path == "/openapi.json" else {"light": "on"}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Home) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_a_document_from_the_server_itself(cli: Cli, port: int) -> None:
    for host in ("localhost", "127.0.0.1"):
        done = cli("call", f"openapi:http://{host}:{port}/openapi.json:get_light", "{}")
        assert (done.returncode, done.stdout) == (0, '{"light": "on"}\n'), done.stderr


def test_a_document_in_a_file_says_how_its_server_is_allowed(cli: Cli, port: int, place: Path) -> None:
    url = f"http://localhost:{port}"
    (place / "home.json").write_text(json.dumps(DOCUMENT | {"servers": [{"url": url}]}))
    done = cli("call", "openapi:home.json:get_light", "{}")
    assert done.returncode == 1
    assert f'server="{url}/…"' in done.stderr
    assert "write `api = toolspeak.openapi(DOCUMENT, server=…)` into api.py, and name api.py:api" in done.stderr
    (place / "api.py").write_text(f'import toolspeak\n\napi = toolspeak.openapi("home.json", server="{url}/")\n')
    done = cli("call", "api.py:api#get_light", "{}")
    assert (done.returncode, done.stdout) == (0, '{"light": "on"}\n'), done.stderr


def test_an_argument_of_python_is_explained(cli: Cli, place: Path) -> None:
    (place / "home.json").write_text(json.dumps(DOCUMENT))
    done = cli("tools", "openapi:home.json")
    assert done.returncode == 2
    assert 'pass it with server="https://…". Here, give it in a Python file: write `api = toolspeak.op' in done.stderr


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("openapi:localhost:8123/openapi.json", "Did you mean openapi:http://localhost:8123/openapi.json?"),
        ("openapi:192.168.1.5/openapi.json", "Did you mean openapi:http://192.168.1.5/openapi.json?"),
        ("http://localhost:8123/openapi.json", "expected openapi:http://localhost:8123/openapi.json for an OpenAPI"),
        ("openapi:nothere.json", "nothere.json cannot be read: No such file"),
    ],
)
def test_a_source_without_its_beginning(cli: Cli, source: str, hint: str) -> None:
    done = cli("tools", source)
    assert done.returncode == 2
    assert hint in done.stderr
