"""Response templates, declared as tokenizers do, as dialects: what they read, and what cannot be said."""

from __future__ import annotations

import copy
import random
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import strategies as st

from properties import property_test
from toolspeak.errors import TemplateError
from toolspeak.types import Tool
from toolspeak.wire.decode import parse
from toolspeak.wire.finding.declared_patterns import GAP, PatternGroup, pattern_pieces
from toolspeak.wire.finding.response_template import from_response_template
from toolspeak.wire.prompt.calls import write_calls

from wire_cases import cuts, merged, stream  # isort: skip

FUNCTION = {"type": "function", "function": "{content}"}
OUTSIDE = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}

TAGS: dict[str, Any] = {
    "version": 1,
    "defaults": {"role": "assistant"},
    "start_anchor": "<|turn|>bot\n",
    "fields": {
        "reasoning_content": {"open": "<mind>", "close": "</mind>"},
        "content": {"close": ["<|stop|>", "<|tool|>"], "content": "text"},
        "tool_calls": {
            "open": "<run>",
            "close": "</run>",
            "repeats": True,
            "content": "json",
            "transform": FUNCTION,
        },
    },
}
ARRAY: dict[str, Any] = {
    "start_anchor": "<|A|>",
    "fields": {
        "content": {"open": "<|SAY|>", "close": "<|/SAY|>"},
        "thinking": {"open": "<|PLAN|>", "close": "<|/PLAN|>"},
        "tool_calls": {
            "open": "<|ACT|>",
            "close": "<|/ACT|>",
            "content": "json",
            "transform_each": True,
            "transform": {
                "type": "function",
                "id": "{call_id}",
                "function": {"name": "{tool}", "arguments": "{input}"},
            },
        },
    },
}
KEYS: dict[str, Any] = {
    "start_anchor": "<|A|>",
    "fields": {
        "tool_calls": {
            "open_pattern": r"(?:<\|A\|>)?[^<]*<\|call\|>",
            "close": "<|done|>",
            "repeats": True,
            "content": "json",
            "transform": {"function": {"name": "{content.fn}", "arguments": "{content.with}"}},
        },
        "content": {"open_pattern": r"(?:<\|A\|>)?[^<]*<\|text\|>", "close": "<|done|>"},
    },
}
PARAMETERS: dict[str, Any] = {
    "start_anchor_pattern": r"<\|turn\|>bot\s",
    "fields": {
        "thinking": {"open_pattern": r"(?:^|<mind>\s*)", "close": "</mind>"},
        "tool_calls": {
            "open_pattern": r"<run>\s*<function=(?P<name>[\w.-]+)>",
            "close": "</run>",
            "repeats": True,
            "content": "xml-inline",
            "content_args": {
                "tag_pattern": r"<param=(?P<key>\w+)>\s*(?P<value>.*?)\s*</param>",
                "value_parser": {"name": "json", "args": {"allow_non_json": True}},
            },
            "transform": OUTSIDE,
        },
    },
}
LOOSE: dict[str, Any] = {
    "start_anchor": ["<|turn>bot\n", "<result|>"],
    "fields": {
        "tool_calls": {
            "open_pattern": r"<\|call>do:(?P<name>\w+)",
            "close": "<call|>",
            "repeats": True,
            "content": "json",
            "content_args": {"unquoted_keys": True, "string_delims": [["<|'|>", "<|'|>"]]},
            "transform": OUTSIDE,
        },
        "content": {"close": ["<turn|>"]},
    },
}
HEADS: dict[str, Any] = {
    "start_anchor": "<|begin|>bot",
    "fields": {
        "thinking": {"open": "<|to|>self<|msg|>", "close": "<|next|>"},
        "content": {"open": "<|to|>user<|msg|>", "close": "<|next|>"},
        "tool_calls": {
            "open_pattern": r"<\|to\|>tool functions\.(?P<name>\w+).*?<\|msg\|>",
            "close": "<|call|>",
            "repeats": True,
            "content": "json",
            "transform": OUTSIDE,
        },
    },
}

