"""A key that an object has twice: the call is never whole, in no dialect and at no depth, wherever the text is cut."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from spoken import TALKING, schema_of, wire
from wire_cases import DIALECTS, cuts, merged, one_of, stream

import toolspeak as ts
from cost import growth
from toolspeak.models.scripted import Scripted
from toolspeak.schema.infer import as_tools
from toolspeak.types import Tool
from toolspeak.wire.decode import parse
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect

PLACES: dict[str, dict[str, Any]] = {
    "texts": {"pat0": "/a", "pat1": "/b"},
    "the same value": {"pat0": "/a", "pat1": "/a"},
    "numbers": {"pat0": 1, "other": "x", "pat1": 2},
    "objects": {"pat0": {"a": 1}, "pat1": {"b": 1}},
    "in an object": {"o": {"pat0": "/a", "pat1": "/b"}},
    "around an object": {"o": {"pat0": "/a", "z": {"y": 1}, "pat1": "/b"}, "q": 1},
    "in a list": {"l": [{"pat0": 1, "pat1": 2}]},
    "in the second of a list": {"l": [{"k": 1}, {"pat0": {"a": 1}, "pat1": {"a": 2}}], "z": 2},
}
"""Arguments, whose keys `pat0` and `pat1` become `path`."""
APART = {"path": {"path": {"path": 1}}, "l": [{"k": 1}, {"k": 2}, {"k": {"l": [1], "path": 1}}]}


def once(arguments: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(arguments).replace("pat0", "path").replace("pat1", "path"))


def twice(d: Dialect, arguments: dict[str, Any]) -> str:
    return wire(d, ("delete", arguments)).replace("pat0", "path").replace("pat1", "path")


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
def test_a_key_that_comes_twice_is_noted_and_the_call_not_whole(d: Dialect) -> None:
    rng = random.Random(d.name)
    for place, arguments in PLACES.items():
        text = twice(d, arguments)
        for tools in ([Tool("delete", "", schema_of(once(arguments)))], None):
            reply = parse(text, d, tools)
            assert [(call.name, call.whole) for call in reply.calls] == [("delete", False)], (place, text)
            notes = [note.detail for note in reply.calls[0].notes if note.rule == "doubled-key"]
            assert [detail.partition(":")[0] for detail in notes] == ["path"], place
            assert "tool_calls" not in reply.messages[0]
            for chunks in (list(text), *cuts(text, rng)):
                assert merged(stream(d, chunks, tools)) == merged(stream(d, [text], tools)), (place, text)


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
def test_a_key_may_come_again_in_another_object(d: Dialect) -> None:
    text = wire(d, ("delete", APART))
    for tools in ([Tool("delete", "", schema_of(APART))], None):
        for chunks in ([text], list(text)):
            (call,) = collect(stream(d, chunks, tools)).calls
            assert (call.whole, call.arguments) == (True, APART)


LONG = "k" * 40
SPELLINGS = [
    r'{"a": 1, "\u0061": 2}',
    r'{"\u0061": 1,  "a" :2}',
    f'{{"{LONG}": 1, "{LONG}": 2}}',
    rf'{{"{LONG}\n": 1, "{LONG}\n": 2}}',
    "{'a': 1, 'a': 2}",
    "{a: 1, a: 2}",
    '{a: 1,"a": 2,}',
    """{'it\\'s': 1, "it's": 2}""",
    '{"": 1, "": 2}',
    r'{"a\"b": 1, "a\"b": 2}',
    r'{"\ud83d\ude00": 1, "😀": 2}',
    '{"a": 1\n ,\n "a"\n:2 , }',
    '{"a": [{"b": 1}, {"b": 2, "b": 3}], "a": 1}',
    '{"a": 1, "a": 2, "a": 3}',
    '{"a": "He said "hi", then left", "a": 1}',
]
AROUND = [
    ("hermes", '<tool_call>{"name": "f", "arguments": %s}</tool_call>'),
    ("hermes", '<tool_call>{"arguments": %s, "name": "f"}</tool_call>'),
    ("hermes", '{"name": "f", "arguments": {"x": [%s]}}'),
    ("mistral-v13", "[TOOL_CALLS]f[ARGS]%s"),
    ("qwen3-coder", "<tool_call>\n<function=f>\n%s\n</function>\n</tool_call>"),
    ("pythonic", "[f(**%s)]"),
    ("pythonic", "[f(x=%s)]"),
    ("gemma4", "<|tool_call>call:f%s<tool_call|>"),
]
ENCODED = '<f>[{"name": "f", "arguments": %s}]'


