"""How a conversation is told in a dialect's own words, for what the dialects' own files do not show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from toolspeak.dialects import get
from toolspeak.types import Message, Tool
from toolspeak.wire.dialect import (
    EXAMPLE,
    ID,
    INDEX,
    NAME,
    RESULT,
    SYSTEM,
    TOOL_NAMES,
    Dialect,
    Header,
    Json,
    Layout,
    NumberedName,
    Results,
    Speech,
    Tagged,
)
from toolspeak.wire.prompt import assistant as said_module
from toolspeak.wire.prompt.assistant import assistant_turn, example, unsayable
from toolspeak.wire.prompt.conversation_form import short_ids, with_ids
from toolspeak.wire.prompt.turns import turns_of
from toolspeak.wire.render import render

HERMES = get("hermes")
TOOLS = [Tool("weather", "Weather.")]


def calls(*ids: str) -> Message:
    rows = [{"id": i, "type": "function", "function": {"name": "weather", "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "content": "", "tool_calls": rows}


def result(of: str, text: str = "21") -> Message:
    return {"role": "tool", "tool_call_id": of, "content": text}


def test_a_dialect_without_words_of_its_own_declares_tools_and_shows_a_call() -> None:
    plain = replace(HERMES, speech=Speech(), layout=None)
    prompt = render([{"role": "user", "content": "Hi"}], TOOLS, plain).prompt
    assert '"name": "weather"' in prompt
    assert example(plain) in prompt
    system: Message = {"role": "system", "content": "Be nice."}
    assert render([system, {"role": "user", "content": "Hi"}], TOOLS, plain).prompt.startswith(
        "System:\nBe nice.\n\nYou"
    )
    assert "example_tool" not in render([{"role": "user", "content": "Hi"}], None, plain).prompt


def test_the_example_is_no_call_of_an_offered_tool() -> None:
    speech = replace(HERMES.speech, opening=(EXAMPLE,))
    d = replace(HERMES, speech=speech)
    assert '"name": "example_tool"' in render([{"role": "user", "content": "Hi"}], TOOLS, d).prompt
    taken = [Tool("example_tool"), Tool("example_tool_")]
    assert '"name": "example_tool__"' in render([{"role": "user", "content": "Hi"}], taken, d).prompt


def test_what_goes_after_a_text_stands_before_the_calls() -> None:
    d = replace(HERMES, speech=replace(HERMES.speech, text="<t>", text_end="</t>"))
    turns = turns_of([calls("a")], [])
    assert assistant_turn("Hi", (), d) == "<t>Hi</t>"
    assert assistant_turn("Hi", turns[0].calls, d).startswith("<t>Hi</t>\n<tool_call>")
    assert assistant_turn(" ", turns[0].calls, d).startswith("<tool_call>")


def test_a_text_is_a_message_of_its_own_where_calls_are() -> None:
    header = Header(
        "<|channel|>", "<|message|>", (("to=", "call"),), ("<|end|>", "<|call|>"), text="final", end="<|call|>"
    )
    d = Dialect(
        "h",
        (NAME, Json()),
        between="<|end|><|start|>assistant",
        header=header,
        layout=Layout(("<|start|>", ""), "<|end|>"),
    )
    assert assistant_turn("Hi", (), d) == "<|channel|>final<|message|>Hi"
    prompt = render([{"role": "user", "content": "Q"}, {"role": "assistant", "content": "Hi"}], None, d).prompt
    assert prompt.endswith("<|start|>assistant<|channel|>final<|message|>Hi<|end|><|start|>assistant")


def test_results_tell_the_number_and_the_id_of_their_call() -> None:
    results = Results("tool", (INDEX, " ", ID, " ", NAME, " ", RESULT), grouped=False)
    d = replace(HERMES, id_length=9, speech=Speech(results=results), layout=None)
    told: list[Any] = [
        {"role": "user", "content": "Q"},
        calls("call_abc", "123456789"),
        result("123456789", "two"),
        result("call_abc", "one"),
        calls("", ""),
        {"role": "tool", "content": "three"},
        {"role": "tool", "content": "four"},
    ]
    prompt = render(told, None, d).prompt
    rows = [line for line in prompt.splitlines() if " weather " in line]
    assert rows == [
        "1 123456789 weather two",
        "0 000000001 weather one",
        "2 000000003 weather three",
        "3 000000004 weather four",
    ]


def test_ids_are_changed_with_the_results_that_answer_them() -> None:
    turns = turns_of([calls("call_1", "abcdefghi"), result("abcdefghi"), result("call_1"), result("")], [])
    changed = with_ids(turns, short_ids(9))
    assert [call.id for call in changed[0].calls] == ["000000001", "abcdefghi"]
    assert [turn.id for turn in changed[1:]] == ["abcdefghi", "000000001", ""]


def test_what_a_wire_cannot_say_is_told() -> None:
    """A value that holds the dialect's own tags: JSON can say it, a verbatim value cannot."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    tagged = replace(HERMES, call=("<f=", NAME, ">", Tagged("<p=", ">", "</p>"), "</f>"), forms=())
    for text, said_well in (("plain", True), ("a</p><p=x>b</p></f>", False)):
        rows = [{"id": "c", "type": "function", "function": {"name": "note", "arguments": {"text": text}}}]
        messages: list[Message] = [{"role": "user", "content": "Q"}, {"role": "assistant", "tool_calls": rows}]
        turns = turns_of(messages, [])
        notes = unsayable(turns, tagged, [Tool("note", "", schema)])
        assert [note.detail for note in notes] == ([] if said_well else ["message 1: note"])
        assert not unsayable(turns, HERMES, [Tool("note", "", schema)])
        assert not [n for n in render(messages, [Tool("note", "", schema)], HERMES).notes if n.rule == "unsayable"]


