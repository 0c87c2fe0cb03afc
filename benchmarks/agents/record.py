"""Runs real coding agents against a scripted gateway on loopback, and keeps what they send.

    python benchmarks/agents/record.py [--into FOLDER] [--from FOLDER] [AGENT ...]

The agents come from npm (`claude`, `codex`, `opencode`), into a folder of the user's cache, unless `--from` names one that
holds `node_modules`. Each runs in a home directory of its own, in a small project of ours, and is asked one question:
once as it is, and once with MCP servers of ours. What it sends is its maker's: it is kept under `benchmarks/.agents/`,
which git ignores, for `measure.py` and never for the repository.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from aiohttp import web

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent / "src"), str(HERE)]

from tools_server import SERVICES

from toolspeak.models.embedded.weights import cache_dir

INTO = HERE.parent / ".agents"
PACKAGES = {"claude": "@anthropic-ai/claude-code", "codex": "@openai/codex", "opencode": "opencode-ai"}
PINNED = {"claude": "2.1.331", "codex": "0.169.0", "opencode": "1.18.33"}
PROGRAMS = {
    "claude": "@anthropic-ai/claude-code-linux-x64/claude",
    "codex": "@openai/codex/bin/codex.js",
    "opencode": "opencode-linux-x64/bin/opencode",
}
"""What is run, below `node_modules`: npm's own scripts are not needed."""
QUESTION = "Please answer question 7F3A now"
"""What the agents are asked; `measure.py` puts its own in this place."""
EACH = 10
"""Tools of each MCP server."""
SECONDS = 90

# ------------------------------------------------------------------ the gateway


def events(*rows: tuple[str, dict[str, Any]]) -> str:
    return "".join(f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in rows)


def messages() -> str:
    usage = {"input_tokens": 9, "output_tokens": 1}
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
    return events(
        ("message_start", {"message": {**message, "usage": usage}}),
        ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        ("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": "OK"}}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage}),
        ("message_stop", {}),
    )


