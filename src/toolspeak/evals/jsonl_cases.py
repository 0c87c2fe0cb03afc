"""Reads the user's own cases: JSON Lines with a question, the tools to offer, and the expected calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ..errors import InvalidTool, UsageError
from ..files import read_text
from ..plan.calls import checked
from ..schema.infer import as_tools
from ..schema.suggestions import did_you_mean, near
from ..types import Message, Tool, ToolCall
from .case import Case, Judge, short
from .matching import exactly, predicate, subset

Tools = tuple[Tool[..., Any], ...]
FIELDS = ("id", "question", "messages", "system", "tools", "calls", "match", "group", "split", "note")


def load(path: Path, tools: Sequence[Tool[..., Any]] | None = None) -> list[Case]:
    """The cases of a file, one JSON object a line. `tools` are offered where a line lists none, or refers to them by
    name.

    Raises UsageError, which names the line and what is wrong with it.
    """
    return read(read_text(path), path, tools)


def read(lines: str, path: Path, tools: Sequence[Tool[..., Any]] | None = None) -> list[Case]:
    """The cases in the text of a file; `path` is used in messages and to find functions."""
    cases: dict[str, Case] = {}
    offered = None if tools is None else tuple(tools)
    for number, text in enumerate(lines.split("\n"), 1):
        if not text.strip():
            continue
        try:
            case = _case(line_of(text), f"{path.stem}:{number}", path, offered)
            if case.id in cases:
                raise UsageError(f"the id {case.id!r} stands in an earlier line already")
        except UsageError as error:
            raise UsageError(f"{path}, line {number}: {error}") from None
        cases[case.id] = case
    if not cases:
        raise UsageError(f"{path} holds no case: expected JSON lines, each with a question and the calls expected")
    return list(cases.values())


def line_of(text: str) -> dict[str, Any]:
    """The JSON object in a line. Raises UsageError."""
    try:
        value: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"not JSON: {error.msg} (column {error.colno})") from None
    except ValueError as error:  # a number of thousands of digits
        raise UsageError(f"not JSON that can be read: {error}") from None
    except RecursionError:
        raise UsageError("not JSON: nested too deep") from None
    if not isinstance(value, dict):
        raise UsageError(f"expected an object with a question and calls, received {short(value, 60)}")
    return cast("dict[str, Any]", value)


def _case(line: Mapping[str, Any], default_id: str, path: Path, offered: Tools | None) -> Case:
    for field in line:
        if field not in FIELDS:
            raise UsageError(
                f"no field is called {field!r}.{did_you_mean(near(field, FIELDS))} There are: {', '.join(FIELDS)}"
            )
    tools = _tools(line.get("tools"), offered)
    match = _word(line, "match", "exact")
    calls = None if "calls" not in line and ":" in match else _calls(line.get("calls"), tools)
    case_id = line.get("id", default_id)
    if not isinstance(case_id, str | int):
        raise UsageError(f"id: expected a text, received {short(case_id, 60)}")
    return Case(
        id=str(case_id),
        group=_word(line, "group", path.stem),
        messages=messages_of(line),
        tools=tools,
        expected=match if calls is None else calls,
        judge=_judge(match, calls, tools, path),
        split=_word(line, "split", ""),
        match=match,
    )


def _word(line: Mapping[str, Any], field: str, default: str) -> str:
    value = line.get(field, default)
    if not isinstance(value, str):
        raise UsageError(f"{field}: expected a text, received {short(value, 60)}")
    return value


def messages_of(line: Mapping[str, Any]) -> tuple[Message, ...]:
    """The conversation of a line, which has a question or messages. Raises UsageError."""
    if ("question" in line) == ("messages" in line):
        raise UsageError("expected a question, or messages, one of the two")
    system: list[Message] = [{"role": "system", "content": _word(line, "system", "")}] if line.get("system") else []
    if "question" in line:
        if not _word(line, "question", "").strip():
            raise UsageError("the question is empty")
        return (*system, {"role": "user", "content": line["question"]})
    listed: Any = line["messages"]
    if not isinstance(listed, list) or not listed:
        raise UsageError(f"messages: expected a list of messages, received {short(listed, 60)}")
    for i, message in enumerate(cast("list[Any]", listed)):
        if not isinstance(message, dict) or not isinstance(cast("dict[str, Any]", message).get("role"), str):
            raise UsageError(f"message {i}: expected an object with a role and content, received {short(message, 60)}")
    return (*system, *cast("list[Message]", listed))


def _tools(value: Any, offered: Tools | None) -> Tools:
    if value is None:
        if offered is None:
            raise UsageError("no tools: give them in the line, or for all lines with `tools=` (--tools FILE)")
        return offered
    if not isinstance(value, list):
        raise UsageError(f"tools: expected a list of tools or of names, received {short(value, 60)}")
    listed = cast("list[Any]", value)
    if listed and all(isinstance(one, str) for one in listed):
        return _by_name(listed, offered or ())
    try:
        return as_tools(listed) or ()
    except InvalidTool as error:
        raise UsageError(f"tools: {error}") from None


def _by_name(names: list[str], offered: Tools) -> Tools:
    by_name = {tool.name: tool for tool in offered}
    if absent := [name for name in names if name not in by_name]:
        known = ", ".join(by_name) or "none: give `tools=` (--tools FILE)"
        raise UsageError(
            f"tools: there is no {absent[0]!r}.{did_you_mean(near(absent[0], list(by_name)))} There are: {known}"
        )
    return tuple(by_name[name] for name in names)


def _calls(value: Any, tools: Tools) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        what = "nothing" if value is None else short(value, 60)
        raise UsageError(
            f'calls: expected a list of {{"name": …, "arguments": {{…}}}}, [] for no call, received {what}'
        )
    return [_call(one, tools) for one in cast("list[Any]", value)]


def _call(value: Any, tools: Tools) -> dict[str, Any]:
    call = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    arguments: Any = call.get("arguments", {})
    if not isinstance(call.get("name"), str) or not isinstance(arguments, dict) or call.keys() - {"name", "arguments"}:
        raise UsageError(f'calls: expected {{"name": …, "arguments": {{…}}}}, received {short(value, 80)}')
    names = [tool.name for tool in tools]
    if call["name"] not in names:
        known = ", ".join(names) or "none"
        raise UsageError(
            f"calls: no tool is called {call['name']!r}.{did_you_mean(near(call['name'], names))} There are: {known}"
        )
    return {"name": call["name"], "arguments": arguments}


def _judge(match: str, calls: list[dict[str, Any]] | None, tools: Tools, path: Path) -> Judge:
    if calls is None or ":" in match:
        return predicate(match, path.parent)
    if match not in ("exact", "subset"):
        raise UsageError(f"match: expected exact, subset or module:function, received {match!r}")
    for call in calls if match == "exact" else ():
        problems = checked(ToolCall("", call["name"], call["arguments"]), tools)[1]
        if problems:
            raise UsageError(
                f"calls: what is expected of {call['name']} does not fit its schema: {problems[0].message}"
            )
    if match == "subset":
        if not calls:
            raise UsageError("match: a subset of no calls would always be right; expected exact with calls []")
        return subset(calls)
    return exactly(calls, tools)
