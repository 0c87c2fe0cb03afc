"""Cases of one's own: read from JSON lines, judged as they say, with clear words for what is wrong."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolspeak as ts
from toolspeak.evals import load
from toolspeak.evals.case import Case
from toolspeak.evals.datasets import mixed
from toolspeak.types import Reply, ToolCall


def weather(city: str, unit: str = "celsius", days: int = 1) -> str:
    """Get the weather in a city."""
    return city


def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


TOOLS = tuple(ts.Toolbox(weather, add))
XIAMEN = {"name": "weather", "arguments": {"city": "Xiamen"}}
SUM = {"name": "add", "arguments": {"a": 3, "b": 4}}


@pytest.fixture(autouse=True)
def own_modules() -> Iterator[None]:
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def written(folder: Path, *lines: Any, name: str = "mine.jsonl") -> str:
    path = folder / name
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "utf-8")
    return str(path)


def one(folder: Path, **line: Any) -> Case:
    (case,) = load(written(folder, {"question": "Weather in Xiamen?", **line}), tools=TOOLS)
    return case


def reply(*calls: dict[str, Any], text: str = "") -> Reply:
    return Reply(text, calls=tuple(ToolCall(f"c{i}", c["name"], c["arguments"]) for i, c in enumerate(calls)))


def test_what_a_line_says(tmp_path: Path) -> None:
    first, second = load(
        written(
            tmp_path,
            {"id": 7, "group": "sums", "split": "test", "system": "Be brief.", "question": "3 + 4?", "calls": [SUM]},
            "",
            {"messages": [{"role": "user", "content": "Hi"}], "calls": [], "tools": ["weather"], "note": "small talk"},
        ),
        tools=TOOLS,
    )
    assert (first.id, first.group, first.split, first.question) == ("7", "sums", "test", "3 + 4?")
    assert [m["role"] for m in first.messages] == ["system", "user"]
    assert [tool.name for tool in first.tools] == ["weather", "add"]
    assert (second.id, second.group, second.expected) == ("mine:3", "mine", [])
    assert [tool.name for tool in second.tools] == ["weather"]


def test_tools_in_the_line(tmp_path: Path) -> None:
    tool = {"name": "ping", "parameters": {"type": "object", "properties": {}}}
    (case,) = load(written(tmp_path, {"question": "Ping!", "tools": [tool], "calls": [{"name": "ping"}]}))
    assert [tool.name for tool in case.tools] == ["ping"]
    assert case.judge(reply({"name": "ping", "arguments": {}})).right


def test_exact(tmp_path: Path) -> None:
    case = one(tmp_path, calls=[XIAMEN])
    assert case.judge(reply(XIAMEN)).right
    stated = {"name": "weather", "arguments": {"city": "Xiamen", "unit": "celsius"}}
    assert case.judge(reply(stated)).right, "a default that is stated changes nothing"
    wrong = {
        "no call": reply(text="Sunny"),
        "wrong tool": reply(SUM),
        "count": reply(XIAMEN, XIAMEN),
        "wrong value": reply({"name": "weather", "arguments": {"city": "Beijing"}}),
        "needless argument": reply({"name": "weather", "arguments": {"city": "Xiamen", "days": 3}}),
        "missing argument": reply({"name": "weather", "arguments": {}}),
    }
    assert {kind: case.judge(came).kind for kind, came in wrong.items()} == {kind: kind for kind in wrong}


def test_numbers_are_equal_as_json_and_booleans_are_none(tmp_path: Path) -> None:
    case = one(tmp_path, calls=[SUM])
    assert case.judge(reply({"name": "add", "arguments": {"a": 3.0, "b": 4}})).right
    one_and = one(tmp_path, calls=[{"name": "add", "arguments": {"a": 1, "b": 4}}])
    assert not one_and.judge(reply({"name": "add", "arguments": {"a": True, "b": 4}})).right


def test_the_order_of_calls_does_not_matter(tmp_path: Path) -> None:
    case = one(tmp_path, calls=[XIAMEN, SUM])
    assert case.judge(reply(SUM, XIAMEN)).right
    assert case.judge(reply(SUM, SUM)).kind == "wrong tool"
    assert case.judge(reply(SUM)).kind == "count"


def test_subset_pairs_as_many_as_can_be(tmp_path: Path) -> None:
    loose = {"name": "weather", "arguments": {"city": "Xiamen"}}
    strict = {"name": "weather", "arguments": {"city": "Xiamen", "days": 3}}
    case = one(tmp_path, match="subset", calls=[loose, strict])
    # the strict one comes first and would be taken by the loose one, were pairs made as they come
    assert case.judge(reply(strict, loose)).right
    assert case.judge(reply(strict, loose, SUM)).right
    assert case.judge(reply(strict)).kind == "count"
    assert case.judge(reply(loose, loose)).kind == "missing argument"


def test_no_call_is_expected(tmp_path: Path) -> None:
    case = one(tmp_path, calls=[])
    assert case.judge(reply(text="Hello")).right
    assert case.judge(reply(XIAMEN)).kind == "needless call"


def test_a_python_function_judges(tmp_path: Path) -> None:
    (tmp_path / "checks_of_mine.py").write_text(
        "def sunny(reply):\n    assert reply.calls, 'nothing was called'\n    return reply.calls[0].arguments['city'] == 'Xiamen'\n"
        "def reason(reply):\n    return 'because'\ndef fine(reply):\n    pass\n"
    )
    case = one(tmp_path, match="checks_of_mine:sunny")
    assert case.judge(reply(XIAMEN)).right
    assert case.judge(reply(SUM)).detail == "KeyError: 'city'"
    silent = case.judge(reply(text="?"))
    assert (silent.kind, silent.detail) == ("no call", "AssertionError: nothing was called")
    assert one(tmp_path, match="checks_of_mine:reason").judge(reply(XIAMEN)).detail == "because"
    assert one(tmp_path, match="checks_of_mine:fine").judge(reply()).right


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2: not JSON: .*column 2"),
        ("[1]", r"line 2: expected an object with a question and calls, received \[1\]"),
        ({"question": "Hi"}, "calls: expected a list .* received nothing"),
        ({"calls": []}, "expected a question, or messages"),
        ({"question": "Hi", "messages": [], "calls": []}, "expected a question, or messages"),
        ({"question": " ", "calls": []}, "the question is empty"),
        ({"messages": ["Hi"], "calls": []}, "message 0: expected an object with a role"),
        ({"question": "Hi", "calls": [], "cals": 1}, "no field is called 'cals'.*calls"),
        ({"question": "Hi", "calls": [{"name": "wether"}]}, "no tool is called 'wether'.*weather"),
        ({"question": "Hi", "calls": [{"weather": {}}]}, 'calls: expected {"name"'),
        ({"question": "Hi", "calls": [{"name": "weather", "arguments": {"town": "X"}}]}, "does not fit its schema"),
        ({"question": "Hi", "calls": [], "match": "fuzzy"}, "match: expected exact, subset or module:function"),
        ({"question": "Hi", "calls": [], "match": "subset"}, "would always be right"),
        ({"question": "Hi", "match": "no_such_module:f"}, "no_such_module:f cannot be had: ModuleNotFoundError"),
        ({"question": "Hi", "match": "json:nothing"}, "json:nothing cannot be had: AttributeError"),
        ({"question": "Hi", "calls": [], "tools": ["wether"]}, "tools: there is no 'wether'.*weather"),
        ({"question": "Hi", "calls": [], "tools": [{"name": 3}]}, "tools: a tool needs a name"),
        ({"question": "Hi", "calls": [], "id": "first"}, "'first' stands in an earlier line"),
        ({"question": "Hi", "calls": [], "group": 3}, "group: expected a text, received 3"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: Any, said: str) -> None:
    good = {"id": "first", "question": "Hi", "calls": []}
    with pytest.raises(ts.UsageError, match=rf"mine.jsonl, line 2: .*{said}" if not said.startswith("line") else said):
        load(written(tmp_path, good, line), tools=TOOLS)


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(ts.UsageError, match=r"there is no file simple\. Did you mean bfcl:simple"):
        load("simple")
    with pytest.raises(ts.UsageError, match="is a folder"):
        load(str(tmp_path))
    (tmp_path / "latin.jsonl").write_bytes(b'{"question": "caf\xe9"}')
    with pytest.raises(ts.UsageError, match="not UTF-8"):
        load(str(tmp_path / "latin.jsonl"))
    with pytest.raises(ts.UsageError, match="holds no case"):
        load(written(tmp_path, ""))
    with pytest.raises(ts.UsageError, match="no tools: give them in the line"):
        load(written(tmp_path, {"question": "Hi", "calls": []}))
    with pytest.raises(ts.UsageError, match="no cases"):
        load()


def test_parts_and_splits(tmp_path: Path) -> None:
    lines = [{"question": f"q{i}", "calls": [], "split": "ab"[i % 2]} for i in range(5)]
    name = written(tmp_path, *lines)
    assert [case.question for case in load(f"{name}[1:3]", tools=TOOLS)] == ["q1", "q2"]
    assert [case.question for case in load(name, tools=TOOLS, split="b")] == ["q1", "q3"]
    with pytest.raises(ts.UsageError, match="no case is of the split 'c'; there are: a, b"):
        load(name, tools=TOOLS, split="c")
    with pytest.raises(ts.UsageError, match="'mine:1' comes twice"):
        load(name, f"{name}[:1]", tools=TOOLS)


def test_a_line_ends_where_json_lines_end(tmp_path: Path) -> None:
    """Other characters that break lines may stand in a text."""
    asked = ["one\u2028two\x85three", "four"]
    name = written(tmp_path, *(json.dumps({"question": one, "calls": []}, ensure_ascii=False) for one in asked))
    assert [case.question for case in load(name, tools=TOOLS)] == asked


def test_groups_take_turns(tmp_path: Path) -> None:
    lines = [{"question": f"{group}{i}", "group": group, "calls": []} for group in "ab" for i in range(2)]
    cases = load(written(tmp_path, *lines), tools=TOOLS)
    assert [case.question for case in mixed(cases)] == ["a0", "b0", "a1", "b1"]
