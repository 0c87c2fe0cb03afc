"""How much of each prompt of a coding agent's session a prefix cache would hit, behind the gateway.

    python benchmarks/agents/prefix.py [AGENT ...]

Each agent is started by `toolspeak launch` and does a task of ten steps with its own tools, in front of a scripted model of
three dialects. Of each prompt the share is measured that begins as an earlier prompt of the session does. The first prompt
of the task and the first beside it (a short one: a title for the session), of which nothing can be in a cache, are left out;
all others count. The programs come from the environments of `make test-clients`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CLIENTS = HERE.parent.parent / "tests" / "clients"
sys.path[:0] = [str(HERE.parent.parent / "src"), str(CLIENTS)]
os.environ.setdefault("CLIENTS", "some")

import upstream
from coding_agents import AGENTS, DIALECTS, Agent, step
from test_clients import started

COMMANDS = [f"echo line {i} >> notes.txt; cat notes.txt" for i in range(10)]
LAST = f"echo {upstream.TOKEN}"
STEPS = {
    "claude": lambda command: step("Bash", command=command, description="A step"),
    "codex": lambda command: step("exec_command", cmd=command),
    "opencode": lambda command: step("bash", command=command),
}
CONFIG = '[models.{0}]\nupstream = "http://127.0.0.1:{1}/v1#{0}"\nmode = "chat"\ndialect = "{0}"\n'


def serve(file: Path) -> None:
    """The scripted model's server, which keeps what it is asked in a file."""
    spoken = upstream.spoken

    def kept(messages: list[dict[str, Any]], dialect: str = "hermes") -> str | None:
        with file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(messages) + "\n")
        return spoken(messages, dialect)

    upstream.spoken = kept
    asyncio.run(upstream.serve())


def common(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def hit(prompts: list[str]) -> float:
    """The share of all prompts but the first long and the first short one that begins as an earlier one does."""
    found = whole = 0
    seen: set[bool] = set()
    for i, prompt in enumerate(prompts):
        kind = len(prompt) > max(map(len, prompts)) / 2
        if kind in seen:
            found += max(common(prompt, before) for before in prompts[:i])
            whole += len(prompt)
        seen.add(kind)
    return found / whole


def session(agent: Agent, dialect: str) -> list[str]:
    """The prompts of a session."""
    with tempfile.TemporaryDirectory(prefix="prefix-") as folder:
        home = Path(folder)
        asked = home / "asked.jsonl"
        with started(home / "upstream.log", r"^(\d+)\n", str(Path(__file__)), "--serve", str(asked)) as port:
            config = home / "gateway.toml"
            config.write_text(CONFIG.format(dialect, port))
            task = replace(agent, steps=tuple(map(STEPS[agent.name], [*COMMANDS, LAST])))
            done = task.play(home / "home", config, dialect, agent.ways[0])
            if upstream.TOKEN not in done.stdout:
                raise SystemExit(f"{agent.name} did not end its task:\n{done.stdout}\n{done.stderr}")
        rows = [json.loads(line) for line in asked.read_text("utf-8").splitlines()]
    return ["\n".join(f"{row['role']}: {row['content']}" for row in messages) for messages in rows]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("agents", nargs="*", default=list(STEPS), metavar="AGENT", help=", ".join(STEPS))
    options.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.serve:
        serve(given.serve)
        return
    print("| agent | dialect | requests | characters of the last prompt | hit |\n|---|---|--:|--:|--:|")
    first = {agent.name: agent for agent in reversed(AGENTS)}
    for agent in map(first.__getitem__, given.agents):
        for dialect in DIALECTS:
            prompts = session(agent, dialect)
            row = f"| {' '.join(agent.pins)} | {dialect} | {len(prompts)} | {len(prompts[-1]):,} | {hit(prompts):.1%} |"
            print(row, flush=True)


if __name__ == "__main__":
    main()
