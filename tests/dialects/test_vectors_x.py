"""Each dialect of tags, trees and code-like calls: written as its file of vectors says, and read so at every cut."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from test_vectors_j import HERE, REFERENCE, said, schema

from toolspeak.dialects import get, names
from toolspeak.types import Reply, Tool, ToolCall
from toolspeak.wire.collect import collect
from toolspeak.wire.decode import Decoder, parse
from toolspeak.wire.said import said as told
from toolspeak.wire.syntax import Dialect
from toolspeak.wire.write import write_calls

FILES = (
    "beam",
    "claude_legacy",
    "deepseek_dsml",
    "dots",
    "gemma",
    "glm",
    "hy",
    "k2_horizon",
    "kimi_k3",
    "lfm2",
    "ling",
    "llama3_builtin",
    "mimo_v2",
    "minicpm5",
    "minimax",
    "muse",
    "olmo3",
    "pythonic",
    "qwen3_coder",
    "seed_oss",
    "step3",
)
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
    Tool("ping"),
]


@dataclass(frozen=True)
class Vector:
    """One row of a file. `read`: the dialect writes it in another way; `notes`: reading it takes a repair."""

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


def vectors() -> list[Any]:
    rows = [
        Vector(**json.loads(line))
        for file in FILES
        for line in (HERE / f"{file}.jsonl").read_text("utf-8").splitlines()
    ]
    return [pytest.param(v, id=f"{v.dialect}-{i}") for i, v in enumerate(rows)]


def cut(v: Vector, *pieces: str) -> Reply:
    decoder = Decoder(v.d, TOOLS, v.prompt)
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return collect([*events, *decoder.close()])


@pytest.mark.parametrize("v", vectors())
def test_read(v: Vector) -> None:
    reply = parse(v.wire, v.d, TOOLS, v.prompt)
    assert said(reply) == (v.text, v.thought, [(call["name"], call["arguments"]) for call in v.calls])
    assert reply.finish == ("tool_calls" if v.calls else "stop")
    assert v.notes or not reply.notes


@pytest.mark.parametrize("v", vectors())
def test_read_alike_at_every_cut(v: Vector) -> None:
    whole = said(parse(v.wire, v.d, TOOLS, v.prompt))
    assert said(cut(v, *v.wire)) == whole
    for i in range(1, len(v.wire)):
        assert said(cut(v, v.wire[:i], v.wire[i:])) == whole, v.wire[:i]


@pytest.mark.parametrize("v", [p for p in vectors() if not p.values[0].read])
def test_written(v: Vector) -> None:
    calls = [ToolCall("", call["name"], call["arguments"]) for call in v.calls]
    if v.thought:
        assert v.wire.endswith(write_calls(calls, v.d))
        if v.d.thinking:
            assert v.wire.startswith(v.d.thinking.open + v.thought + v.d.thinking.close)
    else:
        assert v.wire == told(v.text, calls, v.d)


def test_every_dialect_of_the_reference_has_vectors() -> None:
    if not REFERENCE.exists():
        pytest.skip("the reference pages are not here")
    rows = json.loads(REFERENCE.read_text("utf-8"))
    mine = {row["id"].replace("_", "-") for row in rows if row["family"][0] in "XKTPC"}
    assert mine <= set(names())
    assert mine <= {p.values[0].dialect for p in vectors()}
