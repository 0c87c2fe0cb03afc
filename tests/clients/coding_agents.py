"""The coding agents: where each comes from, how it is asked one task without a person, and what the task is.

An agent is started by `toolspeak launch` in a home directory of its own, in a small project. The task names the calls that
the scripted model is to make (see `upstream.py`): one that writes a file by the agent's own tool, one that reads it by
another. What the agent prints at the end holds what the second found. One that has no tools but a format of its own (aider)
must find its format unchanged.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

from environments import node, python
from upstream import TOKEN

DIALECTS = ("hermes", "qwen3-coder", "kimi-k2")
SECONDS = 120


def step(name: str, **arguments: str) -> str:
    return f"[[{name} {urlencode(arguments, safe='/')}]]"


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent. `program` is a pattern of its file in its environment, `steps` are the calls that it is to make, `before` and
    `after` is what stands around its task, `ways` are the API that it speaks and, behind a space, further arguments."""

    name: str
    pins: tuple[str]
    program: str
    before: tuple[str, ...]
    steps: tuple[str, ...]
    after: tuple[str, ...] = ()
    ways: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict[str, str])

    def installed(self, make: bool = False) -> Path:
        """Its program, installed first where it is missing. Raises Unavailable."""
        if "==" in self.pins[0]:
            return python(self.name, self.pins, make).with_name(self.program)
        return next((node(self.name, self.pins, make) / "node_modules").glob(self.program)).resolve()

    def play(self, home: Path, config: Path, model: str, way: str) -> subprocess.CompletedProcess[str]:
        """Its two steps, in a new project under `home`."""
        project, programs = home / "project", home / "bin"
        for folder in (project, programs):
            folder.mkdir(parents=True)
        (programs / self.name).symlink_to(self.installed())
        subprocess.run(["git", "init", "-q", str(project)], check=True)
        task = "Do these two steps, please. " + " ".join(self.steps).replace("PROJECT", str(project))
        command = [sys.executable, "-m", "toolspeak", "launch", self.name, "--config", str(config), "--model", model]
        inherited = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "HOME": str(home), "LANG": "C.UTF-8"}
        inherited |= {"TERM": "dumb", "GIT_CONFIG_NOSYSTEM": "1", **self.variables}
        return subprocess.run(
            [*command, "--", *way.split()[1:], *self.before, task, *self.after], cwd=project, env=inherited, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=SECONDS,
        )  # fmt: skip


AGENTS = (
    Agent(
        "claude",
        ("@anthropic-ai/claude-code@2.1.331",),
        "@anthropic-ai/claude-code-*/claude",
        ("-p",),
        (
            step("Write", file_path="PROJECT/notes.txt", content=TOKEN),
            step("Bash", command="cat notes.txt", description="Read it"),
        ),
        ("--allowedTools", "Bash", "Write"),
        ways=("messages-stream",),
    ),
    Agent(
        "codex",
        ("@openai/codex@0.169.0",),
        "@openai/codex/bin/codex.js",
        ("exec", "--skip-git-repo-check", "-s", "danger-full-access"),
        (
            step("exec_command", cmd=f"echo {TOKEN} > notes.txt"),
            step("exec_command", cmd="cat notes.txt"),
        ),
        ways=("responses-stream",),
    ),
    Agent(  # it offers its custom tool only for a model whose name it knows
        "codex",
        ("@openai/codex@0.169.0",),
        "@openai/codex/bin/codex.js",
        ("exec", "--skip-git-repo-check", "-s", "danger-full-access"),
        (
            step("apply_patch", input=f"*** Begin Patch\n*** Add File: notes.txt\n+{TOKEN}\n*** End Patch\n"),
            step("exec_command", cmd="cat notes.txt"),
        ),
        ways=("responses-stream -c model=gpt-5.5",),
    ),
    Agent(
        "opencode",
        ("opencode-ai@1.18.33",),
        "opencode-linux-x64/bin/opencode",
        ("run",),
        (
            step("write", filePath="PROJECT/notes.txt", content=TOKEN),
            step("bash", command="cat notes.txt"),
        ),
        ways=("chat-stream",),
        variables={"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
    ),
    Agent(
        "aider",
        ("aider-chat==0.86.2",),
        "aider",
        ("--yes-always", "--no-analytics", "--no-gitignore", "--message"),
        ("[edit]",),
        ways=("chat --no-stream", "chat-stream --stream"),
    ),
)
