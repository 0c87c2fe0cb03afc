"""Calls whose arguments may be a text: JSON in a fence, arguments by name, and what goes on behind the arguments."""

from __future__ import annotations

from typing import Any

import pytest
from test_siblings import at_every_cut

from toolspeak.dialects import get, names
from toolspeak.types import Reply, Tool, ToolCall
from toolspeak.wire.dialect import NAME, Dialect, Json
from toolspeak.wire.prompt.calls import write_calls

CITY: dict[str, Any] = {"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}
CODE: dict[str, Any] = {"properties": {"code": {"type": "string"}}}
TOOLS: list[Tool[..., Any]] = [Tool("weather", "", {"type": "object", **CITY}), Tool("python", "", CODE)]
ROME = ("weather", {"city": "Rome"}, True)
PLAIN = [d for d in map(get, names()) if Json(plain=True) in d.call]


def written(d: Dialect, arguments: str, name: str = "weather") -> str:
    """A call as the dialect writes it, with these arguments."""
    text = (
        d.header.start + name + (d.header.stop if d.header.stop.strip() else "\n" + d.header.stop) if d.header else ""
    )
    if d.name == "functionary-v3":
        text = f">>>{name}\n"
    for part in d.call:
        text += name if part is NAME else arguments if isinstance(part, Json) else str(part)
    return text


def calls(reply: Reply) -> list[tuple[str, Any, bool]]:
    return [(call.name, call.arguments, call.whole) for call in reply.calls]


def read(d: Dialect, arguments: str, name: str = "weather") -> Reply:
    return at_every_cut(written(d, arguments, name), d.name, TOOLS)


def test_these_dialects_take_a_text_as_arguments() -> None:
    v2 = ("functionary-v2", "functionary-v2-llama3", "functionary-v3")
    assert sorted(d.name for d in PLAIN) == ["cwm", "functionary-v1", *v2, "react"]


@pytest.mark.parametrize("d", PLAIN, ids=lambda d: d.name)
@pytest.mark.parametrize(
    "arguments",
    [
        '```json\n{"city": "Rome"}\n```',
        '\n```\n{"city": "Rome"}\n```',
        '```json {"city": "Rome"} ```',
        '```{"city": "Rome"}```',
        '```json\n{"city": "Rome"\n```',
        '`{"city": "Rome"}`',
        "```\nRome\n```",
    ],
)
def test_arguments_in_a_fence_or_in_backticks(d: Dialect, arguments: str) -> None:
    reply = read(d, arguments)
    assert (calls(reply), reply.text) == ([ROME], "")
    assert "fence" in [note.rule for note in reply.notes]


@pytest.mark.parametrize("d", PLAIN, ids=lambda d: d.name)
def test_code_in_a_fence_is_the_argument(d: Dialect) -> None:
    code = 'import math\n\n\nprint(f"{math.pi:.3}")'
    assert calls(read(d, f"```python\n{code}\n```", "python")) == [("python", {"code": code}, True)]
    (call,) = read(d, f"```python\n{code}", "python").calls
    assert not call.whole  # it was cut
    (call,) = read(d, f"```python\n{code}\n```\nIf you agree.", "python").calls
    assert not call.whole


@pytest.mark.parametrize("d", PLAIN, ids=lambda d: d.name)
@pytest.mark.parametrize(
    "arguments",
    [
        'city="Rome"',
        "city=Rome, days=2",
        "city = Rome",
        "city: Rome",
        "City: Rome",
        "- city: Rome",
        "**City:** Rome",
        "days=2, city=Rome",
        '(city="Rome")',
        'weather(city="Rome")',
        "```\ncity: Rome\n```",
        '"city": "Rome"',
    ],
)
def test_arguments_by_name_that_are_no_json_are_refused(d: Dialect, arguments: str) -> None:
    (call,) = read(d, arguments).calls
    assert (call.name, call.whole, [note.rule for note in call.notes]) == ("weather", False, ["malformed"])


@pytest.mark.parametrize("d", PLAIN, ids=lambda d: d.name)
@pytest.mark.parametrize(
    "text",
    [
        "city",
        "cityscape: x",
        "city==3",
        "city://x",
        "https://x.org",
        "Rome: the city",
        "`Rome`",
        "```Rome```",
        "a\nb",
        "f(x)",
        "weather (in Rome)",
    ],
)
def test_a_text_that_only_looks_alike_is_the_argument(d: Dialect, text: str) -> None:
    assert calls(read(d, text)) == [("weather", {"city": text}, True)]


@pytest.mark.parametrize("d", PLAIN, ids=lambda d: d.name)
@pytest.mark.parametrize("behind", ["but only if you agree", "(as a dry run)", "because it is dangerous.", "?"])
def test_a_line_that_goes_on_behind_the_arguments(d: Dialect, behind: str) -> None:
    for arguments in ('{"city": "Rome"}', '```json\n{"city": "Rome"}\n```'):
        (call,) = read(d, f"{arguments} {behind}").calls
        assert (call.name, call.whole, call.notes[-1].rule) == ("weather", False, "trailing-text")


OPEN = [d for d in PLAIN if not d.header and not isinstance(d.call[-1], str)]


@pytest.mark.parametrize("d", OPEN, ids=lambda d: d.name)
@pytest.mark.parametrize("behind", [".", ";", "}", ")", "<|im_end|>", "\nI will wait.", "\n\nI will wait.", "", "\n"])
def test_what_may_follow_an_object_that_nothing_closes(d: Dialect, behind: str) -> None:
    assert calls(read(d, f'{{"city": "Rome"}}{behind}')) == [ROME]


ROME_IN_REACT = "Thought: x\nAction: weather\nAction Input: Rome"


@pytest.mark.parametrize("behind", ["I will wait for your approval first.", "(as a dry run)", "{", "1. Rome\n2. Paris"])
def test_a_paragraph_below_a_text_that_nothing_closes(behind: str) -> None:
    reply = at_every_cut(f"{ROME_IN_REACT}\n\n{behind}", "react", TOOLS)
    assert calls(reply) == [("weather", {"city": "Rome"}, False)]
    assert reply.text.strip() == behind


@pytest.mark.parametrize(
    "behind",
    [
        *("", "\n", "\n\n", "\nObservation: 21", "\n\nObservation: 21\nThought: y\nFinal Answer: z", "\nThought: y\n"),
        *("\n\nThought: y\n", "\n\nFinal Answer: z", "\n\n<|im_end|>", "<|im_end|>"),
    ],
)
def test_the_end_and_the_next_label_may_follow_a_text(behind: str) -> None:
    assert calls(at_every_cut(ROME_IN_REACT + behind, "react", TOOLS)) == [ROME]
    both = f"{ROME_IN_REACT}\n\nAction: python\nAction Input: 1{behind}"
    assert calls(at_every_cut(both, "react", TOOLS)) == [ROME, ("python", {"code": "1"}, True)]


@pytest.mark.parametrize(
    ("arguments", "meant"), [("Rome", {"city": "Rome"}), ('"Rome"', {"city": "Rome"}), ('`{"city": "Rome"}`', ROME[1])]
)
def test_a_call_in_a_fence(arguments: str, meant: dict[str, str]) -> None:
    wire = f"```\nAction: weather\nAction Input: {arguments}\n```"
    reply = at_every_cut(wire, "react", TOOLS)
    assert (calls(reply), reply.text) == ([("weather", meant, True)], "")


def test_a_quoted_text_before_a_label_is_the_text() -> None:
    assert calls(at_every_cut('Action: weather\nAction Input: "Rome"\nObservation: x', "react", TOOLS)) == [ROME]


def test_several_paragraphs_of_code_between_markers() -> None:
    code = "import math\n\nprint(math.pi)"
    for d in PLAIN:
        if d.name != "react":
            assert calls(read(d, code, "python")) == [("python", {"code": code}, True)]


@pytest.mark.parametrize("label", ["**{}:**", "**{}**:"])
@pytest.mark.parametrize("text", ["Rome", '{"city": "Rome"}', '`{"city": "Rome"}`'])
def test_labels_in_bold(label: str, text: str) -> None:
    thought, action, given, result, answer = map(
        label.format, ("Thought", "Action", "Action Input", "Observation", "Final Answer")
    )
    wire = f"{thought} I look.\n{action} **weather**\n{given} {text}"
    reply = at_every_cut(wire, "react", TOOLS)
    assert (calls(reply), reply.thought, reply.text) == ([ROME], "I look.", "")
    invented = at_every_cut(f"{wire}\n{result} 21\n{thought} So.\n{answer} It is 21.", "react", TOOLS)
    assert (calls(invented), invented.thought) == ([ROME], "I look.So.")
    assert invented.text == f"\n{result} 21\n It is 21."
    assert calls(at_every_cut(f"{action} nothing\n{given} {text}", "react", TOOLS)) == []


@pytest.mark.parametrize("d", [d for d in map(get, names()) if NAME in d.call], ids=lambda d: d.name)
@pytest.mark.parametrize("mark", ["`", "**", "*"])
def test_a_name_that_markdown_emphasizes(d: Dialect, mark: str) -> None:
    wire = write_calls([ToolCall("1", "weather", {"city": "Rome"})], d)
    if wire.count("weather") > 1:
        return  # the names must be the same
    assert calls(at_every_cut(wire.replace("weather", f"{mark}weather{mark}"), d.name, TOOLS)) == [ROME]
