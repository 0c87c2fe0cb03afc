"""The third document's `parse_result` and its sample functions, case by case, as the script does them here."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import toolspeak as ts

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "any_model_by_prompt.py"
DOCUMENT_SCHEMA = {  # as the document prints it: `int` is no type of JSON Schema, least of all for an object
    "name": "calculator",
    "description": "计算器",
    "parameters": {
        "type": "int",
        "properties": {
            "a": {"type": "int", "description": "the first number"},
            "b": {"type": "int", "description": "the second number"},
        },
        "required": ["a", "b"],
    },
}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("any_model_by_prompt", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answered(script: ModuleType, *replies: str, question: str = "2 + 3?") -> tuple[str, ts.Scripted]:
    text_model = ts.Scripted(replies)
    return script.answer(question, ts.Speaker(text_model, "tool-json"), "English"), text_model


def wanted(tool: Any, tool_input: Any, message: Any = None) -> str:
    return json.dumps({"tool": tool, "tool_input": tool_input, "message": message})


ADD = wanted("calculator", {"a": 2, "b": 3})


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("Just words.", "Just words."),
        (wanted(None, None, "Hello!"), "Hello!"),
        ('{"answer": 5}', '{"answer": 5}'),  # no tool in it: the whole text
        ("{not json}", "{not json}"),  # a JSONDecodeError in the document
        ("a { b", "a { b"),
    ],
)
def test_a_reply_without_a_call_is_the_answer(script: ModuleType, reply: str, text: str) -> None:
    answer, model = answered(script, reply)
    assert answer == text
    assert len(model.requests) == 1


def test_a_call_of_a_tool_that_is_not_offered_is_told_to_the_model(script: ModuleType) -> None:
    answer, model = answered(script, wanted("rm", {}, "Hello!"), wanted(None, None, "There is no such tool."))
    assert answer == "There is no such tool."
    assert "'rm'" in str(model.requests[1].messages[-1].get("content"))


@pytest.mark.parametrize("around", ["{}", "```json\n{}\n```", "Sure, I will look it up.\n{}"])
def test_a_call_is_run_and_put_into_words(script: ModuleType, around: str) -> None:
    answer, model = answered(script, around.replace("{}", ADD), "2 and 3 make 5.")
    assert answer == "2 and 3 make 5."
    (message,) = model.requests[1].messages
    assert message.get("role") == "user"
    assert str(message.get("content")).endswith("\n\nThe question:2 + 3?\nThe answer:5")


def test_a_summary_that_looks_like_a_call_calls_nothing(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """In the document the second answer goes through the same parser, and could run a tool again."""
    answered(script, ADD, wanted("calculator", {"a": 2, "b": 3}, "5"), "2 + 3 = 5")
    assert capsys.readouterr().out.count(" -> ") == 1


def test_a_message_beside_a_call_is_kept(script: ModuleType) -> None:
    """The document drops it."""
    model = ts.Speaker(ts.Scripted([wanted("calculator", {"a": 2, "b": 3}, "I will add them.")]), "tool-json")
    reply = ts.decide("2 + 3?", tools=script.TOOLS, model=model)
    assert reply.text == "I will add them."
    assert len(reply.calls) == 1


def test_every_call_of_a_reply_is_run(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """The document runs the first and drops the rest."""
    answered(script, ADD + "\n" + wanted("calculator", {"a": 1, "b": 1}), "5 and 2")
    assert capsys.readouterr().out.splitlines() == [
        'calculator {"a": 2, "b": 3} -> 5',
        'calculator {"a": 1, "b": 1} -> 2',
    ]


def test_a_brace_in_a_string_is_no_brace(script: ModuleType) -> None:
    """`extract_json` counts braces without regard to strings."""
    assert answered(script, wanted(None, None, "Use } or {"))[0] == "Use } or {"


@pytest.mark.parametrize(
    "tool_input",
    [
        {"a": 2, "b": 1.5},  # silently left out of the document's sum
        {"a": 2, "b": True},  # counts 1 there
        {"a": 2, "b": "three"},
        {"a": 2},
        None,  # an AttributeError there
        [2, 3],
    ],
)
def test_wrong_arguments_are_on_ask_again(
    script: ModuleType, tool_input: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    answer, _ = answered(script, wanted("calculator", tool_input), ADD, "It is 5.")
    assert answer == "It is 5."
    assert capsys.readouterr().out == 'calculator {"a": 2, "b": 3} -> 5\n'


def test_a_number_in_quotes_is_a_number_with_a_note(script: ModuleType) -> None:
    model = ts.Speaker(ts.Scripted([wanted("calculator", {"a": "2", "b": 3})]), "tool-json")
    (call,) = ts.decide("2 + 3?", tools=script.TOOLS, model=model).calls
    assert call.arguments == {"a": 2, "b": 3}
    assert call.notes
    assert script.TOOLS.call(call) == 5


def test_a_place_must_be_told(script: ModuleType) -> None:
    """The document's weather reports on `None` when no location comes."""
    with pytest.raises(ts.InvalidCall, match="location"):
        script.TOOLS.call({"name": "get_current_weather", "arguments": {}})
    said = script.TOOLS.call({"name": "get_current_weather", "arguments": {"location": "Xiamen"}})
    assert said.startswith("The weather of Xiamen is ")
    assert said.endswith("°C.")


def test_the_documents_types_are_understood() -> None:
    box = ts.Toolbox(DOCUMENT_SCHEMA)
    (shown,) = box.list()
    assert shown["parameters"]["type"] == "object"
    assert shown["parameters"]["properties"]["a"]["type"] == "integer"
    assert box.validate({"name": "calculator", "arguments": {"a": 1, "b": 2}})
    assert not box.validate({"name": "calculator", "arguments": {"a": 1.5, "b": 2}})
