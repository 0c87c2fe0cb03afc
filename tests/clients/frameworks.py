"""The frameworks and SDKs that run tools themselves: what each is made of, and by which APIs it asks, whole and streamed.

Each does the task of two steps in `frameworks/`, with every model that it is given. The slow ones run in `make full`.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments import node, python

HERE = Path(__file__).resolve().parent / "frameworks"
SECONDS = 300
QUIET = {"PYTHONWARNINGS": "ignore", "DO_NOT_TRACK": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
"""What keeps programs from fetching and reporting things."""
BOTH = ("chat", "chat-stream")
RESPONSES = ("responses", "responses-stream")
MESSAGES = ("messages", "messages-stream")


@dataclass(frozen=True, slots=True)
class Framework:
    """One framework. `script` is its file, with the name of its part behind a colon where several share one."""

    name: str
    script: str
    pins: tuple[str, ...]
    ways: tuple[str, ...]
    slow: bool = False

    def command(self, make: bool = False) -> list[str]:
        """How it is started; its environment is made first where it is missing. Raises Unavailable."""
        script, _, part = self.script.partition(":")
        if not script.endswith(".mjs"):
            return [str(python(self.name, self.pins, make)), str(HERE / script)]
        home = node("frameworks", JAVASCRIPT, make)
        (home / script).write_text((HERE / script).read_text("utf-8"), "utf-8")
        return ["node", str(home / script), part]

    def play(self, url: str, models: tuple[str, ...]) -> dict[str, Any]:
        """What came of its task, by "<way>.<model>"."""
        program, script, *part = self.command()
        done = subprocess.run(
            [program, script, url, ",".join(models), *part], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=SECONDS, env={**os.environ, **QUIET},
        )  # fmt: skip
        lines = done.stdout.strip().splitlines()
        if done.returncode or not lines:
            raise AssertionError(
                f"{self.script} failed ({done.returncode}):\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
            )
        return json.loads(lines[-1])


JAVASCRIPT = (
    "@anthropic-ai/sdk@1.12.0", "ai@7.0.173", "@ai-sdk/openai@4.0.118", "@ai-sdk/anthropic@4.0.105", "@openai/agents@0.20.0",
    "@langchain/openai@1.6.0", "@langchain/core@1.4.0", "openai@7.57.0", "zod@4.6.7",
)  # fmt: skip
"""What the one environment of all that is in JavaScript is made of."""
FRAMEWORKS = (
    Framework("litellm", "with_litellm.py", ("litellm==1.106.2", "mcp"), (*BOTH, *MESSAGES)),
    Framework("smolagents", "with_smolagents.py", ("smolagents[openai]==1.26.0",), BOTH),
    Framework(
        "autogen",
        "with_autogen.py",
        ("autogen-agentchat==0.7.5", "autogen-ext[openai,anthropic]==0.7.5", "anthropic<1"),
        (*BOTH, *MESSAGES),
    ),
    Framework("openai-agents", "with_openai_agents.py", ("openai-agents==0.24.0",), (*BOTH, *RESPONSES)),
    Framework("magentic", "with_magentic.py", ("magentic==0.41.1",), BOTH),
    Framework("haystack", "with_haystack.py", ("haystack-ai==3.4.0",), BOTH),
    Framework("openai-js", "with_javascript.mjs:openai-js", ("openai@7.57.0",), (*BOTH, *RESPONSES)),
    Framework("anthropic-sdk", "with_javascript.mjs:anthropic-sdk", ("@anthropic-ai/sdk@1.12.0",), MESSAGES),
    Framework(
        "ai-sdk",
        "with_javascript.mjs:ai-sdk",
        ("ai@7.0.173", "@ai-sdk/openai@4.0.118", "@ai-sdk/anthropic@4.0.105"),
        (*BOTH, *RESPONSES, *MESSAGES),
    ),
    Framework(
        "openai-agents-js", "with_javascript.mjs:openai-agents-js", ("@openai/agents@0.20.0",), (*BOTH, *RESPONSES)
    ),
    Framework(
        "langchain-js",
        "with_javascript.mjs:langchain-js",
        ("@langchain/openai@1.6.0", "@langchain/core@1.4.0"),
        (*BOTH, *RESPONSES),
    ),
    Framework("semantic-kernel", "with_semantic_kernel.py", ("semantic-kernel==1.45.0",), BOTH, slow=True),
    Framework("dspy", "with_dspy.py", ("dspy==3.4.1", "litellm==1.106.2", "mcp"), ("chat",), slow=True),
    Framework(
        "google-adk", "with_adk.py", ("google-adk==2.13.0", "litellm==1.106.2", "mcp"), (*BOTH, "messages"), slow=True
    ),
    Framework("crewai", "with_crewai.py", ("crewai==1.15.30",), BOTH, slow=True),
)
