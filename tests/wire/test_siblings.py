"""What models leave out or get wrong around calls, and what is read all the same."""

from __future__ import annotations

from typing import Any

import pytest
from spoken import TALKING, wire

from toolspeak.dialects import get
from toolspeak.types import Reply, Tool
from toolspeak.wire.decode import Decoder, parse
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect

WEATHER: Tool[..., Any] = Tool("weather", "", {"type": "object", "properties": {"city": {"type": "string"}}})
PING: Tool[..., Any] = Tool("ping")
TOOLS = [WEATHER, PING]
ROME = ("weather", {"city": "Rome"}, True)


def at_every_cut(text: str, name: str, tools: list[Tool[..., Any]] | None = TOOLS, prompt: str = "") -> Reply:
    whole = parse(text, get(name), tools, prompt)
    for size in (1, 2, 3, 7, 31):
        decoder = Decoder(get(name), tools, prompt)
        pieces = (text[i : i + size] for i in range(0, len(text), size))
        other = collect([*(event for piece in pieces for event in decoder.feed(piece)), *decoder.close()])
        assert (other.text, other.thought, other.calls) == (whole.text, whole.thought, whole.calls)
    return whole


def calls(reply: Reply) -> list[tuple[str, dict[str, Any], bool]]:
    return [(call.name, call.arguments, call.whole) for call in reply.calls]


@pytest.mark.parametrize("space", ["", "I look.\n"])
def test_a_list_of_calls_without_its_marks(space: str) -> None:
    reply = at_every_cut(space + '[weather(city="Rome"), ping()]', "lfm2")
    assert (calls(reply), reply.text) == ([ROME, ("ping", {}, True)], space)
    for text in ('[nothing(city="Rome")]', "[weather](http://rome) and [1, 2]", "`[ping()]`"):
        assert (at_every_cut(text, "lfm2").text, calls(at_every_cut(text, "lfm2"))) == (text, [])


@pytest.mark.parametrize("number", ["0", ":0", "functions.:0", "functions.0"])
def test_a_number_is_the_name_of_the_only_tool(number: str) -> None:
    body = f'<|tool_call_begin|>{number}<|tool_call_argument_begin|>{{"city": "Rome"}}<|tool_call_end|>'
    wire = f"<|tool_calls_section_begin|>{body}<|tool_calls_section_end|>"
    assert calls(at_every_cut(wire, "kimi-k2", [WEATHER])) == [ROME]
    assert not [call for call in at_every_cut(wire, "kimi-k2").calls if call.name in ("weather", "ping")]


def test_a_section_without_calls_is_dropped() -> None:
    reply = at_every_cut("Done.<|tool_calls_section_begin|>\n<|tool_calls_section_end|>", "kimi-k2")
    assert (reply.text, calls(reply), [note.rule for note in reply.notes]) == ("Done.", [], ["no-calls"])
    spoken = "between <tool_calls></tool_calls> tags"
    assert at_every_cut(spoken, "minimax-m1").text == spoken


BAD = {
    "minimax-m1": ('<tool_calls>\n{}\n{"name": "ping", "arguments": {}}\n</tool_calls>', "name", "arguments"),
    "cohere2-moe": (
        '<|START_ACTION|>[\n    {},\n    {"tool_call_id": "1", "tool_name": "ping", "parameters": {}}\n]<|END_ACTION|>',
        "tool_name",
        "parameters",
    ),
    "mistral-v3": ('[TOOL_CALLS] [{}, {"name": "ping", "arguments": {}}]', "name", "arguments"),
}


@pytest.mark.parametrize("name", BAD)
def test_one_bad_call_loses_no_other(name: str) -> None:
    wire, key, arguments = BAD[name]
    for bad in (f'{{"{key}": "weather", "{arguments}": {{"city": }}}}', '{"nme": "weather"}', '{"id": "0"}'):
        reply = at_every_cut(wire.replace("{}", bad, 1), name)
        assert [call for call in calls(reply) if call[2]] == [("ping", {}, True)]


BODY = (
    '<atem:function_calls>\n<atem:invoke name="{}">\n<atem:parameter name="city">Rome</atem:parameter>\n'
    "</atem:invoke>\n</atem:function_calls><|eot|>"
)