def test_numbers_count_in_their_turn_and_ids_over_the_chat() -> None:
    results = Results("tool", (INDEX, ": ", RESULT), grouped=False)
    d = Dialect(
        "n", ("<c ", INDEX, " ", NumberedName("f.", ":"), Json(), ">"), index_base=1, speech=Speech(results=results)
    )
    told = [calls("a", "b"), result("b", "B"), calls("c"), result("c", "C")]
    prompt = render(told, None, d).prompt
    assert "<c 1 f.weather:1{}><c 2 f.weather:2{}>" in prompt
    assert "<c 1 f.weather:3{}>" in prompt
    assert "2: B" in prompt
    assert "1: C" in prompt


def test_a_thought_that_an_application_kept_in_the_text_is_a_thought() -> None:
    told: list[Message] = [
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHi"},
        {"role": "user", "content": "Q"},
    ]
    rendered = render(told, None, HERMES)
    assert "<|im_start|>assistant\nHi<|im_end|>" in rendered.prompt
    assert [note.rule for note in rendered.notes] == ["thought-lost"]
    half: list[Message] = [
        {"role": "user", "content": "<think>x</think>"},
        {"role": "assistant", "content": "<think>y"},
    ]
    rendered = render(half, None, HERMES)
    assert "think>x" in rendered.prompt
    assert "think>y" in rendered.prompt
    assert {note.detail for note in rendered.notes} == {"<think>", "</think>"}


def test_earlier_calls_are_read_once_in_a_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every turn tells all calls before it again: whether they are read as they are written is known by then."""
    read: list[str] = []
    parse = said_module.parse
    monkeypatch.setattr(said_module, "parse", lambda text, *rest: (read.append(text), parse(text, *rest))[1])
    schema: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}
    messages: list[Any] = [{"role": "user", "content": "Count."}]
    for n in range(12):
        row = {"id": f"c{n}", "type": "function", "function": {"name": "count", "arguments": f'{{"n": {n + 70707}}}'}}
        messages += [
            {"role": "assistant", "tool_calls": [row]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": "1"},
        ]
        tool = Tool("count", "Counts.", schema, function=lambda n: n)  # made anew at every turn
        render(messages, [tool], get("hermes"))
    assert len(read) == 12
    other = Tool("count", "Counts.", {"type": "object", "properties": {"n": {"type": "string"}}})
    render(messages, [other], get("hermes"))
    assert len(read) == 24  # another schema may read them otherwise


def test_without_a_system_text_the_opening_begins_with_its_own_words() -> None:
    """In the messages for a chat server as in the prompt."""
    d = replace(HERMES, speech=Speech(opening=(SYSTEM, "\n\nTools: ", TOOL_NAMES)), layout=None)
    for asked, content in (([], "Tools: weather"), ([{"role": "system", "content": "S"}], "S\n\nTools: weather")):
        messages: Any = [*asked, {"role": "user", "content": "Hi"}]
        rendered = render(messages, TOOLS, d)
        assert rendered.messages[0]["content"] == content
        assert rendered.prompt.startswith(f"System:\n{content}\n\n")
    exact = replace(d, layout=Layout(("<", ">"), "\n", strip=False))
    assert render([{"role": "user", "content": "Hi"}], TOOLS, exact).prompt.startswith("<system>\n\nTools: weather")
