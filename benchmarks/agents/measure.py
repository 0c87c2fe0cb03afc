"""Whether the tools that a good agent would use first are in view, whatever is asked and however many servers it has.

    python benchmarks/agents/measure.py [--from FOLDER]

Reads what `record.py` kept of real agents, puts 0, 100 and 400 tools of ours beside their own (named as the agent names those
of its MCP servers), asks the questions of `questions.py` in place of the recorded one, and looks at what the gateway would
show of them: with a context that is not known, and with known ones. Each agent is also read with its own tools renamed at
random, in its definitions and its prompts alike, and with all tools renamed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent / "src"), str(HERE)]

from questions import QUESTIONS
from record import INTO, QUESTION
from tools_server import SERVICES, tools

from toolspeak.api import anthropic, openai_chat, openai_responses
from toolspeak.gateway.config.settings import ModelSettings
from toolspeak.gateway.registry import Served
from toolspeak.models.scripted import Scripted
from toolspeak.types import Request

NEEDED = {
    "claude": {"l": "Read", "r": "Bash", "c": "Edit", "w": "Write"},
    "codex": {"l": "exec_command", "r": "exec_command", "c": "exec_command", "w": "exec_command"},
    "opencode": {"l": "read", "r": "bash", "c": "edit", "w": "write"},
}
"""What each agent does these by. Here and in no file of the library."""
CONTEXTS = (None, 200_000, 32_768, 16_384)
COUNTS = (0, 100, 400)
SYLLABLES = ["ba", "dor", "fi", "gu", "kel", "lo", "mur", "na", "pix", "ro", "sun", "tiv", "vo", "wem", "zat"]


def full(agent: str, service: str, name: str) -> str:
    return f"{service}_{name}" if agent == "opencode" else f"mcp__{service}__{name}"


def added(agent: str, count: int) -> list[dict[str, Any]]:
    """So many tools of servers, in the agent's own form."""
    rows: list[dict[str, Any]] = []
    per = -(-count // len(SERVICES))
    for service in SERVICES:
        made = tools(service, per)
        if agent == "codex" and made:
            inner = [
                {"type": "function", "name": row["name"], "description": row["description"], "parameters": row["inputSchema"]}
                for row in made
            ]  # fmt: skip
            rows.append(
                {"type": "namespace", "name": f"mcp__{service}", "description": "Tools of ours.", "tools": inner}
            )
            continue
        for row in made:
            name, said, schema = full(agent, service, row["name"]), row["description"], row["inputSchema"]
            if agent == "claude":
                rows.append({"name": name, "description": said, "input_schema": schema})
            else:
                function = {"name": name, "description": said, "parameters": schema}
                rows.append({"type": "function", "function": function})
    return rows


def with_tools(agent: str, body: dict[str, Any], count: int) -> dict[str, Any]:
    """The body with tools of servers beside its own; where its own come sorted, so do all."""
    every = [*(tool for tool in body["tools"] if tool.get("type") != "web_search"), *added(agent, count)]
    if agent != "codex":
        every.sort(key=lambda tool: tool.get("name") or tool["function"]["name"])
    return {**body, "tools": every}


def names_of(tools: list[dict[str, Any]]) -> list[str]:
    """The names of tools, and of namespaces and the tools inside them."""
    own = [name for tool in tools if (name := (tool.get("function") or tool).get("name"))]
    return list(dict.fromkeys([*own, *(name for tool in tools for name in names_of(tool.get("tools") or []))]))


def random_name(chance: random.Random, taken: set[str]) -> str:
    while True:
        parts = ["".join(chance.choices(SYLLABLES, k=2)) for _ in range(chance.choice((1, 1, 2)))]
        name = chance.choice(("_", "")).join(part.title() if chance.random() < 0.3 else part for part in parts)
        if name not in taken:
            taken.add(name)
            return name


def renamed(body: dict[str, Any], names: list[str], seed: int) -> tuple[dict[str, Any], dict[str, str]]:
    """The body with these names replaced at random wherever they stand as words, and the new ones by the old."""
    chance, taken = random.Random(seed), set[str]()
    new = {name: random_name(chance, taken) for name in names}
    pattern = re.compile(r"(?<![\w.])(" + "|".join(map(re.escape, sorted(new, key=len, reverse=True))) + r")(?![\w])")

    def walk(value: Any) -> Any:
        if isinstance(value, str):
            return pattern.sub(lambda match: new[match[1]], value)
        if isinstance(value, list):
            return [walk(one) for one in value]
        if isinstance(value, dict):
            return {key: walk(one) for key, one in value.items()}
        return value

    system = {key: walk(body[key]) for key in ("system", "instructions", "messages", "input", "tools") if key in body}
    roles = ("system", "developer", "user", "assistant")
    for key in ("messages", "input"):
        for before, after in zip(body.get(key) or (), system.get(key) or (), strict=True):
            if before.get("role") in roles:
                after |= {"role": before["role"], **({"type": before["type"]} if "type" in before else {})}
    return {**body, **system}, new


CODECS: dict[str, Any] = {"claude": anthropic, "codex": openai_responses, "opencode": openai_chat}


def read(agent: str, body: dict[str, Any], question: str) -> Request:
    text = json.dumps(body).replace(QUESTION, json.dumps(question)[1:-1])
    return CODECS[agent].read_request(json.loads(text)).request


def in_view(request: Request, context: int | None) -> set[str]:
    model = Scripted([], capabilities=["tools"])
    served = Served(ModelSettings("m", ("scripted:",), context=context), model)
    return {tool.name for tool in asyncio.run(served.narrowed(request)).tools or ()}


def share(agent: str, body: dict[str, Any], new: dict[str, str], context: int | None) -> tuple[float, float, list[str]]:
    """The share of the questions for which all that is needed is in view, how many tools are, and what is missed."""
    whole, shown, missed = 0, 0, list[str]()
    for question, letters in QUESTIONS:
        seen = in_view(read(agent, body, question), context)
        needed = {(name := NEEDED[agent][letter], new.get(name, name))[1] for letter in letters}
        whole += needed <= seen
        shown += len(seen)
        if not needed <= seen:
            missed.append(f"{question!r}: {', '.join(sorted(needed - seen))}")
    return whole / len(QUESTIONS), shown / len(QUESTIONS), missed


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--from", dest="source", type=Path, default=INTO)
    given = options.parse_args()
    heads = " | ".join(f"{context:,}" if context else "not known" for context in CONTEXTS)
    print(f"| agent | tools | {heads} | in view |\n|---|--:|" + "--:|" * len(CONTEXTS) + "--:|")
    worst, every = 1.0, list[str]()
    for file in sorted(given.source.glob("*-alone.json")):
        kept = json.loads(file.read_text())
        agent, plain = kept["agent"], kept["requests"][0]["body"]
        for variant in ("", "own renamed", "all renamed"):
            for count in COUNTS:
                body, new = with_tools(agent, plain, count), dict[str, str]()
                if variant:
                    own = set(names_of(plain["tools"]))
                    names = [name for name in names_of(body["tools"]) if variant == "all renamed" or name in own]
                    body, new = renamed(body, names, seed=len(names))
                rows = [share(agent, body, new, context) for context in CONTEXTS]
                least = min(found for found, _, _ in rows)
                worst = min(worst, least)
                every += [f"{agent} {variant} {count}: {one}" for _, _, missed in rows for one in missed]
                label = f"{agent} {kept['version']}" + (f", {variant}" if variant else "")
                total = len(read(agent, body, "hi").tools or ())
                counts = " | ".join(f"{shown:.0f}" for _, shown, _ in rows)
                print(f"| {label} | {total} | {counts} | {least:.0%} |", flush=True)
    print(f"\nworst: {worst:.1%}")
    print("\n".join(every[:40]))


if __name__ == "__main__":
    main()
