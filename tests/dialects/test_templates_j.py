"""The calls that we write are, byte for byte, those in the prompts that the models' own chat templates write."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
import pytest
from jinja2.sandbox import SandboxedEnvironment

from toolspeak.dialects import get
from toolspeak.types import ToolCall
from toolspeak.wire.prompt.calls import write_calls

FOLDER = Path(__file__).parents[3] / "shared" / "templates"
WRITES = {
    "Apertus-8B-Instruct": "apertus",
    "Apriel-1.6-15b-Thinker-fixed": "apriel",
    "Bielik-11B-v3.0-Instruct": "bielik",
    "CohereForAI-c4ai-command-r-plus-tool_use": "command-r-plus",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "command-r7b",
    "Cohere2MoE": "cohere2-moe",
    "GigaChat3-10B-A1.8B": "gigachat3",
    "GigaChat3.1-10B-A1.8B": "gigachat3.1",
    "Kimi-K2-Instruct": "kimi-k2",
    "Kimi-K2-Thinking": "kimi-k2",
    "MiMo-VL": "hermes",
    "MiniMax-M1": "minimax-m1",
    "Mistral-Small-3.2-24B-Instruct-2506": "mistral-v11",
    "NVIDIA-Nemotron-Nano-v2": "nemotron-nano-v2",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": "hermes",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": "hermes",
    "Qwen-QwQ-32B": "hermes",
    "Qwen-Qwen2.5-7B-Instruct": "hermes",
    "Qwen-Qwen3-0.6B": "hermes",
    "Reka-Edge": "reka",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "deepseek-v3",
    "deepseek-ai-DeepSeek-V3.1": "deepseek-v31",
    "ibm-granite-granite-4.0": "granite4",
    "ibm-granite-granite-4.1": "granite4",
    "meetkai-functionary-medium-v3.1": "functionary-v31",
    "meetkai-functionary-medium-v3.2": "functionary-v3",
    "meta-llama-Llama-3.1-8B-Instruct": "llama3-json",
    "meta-llama-Llama-3.2-3B-Instruct": "llama3-json",
    "meta-llama-Llama-3.3-70B-Instruct": "llama3-json",
    "mistralai-Ministral-3-14B-Reasoning-2512": "mistral-v13",
    "mistralai-Mistral-Nemo-Instruct-2407": "mistral-nemo",
    "moonshotai-Kimi-K2": "kimi-k2",
    "unsloth-Apriel-1.5": "apriel1.5",
    "unsloth-mistral-Devstral-Small-2507": "mistral-v13",
    "upstage-Solar-Open-100B": "solar-open",
}
ONE_CALL = ("GigaChat", "meta-llama")  # these take no second call
TEXTUAL = ("meetkai-functionary-medium-v3.2",)  # arguments as text
CALLS = (ToolCall("abcdefgh1", "weather", {"city": "Rome", "days": 2}), ToolCall("abcdefgh2", "ping", {}))
SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "description": "The city."}}}
TOOLS = [
    {"type": "function", "function": {"name": n, "description": n, "parameters": SCHEMA}} for n in ("weather", "ping")
]


def engine() -> SandboxedEnvironment:
    def dumped(value: object, indent: int | None = None, **more: Any) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent)

    def refused(message: str) -> None:
        raise jinja2.TemplateError(message)

    env: Any = SandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    env.filters["tojson"] = dumped
    env.globals.update(raise_exception=refused, strftime_now=datetime(2026, 1, 1, tzinfo=UTC).strftime)
    return env


def asked(name: str, calls: tuple[ToolCall, ...]) -> str:
    """The conversation as the template tells it."""
    source = re.sub(r"\{%-?\s*(end)?generation\s*-?%\}", "", (FOLDER / f"{name}.jinja").read_text("utf-8"))
    given = [json.dumps(c.arguments) if name in TEXTUAL else c.arguments for c in calls]
    rows = [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": arguments}}
        for c, arguments in zip(calls, given, strict=True)
    ]
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": "", "tool_calls": rows},
        *({"role": "tool", "tool_call_id": c.id, "name": c.name, "content": "[1]"} for c in calls),
        {"role": "assistant", "content": "Sunny."},
        {"role": "user", "content": "Thanks."},
    ]
    return (
        engine()
        .from_string(source)
        .render(messages=messages, tools=TOOLS, add_generation_prompt=True, bos_token="", eos_token="")
    )


@pytest.mark.parametrize("name", WRITES)
def test_the_template_writes_the_same_calls(name: str) -> None:
    if not FOLDER.exists():
        pytest.skip("the chat templates are not here")
    calls = CALLS[:1] if name.startswith(ONE_CALL) else CALLS
    d = get(WRITES[name])
    wire = write_calls(calls, replace(d, id_length=0))  # a template takes what id it is given
    assert wire in asked(name, calls)
