"""The clients: what each is made of, pinned, and by which of its ways it asks.

python roster.py        makes every environment that is missing, and says which could not be had
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import asking
from coding_agents import AGENTS
from environments import Unavailable, node, python
from frameworks import FRAMEWORKS

TIMEOUT = 300  # seconds


@dataclass(frozen=True, slots=True)
class Client:
    """One client: its script, its packages, and the scenarios it must tell of, by its ways of asking."""

    name: str
    script: str
    pins: tuple[str, ...]
    ways: dict[str, tuple[str, ...]]

    @property
    def scenarios(self) -> list[str]:
        return [f"{way}.{name}" for way, names in self.ways.items() for name in names]

    def command(self, make: bool = True) -> tuple[list[str], Path]:
        """How it is started, and where; its environment is made first where it is missing. Raises Unavailable."""
        if self.script.endswith(".mjs"):
            home = node(self.name, self.pins, make)
            target = home / self.script
            target.write_text((HERE / self.script).read_text(encoding="utf-8"), encoding="utf-8")
            return ["node", str(target)], home
        return [str(python(self.name, self.pins, make)), str(HERE / self.script)], HERE

    def play(self, url: str, model: str, only: str = "") -> dict[str, Any]:
        """What came of its scenarios, by name."""
        command, folder = self.command(make=False)
        given = {"questions": asking.SCRIPT, "functions": asking.FUNCTIONS, "key": asking.KEY}
        done = subprocess.run(
            [*command, url, model, *filter(None, [only])],
            cwd=folder,
            input=json.dumps(given),
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            env={**os.environ, "PYTHONWARNINGS": "ignore", "DO_NOT_TRACK": "1"},
        )
        lines = done.stdout.strip().splitlines()
        if done.returncode or not lines:
            raise AssertionError(
                f"{self.script} failed ({done.returncode}):\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
            )
        return json.loads(lines[-1])


EVERY = tuple(asking.SCRIPT)
ONCE = tuple(name for name in EVERY if not name.startswith("stream"))
"""What is asked for whole."""
STREAMED = ("stream", "stream_call", "parallel", "text_call", "required", "named", "error")
NO_LOOP = tuple(name for name in EVERY if name != "loop")

CLIENTS = (
    Client(
        "openai",
        "with_openai.py",
        ("openai==3.54.0",),
        {
            "chat": ONCE,
            "chat-stream": STREAMED,
            "chat-helper": STREAMED,
            "chat-async": ONCE,
            "responses": ONCE,
            "responses-stream": STREAMED,
        },
    ),
    Client(
        "anthropic",
        "with_anthropic.py",
        ("anthropic==2.12.0",),
        {"messages": ONCE, "messages-stream": STREAMED, "messages-async": ONCE},
    ),
    Client(
        "langchain",
        "with_langchain.py",
        ("langchain-openai==1.7.3", "langchain-anthropic==1.7.7"),
        {"chat": EVERY, "responses": EVERY, "messages": EVERY},
    ),
    Client("llamaindex", "with_llamaindex.py", ("llama-index-llms-openai-like==0.8.1",), {"chat": EVERY}),
    Client(
        "pydantic-ai",
        "with_pydantic_ai.py",
        ("pydantic-ai-slim[openai,anthropic]==2.68.0",),
        {"chat": EVERY, "responses": EVERY, "messages": EVERY},
    ),
    Client("agents", "with_agents.py", ("openai-agents==0.24.0",), {"chat": EVERY, "responses": EVERY}),
    Client(
        "instructor",
        "with_instructor.py",
        ("instructor==1.17.0",),
        {"chat": ("call", "stream_call", "parallel", "text_call", "required", "named", "error", "schema")},
    ),
    Client(
        "vercel",
        "with_vercel.mjs",
        ("ai@7.0.173", "@ai-sdk/openai-compatible@3.0.92", "zod@4.6.7"),
        {"chat": ONCE, "chat-stream": (*STREAMED, "loop")},
    ),
)


SERVERS = {
    "server-everything": "@modelcontextprotocol/server-everything@2026.8.31",
    "server-filesystem": "@modelcontextprotocol/server-filesystem@2026.8.31",
    "server-memory": "@modelcontextprotocol/server-memory@2026.8.31",
    "mcp-server-time": "mcp-server-time==2026.10.19",
    "mcp-server-git": "mcp-server-git==2026.10.19",
    "mcp-server-fetch": "mcp-server-fetch==2026.10.24",
}
"""MCP servers that people use, pinned."""


def server(name: str, make: bool = False) -> str:
    """The program of an MCP server, in an environment of its own. Raises Unavailable."""
    pin = SERVERS[name]
    if pin.startswith("@"):
        return str(node(name, (pin,), make) / "node_modules" / ".bin" / f"mcp-{name}")
    return str(python(name, (pin,), make).with_name(name))


LLM = ("llm==0.36", "-e", str(HERE.parents[1]))
"""The program `llm` with this package's plugin."""


def main() -> int:
    whole = os.environ.get("CLIENTS") == "full"
    makers: list[tuple[str, Callable[[], object]]] = [
        *((one.name, one.command) for one in CLIENTS),
        *((one.name, partial(one.installed, make=True)) for one in AGENTS),
        *((one.name, partial(one.command, make=True)) for one in FRAMEWORKS if whole or not one.slow),
        *((name, partial(server, name, make=True)) for name in SERVERS),
        ("llm", partial(python, "llm", LLM)),
    ]
    for name, make in makers:
        begun = time.monotonic()
        try:
            make()
        except Unavailable as why:
            print(f"{name}: {why}")
        else:
            print(f"{name} ({time.monotonic() - begun:.0f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