def responses() -> str:
    text = {"type": "output_text", "text": "OK", "annotations": []}
    item = {"type": "message", "id": "i1", "role": "assistant", "status": "completed", "content": [text]}
    usage = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}
    whole = {"id": "r1", "object": "response", "status": "completed", "output": [item], "usage": usage}
    return events(
        ("response.created", {"response": {**whole, "status": "in_progress", "output": []}}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": whole}),
    )


def chat() -> str:
    chunk: dict[str, Any] = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    said = {**chunk, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "OK"}}]}
    end = {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return "".join(f"data: {json.dumps(row)}\n\n" for row in (said, end)) + "data: [DONE]\n\n"


ANSWERS = {"/messages": messages, "/responses": responses, "/chat/completions": chat}


async def listen(kept: list[dict[str, Any]]) -> tuple[web.AppRunner, int]:
    """A server that answers everything with two letters and keeps what it was asked."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            body = await request.json()
        except ValueError:
            body = None
        for end, made in ANSWERS.items():
            if request.path.endswith(end) and request.method == "POST":
                kept.append({"path": request.path, "body": body})
                return web.Response(text=made(), content_type="text/event-stream")
        if request.path.endswith("/models"):
            return web.json_response({"object": "list", "data": [{"id": "m", "object": "model"}]})
        return web.json_response({"input_tokens": 9})

    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, runner.addresses[0][1]


# ------------------------------------------------------------------ the agents


def installed(agent: str, given: Path | None) -> Path:
    """The program of an agent, installed where it is not there yet."""
    home = given or cache_dir() / "clients" / "agents"
    program = home / "node_modules" / PROGRAMS[agent]
    if not program.exists():
        home.mkdir(parents=True, exist_ok=True)
        what = f"{PACKAGES[agent]}@{PINNED[agent]}"
        command = ["npm", "install", "--prefix", str(home), "--ignore-scripts", "--no-audit", "--no-fund", what]
        subprocess.run(command, check=True)
    return program


def server(service: str, count: int) -> list[str]:
    return [sys.executable, str(HERE / "tools_server.py"), service, str(count)]


def claude(home: Path, url: str, services: list[str]) -> tuple[list[str], dict[str, str]]:
    config = {name: {"command": (row := server(name, EACH))[0], "args": row[1:]} for name in services}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": config}))
    more = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "CLAUDE_CONFIG_DIR": str(home / "claude")}
    more |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1"}
    return ["-p", QUESTION, "--mcp-config", str(home / "mcp.json"), "--strict-mcp-config"], more


def codex(home: Path, url: str, services: list[str]) -> tuple[list[str], dict[str, str]]:
    where = home / "codex"
    where.mkdir()
    lines = ['model = "m"', 'model_provider = "ours"', "[model_providers.ours]", 'name = "ours"']
    lines += [f'base_url = "{url}/v1"', 'wire_api = "responses"', 'env_key = "OURS"']
    for name in services:
        row = server(name, EACH)
        lines += [f"[mcp_servers.{name}]", f"command = {json.dumps(row[0])}", f"args = {json.dumps(row[1:])}"]
    (where / "config.toml").write_text("\n".join(lines))
    return ["exec", "--skip-git-repo-check", QUESTION], {"CODEX_HOME": str(where), "OURS": "none"}


def opencode(home: Path, url: str, services: list[str]) -> tuple[list[str], dict[str, str]]:
    options = {"baseURL": f"{url}/v1", "apiKey": "none"}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "ours", "options": options, "models": {"m": {"name": "m"}}}
    mcp = {name: {"type": "local", "command": server(name, EACH), "enabled": True} for name in services}
    config = {"provider": {"ours": provider}, "model": "ours/m", "small_model": "ours/m", "mcp": mcp}
    (home / "opencode.json").write_text(json.dumps({**config, "autoupdate": False, "share": "disabled"}))
    more = {"OPENCODE_CONFIG": str(home / "opencode.json"), "OPENCODE_DISABLE_AUTOUPDATE": "1"}
    return ["run", QUESTION], {**more, "OPENCODE_DISABLE_MODELS_FETCH": "1"}


AGENTS = {"claude": claude, "codex": codex, "opencode": opencode}


def project(home: Path) -> Path:
    """A small project with a failing test, as a developer has one."""
    root = home / "project"
    (root / "tests").mkdir(parents=True)
    (root / "parser.py").write_text("def parse(text):\n    return text.split(',')\n")
    test = "from parser import parse\n\n\ndef test_blanks():\n    assert parse('a, b') == ['a', 'b']\n"
    (root / "tests" / "test_parser.py").write_text(test)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


async def record(agent: str, program: Path, services: list[str]) -> list[dict[str, Any]]:
    """What the agent sends for one question."""
    kept: list[dict[str, Any]] = []
    runner, port = await listen(kept)
    home = Path(tempfile.mkdtemp(prefix=f"agent-{agent}-"))
    try:
        arguments, more = AGENTS[agent](home, f"http://127.0.0.1:{port}", services)
        command = [*(["node"] if program.suffix == ".js" else []), str(program), *arguments]
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb", "LANG": "C.UTF-8", **more}
        running = await asyncio.create_subprocess_exec(
            *command, cwd=project(home), env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            said, _ = await asyncio.wait_for(running.communicate(), SECONDS)
        except TimeoutError:
            running.kill()
            said = b"it took too long"
        print(f"  {said.decode(errors='replace').strip()[-200:]!r}")
    finally:
        await runner.cleanup()
        shutil.rmtree(home, ignore_errors=True)
    return kept


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("agents", nargs="*", default=list(AGENTS), metavar="AGENT", help=", ".join(AGENTS))
    options.add_argument("--into", type=Path, default=INTO)
    options.add_argument("--from", dest="source", type=Path, help="a folder with node_modules")
    given = options.parse_args()
    given.into.mkdir(parents=True, exist_ok=True)
    for agent in given.agents:
        program = installed(agent, given.source)
        for name, services in (("alone", []), ("servers", list(SERVICES)[:4])):
            print(f"{agent}, {name}")
            kept = asyncio.run(record(agent, program, services))
            asked = [row for row in kept if row["body"] and row["body"].get("tools")]
            print(f"  {len(kept)} requests, {len(asked)} with tools: {[len(row['body']['tools']) for row in asked]}")
            if asked:
                told = {"agent": agent, "version": PINNED[agent], "requests": asked}
                (given.into / f"{agent}-{name}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main()
