"""Each dialect of JSON calls: what stands in its file of vectors is written so, and read so at every cut."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from toolspeak.dialects import get, names
from toolspeak.types import Reply, Tool, ToolCall
from toolspeak.wire.collect import collect
from toolspeak.wire.decode import Decoder, parse
from toolspeak.wire.syntax import Dialect
from toolspeak.wire.write import write_calls

HERE = Path(__file__).parent
REFERENCE = HERE.parents[2] / "shared" / "reference" / "dialects.json"
FILES = [
    "apertus",
    "apriel",
    "cohere",
    "deepseek",
    "ernie",
    "functionary",
    "functools",
    "generic_json",
    "gigachat",
    "granite",
    "harmony",
    "hermes",
    "hunyuan_a13b",
    "inkling",
    "internlm",
    "jamba",
    "kimi_k2",
    "llama3",
    "longcat",
    "minimax_m1",
    "mistral",
    "nemotron",
    "plamo",
    "react",
    "solar",
    "xlam",
]


def schema(**properties: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in properties.items()}}


TOOLS: list[Tool[..., Any]] = [
    Tool("weather", "", schema(city="string", days="integer")),
    Tool("search", "", schema(q="string", o="object", z="string")),
    Tool("python", "", schema(code="string")),
    Tool("ping"),
]


@dataclass(frozen=True)
class Vector:
    """One row of a file: what a model writes, and what it says. Some may come, but are not `written` so."""

    dialect: str
    wire: str
    text: str
    thought: str
    calls: tuple[dict[str, Any], ...]
    prompt: str = ""
    written: bool = True

    @property
    def d(self) -> Dialect:
        return get(self.dialect)


def vectors() -> list[Any]:
    out: list[Any] = []
    for file in FILES:
        for line in (HERE / f"{file}.jsonl").read_text("utf-8").splitlines():
            row = json.loads(line)
            out.append(pytest.param(Vector(**row | {"calls": tuple(row["calls"])}), id=f"{row['dialect']}-{len(out)}"))
    return out


def said(reply: Reply) -> tuple[str, str, list[tuple[str, Any]]]:
    return reply.text, reply.thought, [(call.name, call.arguments) for call in reply.calls]


def cut(v: Vector, *pieces: str) -> Reply:
    decoder = Decoder(v.d, TOOLS, v.prompt)
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return collect([*events, *decoder.close()])


@pytest.mark.parametrize("v", vectors())
def test_read(v: Vector) -> None:
    reply = parse(v.wire, v.d, TOOLS, v.prompt)
    assert said(reply) == (v.text, v.thought, [(c["name"], c["arguments"]) for c in v.calls])
    assert [c["id"] for c in v.calls if "id" in c] == [
        c.id for c, w in zip(reply.calls, v.calls, strict=True) if "id" in w
    ]
    assert reply.finish == ("tool_calls" if v.calls else "stop")
    assert not reply.notes or not v.written


@pytest.mark.parametrize("v", vectors())
def test_read_alike_at_every_cut(v: Vector) -> None:
    whole = said(parse(v.wire, v.d, TOOLS, v.prompt))
    assert said(cut(v, *v.wire)) == whole
    for i in range(1, len(v.wire)):
        assert said(cut(v, v.wire[:i], v.wire[i:])) == whole, v.wire[:i]


@pytest.mark.parametrize(
    "v", [p for p in vectors() if p.values[0].calls and p.values[0].written and not p.values[0].prompt]
)
def test_written(v: Vector) -> None:
    wire = write_calls([ToolCall(c.get("id", ""), c["name"], c["arguments"]) for c in v.calls], v.d)
    if v.text or v.thought:
        assert v.wire.endswith(wire)
        if v.text and not v.d.header:
            assert v.wire == v.text + v.d.before + wire
        if v.thought and v.d.thinking:
            assert v.wire == v.d.thinking.open + v.thought + v.d.thinking.close + wire
    else:
        assert v.wire == wire


def test_every_dialect_is_named() -> None:
    assert {p.values[0].dialect for p in vectors()} <= set(names())
    assert get("granite_20b_fc") is get("granite-20b-fc")


def test_every_dialect_of_the_reference_is_named() -> None:
    if not REFERENCE.exists():
        pytest.skip("the reference pages are not here")
    rows = json.loads(REFERENCE.read_text("utf-8"))
    mine = {row["id"].replace("_", "-") for row in rows if row["family"] in ("J", "N", "J+H", "N+H", "*")}
    assert mine - set(names()) == set()
    assert mine - {p.values[0].dialect for p in vectors()} == {"empower"}  # it has a file of tests of its own
