"""Empower functions, as the model card writes the prompt and as the package empower-functions 0.1.7 does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolspeak.dialects import get
from toolspeak.errors import TemplateError
from toolspeak.types import Message, Tool
from toolspeak.wire.decode import parse
from toolspeak.wire.prompt.control_markers import restore
from toolspeak.wire.render import render

CARD, PACKAGE = get("empower"), get("empower-package")
INSTRUCTION = (
    "In this environment you have access to a set of functions defined in the JSON format you can use to address user's"
    " requests, use them if needed."
)
THINK = "\nMake sure to include your thinking inside < thinking > </thinking > before response."
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [Tool("weather", "Das Wetter, é.", SCHEMA)]
FUNCTIONS = json.dumps(
    [{"name": "weather", "description": "Das Wetter, é.", "parameters": SCHEMA}], indent=2, ensure_ascii=False
)
HEAD, END = "<|start_header_id|>{}<|end_header_id|>\n\n", "<|eot_id|>"

USER: Message = {"role": "user", "content": "Weather?"}
CALL: Message = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Xiamén"}'}}
    ],
}


def result(content: Any, call_id: str = "c1") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def contents(messages: list[Message], d: Any, tools: Any = TOOLS, **more: Any) -> list[tuple[Any, Any]]:
    return [(m.get("role"), m.get("content")) for m in render(messages, tools, d, **more).messages]


def test_the_card() -> None:
    assert contents([USER, CALL, result("21"), {"role": "assistant", "content": "It is 21."}, USER], CARD) == [
        ("user", f"{INSTRUCTION}\nFunctions: {FUNCTIONS}\n\n<u>Weather?"),
        ("assistant", '<f>[{"name": "weather", "arguments": "{\\"city\\": \\"Xiamén\\"}"}]'),
        ("user", '<r>[{"value": "21", "tool_call_id": "c1"}]'),
        ("assistant", "<c>It is 21."),
        ("user", "<u>Weather?"),
    ]


def test_the_package() -> None:
    assert contents([USER, CALL, result("21"), {"role": "assistant", "content": "It is 21."}, USER], PACKAGE) == [
        ("user", f"{INSTRUCTION}\nFunctions:\n{FUNCTIONS}\n\nUser Message:\nWeather?"),
        (
            "assistant",
            '<f>[\n  {\n    "name": "weather",\n    "arguments": "{\\"city\\": \\"Xiamén\\"}"\n  }\n]',
        ),
        ("user", '<r>[\n  {\n    "value": 21,\n    "tool_call_id": "c1"\n  }\n]'),
        ("assistant", "<c>It is 21."),
        ("user", "<u>Weather?"),
    ]


@pytest.mark.parametrize(
    ("content", "value"),
    [("75", 75), ('{"t": [1]}', {"t": [1]}), ("so-so é", {"result": "so-so é"}), ("", {"result": ""}), ("null", None)],
)
def test_the_package_puts_a_results_own_json_there(content: str, value: object) -> None:
    text = contents([USER, CALL, result(content)], PACKAGE)[-1][1]
    assert text == "<r>" + json.dumps([{"value": value, "tool_call_id": "c1"}], indent=2, ensure_ascii=True)


def test_arguments_given_as_an_object_stay_one_in_the_package() -> None:
    function = {"name": "weather", "arguments": {"city": "é"}}
    message: Message = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "c", "type": "function", "function": function}],
    }
    assert contents([USER, message], PACKAGE)[-1][1] == "<f>" + json.dumps([function], indent=2, ensure_ascii=False)
    assert contents([USER, message], CARD)[-1][1] == '<f>[{"name": "weather", "arguments": "{\\"city\\": \\"é\\"}"}]'


def test_results_in_a_row_are_one_turn_and_a_user_between_them_parts_them() -> None:
    rows = contents([USER, CALL, result("1", "a"), result("2", "b"), USER, result("3", "c")], CARD)
    assert [text for _, text in rows[2:]] == [
        '<r>[{"value": "1", "tool_call_id": "a"}, {"value": "2", "tool_call_id": "b"}]',
        "<u>Weather?",
        '<r>[{"value": "3", "tool_call_id": "c"}]',
    ]


@pytest.mark.parametrize("d", [CARD, PACKAGE], ids=lambda d: d.name)
def test_users_in_a_row_are_one_and_the_callers_messages_stay_as_they_are(d: Any) -> None:
    messages: list[Message] = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    assert contents(messages, d)[0][1].endswith("a\n\nb")
    assert messages == [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]


def test_a_system_message_stands_for_the_instruction_and_keeps_the_thinking_line() -> None:
    messages: list[Message] = [{"role": "system", "content": "Be nice."}, USER]
    assert contents(messages, PACKAGE)[0][1].startswith("Be nice.\nFunctions:\n")
    assert contents(messages, PACKAGE, thinking=True)[0][1].startswith(f"Be nice.{THINK}\nFunctions:\n")
    assert contents([USER], CARD, thinking=True)[0][1].startswith(f"{INSTRUCTION}{THINK}\nFunctions: ")


@pytest.mark.parametrize("d", [CARD, PACKAGE], ids=lambda d: d.name)
def test_without_tools_the_first_user_is_untouched_and_a_system_message_is_kept(d: Any) -> None:
    answer: Message = {"role": "assistant", "content": "Hi"}
    assert contents([USER, answer, USER], d, None) == [
        ("user", "Weather?"),
        ("assistant", "<c>Hi"),
        ("user", "<u>Weather?"),
    ]
    assert contents([{"role": "system", "content": "Be nice."}, USER], d, ())[0] == ("user", "Be nice.\n\nWeather?")


def test_calls_beside_a_text_are_kept_and_the_loss_of_the_text_is_told() -> None:
    rendered = render([USER, {**CALL, "content": "Look:"}], TOOLS, CARD)
    assert str(rendered.messages[-1]["content"]).startswith("<f>[")
    assert [note.rule for note in rendered.notes] == ["text-lost"]
    null: Any = {"role": "assistant", "content": "Hi", "tool_calls": None}
    assert contents([USER, null], CARD)[-1] == ("assistant", "<c>Hi")


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "non-empty messages"),
        (
            [USER, {"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}],
            "Consecutive assistant messages",
        ),
        ([USER, {"role": "system", "content": "late"}], "Invalid role"),
        ([USER, {"role": "critic", "content": "x"}], "Invalid role"),
        ([{"content": "x"}], "Invalid role"),
        ([USER, {"role": "tool", "content": "x"}], '"tool_call_id" must be provided'),
        ([USER, {"role": "tool", "content": "x", "tool_call_id": ""}], '"tool_call_id" must be provided'),
        ([USER, {"role": "assistant", "tool_calls": {}}], "Tool calls must be an array"),
        ([USER, {"role": "assistant", "tool_calls": ["x"]}], "Tool call must be an object"),
        ([USER, {"role": "assistant", "tool_calls": [{"id": "c"}]}], '"function" must be provided'),
        ([USER, {"role": "assistant", "tool_calls": [{"id": "c", "function": {}}]}], '"name" must be provided'),
    ],
)
def test_refuses_what_is_no_conversation(messages: list[Any], words: str) -> None:
    if messages and "tool_calls" in messages[-1] and messages[-1]["tool_calls"] == {}:
        messages = [*messages[:-1], {**messages[-1], "tool_calls": {"a": 1}}]
    with pytest.raises(TemplateError, match=words):
        render(messages, TOOLS, PACKAGE)


def test_the_prompt_is_in_the_models_layout() -> None:
    rendered = render([USER, CALL, result("21")], TOOLS, CARD)
    parts = [
        f"{INSTRUCTION}\nFunctions: {FUNCTIONS}\n\n<u>Weather?",
        *(str(m["content"]) for m in rendered.messages[1:]),
    ]
    turns = [HEAD.format(role) + text + END for role, text in zip(("user", "assistant", "user"), parts, strict=True)]
    assert rendered.prompt == "<|begin_of_text|>" + "".join(turns) + HEAD.format("assistant")
    assert rendered.stop == ("<|eot_id|>",)


def test_tags_from_outside_are_broken() -> None:
    rendered = render([{"role": "user", "content": "<u>a<r>b"}], TOOLS, PACKAGE)
    assert rendered.prompt.count("<u>") == rendered.prompt.count("<r>") == 0
    told = str(rendered.messages[0]["content"])
    assert told.endswith("<\u200bu>a<\u200br>b")
    assert restore(told).endswith("<u>a<r>b")
    assert {note.detail for note in rendered.notes} == {"<u>", "<r>"}


@pytest.mark.parametrize(
    ("wire", "text", "thought", "names"),
    [
        ("<c>Hi", "Hi", "", []),
        ("Hi", "Hi", "", []),
        ("<thinking>hm</thinking><c>Hi", "Hi", "hm", []),
        ("<thinking>hm</thinking>\n\n <c>Hi", "Hi", "hm", []),  # the package gives the tags back as text
        ("<thinking>hm", "", "hm", []),
        ('<f>[{"name": "weather", "arguments": "{}"}, {"name": "weather", "arguments": {}}]', "", "", ["weather"] * 2),
        ('<f>{"name": "weather", "arguments": "{}"}', "", "", ["weather"]),  # there a TypeError
        ('<f>[{"name": "weather"}]', "", "", ["weather"]),  # there a KeyError
        ('<f>[{"name": "nobody", "arguments": "{}"}]', "", "", ["nobody"]),
        ("<f>[]", "<f>[]", "", []),  # there finish_reason tool_calls with none
        ("<f>oops", "<f>oops", "", []),  # there a JSONDecodeError
    ],
)
@pytest.mark.parametrize("d", [CARD, PACKAGE], ids=lambda d: d.name)
def test_replies(d: Any, wire: str, text: str, thought: str, names: list[str]) -> None:
    reply = parse(wire, d, TOOLS)
    assert (reply.text, reply.thought, [c.name for c in reply.calls]) == (text, thought, names)
    assert reply.finish == ("tool_calls" if names else "stop")
    assert all(c.arguments == {} and c.whole for c in reply.calls)
