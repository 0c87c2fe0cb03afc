"""When a text leaves its dialect: what is kept, and the note that it leaves. Nothing is ever guessed into an argument."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from codec_run import run, same_at_every_cut
from hypothesis import strategies as st
from wire_cases import DIALECTS, TOOLS, cuts, merged, rules, stream, told

from cost import LINEAR, growth
from properties import property_test
from toolspeak.dialects import get
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Noted
from toolspeak.types import ToolCall
from toolspeak.wire.decode import Decoder, parse
from toolspeak.wire.dialect import NAME, Dialect, Json
from toolspeak.wire.holes import json_args
from toolspeak.wire.prompt.calls import write_calls
from toolspeak.wire.reading.collect import collect

PARIS = [("weather", {"city": "Paris"}, True)]
BODY = '{"name": "weather", "arguments": {"city": "Paris"}}'


def one(**arguments: Any) -> list[tuple[str, dict[str, Any], bool]]:
    return [("weather", arguments, True)]


@pytest.mark.parametrize(
    ("name", "wire", "calls", "text", "notes"),
    [
        # closers missing or doubled
        ("hermes", f"<tool_call>{BODY}", PARIS, "", ["missing-closer"]),
        ("hermes", f"<tool_call>{BODY[:-1]}</tool_call>", PARIS, "", ["unclosed-object"]),
        ("hermes", f"<tool_call>{BODY}}}</tool_call>", PARIS, "", ["stray-closer"]),
        ("hermes", f"<tool_call>{BODY}</tool_call></tool_call> Done.", PARIS, " Done.", ["stray-closer"]),
        ("functools", f"functools[{BODY}", PARIS, "", ["missing-closer"]),
        ("functools", f"functools[{BODY}]]", PARIS, "", ["stray-closer"]),
        ("tool-json", '{"tool": "weather", "tool_input": {"city": "Paris"}', PARIS, "", ["unclosed-object"]),
        ("lfm2", "<|tool_call_start|>[weather(city='Paris']<|tool_call_end|>", PARIS, "", ["unclosed-object"]),
        ("lfm2", "<|tool_call_start|>[weather(city='Paris'<|tool_call_end|>", PARIS, "", ["unclosed-object", "missing-closer"]),
        ("lfm2", "<|tool_call_start|>[weather(a=3.5]<|tool_call_end|> Done.", one(a=3.5), " Done.", ["unclosed-object"]),
        ("lfm2", "<|tool_call_start|>[weather(a=3.5<|tool_call_end|>", one(a=3.5), "", ["unclosed-object", "missing-closer"]),
        ("pythonic", "[weather(city='Paris']", PARIS, "", ["unclosed-object"]),
        ("llama4-pythonic", "<|python_start|>[weather(l=['a', 'b']]<|python_end|>", one(l=["a", "b"]), "", ["unclosed-object"]),
        ("olmo3", "<function_calls>weather(a={'b': 'c'</function_calls>", one(a={"b": "c"}), "", ["unclosed-object"]),
        ("gemma3", "```tool_code\nweather(city='Paris'\n```", PARIS, "", ["unclosed-object"]),
        ("gemma4", '<|tool_call>call:weather{city:<|"|>Paris<|"|><tool_call|>', PARIS, "", ["unclosed-object"]),
        ("gemma4", '<|tool_call>call:weather{city:<|"|>Paris<|"|>call:ping{}<tool_call|>', [*PARIS, ("ping", {}, True)], "", ["unclosed-object", "list"]),
        ("functiongemma", "<start_function_call>call:weather{city:<escape>Paris<escape><end_function_call>", PARIS, "", ["unclosed-object"]),
        ("empower", '<f>[{"name": "weather", "arguments": "{\\"city\\": \\"Paris\\""}]', PARIS, "", ["unclosed-object"]),
        ("empower", '<f>[{"name": "weather", "arguments": "{\\"l\\": [1, 2"}]', one(l=[1, 2]), "", ["unclosed-object"]),
        ("hermes", '<tool_call>{"name": "weather", "arguments": "{\\"city\\": \\"Paris\\""}</tool_call>', PARIS, "", ["unclosed-object"]),
        ("tool-json", '{"tool": "weather", "tool_input": {"city": "Paris"}}}', PARIS, "", ["stray-closer"]),
        # the dialect's own opener is missing, or a fence stands around it
        ("hermes", BODY, PARIS, "", ["missing-opener"]),
        ("hermes", f"Sure:\n```json\n{BODY}\n```", PARIS, "Sure:", ["fence", "missing-opener"]),
        ("hermes", f"```\n<tool_call>\n{BODY}\n</tool_call>\n```", PARIS, "", ["fence"]),
        ("hermes", f"```json\n{BODY}", PARIS, "", ["fence", "missing-opener", "missing-closer"]),
        ("functools", f"[{BODY}]", PARIS, "", ["missing-opener"]),
        ("tool-json", f"```json\n{BODY}\n``` Done.", PARIS, " Done.", ["fence"]),
        ("tool-json", f"[{BODY}, {BODY}]", PARIS * 2, "", []),
        ("hermes", f"<tool_call>\n[{BODY}, {BODY}]\n</tool_call>", PARIS * 2, "", ["list"]),
        ("hermes", f"<tool_call>\n{BODY}\n{BODY}\n</tool_call>", PARIS * 2, "", ["missing-closer", "missing-opener", "stray-closer"]),
        # not quite JSON
        ("hermes", "<tool_call>{'name': 'weather', 'arguments': {'city': 'Paris'}}</tool_call>", PARIS, "", ["single-quotes"]),
        ("tool-json", "{'tool': 'weather', 'tool_input': {'a': None, 'b': True}}", one(a=None, b=True), "", ["single-quotes", "python-literal", "python-literal"]),
        ("tool-json", "{'tool': 'weather', 'tool_input': {'a': 'it's', 'b': 'say \"x\"'}}", one(a="it's", b='say "x"'), "", ["single-quotes"]),
        ("tool-json", '{"tool": "weather", "tool_input": {"l": [1, 2,], },}', one(l=[1, 2]), "", ["trailing-comma"]),
        ("tool-json", '{"tool": "weather", "tool_input": {city: "Paris"}}', PARIS, "", ["bare-key"]),
        ("tool-json", '{"tool": "weather", "tool_input": {"a": "two\nlines\t"}}', one(a="two\nlines\t"), "", ["raw-control"]),
        ("tool-json", '{"tool": "weather", "tool_input": {"a": "\\d+ \\u12"}}', one(a="\\d+ \\u12"), "", ["bad-escape", "bad-escape"]),
        ("hermes", '<tool_call>{"name": "weather", "arguments": "{\'city\': \'Paris\'}"}</tool_call>', PARIS, "", ["single-quotes"]),
        ("hermes", '<tool_call>{"name": "weather", "arguments": "{"city": "Paris"}"}</tool_call>', PARIS, "", ["quote-in-string"]),
        # quotes that nobody escaped
        ("tool-json", '{"tool": "weather", "tool_input": {"a": "print("hello")", "b": 1}}', one(a='print("hello")', b=1), "", ["quote-in-string"]),
        ("tool-json", '{"tool": "weather", "tool_input": {"a": "say "yes", then "no""}}', one(a='say "yes", then "no"'), "", ["quote-in-string"]),
        ("tool-json", '{"tool": "weather", "tool_input": {"a": ["x "y", z", true, "w"]}}', one(a=['x "y", z', True, "w"]), "", ["quote-in-string"]),
        ("tool-json", '{"tool": "weather", "tool_input": {"a": "x "y": z", b: 1}}', one(a='x "y": z', b=1), "", ["quote-in-string", "bare-key"]),
        ("tool-json", "{'tool': 'weather', 'tool_input': {'a': 'say 'yes', then', 'it's': 1}}", one(**{"a": "say 'yes', then", "it's": 1}), "", ["single-quotes"]),
        # quotes of typographers
        ("hermes", "<tool_call>{“name”: “weather”, “arguments”: {“city”: “Paris”}}</tool_call>", PARIS, "", ["smart-quotes"]),
        ("tool-json", '{"tool": "weather", "tool_input": {“a”: «x "y"», ‘b’: ["„z“", „q“], "c": "“d”"}}', one(a='x "y"', b=["„z“", "q"], c="“d”"), "", ["smart-quotes"]),
        ("tool-json", '{"tool": "weather", "tool_input": {“a”: “b ”c” d\\n\\u0041”}}', one(a="b ”c” d\nA"), "", ["smart-quotes", "quote-in-string"]),
        ("tool-json", '{"tool": "weather", "tool_input": {"a": "\\ud83d\\ude00 \\uD83D \\ude00x"}}', one(a="\U0001f600 \ufffd \ufffdx"), "", ["lone-surrogate"]),
        ("empower", '<f>[{"name": "weather", "arguments": "{\\"a\\": \\"\\\\ud83d\\ud83d\\"}"}]', one(a="\ufffd\ufffd"), "", ["lone-surrogate"]),
        # no arguments, told in other ways
        ("hermes", '<tool_call>{"name": "weather"}</tool_call>', one(), "", ["no-arguments"]),
        ("hermes", '<tool_call>{"name": "weather", "arguments": null}</tool_call>', one(), "", []),
        ("hermes", '<tool_call>{"name": "weather", "arguments": ""}</tool_call>', one(), "", []),
        # keys in another order, of another name, and more of them
        ("hermes", '<tool_call>{"arguments": {"city": "Paris"}, "name": "weather"}</tool_call>', PARIS, "", []),
        ("hermes", '<tool_call>{"type": "function", "x": null, "name": "weather", "parameters": {"city": "Paris"}}</tool_call>', PARIS, "", []),
        # an unknown tool is told where the dialect has an opener of its own
        ("hermes", '<tool_call>{"name": "zz", "arguments": {}}</tool_call>', [("zz", {}, True)], "", ["unknown-tool"]),
        ("empower", '<f>[{"name": "zz", "arguments": "{}"}]', [("zz", {}, True)], "", ["unknown-tool"]),
    ],
)  # fmt: skip
def test_what_is_kept(name: str, wire: str, calls: list[Any], text: str, notes: list[str]) -> None:
    d = get(name)
    reply = parse(wire, d, TOOLS)
    assert told(reply) == calls
    assert (reply.text, rules(reply)) == (text, notes)
    assert reply.finish == "tool_calls"
    for chunks in cuts(wire, random.Random(1)):
        assert merged(stream(d, chunks)) == merged(stream(d, [wire]))


@pytest.mark.parametrize(
    ("name", "wire", "finish"),
    [
        ("hermes", '<tool_call>{"name": "weather", "arguments": {"city": "Par', "length"),
        ("hermes", '<tool_call>{"name": "weather", "arguments": {"city": "Paris"', "length"),
        ("hermes", '<tool_call>{"name": "weather", "argu', "length"),
        ("hermes", '<tool_call>{"name": "weather", "arguments": {"city": ]}}</tool_call>', "tool_calls"),
        ("hermes", '<tool_call>{"name": "weather", "arguments": {"city": Paris}}</tool_call>', "tool_calls"),
        ("hermes", '<tool_call>{"name": "weather", "arguments": {"city": NaN}}</tool_call>', "tool_calls"),
        ("hermes", '<tool_call>{"name": "weather", "arguments": ["Paris"]}</tool_call>', "tool_calls"),
        ("hermes", '<tool_call>{"name": "weather", "arguments": "Paris"}</tool_call>', "tool_calls"),
        # a closer is missing, and could be in either of two places
        ("gemma4", '<|tool_call>call:weather{a:{b:<|"|>c<|"|>}<tool_call|>', "tool_calls"),
        ("lfm2", "<|tool_call_start|>[weather(a=[['b'])]<|tool_call_end|>", "length"),
        ("lfm2", "<|tool_call_start|>[weather(a=3,]<|tool_call_end|>", "tool_calls"),
        ("pythonic", "[weather(city='Paris'", "length"),
        ("pythonic", "[weather(city='Paris'] is the call.", "length"),
        ("hermes", '<tool_call>{"name": "weather", "arguments": {"a": ' + "[" * 100_000, "length"),
        ("tool-json", '{"tool": "weather", "tool_input": {"city": "Par', "length"),
        ("empower", '<f>[{"name": "weather", "arguments": "{\\"city\\": \\"Par', "length"),
        ("empower", '<f>[{"name": "weather", "arguments": "{\\"city\\": oops}"}]', "tool_calls"),
        ("empower", '<f>[{"name": "weather", "arguments": "{\\"city\\": \\"Par"}]', "tool_calls"),
        ("empower", '<f>[{"name": "weather", "arguments": "{\\"a\\": {\\"b\\": 1}"}]', "tool_calls"),
    ],
)
def test_a_broken_call_is_shown_and_has_no_arguments(name: str, wire: str, finish: str) -> None:
    reply = parse(wire, get(name), TOOLS)
    assert told(reply) == [("weather", {}, False)]
    assert reply.finish == finish
    assert reply.notes
    assert "tool_calls" not in reply.messages[0]


@pytest.mark.parametrize(
    "text",
    [
        "Use <tool_call> tags, closed by </tool_call>.",
        'Write `{"name": "weather", "arguments": {}}` to call it.',
        '{"weather": {"name": "weather", "arguments": {}}}',
        '[{"a": 1}, {"name": "weather", "arguments": {}}]',
        '{"name": "Ann", "arguments": {"x": 1}}',
        '{"name": "weather", "age": 3}',
        '{"name": "weather"',
        "from functools import cache\n\nfunctools[1]",
        "```python\nd = {'name': 'x'}\n```",
        "A set {1, 2} and {x} and {} and { } and {'a'}",
        '"{\\"name\\": \\"weather\\", \\"arguments\\": {}}"',
        "functools[]",
    ],
)
def test_talk_about_calls_stays_text(text: str) -> None:
    for name in ("hermes", "functools", "tool-json", "tool-call", "function-name"):
        reply = parse(text, get(name), TOOLS)
        assert (reply.text, reply.calls, reply.finish) == (text, (), "stop")


def test_a_bare_call_needs_an_offered_name_where_the_dialect_has_an_opener() -> None:
    assert parse(BODY, get("hermes"), None).text == BODY
    assert parse(BODY, get("hermes"), ()).text == BODY
    assert told(parse(BODY, get("hermes"), TOOLS)) == PARIS
    assert told(parse(BODY, get("tool-json"), None)) == PARIS


def test_an_unknown_tool_is_a_call_where_a_reply_begins_with_it_and_is_noted_in_any_case() -> None:
    wire = '{"tool": "zz", "tool_input": {}}'
    reply = parse(wire, get("tool-json"), TOOLS)
    assert (told(reply), rules(reply)) == ([("zz", {}, True)], ["unknown-tool"])
    reply = parse(f"So: {wire}", get("tool-json"), TOOLS)
    assert (reply.text, told(reply), rules(reply)) == (f"So: {wire}", [], ["unknown-tool"])
    assert parse('{"name": "Ann"}', get("hermes"), TOOLS).notes == ()
    assert parse('{"name": "Ann", "arguments": {}}', get("tool-json"), TOOLS).notes == ()


def test_several_candidates_are_several_calls_and_the_broken_ones_stand_between_them() -> None:
    wire = f"A\n<tool_call>{BODY}</tool_call>\nB <tool_call>oops</tool_call> C <tool_call>{BODY}</tool_call>"
    reply = parse(wire, get("hermes"), TOOLS)
    assert told(reply) == PARIS * 2
    assert reply.text == "A\nB <tool_call>oops</tool_call> C "
    two = parse(f"functools[{BODY}, oops, {BODY}]", get("functools"), TOOLS)
    assert [call.whole for call in two.calls] == [
        False,
        True,
    ]  # what stands between might have been a part of the first
    assert two.text == ", oops, "


def test_a_note_says_where() -> None:
    wire = 'Hm. <tool_call>{"name": "weather", "arguments": {"l": [1,]}}</tool_call>'
    (note,) = parse(wire, get("hermes"), TOOLS).notes
    assert (note.rule, wire[note.at]) == ("trailing-comma", ",")
    (note,) = parse(wire, get("hermes"), TOOLS).calls[0].notes
    assert note.rule == "trailing-comma"


def test_a_flood_of_repairs_leaves_a_bounded_number_of_notes() -> None:
    wire = (
        '<tool_call>{"name": "weather", "arguments": {"l": ['
        + "[1,]," * 5000
        + '"'
        + "".join(f"\\{chr(0x4E00 + i)}" for i in range(5000))
        + '"]}}</tool_call>'
    )
    events = stream(get("hermes"), [wire])
    assert sum(isinstance(e, Noted) for e in events) <= 100


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])) | st.text('",:{}[]\\ \n“”\'ab', max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('",: ab“\'', max_size=4), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@property_test(
    150, st.dictionaries(st.text(max_size=4), JSON_VALUES, max_size=4), st.sampled_from([None, 0, 1, 4]), st.booleans()
)
def test_valid_json_passes_byte_for_byte_at_every_cut(value: Any, indent: int | None, plain: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=plain)
    ran = same_at_every_cut(json_args.read_hole, Json(), text)
    assert (ran.json, ran.notes, ran.error, ran.rest) == (text, [], "", "")


@property_test(200, st.lists(st.sampled_from([*'"{}[],: ab1\\\n“”', "'", '",', '":', "true", '"a": "'])).map("".join))
def test_damaged_json_reads_the_same_at_every_cut(text: str) -> None:
    for start in ('{"a": "', '["', '{"a": ['):
        ran = same_at_every_cut(json_args.read_hole, Json(), start + text)
        if not ran.error:
            json.loads(ran.json)


@pytest.mark.parametrize("unit", ['"', '",', '" ,', '", "', '"' + " " * 200, '",' + "a" * 200, "”", '" "'])
def test_quotes_within_strings_cost_no_more_than_they_are_long(unit: str) -> None:
    def reading(n: int) -> Callable[[], object]:
        wire = '{"a": "' + unit * n
        chunks = [wire[i : i + 64] for i in range(0, len(wire), 64)]
        return lambda: run(json_args.read_hole, Json(), chunks)

    assert growth(reading) <= LINEAR


SECTION = "<|tool_calls_section_begin|>"
SECTIONED = "<|tool_call_begin|>functions.{}:0<|tool_call_argument_begin|>{}<|tool_call_end|>".format


@pytest.mark.parametrize(
    ("name", "wire"),
    [
        ("hermes", '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"\n</tool_call>\n'
         '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>'),
        ("kimi-k2", SECTION + SECTIONED("weather", '{"city": "Paris"') + SECTIONED("ping", "{}")),
        ("mistral-v13", '[TOOL_CALLS]weather[ARGS]{"city": "Paris"[TOOL_CALLS]ping[ARGS]{}'),
    ],
)  # fmt: skip
def test_a_string_before_a_closer_ends_and_takes_no_other_call_in(name: str, wire: str) -> None:
    """Braces are missing behind it. The quote is not one within the string, and the next call is a call."""
    events = stream(get(name), [wire], TOOLS)
    reply = collect(events)
    assert told(reply) == [("weather", {"city": "Paris"}, True), ("ping", {}, True)]
    assert "unclosed-object" in [note.rule for note in reply.calls[0].notes]
    assert reply.text.strip() == ""
    for chunks in cuts(wire, random.Random(name)):
        assert merged(stream(get(name), chunks, TOOLS)) == merged(events)


OBJECTS = [
    d for d in DIALECTS if re.search(r'"Paris"\s*\}', write_calls([ToolCall("", "weather", {"city": "Paris"})], d))
]
"""Dialects that write arguments as a JSON object."""


@pytest.mark.parametrize("d", OBJECTS, ids=lambda d: d.name)
@pytest.mark.parametrize("value", ['"Paris"', "30", "true", '["a", "b"]'])
def test_a_missing_closer_before_the_closers_of_the_call_is_a_repair(d: Dialect, value: str) -> None:
    whole = write_calls([ToolCall("", "weather", {"city": "Paris"})], d)
    begins, after = re.split(r'"Paris"\s*\}', whole, maxsplit=1)
    if not after.strip():
        return  # nothing closes the call: only its server knows whether it was cut
    if re.match(r"\s*,", after):
        return  # further keys of the call follow, which could be arguments
    wire = begins + value + after
    reply = parse(wire, d, TOOLS)
    assert told(reply) == [("weather", {"city": json.loads(value)}, True)]
    assert (reply.finish, reply.text.strip()) == ("tool_calls", "")
    assert "unclosed-object" in [note.rule for note in reply.notes]
    events = stream(d, [wire], TOOLS)
    for chunks in cuts(wire, random.Random(d.name)):
        assert merged(stream(d, chunks, TOOLS)) == merged(events)


@pytest.mark.parametrize("d", OBJECTS, ids=lambda d: d.name)
def test_arguments_after_which_nothing_comes_are_cut(d: Dialect) -> None:
    whole = write_calls([ToolCall("", "weather", {"city": "Paris"})], d)
    reply = parse(whole[: whole.rindex('"Paris"') + 7], d, TOOLS)
    assert (reply.finish, [call.whole for call in reply.calls], reply.text) == ("length", [False], "")


@pytest.mark.parametrize("name", ["deepseek-v3", "deepseek-v31", "kimi-k2", "cwm", "functionary-v31", "solar-open"])
@pytest.mark.parametrize("broken", ['{"city": {"a": 1, "b": 2}', '{"city": [[1], 2'])
def test_broken_arguments_before_the_closers_of_the_call_are_malformed(name: str, broken: str) -> None:
    """More than one reading fits, or none. The closers are no text, and the reply was not cut."""
    wire = write_calls([ToolCall("", "weather", {"city": "Paris"})], get(name)).replace('{"city": "Paris"}', broken)
    reply = parse(wire, get(name), TOOLS)
    assert (reply.finish, [call.whole for call in reply.calls]) == ("tool_calls", [False])
    assert "<" not in reply.text
    events = stream(get(name), [wire], TOOLS)
    for chunks in cuts(wire, random.Random(name)):
        assert merged(stream(get(name), chunks, TOOLS)) == merged(events)


def test_a_quoted_closer_within_an_escaped_string_stays() -> None:
    said = 'say "</tool_call>" and go on'
    wire = f"<tool_call>{json.dumps({'name': 'weather', 'arguments': {'city': said}})}</tool_call>"
    assert parse(wire, get("hermes"), TOOLS).calls[0].arguments == {"city": said}


def test_a_shape_that_is_none_is_left_at_its_first_character() -> None:
    """What cannot be a name is not waited for: the call ends with its line, before the reply ends."""
    decoder = Decoder(get("lfm2"), TOOLS)
    call = '<|tool_call_start|>[{"name": "weather", "parameters": {"city": "Paris"}}]<|tool_call_end|>'
    events = decoder.feed(f"{call}\n")
    assert [type(e) for e in events] == [CallStart, ArgumentsDelta, CallEnd]


BARS = Dialect("bars", ("⟦call ", NAME, "⟧", Json(), "⟦/call⟧"))


@pytest.mark.parametrize(
    ("d", "text", "visible"),
    [
        (BARS, '⟦call weather⟧{"city":}⟦/call⟧', ""),
        (BARS, '⟦call weather⟧{"city":}}]⟦/call⟧ Then.', " Then."),
        (BARS, '⟦call weather⟧{"city": , "n": 1}⟦/call⟧', ', "n": 1}'),
        (BARS, '⟦call weather⟧{"city":}}} Then.', "}}} Then."),
        (BARS, '⟦call weather⟧{"city":} ⟦call ping⟧{}⟦/call⟧', "} "),
        (get("hermes"), '<tool_call>\n{"name": "weather", "arguments": {"city": }}\n</tool_call>', ""),
        (
            get("hermes"),
            '<tool_call>\n{"name": "weather", "arguments": {"city": , 1}}\n</tool_call>\nThen.',
            ", 1}}\nThen.",
        ),
    ],
)
def test_the_closer_of_a_damaged_call_is_no_text(d: Dialect, text: str, visible: str) -> None:
    events = stream(d, [text], TOOLS)
    for chunks in cuts(text, random.Random(text)):
        assert merged(stream(d, chunks, TOOLS)) == merged(events)
    reply = collect(events)
    assert (reply.text, reply.calls[0].whole) == (visible, False)
    assert [call.name for call in reply.calls if call.whole] == ["ping"] * ("ping" in text)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("I send {call} because it is the one that fits.\nYes.", "because it is the on"),
        ("I send {call} now.\nYes.", "now."),
        ("I send {call} x", "x"),
        ("I send {call}\n\nand wait", "and wait"),
    ],
)
def test_a_text_behind_a_call_is_noted_with_its_beginning(text: str, detail: str) -> None:
    for call, d in ((f"<tool_call>{BODY}</tool_call>", get("hermes")), ('⟦call weather⟧{"n": 1}⟦/call⟧', BARS)):
        written = text.format(call=call)
        events = stream(d, [written], TOOLS)
        for chunks in cuts(written, random.Random(written)):
            assert merged(stream(d, chunks, TOOLS)) == merged(events)
        assert [note.detail for note in collect(events).notes if note.rule == "trailing-text"] == [detail]
