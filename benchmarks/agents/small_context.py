"""Whether a coding agent finishes a session that is longer than the model's context.

    python benchmarks/agents/small_context.py [--context TOKENS] [--parts N] [--log FOLDER] [WAY ...]

Each agent is started by `toolspeak launch` and reads a document of N parts of 2,000 tokens, one part a command, in front of a
scripted model with a small context. The model's server counts tokens by characters and refuses longer prompts, as real
servers do. The model knows only what its prompt contains: it asks for the part after the last one that it sees, and
names that part when it is asked for a summary. So an agent finishes only if its compaction keeps what matters. The
programs come from the environments of `make test-clients`.

`codex-openai` is Codex with its own provider `openai` at the gateway's address: it compacts by `compaction_trigger`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from aiohttp import web

HERE = Path(__file__).resolve().parent
CLIENTS = HERE.parent.parent / "tests" / "clients"
sys.path[:0] = [str(HERE.parent.parent / "src"), str(CLIENTS)]
os.environ.setdefault("CLIENTS", "some")

from coding_agents import AGENTS, Agent
from test_clients import started

import toolspeak as ts
from toolspeak.wire.prompt.calls import write_calls

DIALECT = "hermes"
TOKEN = "canary-7f3a"
PART = re.compile(r"part (\d+) of (\d+)")
ASKS_FOR_SUMMARY = re.compile(
    r"summarize this conversation|handoff summary|create a detailed summary|the summary process",
    re.IGNORECASE,
)
CONFIG = '[models.small]\nupstream = "http://127.0.0.1:{0}/v1#small"\nmode = "chat"\ndialect = "{1}"\n{2}'
COMMANDS = {
    "claude": lambda command: ts.ToolCall("", "Bash", {"command": command, "description": "Read a part"}),
    "codex": lambda command: ts.ToolCall("", "exec_command", {"cmd": command}),
    "opencode": lambda command: ts.ToolCall("", "bash", {"command": command}),
}
WAYS = ("claude", "codex", "codex-openai", "opencode")
SECONDS = 240

# ------------------------------------------------------------------ the model


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


def spoken(texts: list[str], agent: str, parts: int) -> str:
    """What the model says."""
    seen = max((int(at) for text in texts for at, _ in PART.findall(text)), default=0)
    if ASKS_FOR_SUMMARY.search(texts[-1]):
        return f"The last part that was read is part {seen} of {parts}. {TOKEN if seen == parts else ''}"
    if not any(f'"name": "{COMMANDS[agent]("").name}"' in text for text in texts):
        return "A title"
    if seen >= parts:
        return f"All parts are read: {TOKEN}"
    return write_calls([COMMANDS[agent](f"python3 part.py {seen + 1}")], ts.dialect(DIALECT))


async def serve(agent: str, context: int, parts: int, log: Path) -> None:
    """The server of the model. Prints its port."""

    async def chat(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        texts = [text_of(message.get("content")) for message in body["messages"]]
        tokens = sum(map(len, texts)) // 4
        row = {"tokens": tokens, "messages": body["messages"]}
        if tokens > context:
            said = (
                f"This model's maximum context length is {context} tokens. However, your messages have {tokens} tokens."
            )
            row["said"] = said
            result: web.StreamResponse = web.json_response(
                {"error": {"message": said, "type": "invalid_request_error", "code": "context_length_exceeded"}},
                status=400,
            )
        else:
            row["said"] = text = spoken(texts, agent, parts)
            usage = {
                "prompt_tokens": tokens,
                "completion_tokens": len(text) // 4,
                "total_tokens": tokens + len(text) // 4,
            }
            result = await reply(request, text, usage, stream=bool(body.get("stream")))
        with log.open("a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")
        return result

    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


async def reply(request: web.Request, text: str, usage: dict[str, int], *, stream: bool) -> web.StreamResponse:
    if not stream:
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return web.json_response({"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage})
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "small"}
    rows = [
        {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": usage},
    ]
    for row in rows:
        await response.write(f"data: {json.dumps(head | row)}\n\n".encode())
    await response.write(b"data: [DONE]\n\n")
    return response


# ------------------------------------------------------------------ the session

PART_PY = """import sys
at, last = int(sys.argv[1]), {parts}
print(f"part {{at}} of {parts}")
for line in range(160):
    print(f"{{at}}.{{line}}: so many words of the document, of no use to us")