@pytest.mark.parametrize("arguments", SPELLINGS, ids=lambda text: text[:40])
def test_however_the_key_is_written(arguments: str) -> None:
    """A key is compared as it is decoded. The position in the note is that of the second one."""
    for name, text in ((name, around % arguments) for name, around in AROUND):
        d = one_of(name)
        reply = parse(text, d, [Tool("f", "", {"type": "object"})])
        assert [call.whole for call in reply.calls] == [False], text
        notes = [note for note in reply.calls[0].notes if note.rule == "doubled-key"]
        assert notes, text
        assert all(text[note.at] in "\"'ab" for note in notes), text
        for chunks in (list(text), *cuts(text, random.Random(text))):
            assert merged(stream(d, chunks, None)) == merged(stream(d, [text], None)), text


@pytest.mark.parametrize("arguments", SPELLINGS, ids=lambda text: text[:40])
def test_in_arguments_that_are_a_json_string(arguments: str) -> None:
    d, text = one_of("empower"), ENCODED % json.dumps(arguments)
    reply = parse(text, d)
    assert [call.whole for call in reply.calls] == [False]
    assert "doubled-key" in [note.rule for note in reply.calls[0].notes]
    for chunks in (list(text), *cuts(text, random.Random(text))):
        assert merged(stream(d, chunks, None)) == merged(stream(d, [text], None))


OBJECT: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "o": {"type": ["object", "string"]}},
}
TAGS = "<tool_call>\n<function=f>\n<parameter=%s>\n%s\n</parameter>\n</function>\n</tool_call>"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pythonic", '[f("/a", a="/b")]'),
        ("pythonic", '[f(a="/a", **{"a": "/b"})]'),
        ("pythonic", '[f(**{"a": "/a"}, a="/b")]'),
        ("pythonic", '[f(o={1: "a", "1": "b"})]'),
        ("tool-call", '{"type": "f", "a": "/a", "a": "/b"}'),
        ("qwen3-coder", TAGS % ("o", '{"x": 1, "x": 2}')),
        ("qwen3-coder", TAGS % ("o", "{'x': (1, 2), 'x': 3}")),
        ("qwen3-coder", TAGS % ("arguments", '{"a": "b", "o": {"x": 1, "x": 2}}')),
        ("qwen3-coder", TAGS % ("arguments", '{"a": "b", "a": "c"}')),
    ],
)
def test_in_every_way_to_give_arguments(name: str, text: str) -> None:
    d, tools = one_of(name), [Tool("f", "", OBJECT)]
    reply = parse(text, d, tools)
    assert [call.whole for call in reply.calls] == [False]
    assert "doubled-key" in [note.rule for note in reply.calls[0].notes]
    for chunks in (list(text), *cuts(text, random.Random(text))):
        assert merged(stream(d, chunks, tools)) == merged(stream(d, [text], tools))


@pytest.mark.parametrize("d", [d for d in DIALECTS if d.name in ("hermes", "pythonic", "gemma4")], ids=lambda d: d.name)
@pytest.mark.parametrize("size", [0, 4])
def test_many_keys_and_long_ones_take_linear_time(d: Dialect, size: int) -> None:
    def work(n: int) -> Any:
        text = wire(d, ("f", {"o": {f"k{i}": i for i in range(n)}, "l": [{"a": 1}] * n, "\n" + "k" * 9 * n: 1}))
        chunks = [text[at : at + size] for at in range(0, len(text), size)] if size else [text]
        return lambda: stream(d, chunks, None)

    assert growth(work, 50) < 2.7


def test_a_run_tells_the_model_and_runs_nothing() -> None:
    def delete(path: str) -> str:
        """Delete what stands at a path."""
        raise AssertionError(path)

    text = '{"name": "delete", "arguments": {"path": "/a", "path": "/b"}}'
    model = Scripted([text, "I leave it."])
    assert ts.run("Clean up", tools=[delete], model=model).text == "I leave it."
    assert "doubled-key: path" in str(model.requests[1])
    call = ts.parse(text, "hermes", as_tools([delete])).calls[0]
    (problem,) = ts.Toolbox(delete).validate(call).problems
    assert "doubled-key: path" in problem.message