def test_a_message_that_does_not_say_to_whom_it_goes() -> None:
    for head in ("<|start|>assistant<|message|>", "", "<|start|>assistant to=user<|message|>"):
        assert calls(at_every_cut(head + BODY.format("weather"), "muse")) == [ROME]
    assert not at_every_cut(BODY.format("nothing"), "muse").calls


def test_a_name_may_repeat_its_namespace() -> None:
    wire = " to=weather.weather<|message|>" + BODY.format("weather.weather")
    assert calls(at_every_cut(wire, "muse")) == [ROME]
    other = " to=maps.weather<|message|>" + BODY.format("maps.weather")
    assert [call.name for call in at_every_cut(other, "muse").calls] == ["maps.weather"]


def test_entities_in_names_and_keys() -> None:
    tools: list[Tool[..., Any]] = [Tool("a&b", "", {"type": "object", "properties": {"x&y": {"type": "string"}}})]
    xtml = (
        '<|open|>tools<|sep|><|open|>call tool="a&amp;b" index="1"<|sep|><|open|>argument key="x&amp;y" type="string"'
        "<|sep|>&amp;<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>"
    )
    assert calls(at_every_cut(xtml, "kimi-k3", tools)) == [("a&b", {"x&y": "&amp;"}, True)]
    for name in ("a&amp;b", ""):
        wire = f'<|message_model|>{name}<|content_invoke_tool_json|>{{"name": "a&amp;b", "args": {{}}}}<|end_message|>'
        assert calls(at_every_cut(wire, "inkling", tools)) == [("a&b", {}, True)]


@pytest.mark.parametrize("opener", ["<|channel>", "<|channel>\n", "<|channel>thought\n"])
def test_a_thought_whose_channel_has_no_name(opener: str) -> None:
    reply = at_every_cut(f"{opener}Rome, then.\n<channel|><|tool_call>call:ping{{}}<tool_call|>", "gemma4")
    assert (reply.thought, reply.text, calls(reply)) == ("Rome, then.", "", [("ping", {}, True)])


def test_a_message_whose_first_mark_is_missing() -> None:
    head = "<|channel|>analysis<|message|>hm<|end|>assistant<|channel|>"
    assert at_every_cut(head + "final<|message|>ok<|return|>", "harmony").text == "ok"
    wire = head + 'commentary to=functions.weather<|message|>{"city": "Rome"}<|call|>'
    assert calls(at_every_cut(wire, "harmony")) == [ROME]
    spoken = "<|channel|>final<|message|>hm<|end|>assistant is a role"
    assert at_every_cut(spoken, "harmony").text == "hm<|end|>assistant is a role"


HM = "<|channel|>analysis<|message|>hm"
ROME_JSON = '<|message|>{"city": "Rome"}<|call|>'
GLUED = [
    ("muse", " to=self<|message|>hm<|eom|> to=weather<|message|>" + BODY.format("weather")),
    ("muse", " to=self<|message|>hm to=weather<|message|>" + BODY.format("weather")),
    ("muse", " to=self<|message|>hm<|start|>assistant to=weather<|message|>" + BODY.format("weather")),
    ("harmony", f"{HM}<|channel|>commentary to=functions.weather{ROME_JSON}"),
    ("harmony", f"{HM} assistant<|channel|>commentary to=functions.weather{ROME_JSON}"),
    ("harmony", f"{HM}<|start|>assistant<|channel|>commentary to=functions.weather{ROME_JSON}"),
]


@pytest.mark.parametrize(("name", "wire"), GLUED)
def test_messages_without_the_marks_between_them(name: str, wire: str) -> None:
    reply = at_every_cut(wire, name)
    assert (reply.thought.strip(), reply.text, calls(reply)) == ("hm", "", [ROME])
    said = at_every_cut(" to=self<|message|>hm to=user<|message|>Hello<|eot|>", "muse")
    assert (said.thought.strip(), said.text) == ("hm", "Hello")
    for text in ("I set to=5 and to=<|message|>.", "A to=to=to=weather says<|message|>", "to=a b<|message|>"):
        assert at_every_cut("<|start|>assistant to=user<|message|>" + text, "muse").text == text


