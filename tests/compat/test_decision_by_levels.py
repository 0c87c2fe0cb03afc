"""The third document's end: with very many functions they are split into modules, and one decision becomes several.

Its model is asked by prompt alone, so here: the first prompt holds the modules, the next the functions of one.
"""

from __future__ import annotations

import json
from typing import Any

import toolspeak as ts

AREAS = ("book", "train", "hotel", "music", "photo", "phone", "paint")
OTHERS = [ts.Tool(f"{area}_{verb}", f"To {verb} a {area}.") for area in AREAS for verb in "abcdefg"]
ONE_PROMPT = 40
"""Functions that are still told in one prompt."""


@ts.tool
def get_current_weather(location: str, unit: str = "celsius") -> str:
    """Get the current weather in a given location"""
    return f"The weather of {location} is cloudy, and the temperature is 35°C."


@ts.tool(description="计算器")
def calculator(a: int, b: int) -> int:
    return a + b


FORECAST, AVERAGE = ts.Tool("get_forecast", "Get the weather to come"), ts.Tool("average", "平均数")
MODULES = {
    "weather": ["get_current_weather", "get_forecast"],
    "calculation": ["calculator", "average"],
    **{area: f"{area}_*" for area in AREAS},
}
INDEX = ts.ToolIndex([get_current_weather, calculator, FORECAST, AVERAGE, *OTHERS], groups=MODULES)


def wants(tool: Any, tool_input: Any = None, message: Any = None) -> str:
    return json.dumps({"tool": tool, "tool_input": tool_input, "message": message})


def asked(question: str, *replies: str) -> tuple[ts.Reply, list[str]]:
    """The reply of a run, and what each prompt said before the conversation."""
    model = ts.Scripted(replies)
    reply = ts.run(question, tools=INDEX, model=ts.Speaker(model, "tool-json"))
    return reply, [str(request.messages[0].get("content")) for request in model.requests]


def test_there_are_more_functions_than_one_prompt_holds() -> None:
    assert len(INDEX) > ONE_PROMPT


def test_small_talk_takes_one_decision() -> None:
    reply, prompts = asked("你好", wants(None, None, "你好,有什么可以帮您的吗?"))
    assert reply.text == "你好,有什么可以帮您的吗?"
    assert len(prompts) == 1


def test_module_then_function_then_arguments() -> None:
    reply, prompts = asked(
        "厦门天气如何?",
        wants("get_current_weather", {"place": "厦门"}),  # named among the modules, its parameters not yet shown
        wants("get_current_weather", {"location": "Xiamen", "unit": "celsius"}),
        "厦门天气情况是:多云,气温35°C。",
    )
    assert reply.text == "厦门天气情况是:多云,气温35°C。"
    assert [result.value for step in reply.steps for result in step.results] == [get_current_weather("Xiamen")]
    assert "location" not in prompts[0]
    assert "location" in prompts[1]


def test_a_module_is_opened_and_only_its_functions_are_told() -> None:
    reply, prompts = asked("A book!", wants("book_tools", {}), wants("book_c", {}), wants(None, None, "Done."))
    assert reply.text == "Done."
    assert "book_tools" in prompts[0]
    assert "To c a book" not in prompts[0]
    assert "To c a book" in prompts[1]
    assert "train_a" not in prompts[1]


def test_a_wrong_module_is_left_again() -> None:
    reply, _ = asked(
        "383加上135721等于多少?",
        wants("music_tools", {}),
        wants("none_of_these", {}),
        wants("calculation_tools", {}),
        wants("calculator", {"a": 383, "b": 135721}),
        "383加上135721等于136104。",
    )
    assert reply.text == "383加上135721等于136104。"
