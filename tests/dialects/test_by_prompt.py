"""The dialects that any model can be asked for: their prompts to the byte, and what they take."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolspeak.dialects import get, names
from toolspeak.errors import TemplateError, UnknownDialect
from toolspeak.types import Message, Tool
from toolspeak.wire.render import render

USER: Message = {"role": "user", "content": "厦门天气如何?"}
LOCATION: dict[str, Any] = {
    "type": "object",
    "properties": {
        "location": {"type": "string", "description": "The city e.g. Beijing"},
        "unit": {"type": "string", "enum": ["celsius"]},
    },
    "required": ["location"],
}
NUMBERS: dict[str, Any] = {
    "type": "int",
    "properties": {
        "a": {"type": "int", "description": "the first number"},
        "b": {"type": "int", "description": "the second number"},
    },
    "required": ["a", "b"],
}
TOOLS = [
    Tool("get_current_weather", "Get the current weather in a given location", LOCATION),
    Tool("calculator", "计算器", NUMBERS),
]
DECLARED = [
    {
        "name": "get_current_weather",
        "description": "Get the current weather in a given location",
        "parameters": LOCATION,
    },
    {"name": "calculator", "description": "计算器", "parameters": NUMBERS},
]
SCREENSHOT = Tool(
    "screenshot",
    "Takes a url and an optional list of selectors. Takes a screenshot",
    {
        "type": "object",
        "properties": {
            "url": {"type": "string"},
            "selectors": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": None},
        },
        "required": ["url"],
    },
)


def system(d: str, tools: Any = TOOLS, **more: Any) -> str:
    first = render([USER], tools, get(d), **more).messages[0]
    assert first["role"] == "system"
    return str(first["content"])


def test_the_entrance_prompt() -> None:
    assert system("tool-json") == (
        f"You have access to the following tools:\n{json.dumps(DECLARED)}\n"
        "You can select one of the above tools or just response user's content and respond with only a JSON object"
        ' matching the following schema:\n{\n  "tool": <name of the selected tool>,\n  "tool_input": <parameters for the'
        " selected tool, matching the tool's JSON schema>,\n"
        '  "message": <direct response users content>\n}'
    )
    assert "\\u8ba1\\u7b97\\u5668" in system("tool-json")


def test_the_system_prompt_of_the_computer_specialist() -> None:
    assert system("function-name", [SCREENSHOT]) == (
        "You are a computer specialist. Your job is translating client requests into tool calls. Your client has sent a"
        " request to use a tool; return the function call corresponding to the request and no other commentary. Return a"
        ' value of type `{"functionName" :: string, "args" :: {arg_name: arg value} }`. You have access to the tools: '
        "[{'name': 'screenshot', 'type': {'url': <class 'str'>, 'selectors': typing.Optional[typing.List[str]]}, "
        "'description': 'Takes a url and an optional list of selectors. Takes a screenshot'}]."
    )


def test_the_tool_prompt() -> None:
    tools = [
        SCREENSHOT,
        Tool("now"),
        Tool("alarm", "Wakes.\nLoudly.", {"type": "object", "properties": {"at": {"type": "integer"}}}),
    ]
    assert system("tool-call", tools) == (
        "You have access to the following tools.\n\nWhen you want to call a tool, respond with a single JSON object of the"
        ' following form, and NOTHING else:\n\n{\n  "type": "tool-call",\n  "tool": "<one of: alarm, now, screenshot>",\n'
        '  "args": {\n    "<param>": "<value>",\n    "...": "..."\n  }\n}\n\nAvailable tools:\n\n'
        "alarm(at: int = None) -> Any\n  Wakes.\n\n"
        "now() -> Any\n\n"
        "screenshot(url: str, selectors: Optional[List[str]] = None) -> Any\n"
        "  Takes a url and an optional list of selectors. Takes a screenshot\n\n"
        "Use the signature exactly. Required arguments must be present, and do not invent argument names that are not"
        " shown.\n\nIf you do not need to call a tool, respond normally instead of emitting a tool-call JSON object."
    )


@pytest.mark.parametrize("d", ["tool-json", "function-name", "tool-call"])
def test_a_system_message_stands_before_it(d: str) -> None:
    messages: list[Message] = [{"role": "system", "content": " Be nice. "}, USER]
    assert render(messages, TOOLS, get(d)).messages[0]["content"] == f"Be nice.\n\n{system(d)}"


@pytest.mark.parametrize("d", ["tool-json", "function-name", "tool-call"])
def test_a_choice_is_asked_for_in_a_sentence(d: str) -> None:
    assert system(d, choice="required") == system(d) + "\nThis time you have to call one of the tools."
    assert system(d, choice="calculator") == system(d) + "\nThis time you have to call the tool calculator."
    assert render([USER], TOOLS, get(d), choice="none").messages == [USER]
    with pytest.raises(TemplateError, match="get_current_weather, calculator"):
        system(d, choice="abacus")


@pytest.mark.parametrize("tools", [None, (), []])
def test_without_tools_nothing_is_told_of_them(tools: Any) -> None:
    for name in names():
        assert render([USER], tools, get(name)).messages == [USER]


def test_a_plain_layout_for_a_model_of_which_none_is_known() -> None:
    rendered = render([{"role": "system", "content": "Be nice."}, USER], None, get("tool-json"))
    assert rendered.prompt == "System:\nBe nice.\n\nUser:\n厦门天气如何?\n\nAssistant:"
    assert rendered.stop == ("\nUser:",)
    open_ended = render([USER, {"role": "assistant", "content": "It is"}], None, get("tool-json"), continue_final=True)
    assert open_ended.prompt.endswith("\n\nAssistant:\nIt is")
    with pytest.raises(TemplateError, match="the user's"):
        render([USER], None, get("tool-json"), continue_final=True)


def test_names() -> None:
    first = {"empower", "empower-package", "function-name", "functools", "hermes", "tool-call", "tool-json"}
    assert first <= set(names())
    assert get("tool_json") is get("tool-json")
    with pytest.raises(UnknownDialect, match="near ones: hermes") as e:
        get("hermez")
    assert (e.value.name, e.value.near) == ("hermez", ("hermes",))
    with pytest.raises(UnknownDialect, match="lists all"):
        get("zzzzzz")