@pytest.mark.parametrize(
    ("to", "name", "whole"),
    [
        ("maps.search", "search", True),
        ("maps", "maps.search", True),
        ("maps", "search", True),
        ("mail", "maps.search", False),
        ("maps.search", "maps.find", False),
    ],
)
def test_a_message_to_a_namespace(to: str, name: str, whole: bool) -> None:
    tool: Tool[..., Any] = Tool("maps.search", "", WEATHER.parameters)
    reply = at_every_cut(f" to={to}<|message|>{BODY.format(name)}", "muse", [tool])
    assert calls(reply) == [("maps.search", {"city": "Rome"}, whole)]


@pytest.mark.parametrize("first", ['"what"', '{"tool_call_id": "0"}', "oops", '{"a": 1}'])
@pytest.mark.parametrize("between", [",\n    ", ", ", ",\n"])
@pytest.mark.parametrize("name", ["cohere2-moe", "command-r7b"])
def test_a_good_call_behind_what_is_none_in_its_list(name: str, between: str, first: str) -> None:
    good = '{"tool_call_id": "1", "tool_name": "weather", "parameters": {"city": "Rome"}}'
    reply = at_every_cut(f"<|START_ACTION|>[\n    {first}{between}{good}\n]<|END_ACTION|>", name)
    assert calls(reply) == [ROME]
    assert first in reply.text


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
def test_an_unknown_tool_between_two_good_calls(d: Dialect) -> None:
    """It spoils none of the others, in any dialect, and is itself a call, or text where a message is one by its name."""
    written = wire(d, ("weather", {"city": "Rome"}), ("nope", {}), ("weather", {"city": "Oslo"}))
    reply = at_every_cut(written, d.name)
    assert [call for call in calls(reply) if call[0] == "weather"] == [ROME, ("weather", {"city": "Oslo"}, True)]
    assert "nope" in reply.text or [note.detail for note in reply.notes if note.rule == "unknown-tool"] == ["nope"]


def test_an_unknown_word_in_a_list_is_no_call() -> None:
    reply = at_every_cut("[weather(city='Rome'), see below (it is fine)]", "pythonic")
    assert calls(reply) == [("weather", {"city": "Rome"}, False)]
    assert reply.text == ", see below (it is fine)]"


def test_a_call_of_inkling_without_its_head() -> None:
    """The generation's beginning and the name may be missing: the name also stands in the object."""
    body = '<|content_invoke_tool_json|>{"name": "weather", "args": {"city": "Rome"}}<|end_message|>'
    for before in ("", "<|content_text|>I look.<|end_message|>", "<|content_thinking|>Hm.<|end_message|>"):
        reply = at_every_cut(before + body, "inkling")
        assert calls(reply) == [ROME]
        assert reply.text + reply.thought == before.partition("|>")[2].partition("<")[0]
    assert not calls(at_every_cut("the mark <|content_invoke_tool_json|> means a call", "inkling"))


@pytest.mark.parametrize(
    ("name", "text", "prompt"),
    [
        ("functionary-v3", '>>>zz\n{"a": "b"}', ""),
        ("functionary-v3", 'zz\n{"a": "b"}', "<|start_header_id|>assistant<|end_header_id|>\n\n>>>"),
        ("glm4", 'zz\n{"a": "b"}', "<|user|>\nHi<|assistant|>"),
        ("glm4", '<|assistant|>zz\n{"a": "b"}', ""),
    ],
)
def test_a_message_to_an_unknown_tool_is_a_call(name: str, text: str, prompt: str) -> None:
    reply = at_every_cut(text, name, prompt=prompt)
    assert (calls(reply), reply.text) == ([("zz", {"a": "b"}, True)], "")
    assert [note.rule for note in reply.notes] == ["unknown-tool"]


@pytest.mark.parametrize(
    ("name", "text", "prompt"),
    [
        ("functionary-v3", 'zz\n{"a": "b"}', ""),  # nothing says that a message begins here
        ("functionary-v3", "zz\nis a name", ">>>"),
        ("functionary-v3", 'I look.\nzz\n{"a": "b"}', ">>>"),
        ("glm4", 'Result:\n{"a": "b"}', "<|assistant|>"),
        ("glm4", 'A {"a": "b"}', "<|assistant|>"),
    ],
)
def test_another_first_line_is_text(name: str, text: str, prompt: str) -> None:
    reply = at_every_cut(text, name, prompt=prompt)
    assert (calls(reply), reply.text) == ([], text)