print("the secret is {token}" if at == last else "")
"""


def play(way: str, context: int, parts: int, more: str, log: Path) -> tuple[bool, str, list[dict[str, Any]]]:
    """Whether the session was finished, what the agent printed, and the requests to the model."""
    name = way.partition("-")[0]
    agent = {one.name: one for one in reversed(AGENTS)}[name]
    with tempfile.TemporaryDirectory(prefix="small-") as folder:
        home = Path(folder)
        asked = home / "asked.jsonl"
        model = (str(Path(__file__)), "--serve", str(asked), "--context", str(context), "--parts", str(parts), name)
        with started(home / "upstream.log", r"^(\d+)\n", *model) as port:
            config = home / "gateway.toml"
            config.write_text(CONFIG.format(port, DIALECT, more))
            said = launched(agent, way, home, config, context, parts)
        rows = [json.loads(line) for line in asked.read_text("utf-8").splitlines()]
        log.mkdir(parents=True, exist_ok=True)
        (log / f"{way}.jsonl").write_text(asked.read_text("utf-8"))
        (log / f"{way}.txt").write_text(said)
    return TOKEN in said, said, rows


def launched(agent: Agent, way: str, home: Path, config: Path, context: int, parts: int) -> str:
    """What the agent prints, from a home directory and a project of its own."""
    project, programs = home / "project", home / "bin"
    for folder in (project, programs):
        folder.mkdir(parents=True)
    (programs / agent.name).symlink_to(agent.installed())
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    (project / "part.py").write_text(PART_PY.format(parts=parts, token=TOKEN))
    task = "Read this document to its end, one piece after another: run `python3 part.py NUMBER`, from number 1 on. Then name the secret."
    inherited = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "HOME": str(home), "LANG": "C.UTF-8"}
    inherited |= {"TERM": "dumb", "GIT_CONFIG_NOSYSTEM": "1", **agent.variables}
    if "-" not in way:
        command = [
            sys.executable,
            "-m",
            "toolspeak",
            "launch",
            agent.name,
            "--config",
            str(config),
            "--model",
            "small",
            "--",
        ]
        return run([*command, *agent.before, task, *agent.after], project, inherited)
    gateway = ("-m", "toolspeak", "serve", "--config", str(config), "--default", "small", "--port", "0")
    with started(home / "gateway.log", r"(http://127\.0\.0\.1:\d+)/v1", *gateway) as url:
        own = {"model": "small", "openai_base_url": f"{url}/v1", "model_context_window": context}
        values = [part for name, value in own.items() for part in ("-c", f"{name}={json.dumps(value)}")]
        inherited |= {"OPENAI_API_KEY": "none", "CODEX_API_KEY": "none"}
        said = run([agent.name, *values, *agent.before, task], project, inherited)
        return said + (home / "gateway.log").read_text()


def run(command: list[str], folder: Path, variables: dict[str, str]) -> str:
    try:
        done = subprocess.run(
            command, check=False, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=SECONDS, start_new_session=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        return f"it did not end in {SECONDS} s:\n{(late.stdout or b'').decode(errors='replace')}"
    return done.stdout


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("ways", nargs="*", default=list(WAYS), metavar="WAY", help=", ".join(WAYS))
    options.add_argument("--context", type=int, default=40_000)
    options.add_argument("--parts", type=int, default=30)
    options.add_argument("--unknown", action="store_true", help="neither the gateway nor the agent knows the context")
    options.add_argument("--log", type=Path, default=HERE.parent / ".agents" / "small")
    options.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.serve:
        asyncio.run(serve(given.ways[0], given.context, given.parts, given.serve))
        return
    print(
        "| agent | context | parts | requests | summaries | refused as too long | finished |\n|---|--:|--:|--:|--:|--:|---|"
    )
    for way in given.ways:
        config = "" if given.unknown else f"context = {given.context}\n"
        done, _, rows = play(way, given.context, given.parts, config, given.log)
        summaries = sum(bool(ASKS_FOR_SUMMARY.search(text_of(row["messages"][-1].get("content")))) for row in rows)
        refused = sum(row["tokens"] > given.context for row in rows)
        counts = f"{given.context:,} | {given.parts} | {len(rows)} | {summaries} | {refused}"
        print(f"| {way} | {counts} | {'yes' if done else 'no'} |", flush=True)


if __name__ == "__main__":
    main()
