"""How soon the page of `toolspeak ui` is there: from the start of the command to a first view in Chromium, median of seven.

The lower bound is a page of one word that a bare Python serves to the same browser. Needs Playwright and Chromium, as the
tests of the page do (`make test-browser` installs the first).
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

ROUNDS = 7
OURS = [sys.executable, "-m", "toolspeak", "ui", "--model", "scripted:Hello", "--port", "0"]
BARE = [
    *(sys.executable, "-uc"),
    "from http.server import *\n"
    "class Page(BaseHTTPRequestHandler):\n"
    "    def do_GET(self):\n"
    "        self.send_response(200); self.send_header('content-type', 'text/html'); self.end_headers()\n"
    "        self.wfile.write(b'<main>Hello</main>')\n"
    "    def log_message(self, *_): pass\n"
    "server = HTTPServer(('127.0.0.1', 0), Page)\n"
    "print(f'http://127.0.0.1:{server.server_port}/')\n"
    "server.serve_forever()",
]


def rows() -> Iterator[tuple[str, str, str]]:
    """Seconds until a bare page and ours are visible, and until ours is listened for."""
    chromium = shutil.which("chromium")
    if importlib.util.find_spec("playwright") is None or chromium is None:
        yield "the page", "-", "needs playwright and chromium: make test-browser"
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        _, bare = _seconds(page, BARE)
        listening, ours = _seconds(page, OURS)
        browser.close()
    yield "a page of one word, bare Python", f"{bare:.2f} s", "from the command to the view"
    yield "toolspeak ui, until it listens", f"{listening:.2f} s", ""
    yield "toolspeak ui, until it is seen", f"{ours:.2f} s", f"{ours / bare:.1f} × the bare page; target <= 1"


def _seconds(page: Any, command: Sequence[str]) -> tuple[float, float]:
    """Until the command listens and until its page is visible, after one round that warms the disk."""
    listening, seen = list[float](), list[float]()
    for _ in range(ROUNDS + 1):
        page.goto("about:blank")
        start = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
            assert server.stdout is not None
            url = next(found[0] for line in server.stdout if (found := re.search(r"http://\S+", line)))
            listening.append(time.perf_counter() - start)
            page.goto(url)
            page.wait_for_selector("main", state="visible")
            seen.append(time.perf_counter() - start)
            server.terminate()
    return statistics.median(listening[1:]), statistics.median(seen[1:])
