"""One table, five uses: written to the wire, read from it, the same at every cut, nothing lost, at home in `parse`."""

from __future__ import annotations

import random

import pytest
from spoken import sayable, tools_of
from wire_cases import CODE, DIALECTS, LIGHT, PARIS, READ, TOOLS, WRITTEN, Case, call, cuts, merged, stream, told

from toolspeak.types import ToolCall
from toolspeak.wire.decode import parse
from toolspeak.wire.dialect import Dialect, Tree
from toolspeak.wire.prompt.calls import write_calls
from toolspeak.wire.reading.collect import collect

ALL = pytest.mark.parametrize("case", [*WRITTEN, *READ], ids=lambda c: f"{c.dialect}: {c.wire[:40]}")
SETS = [
    [PARIS],
    [call("weather", city="00123", ok=True), LIGHT],
    [call("weather", code=CODE, n=-1)],
    [call("ping"), call("ping")],
    [call("weather", code="\n  two\n\nlines \n", city="")],
    [call("weather", code='he said "it\'s, ok")', city="a, b", deep=[[[{"a": [1, {}]}]]], e=1e-9, u="😀")],
]


@pytest.mark.parametrize("case", WRITTEN, ids=lambda c: f"{c.dialect}: {c.wire[:40]}")
def test_is_written_to_the_wire(case: Case) -> None:
    glue = case.d.before if case.text else ""
    assert case.text + glue + write_calls(case.calls, case.d) == case.wire


@ALL
def test_is_read_from_it(case: Case) -> None:
    reply = parse(case.wire, case.d, TOOLS, case.prompt)
    assert told(reply) == [(c.name, c.arguments, True) for c in case.calls]
    assert (reply.text, reply.thought) == (case.text, case.thought)
    assert reply.finish == ("tool_calls" if case.calls else "stop")


@ALL
def test_is_the_same_at_every_cut(case: Case) -> None:
    whole = merged(stream(case.d, [case.wire], TOOLS, case.prompt))
    for chunks in cuts(case.wire, random.Random(1)):
        assert merged(stream(case.d, chunks, TOOLS, case.prompt)) == whole


@ALL
def test_passes_without_tools_but_for_frames(case: Case) -> None:
    reply = parse(case.wire, case.d, (), case.prompt, thoughts="keep")
    framed = any(word.strip() in case.wire for word in case.d.frame)
    assert reply.text == case.wire or (framed and reply.text.endswith(case.text))
    assert not reply.calls
    assert reply.finish == "stop"


@ALL
def test_is_a_message_to_go_on_from(case: Case) -> None:
    (message,) = parse(case.wire, case.d, TOOLS, case.prompt).messages
    assert message["role"] == "assistant"
    assert [row["function"]["name"] for row in message.get("tool_calls", [])] == [c.name for c in case.calls]
    assert [row["id"] for row in message.get("tool_calls", [])] == [f"call_{i + 1}" for i in range(len(case.calls))]


@pytest.mark.parametrize("calls", SETS, ids=range(len(SETS)))
@pytest.mark.parametrize("d", DIALECTS, ids=lambda d: d.name)
@pytest.mark.parametrize("tools", [TOOLS, None], ids=["offered", "any"])
def test_what_is_written_is_read_again(d: Dialect, calls: list[ToolCall], tools: object) -> None:
    if any(isinstance(part, Tree) for part in d.call):  # only the schema tells what a value is
        said = [(call.name, call.arguments) for call in calls]
        tools = tools_of(*said)
        if not sayable(d, said, tools):
            pytest.skip("the wire has no words for it, and rendering says so")
    for before in ("", "Let me look."):
        wire = before + (d.before if before else "") + write_calls(calls, d)
        whole = stream(d, [wire], tools)  # type: ignore[arg-type]
        reply = collect(whole)
        assert told(reply) == [(c.name, c.arguments, True) for c in calls]
        assert reply.text == before
        assert not reply.notes
        for chunks in cuts(wire, random.Random(2)):
            assert merged(stream(d, chunks, tools)) == merged(whole)  # type: ignore[arg-type]


def test_no_calls_are_no_wire() -> None:
    assert [write_calls([], d) for d in DIALECTS] == [""] * len(DIALECTS)
