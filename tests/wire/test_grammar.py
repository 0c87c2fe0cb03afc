"""What a grammar lets a model write is what the dialect writes, and is read as the calls that it allows."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import jsonschema_rs
import pytest
from gbnf import Gbnf
from hypothesis import strategies as st
from wire_cases import DIALECTS

import toolspeak as ts
from properties import property_test, rotated
from toolspeak.errors import UsageError
from toolspeak.schema.check import check
from toolspeak.types import Tool, ToolCall
from toolspeak.wire.decode import parse
from toolspeak.wire.dialect import Dialect, Raw
from toolspeak.wire.grammar import grammar
from toolspeak.wire.prompt.calls import write_calls

llguidance = pytest.importorskip("llguidance")

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "n": {"type": "integer"},
        "u": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "where": {"$ref": "#/$defs/place"},
        "x": {"type": ["number", "boolean"]},
    },
    "required": ["city"],
    "$defs": {
        "place": {
            "type": "object",
            "properties": {"lat": {"type": "number"}, "near": {"type": "array", "items": {"$ref": "#/$defs/place"}}},
            "required": ["lat"],
            "additionalProperties": False,
        }
    },
}
FREE = {"type": "object", "properties": {"first": {"type": "boolean"}}, "additionalProperties": {"type": "integer"}}
TOOLS = (Tool("weather", "", WEATHER), Tool("ping", "", {"type": "object", "properties": {}}), Tool("free", "", FREE))
BY_NAME = {tool.name: tool for tool in TOOLS}
CITY = ToolCall("", "weather", {"city": "Xiamen", "n": 37})
PING = ToolCall("", "ping", {})
ALL = pytest.mark.parametrize("d", DIALECTS, ids=lambda d: d.name)
ROWS = [*((d, True) for d in rotated(DIALECTS, 4)), *((d, False) for d in rotated(DIALECTS, 4, 2))]
"""Dialects that may call several tools at once, and those that may call one: in the fast profile half are one of both."""


def tools_of(d: Dialect) -> tuple[Tool[..., Any], ...]:
    """The tools that the dialect can call: one that writes raw text knows but one."""
    raw = next((part for part in d.call if isinstance(part, Raw)), None)
    return (Tool(raw.tool, "", {"properties": {raw.key: {"type": "string"}}}),) if raw else TOOLS


def call_of(d: Dialect, name: str = "weather") -> ToolCall:
    raw = next((part for part in d.call if isinstance(part, Raw)), None)
    return ToolCall("", raw.tool, {raw.key: "print(1)"}) if raw else CITY if name == "weather" else PING


@lru_cache(1)
def tokens() -> Any:
    return llguidance.LLTokenizer("byte")


@lru_cache(1024)
def matcher(name: str, choice: str, parallel: bool) -> Any:
    text = grammar(ts.dialect(name), tools_of(ts.dialect(name)), choice, "lark", parallel)
    m = llguidance.LLMatcher(tokens(), text)
    assert not m.get_error(), f"{m.get_error()}\n{text}"
    return m


@lru_cache(1024)
def other(name: str, choice: str, parallel: bool) -> Gbnf:
    return Gbnf(str(grammar(ts.dialect(name), tools_of(ts.dialect(name)), choice, "gbnf", parallel)))


def takes(m: Any, text: str) -> bool:
    """Whether a matcher of llguidance accepts the whole text."""
    m = m.deep_copy()
    data = list(text.encode())
    return m.try_consume_tokens(data) == len(data) and m.is_accepting()


def accepts(d: Dialect, text: str, choice: str = "auto", parallel: bool = True) -> bool:
    """Whether the grammar accepts the text, and both forms of it say the same."""
    found = takes(matcher(d.name, choice, parallel), text)
    assert other(d.name, choice, parallel).accepts(text) == found, (choice, parallel, found, text)
    return found


def said(d: Dialect, text: str) -> str:
    """A text as a reply begins with it."""
    return text if d.header is None else d.header.start + d.header.text + d.header.stop + text


def thought(d: Dialect) -> str:
    if d.header and d.header.thought:
        return f"{d.header.start}{d.header.thought}{d.header.stop}hm{d.between or d.header.ends[0]}"
    return f"{d.thinking.open}hm{d.thinking.close}" if d.thinking else ""


@pytest.mark.parametrize(("d", "parallel"), ROWS, ids=lambda part: getattr(part, "name", str(part)))
def test_what_the_dialect_writes(d: Dialect, parallel: bool) -> None:
    one = write_calls([call_of(d)], d)
    two = write_calls([call_of(d), call_of(d, "ping")], d)
    for choice in ("auto", "required", call_of(d).name):
        assert accepts(d, one, choice, parallel)
        assert accepts(d, thought(d) + one, choice, parallel)
    assert not accepts(d, one, "none", parallel)
    assert not accepts(d, thought(d) + one, "none", parallel)
    if not any(isinstance(part, Raw) for part in d.call):  # raw text has no end: what follows is of it
        assert accepts(d, two, "required", parallel) is parallel
        assert accepts(d, two, "auto", parallel) is parallel
        assert not accepts(d, one + " and so on.", "required", parallel)
        assert not accepts(d, two, "weather", parallel)


@ALL
def test_text(d: Dialect) -> None:
    words = "A <b>text</b> with {\"a\": [1]}, f(x='y') and\nlines."
    one = write_calls([call_of(d)], d)
    for choice, may in (("auto", True), ("none", True), ("required", False)):
        assert accepts(d, said(d, words), choice) is may
        assert accepts(d, thought(d) + said(d, words), choice) is may
    if d.header is None:
        assert accepts(d, words + d.before + one)
        assert accepts(d, thought(d) + words + d.before + one)
        assert not accepts(d, words + d.before + one, "none")
        assert not accepts(d, words + d.before + one, "required")


@ALL
def test_what_is_no_call_of_these_tools(d: Dialect) -> None:
    if any(isinstance(part, Raw) for part in d.call):
        return
    for choice in ("auto", "required"):
        for wrong in (
            ToolCall("", "evil", {"city": "Xiamen"}),
            ToolCall("", "weather", {"n": 37}),
            ToolCall("", "weather", {"city": "Xiamen", "n": "many"}),
            ToolCall("", "weather", {"city": "Xiamen", "unit": "kelvin"}),
            ToolCall("", "weather", {"city": "Xiamen", "tags": [{"a": 1}]}),
            ToolCall("", "weather", {"city": "Xiamen", "where": {"lat": 1.5, "long": 2}}),
            ToolCall("", "weather", {"city": "Xiamen", "evil": 1}),
            ToolCall("", "ping", {"evil": 1}),
            ToolCall("", "free", {"first": True, "many": "words"}),
        ):
            wire = write_calls([wrong], d)
            if accepts(d, wire, choice):  # then it is read otherwise: as a text, or a tree as the text of a string
                for call in parse(wire, d, TOOLS).calls:
                    assert not check(BY_NAME[call.name], call.arguments), wire
                    assert call.arguments != wrong.arguments


NAMES = st.text(st.sampled_from("abcxyz"), min_size=2, max_size=6)
TEXTS = st.text(st.sampled_from("abé☃\n \t'\"\\{}[]<>=,:😀"), max_size=12)
NUMBERS = st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9, allow_nan=False)
PLACES = st.recursive(
    st.builds(lambda lat: {"lat": lat}, NUMBERS),
    lambda places: st.builds(lambda lat, near: {"lat": lat, "near": near}, NUMBERS, st.lists(places, max_size=2)),
    max_leaves=4,
)
WEATHERS = st.fixed_dictionaries(
    {"city": TEXTS},
    optional={
        "n": st.integers(),
        "u": TEXTS | st.none(),
        "unit": st.sampled_from(["celsius", "fahrenheit"]),
        "tags": st.lists(TEXTS, max_size=3),
        "where": PLACES,
        "x": NUMBERS | st.booleans(),
    },
)
FREES = st.tuples(
    st.fixed_dictionaries({}, optional={"first": st.booleans()}), st.dictionaries(NAMES, st.integers(), max_size=2)
).map(lambda two: {**two[0], **{k: v for k, v in two[1].items() if k != "first"}})
CALLS = st.one_of(
    WEATHERS.map(lambda a: ToolCall("", "weather", ordered(a, "weather"))),
    FREES.map(lambda a: ToolCall("", "free", a)),
    st.just(PING),
)


def ordered(arguments: dict[str, Any], name: str) -> dict[str, Any]:
    """The arguments in the order of their schema, in which a grammar wants them."""
    return {key: arguments[key] for key in BY_NAME[name].parameters["properties"] if key in arguments}


@ALL
@property_test(4, calls=st.lists(CALLS, min_size=1, max_size=3))
def test_calls_of_all_kinds(d: Dialect, calls: Sequence[ToolCall]) -> None:
    if any(isinstance(part, Raw) for part in d.call):
        return
    wire = write_calls(calls, d)
    read = parse(wire, d, TOOLS)
    if [(c.name, c.arguments) for c in read.calls] != [(c.name, c.arguments) for c in calls] or read.notes:
        return  # the wire cannot say it, as when a text holds the mark that would end it
    assert accepts(d, wire, "required")
    assert accepts(d, wire, "auto")
    assert accepts(d, wire, "required", False) is (len(calls) == 1)


@ALL
def test_a_text_under_the_grammar_calls_nothing_else(d: Dialect) -> None:
    """Mutated wires: where the grammar accepts one, what it is read as are whole calls that may be run, or none."""
    rng = random.Random(d.name)
    tools = tools_of(d)
    wires = [write_calls(calls, d) for calls in ([call_of(d)], [call_of(d, "ping"), call_of(d)])]
    pieces = [w[i : i + n] for w in wires for n in (1, 3, 9) for i in range(0, len(w), n)]
    pieces += ["\n", "{", "[", "weather", "evil", '"', "'", " "]
    for _ in range(12):
        text = rng.choice(["", "", said(d, "Hm. ")]) + rng.choice(wires)
        for _ in range(rng.randint(1, 3)):
            i = rng.randint(0, len(text))
            text = text[:i] + rng.choice([rng.choice(pieces) + text[i:], text[i + rng.randint(1, 12) :]])
        reply = parse(text, d, tools)
        for choice in ("auto", "required", "none"):
            if not accepts(d, text, choice):
                continue
            for call in reply.calls:
                assert choice != "none" or not call.whole, text
                assert call.whole or choice == "none", text
                assert call.name in {tool.name for tool in tools}, text
                assert not [p for tool in tools if tool.name == call.name for p in check(tool, call.arguments)], text
            assert reply.calls or choice != "required", text


def test_names_that_begin_alike() -> None:
    tools = [Tool("get", "", {"properties": {"a": {"type": "string"}}}), Tool("get_all"), Tool("get_all_of")]
    for d in DIALECTS:
        if any(isinstance(part, Raw) for part in d.call):
            continue
        m = llguidance.LLMatcher(tokens(), grammar(d, tools, "required"))
        b = Gbnf(str(grammar(d, tools, "required", "gbnf")))
        for call in (ToolCall("", "get", {}), ToolCall("", "get", {"a": "x"}), ToolCall("", "get_all_of", {})):
            wire = write_calls([call, ToolCall("", "get_all", {})], d)
            assert takes(m, wire), wire
            assert b.accepts(wire), wire


@pytest.mark.parametrize("name", ["tool-json", "function-name", "tool-call", "llama3-json", "pythonic"])
def test_json_in_a_text_is_not_barred(name: str) -> None:
    d = ts.dialect(name)
    for text in ('Look: {"name": "Bob", "tool": "a saw"}', "[weathering(x)]", 'Use {"type": "object"}.'):
        assert accepts(d, text), text
    for text in ('Look: {"name": "weather"', 'So {"tool" :\n"weather"', 'So {"args": {}, "functionName": "ping"'):
        if name in ("tool-json", "llama3-json") and '"name": "weather"' in text:
            assert not accepts(d, text), text


def test_a_thought_that_the_prompt_opened() -> None:
    wire = "hm\n</think>\n\n" + write_calls([CITY], ts.dialect("hermes"))
    for choice in ("auto", "required"):
        for form in ("lark", "gbnf"):
            inside = grammar(ts.dialect("hermes"), TOOLS, choice, form, prompt="<|im_start|>assistant\n<think>\n")
            m = (
                Gbnf(str(inside)).accepts
                if form == "gbnf"
                else lambda t, g=inside: takes(llguidance.LLMatcher(tokens(), g), t)
            )
            assert m(wire)
            assert not m("hm, no end")
    assert not accepts(ts.dialect("hermes"), wire, "required")


def test_no_thought_where_none_is_wanted() -> None:
    for name in ("hermes", "harmony"):
        d = ts.dialect(name)
        wire = write_calls([CITY], d)
        for form in ("lark", "gbnf"):
            text = str(grammar(d, TOOLS, "required", form, thinking=False))
            m = Gbnf(text).accepts if form == "gbnf" else lambda t, g=text: takes(llguidance.LLMatcher(tokens(), g), t)
            assert m(wire)
            assert not m(thought(d) + wire)


def valid(schema: Any, value: object) -> bool:
    return jsonschema_rs.Draft202012Validator(schema).is_valid(value)


IN_JSON = ["tool-json", "function-name", "tool-call", "llama3-json", "generic-json", "xlam"]


@pytest.mark.parametrize("name", [name for name in IN_JSON if name in ts.dialects()])
def test_a_schema_of_the_whole_reply(name: str) -> None:
    d = ts.dialect(name)
    schema = grammar(d, TOOLS, "required", "json_schema")
    one = grammar(d, TOOLS, "required", "json_schema", parallel=False)
    deep = ToolCall("", "weather", {"city": "x", "where": {"lat": 1, "near": [{"lat": 2}]}})
    for call in (CITY, PING, deep):
        written = json.loads(write_calls([call], d))
        assert valid(schema, written)
        assert valid(one, written)
        several = written * 2 if isinstance(written, list) else [written, written]
        assert valid(schema, several)
        assert not valid(one, several)
        assert parse(json.dumps(several), d, TOOLS).calls
    for wrong in (ToolCall("", "evil", {}), ToolCall("", "weather", {"n": 1}), ToolCall("", "ping", {"a": 1})):
        assert not valid(schema, json.loads(write_calls([wrong], d)))
    bad = ToolCall("", "weather", {"city": "x", "where": {"lat": 1, "near": [{"lat": "far"}]}})
    assert not valid(schema, json.loads(write_calls([bad], d)))


def test_an_answer_as_json() -> None:
    for name, answer in (
        ("tool-json", {"tool": None, "tool_input": None, "message": "Hi"}),
        ("tool-call", {"type": "final", "content": "Hi"}),
    ):
        d = ts.dialect(name)
        assert valid(grammar(d, TOOLS, "auto", "json_schema"), answer)
        assert valid(grammar(d, TOOLS, "none", "json_schema"), answer)
        assert not valid(grammar(d, TOOLS, "required", "json_schema"), answer)
        assert accepts(d, json.dumps(answer))
        assert accepts(d, json.dumps(answer), "none")
        assert not accepts(d, json.dumps(answer), "required")
        assert parse(json.dumps(answer), d, TOOLS).text == "Hi"


def test_what_no_form_can_say() -> None:
    with pytest.raises(UsageError, match="lark, gbnf or structural_tag"):
        ts.grammar("hermes", TOOLS, "required", "json_schema")
    with pytest.raises(UsageError, match="required"):
        ts.grammar("function-name", TOOLS, "auto", "json_schema")
    with pytest.raises(UsageError, match="expected lark, gbnf"):
        ts.grammar("hermes", TOOLS, form="regex")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="weather"):
        ts.grammar("hermes", TOOLS, "evil")
    with pytest.raises(UsageError, match="none"):
        ts.grammar("hermes", [], "required")
    assert takes(llguidance.LLMatcher(tokens(), ts.grammar("hermes", [])), "Hello {there}")


def formats(node: Any) -> list[dict[str, Any]]:
    """Every format in a structural tag."""
    if isinstance(node, list):
        return [f for part in node for f in formats(part)]
    if not isinstance(node, dict):
        return []
    inner = [f for key, part in node.items() if key != "json_schema" for f in formats(part)]
    return [node, *inner] if "type" in node else inner


FIELDS = {
    "structural_tag": {"format"},
    "sequence": {"elements"},
    "optional": {"content"},
    "tag": {"begin", "content", "end"},
    "tags_with_separator": {"tags", "separator", "at_least_one", "stop_after_first"},
    "triggered_tags": {"triggers", "tags", "stop_after_first", "excludes"},
    "any_text": {"excludes"},
    "json_schema": {"json_schema"},
    "grammar": {"grammar"},
    "regex": {"pattern"},
}


@ALL
@pytest.mark.parametrize("choice", ["auto", "required", "none"])
def test_structural_tags(d: Dialect, choice: str) -> None:
    tag = grammar(d, tools_of(d), choice, "structural_tag")
    assert json.loads(json.dumps(tag)) == tag
    for node in formats(tag):
        assert set(node) - {"type"} <= FIELDS[node["type"]], node
        if node["type"] == "triggered_tags":
            for begun in node["tags"]:
                assert sum(begun["begin"].startswith(t) for t in node["triggers"]) == 1
        if node["type"] == "grammar":
            Gbnf(node["grammar"])
        if node["type"] == "json_schema":
            jsonschema_rs.Draft202012Validator(node["json_schema"])


def test_a_structural_tag_of_json_arguments() -> None:
    tag = ts.grammar("hermes", [TOOLS[1]], "required", "structural_tag", parallel=False)
    assert tag["format"]["elements"][1] == {  # type: ignore[index]
        "type": "tags_with_separator",
        "tags": [
            {
                "type": "tag",
                "begin": '<tool_call>\n{"name": "ping", "arguments": ',
                "content": {
                    "type": "json_schema",
                    "json_schema": {"type": "object", "properties": {}, "additionalProperties": False},
                },
                "end": "}\n</tool_call>",
            }
        ],
        "separator": "\n",
        "at_least_one": True,
        "stop_after_first": True,
    }