CALLS: list[tuple[str, dict[str, Any]]] = [("weather", {"city": 'Rome "x"\n<b>', "days": 2}), ("ping", {})]
JSON_0 = '"city": "Rome \\"x\\"\\n<b>", "days": 2'
READ: list[tuple[dict[str, Any], str, str, str]] = [
    (
        TAGS,
        f'<mind>\nHm.\n</mind>\n\nSo:\n<run>{{"name": "weather", "arguments": {{{JSON_0}}}}}</run>'
        '<run>\n{"arguments": {}, "name": "ping"}\n</run><|stop|>',
        "So:",
        "Hm.",
    ),
    (
        TAGS,
        f'<run>{{"type": "function", "function": {{"name": "weather", "arguments": {{{JSON_0}}}}}}}</run>'
        '<run>{"name": "ping", "arguments": {}}</run>',
        "",
        "",
    ),
    (
        ARRAY,
        f'<|PLAN|>Hm.<|/PLAN|><|ACT|>[\n  {{"call_id": "1", "tool": "weather", "input": {{{JSON_0}}}}},\n'
        '  {"call_id": "2", "tool": "ping", "input": {}}\n]<|/ACT|>',
        "",
        "Hm.",
    ),
    (
        KEYS,
        f'<|text|>So:<|done|><|A|><|call|>{{"fn": "weather", "with": {{{JSON_0}}}}}<|done|>'
        '<|A|><|call|>{"fn": "ping", "with": {}}<|done|>',
        "So:",
        "",
    ),
    (
        PARAMETERS,
        '<mind>\nHm.\n</mind>\n<run>\n<function=weather>\n<param=city>\nRome "x"\n<b>\n</param>\n<param=days>\n2\n'
        "</param>\n</function>\n</run>\n<run>\n<function=ping>\n</function>\n</run>",
        "",
        "Hm.",
    ),
    (
        LOOSE,
        "<|call>do:weather{city:<|'|>Rome \"x\"\n<b><|'|>,days:2}<call|><|call>do:ping{}<call|><turn|>",
        "",
        "",
    ),
    (
        HEADS,
        f"<|to|>self<|msg|>Hm.<|next|><|begin|>bot<|to|>tool functions.weather <json><|msg|>{{{JSON_0}}}<|call|>"
        "<|begin|>bot<|to|>tool functions.ping<|msg|>{}<|call|>",
        "",
        "Hm.",
    ),
]
TOOLS: tuple[Tool[..., Any], ...] = (
    Tool("weather", "", {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}),
    Tool("ping"),
)


@pytest.mark.parametrize(
    ("config", "wire", "text", "thought"), READ, ids=["tags", "wrapped", "array", "keys", "params", "loose", "heads"]
)
def test_what_is_declared_is_read(config: dict[str, Any], wire: str, text: str, thought: str) -> None:
    d = from_response_template(config)
    assert (d.name, d.origin) == ("declared", "declared by its response template")
    reply = parse(wire, d, TOOLS)
    assert [(c.name, c.arguments) for c in reply.calls] == CALLS
    assert (reply.text.strip(), reply.thought.strip()) == (text, thought)
    assert {note.rule for note in reply.notes} <= {"head"}  # of what a head says beyond the name
    whole = merged(stream(d, [wire], TOOLS))
    for chunks in cuts(wire, random.Random(1)):
        assert merged(stream(d, chunks, TOOLS)) == whole


@pytest.mark.parametrize("config", [TAGS, ARRAY, KEYS, PARAMETERS, LOOSE, HEADS])
def test_what_is_declared_is_written(config: dict[str, Any]) -> None:
    d = from_response_template(config)
    wire = "<|A|>" if config is KEYS else ""
    wire += write_calls(parse(next(w for c, w, *_ in READ if c is config), d, TOOLS).calls, d)
    assert [(c.name, c.arguments) for c in parse(wire, d, TOOLS).calls] == CALLS


