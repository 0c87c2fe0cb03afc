"""The table of (dialect, text, thought, calls, wire), and helpers that several tests read streams with."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from properties import rotated
from toolspeak.dialects import get, names
from toolspeak.events import ArgumentsDelta, Event, TextDelta, ThoughtDelta
from toolspeak.types import Reply, Tool, ToolCall
from toolspeak.wire.decode import Decoder
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect

TOOLS = tuple(Tool(name) for name in ("weather", "home.light", "ping"))
DIALECTS = [get(name) for name in names()]

CODE = "if a < b and c != \"d\":\n\tprint('é☃ \\n {x} [1]')  # </p> <tool> </tool_call> ``` functools[{"


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall("", name, arguments)


@dataclass(frozen=True)
class Case:
    """`wire` is what the dialect writes for the text and the calls; "" where only reading is meant."""

    dialect: str
    wire: str
    calls: tuple[ToolCall, ...] = ()
    text: str = ""
    thought: str = ""
    prompt: str = ""

    @property
    def d(self) -> Dialect:
        return get(self.dialect)


PARIS = call("weather", city="Paris", n=3)
LIGHT = call("home.light", tags=["a", "b c"], o={"x": 1.5, "y": None}, ok=True)

WRITTEN = [  # the dialect writes exactly this, and reads it
    Case("hermes", '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris", "n": 3}}\n</tool_call>', (PARIS,)),
    Case(
        "hermes",
        'Let me look.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Paris", "n": 3}}\n</tool_call>\n<tool_call>\n'
        '{"name": "ping", "arguments": {}}\n</tool_call>',
        (PARIS, call("ping")),
        "Let me look.",
    ),
    Case("functools", ' functools[{"name": "weather", "arguments": {"city": "Paris", "n": 3}}]', (PARIS,)),
    Case(
        "functools",
        'Look: functools[{"name": "ping", "arguments": {}}, {"name": "weather", "arguments": {"city": "Paris", "n": 3}}]',
        (call("ping"), PARIS),
        "Look:",
    ),
    Case("empower", '<f>[{"name": "weather", "arguments": "{\\"city\\": \\"Paris\\", \\"n\\": 3}"}]', (PARIS,)),
    Case(
        "empower-package",
        '<f>[\n  {\n    "name": "ping",\n    "arguments": {}\n  },\n  {\n    "name": "weather",\n    "arguments": {\n'
        '      "city": "Paris",\n      "n": 3\n    }\n  }\n]',
        (call("ping"), PARIS),
    ),
    Case("tool-json", '{"tool": "weather", "tool_input": {"city": "Paris", "n": 3}, "message": ""}', (PARIS,)),
    Case(
        "tool-json",
        'Look:\n{"tool": "ping", "tool_input": {}, "message": ""}\n'
        '{"tool": "home.light", "tool_input": {"tags": ["a", "b c"], "o": {"x": 1.5, "y": null}, "ok": true}, "message": ""}',
        (call("ping"), LIGHT),
        "Look:",
    ),
    Case("function-name", '{"functionName": "weather", "args": {"city": "Paris", "n": 3}}', (PARIS,)),
    Case("tool-call", '{"type": "tool-call", "tool": "weather", "args": {"city": "Paris", "n": 3}}', (PARIS,)),
]

READ = [  # read as well, though written otherwise
    Case("functools", 'functools[{"name": "ping", "arguments": {}}', (call("ping"),)),
    Case("functools", 'pre functools[{"arguments": {"n": 3, "city": "Paris"}, "name": "weather"}]', (PARIS,), "pre"),
    Case(
        "functools", ' functools[{"name": "weather", "arguments": "{\\"city\\": \\"Paris\\", \\"n\\": 3}"}]', (PARIS,)
    ),
    Case("functools", "Use functools.cache, or functools [1].", (), "Use functools.cache, or functools [1]."),
    Case("empower", "<c>The weather is fine.", (), "The weather is fine."),
    Case("empower", "<thinking>hm\n</thinking>\n<c>Hello", (), "Hello", "hm\n"),
    Case("empower", '<thinking>hm</thinking>\n<f>[{"name": "ping", "arguments": "{}"}]', (call("ping"),), "", "hm"),
    Case("empower", '<f>[{"name": "ping", "arguments": null}]', (call("ping"),)),
    Case("empower", '<f>{"name": "ping", "arguments": {}}', (call("ping"),)),
    Case("empower", "Use <c> for bold.", (), "Use <c> for bold."),
    Case("hermes", "<think>\nhm\n</think>\n\nHello", (), "Hello", "hm"),
    Case("hermes", "hm\n</think>\n\nHello", (), "Hello", "hm", prompt="<|im_start|>assistant\n<think>\n"),
    Case(
        "hermes", 'Sure.\n<think>\nhm</think>\n<tool_call>{"name":"ping"}</tool_call>', (call("ping"),), "Sure.\n", "hm"
    ),
    Case("hermes", "A <think> tag opens it.", (), "A <think> tag opens it."),
    Case("tool-json", '{"tool": null, "tool_input": null, "message": "Hi,\\n\\"you\\" \\u00e9"}', (), 'Hi,\n"you" é'),
    Case("tool-json", '```json\n{"tool": null, "message": "Hi"}\n```', (), "Hi"),
    Case("tool-json", '{"message": "Hi", "tool": null}', (), "Hi"),
    Case("tool-json", '{"tool": "weather", "tool_input": {"city": "Paris", "n": 3}, "message": null}', (PARIS,)),
    Case("tool-json", '{"thought": "hm", "tool": "ping", "tool_input": {}}', (call("ping"),), "", "hm"),
    Case("tool-json", '{"message": "Wait", "tool": "ping", "tool_input": {}}', (call("ping"),), "Wait"),
    Case("tool-json", '[{"tool": "ping", "tool_input": {}}, {"tool": "ping"}]', (call("ping"), call("ping"))),
    Case("tool-json", '{"tool": "a screwdriver", "tool_input": {}}', (), '{"tool": "a screwdriver", "tool_input": {}}'),
    Case("tool-json", '{"status": "ok", "tool": "ping"}', (), '{"status": "ok", "tool": "ping"}'),
    Case("tool-json", '{"a": {"tool": "ping", "tool_input": {}}}', (), '{"a": {"tool": "ping", "tool_input": {}}}'),
    Case("tool-json", 'Write `{"tool": "ping", "tool_input": {}}`.', (), 'Write `{"tool": "ping", "tool_input": {}}`.'),
    Case("function-name", 'Of course: {"functionName": "ping", "args": {}}', (call("ping"),), "Of course: "),
    Case("tool-call", '{"type": "final", "content": "Done."}', (), "Done."),
    Case("tool-call", '{"content": "Done.", "type": "final"}', (), "Done."),
    Case("tool-call", '{"tool": "weather", "args": {"city": "Paris", "n": 3}}', (PARIS,)),
    Case("tool-call", '{"type": "weather", "city": "Paris", "n": 3}', (PARIS,)),
    Case("tool-call", '{"type": "weather", "args": {"city": "Paris", "n": 3}}', (PARIS,)),
    Case("tool-call", '{"type": "object", "args": {}}', (), '{"type": "object", "args": {}}'),
]


def one_of(*wanted: str) -> Dialect:
    """The first of these dialects that there is; the test is skipped where there is none of them."""
    known = names()
    found = next((name for name in wanted if name in known), None)
    return get(found) if found else pytest.skip(f"there is no {' or '.join(wanted)} yet")


def stream(
    d: Dialect,
    chunks: Iterable[str],
    tools: Sequence[Tool[..., Any]] | None = TOOLS,
    prompt: str | None = "",
    thoughts: str = "split",
    *,
    cut: bool = False,
) -> list[Event]:
    decoder = Decoder(d, tools, prompt, thoughts)
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return events + decoder.close(cut)


def merged(events: Iterable[Event]) -> list[Event | tuple[type, str]]:
    """Neighbouring pieces of one kind as one: what two ways of cutting have to agree on."""
    out: list[Any] = []
    for event in events:
        if isinstance(event, TextDelta | ThoughtDelta | ArgumentsDelta):
            piece = event.json if isinstance(event, ArgumentsDelta) else event.text
            if out and isinstance(out[-1], tuple) and out[-1][0] is type(event):
                out[-1] = (type(event), out[-1][1] + piece)
            else:
                out.append((type(event), piece))
        else:
            out.append(event)
    return out


def read_in_pieces(
    d: Dialect, text: str, tools: Sequence[Tool[..., Any]] | None = TOOLS, prompt: str | None = ""
) -> Reply:
    """The reply, which is the same if its text comes in pieces of 1, 3 and 7 characters."""
    events = stream(d, [text], tools, prompt)
    for size in (1, 3, 7):
        chunks = [text[i : i + size] for i in range(0, len(text), size)]
        assert merged(stream(d, chunks, tools, prompt)) == merged(events)
    return collect(events)


def cuts(text: str, rng: random.Random) -> Iterator[list[str]]:
    """Ways to cut a text: into single characters, evenly, at random. The fast profile takes three of the eight."""
    for way in rotated(range(8), 3, zlib.crc32(text.encode("utf-8", "surrogatepass"))):
        size = (1, 2, 3, 5, 13)[way] if way < 5 else 0
        if size:
            yield [text[i : i + size] for i in range(0, len(text), size)]
        elif len(text) > 1:
            at = sorted(rng.sample(range(1, len(text)), min(len(text) - 1, rng.randint(1, 8))))
            yield [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]


def read_at_cuts(d: Dialect, text: str, tools: Sequence[Tool[..., Any]], every: int = 1) -> Reply:
    """The reply, which is the same for one of `every` so many ways to cut its text."""
    events = stream(d, [text], tools)
    for chunks in list(cuts(text, random.Random(text)))[::every]:
        assert merged(stream(d, chunks, tools)) == merged(events), chunks
    return collect(events)


def called(reply: Reply) -> list[str]:
    """The names of the calls that are whole."""
    return [call.name for call in reply.calls if call.whole]


def told(reply: Reply) -> list[tuple[str, dict[str, Any], bool]]:
    return [(c.name, c.arguments, c.whole) for c in reply.calls]


def rules(reply: Reply) -> list[str]:
    return [note.rule for note in reply.notes]
