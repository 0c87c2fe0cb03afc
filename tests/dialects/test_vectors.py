"""Each dialect: what stands in its file of vectors is written so, read so whole and at every cut, and nothing is lost.

A row of a `.jsonl` file here: dialect, wire, text, thought, calls, and maybe the prompt before it. `read`: the dialect
writes it in another way; `notes`: reading it may take a repair.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from properties import rotated
from toolspeak.dialects import get, names
from toolspeak.types import Reply, Tool, ToolCall
from toolspeak.wire.decode import Decoder, parse
from toolspeak.wire.detect import detect
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.prompt.assistant import assistant_turn as told
from toolspeak.wire.prompt.calls import write_calls
from toolspeak.wire.reading.collect import collect

HERE = Path(__file__).parent
REFERENCE = HERE.parents[2] / "shared" / "reference" / "dialects.json"


def schema(**properties: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in properties.items()}}


BOOK = {
    "type": "object",
    "properties": {
        "nights": {"type": "array", "items": {"type": "integer"}},
        "note": {"type": ["string", "null"]},
        "ok": {"type": "boolean"},
        "where": schema(city="string", zip="string"),
    },
}
TOOLS: list[Tool[..., Any]] = [
    Tool("weather", "", schema(city="string", days="integer")),
    Tool("search", "", schema(q="string", o="object", z="string")),
    Tool("book", "", BOOK),
    Tool("code_interpreter", "", schema(code="string")),
    Tool("python", "", schema(code="string")),
    Tool("ping"),
]


@dataclass(frozen=True)
class Vector:
    dialect: str
    wire: str
    text: str
    thought: str
    calls: list[dict[str, Any]]
    prompt: str = ""
    read: bool = False
    notes: bool = False

    @property
    def d(self) -> Dialect:
        return get(self.dialect)


VECTORS = [
    Vector(**json.loads(line)) for file in sorted(HERE.glob("*.jsonl")) for line in file.read_text("utf-8").splitlines()
]


def each(vectors: list[Vector]) -> Any:
    return pytest.mark.parametrize("v", vectors, ids=[f"{v.dialect}-{i}" for i, v in enumerate(vectors)])


def said(reply: Reply) -> tuple[str, str, list[tuple[str, Any]]]:
    return reply.text, reply.thought, [(call.name, call.arguments) for call in reply.calls]


def cut(v: Vector, *pieces: str) -> Reply:
    decoder = Decoder(v.d, TOOLS, v.prompt)
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return collect([*events, *decoder.close()])


@each(VECTORS)
def test_read(v: Vector) -> None:
    reply = parse(v.wire, v.d, TOOLS, v.prompt)
    assert said(reply) == (v.text, v.thought, [(c["name"], c["arguments"]) for c in v.calls])
    assert [call.id for call, c in zip(reply.calls, v.calls, strict=True) if "id" in c] == [
        c["id"] for c in v.calls if "id" in c
    ]
    assert reply.finish == ("tool_calls" if v.calls else "stop")
    assert v.notes or not reply.notes


@each(VECTORS)
def test_read_alike_at_every_cut(v: Vector) -> None:
    whole = said(parse(v.wire, v.d, TOOLS, v.prompt))
    assert said(cut(v, *v.wire)) == whole
    for i in rotated(range(1, len(v.wire)), 5, len(v.wire)):
        assert said(cut(v, v.wire[:i], v.wire[i:])) == whole, v.wire[:i]


@each([v for v in VECTORS if v.calls and not v.read and not v.prompt])
def test_written(v: Vector) -> None:
    calls = [ToolCall(c.get("id", ""), c["name"], c["arguments"]) for c in v.calls]
    if v.thought:
        assert v.wire.endswith(write_calls(calls, v.d))
        if v.d.thinking:
            assert v.wire.startswith(v.d.thinking.open + v.thought + v.d.thinking.close)
    else:
        assert v.wire == told(v.text, calls, v.d)


@pytest.mark.parametrize(
    ("model", "dialect"),
    [
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3-coder"),
        ("Qwen/Qwen3.5-4B", "qwen3-coder"),
        ("Qwen/Qwen3-8B", "hermes"),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nemotron-3"),
        ("stepfun-ai/Step-3.5-Flash", "step-3.5"),
        ("stepfun-ai/step3", "step3"),
        ("XiaomiMiMo/MiMo-V2-Flash", "mimo-v2"),
        ("zai-org/GLM-4.6", "glm45"),
        ("zai-org/GLM-5", "glm47"),
        ("poolside/Laguna-XS.2", "laguna-xs"),
        ("poolside/Laguna-S-2.1", "laguna"),
        ("deepseek-ai/DeepSeek-V3.2", "deepseek-dsml"),
        ("deepseek-ai/DeepSeek-V3.1", "deepseek-v31"),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "deepseek-v31"),
        ("deepseek-ai/DeepSeek-V4.1-Flash", "deepseek-v4.1"),
        ("MiniMaxAI/MiniMax-M2.5", "minimax-m2"),
        ("moonshotai/Kimi-K3", "kimi-k3"),
        ("moonshotai/Kimi-K2-Thinking", "kimi-k2"),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama4-pythonic"),
        ("google/functiongemma-270m-it", "functiongemma"),
        ("google/gemma-4-31B-it", "gemma4"),
        ("gemma3:4b", "gemma3"),
    ],
)
def test_found_by_the_model_s_name(model: str, dialect: str) -> None:
    assert detect(model=model).name == dialect


@pytest.mark.parametrize("name", names())
def test_a_stop_string_stands_at_the_end_of_calls_or_nowhere(name: str) -> None:
    wire = write_calls([ToolCall("", "weather", {"city": "Rome"})], get(name))
    assert not [stop for stop in get(name).stop if stop in wire.removesuffix(stop)]


def test_names_are_told_apart_by_case_and_dashes_alone() -> None:
    assert get("granite_20b_fc") is get("granite-20b-fc")


def test_every_dialect_of_the_reference_has_vectors() -> None:
    if not REFERENCE.exists():
        pytest.skip("the reference pages are not here")
    wanted = {row["id"].replace("_", "-") for row in json.loads(REFERENCE.read_text("utf-8"))}
    assert wanted <= set(names())
    assert wanted - {"response-template", "empower"} <= {v.dialect for v in VECTORS}