def changed(config: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    new: Any = copy.deepcopy(config)
    *way, last = path.split("/")
    at = new
    for key in way:
        at = at[key]
    if value is None:
        at.pop(last, None)
    else:
        at[last] = value
    return new


CALL = "fields/tool_calls/"
WRONG: list[tuple[dict[str, Any], str, Any, str]] = [
    # what would be read otherwise than it is declared
    (TAGS, "fields/content/join", "\n\n", "fields.content.join: a dialect puts nothing between"),
    (TAGS, "fields/content/transform", "<{content}>", "fields.content.transform: a dialect passes a text on"),
    (
        TAGS,
        "fields/content/content_args",
        {"dedent": True},
        "fields.content.content_args.dedent: expected one of strip",
    ),
    (TAGS, CALL + "content_args", {"comments": True}, "content_args.comments: expected one of string_delims"),
    (
        TAGS,
        "fields/reasoning_content/open",
        ["<mind>", "<muse>"],
        "reasoning_content.open: expected one literal, got 2",
    ),
    (TAGS, CALL + "transform", {**OUTSIDE, "index": "{n}"}, "transform.index: expected a call's id, name"),
    (HEADS, CALL + "open_pattern", r"^<\|call\|>(?P<name>\w+)", "open_pattern: cannot be said in literals: '^"),
    (TAGS, CALL + "repeats", "yes", "fields.tool_calls.repeats: expected true or false, got str"),
    (TAGS, CALL + "optional", 1, "fields.tool_calls.optional: expected true or false, got int"),
    (TAGS, "defaults", "assistant", "defaults: expected an object, got str"),
    (PARAMETERS, "start_anchor", "<|A|>", "start_anchor_pattern: expected it or start_anchor, not both"),
    (PARAMETERS, "start_anchor_pattern", "(bot", "start_anchor_pattern: expected a regular expression: missing )"),
    (PARAMETERS, "start_anchor_pattern", 3, "start_anchor_pattern: expected a regular expression, got int"),
    (TAGS, "version", 2, "version: expected 1, got 2"),
    (TAGS, "anchors", [], "anchors: expected one of"),
    (TAGS, "fields/tool_calls", None, "fields: expected a field tool_calls"),
    (TAGS, "fields/metadata", {"open": "<m>"}, "fields.metadata: a dialect knows content, tool_calls and thinking"),
    (TAGS, "fields/content", "text", "fields.content: expected an object, got str"),
    (TAGS, "fields/content/content", "int", "fields.content.content: expected text, got 'int'"),
    (TAGS, "fields/reasoning_content/close", ["</a>", "</b>"], "reasoning_content.close: expected one literal, got 2"),
    (TAGS, CALL + "opens", "<x>", "fields.tool_calls.opens: expected one of"),
    (TAGS, CALL + "open", [], "fields.tool_calls.open: expected a text or a list"),
    (TAGS, CALL + "open", None, "fields.tool_calls.open: expected what opens a call"),
    (TAGS, CALL + "open_pattern", "<x>", "open_pattern: expected it or open, not both"),
    (TAGS, CALL + "content", "kv-lines", "fields.tool_calls.content: expected json, or xml-inline"),
    (TAGS, CALL + "content_args", {"unquoted_keys": True}, "content_args: a whole call in JSON needs its usual quotes"),
    (TAGS, CALL + "transform", {"function": {"name": "{content.name}"}}, "transform: expected a function with a name"),
    (TAGS, CALL + "transform", {"function": "f"}, "transform: expected an object, got str"),
    (TAGS, CALL + "transform", {"function": {"name": "f", "arguments": "{content}"}}, "expected placeholders"),
    (TAGS, CALL + "transform", {"name": "{content.a.b}", "arguments": "{content.c}"}, "no deeper ones"),
    (TAGS, CALL + "transform", OUTSIDE, "open_pattern: nothing in it is the tool's name"),
    (PARAMETERS, CALL + "open_pattern", r"<(?P<kind>\w+)=(?P<name>\w+)>", "the group 'kind' is neither"),
    (PARAMETERS, CALL + "open_pattern", r"<f=(?P<name>\w+)(?!x)>", "open_pattern: cannot be said in literals: "),
    (PARAMETERS, CALL + "open_pattern", r"<(a|b) (?P<name>\w+)>", "open_pattern: cannot be said in literals: "),
    (PARAMETERS, CALL + "open_pattern", 7, "open_pattern: expected a regular expression, got int"),
    (PARAMETERS, CALL + "content_args/tag_pattern", None, "tag_pattern: expected a regular expression"),
    (
        PARAMETERS,
        CALL + "content_args/tag_pattern",
        r"<(?P<key>\w+)>(?P<value>.*?)</(?P=key)>",
        "tag_pattern: cannot be",
    ),
    (PARAMETERS, CALL + "content_args/tag_pattern", r"(?P<key>\w+)=(?P<value>.*?);", "a literal before the key"),
    (PARAMETERS, CALL + "content_args/merge_duplicates", True, "merge_duplicates: a parameter that comes twice"),
    (PARAMETERS, CALL + "content_args/value_parser", {"name": "int"}, "value_parser: expected text or json"),
    (LOOSE, CALL + "content_args/string_delims", [["<a>", "<b>"]], "string_delims: expected pairs of equal quotes"),
    (HEADS, "start_anchor", None, "open_pattern: expected a head: a mark, the name, anything, a mark"),
    (HEADS, "fields/thinking/open", "<think>", "fields.thinking.open: expected a head between"),
]


@pytest.mark.parametrize(("config", "path", "value", "words"), WRONG)
def test_what_cannot_be_said_names_the_key(config: dict[str, Any], path: str, value: Any, words: str) -> None:
    with pytest.raises(TemplateError) as caught:
        from_response_template(changed(config, path, value))
    assert words in str(caught.value)
    assert str(caught.value).startswith("no dialect can express this response template: ")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["{content}", "json", "<a>", "("]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [*TAGS, *TAGS["fields"], *TAGS["fields"]["tool_calls"], "open_pattern", "content_args", "x"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@property_test(
    100,
    JSON,
    st.sampled_from([TAGS, PARAMETERS, HEADS]),
    st.sampled_from(["fields", CALL + "open", CALL + "transform"]),
)
def test_any_declaration_is_read_or_refused(value: Any, config: dict[str, Any], path: str) -> None:
    for told in (value, changed(config, path, value)):
        with suppress(TemplateError):
            from_response_template(told)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"<\|a\|>", ("<|a|>",)),
        (r"<a>\s*<b=(?P<name>[\w.]+)>\n?", ("<a>\n<b=", PatternGroup("name"), ">\n")),
        (r"(?:^|<think>\s*)", ("<think>\n",)),
        (r"(?:<\|m\|>)?[^<]*<\|k\|>", ("<|k|>",)),
        (r"to=(?P<name>\w+).*?<m>", ("to=", PatternGroup("name"), GAP, "<m>")),
        (r"a\tb", ("a\tb",)),
        ("", ()),
    ],
)
def test_simple_patterns_are_literals_groups_and_gaps(pattern: str, expected: tuple[object, ...]) -> None:
    assert pattern_pieces(pattern) == expected


@pytest.mark.parametrize(
    "pattern",
    [
        "a+",
        "a|b",
        "(a)",
        "[ab]",
        "a{2}",
        r"\d",
        "(?=a)",
        r"(?P=n)",
        "a$",
        "(",
        "\\",
        "(?P<n>[" + "\\]" * 40,
        "[^" + "\\]" * 40,
    ],
)
def test_other_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="cannot be said in literals"):
        pattern_pieces(pattern)


@property_test(100, st.text(alphabet="ab<>|()[]{}?*+.\\^$P=wsn:!", max_size=40))
def test_any_pattern_is_read_or_refused(pattern: str) -> None:
    with suppress(ValueError):
        pattern_pieces(pattern)
