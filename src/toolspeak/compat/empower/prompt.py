"""Converts a conversation in OpenAI's format to prompts as Empower's library writes them.

`<u>` is a user's text, `<r>` a tool's result (both in user turns), `<c>` an assistant's text, `<f>` its calls. The
first turn contains the functions instead of a tag. The texts are those that the model was trained on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ...errors import InvalidTool, UsageError

_INSTRUCTION = (
    "In this environment you have access to a set of functions defined in the JSON format you can use to address "
    "user's requests, use them if needed."
)
_THINKING = "\nMake sure to include your thinking inside < thinking > </thinking > before response."
_NO_FUNCTIONS = (
    "Currently thinking mode is only supported with tools. Please provide functions_def to enable thinking mode."
)
_TAGS = {"user": ("user", "<u>"), "tool": ("user", "<r>"), "assistant": ("assistant", "")}


@dataclass(slots=True)
class _Turn:
    """Consecutive messages of one role: `text` of a user or assistant, `rows` of tool results, `first` its first
    message."""

    role: str
    first: Mapping[str, Any]
    text: str = ""
    rows: list[dict[str, Any]] | None = None


def prompt_messages(
    messages: Sequence[Mapping[str, Any]],
    functions_def: Sequence[Mapping[str, Any]] | None,
    include_thinking: bool = False,
) -> list[dict[str, Any]]:
    """Return the messages to send, each a dict of role (user or assistant) and content. The arguments are not changed.

    `functions_def` are function objects, plain or in OpenAI's wrapper. Raises UsageError, or InvalidTool for a
    function; a note on the error names the message or function.
    """
    functions = [_function(function, f"functions_def[{i}]") for i, function in enumerate(functions_def or ())]
    if include_thinking and not functions:
        raise UsageError(_NO_FUNCTIONS)
    system, turns = _turns(messages)
    opening = _opening(system, functions, include_thinking)
    if turns[0].role == "user":
        turn = turns.pop(0)
        messages_out = [{**turn.first, "content": opening + turn.text} if not functions else _user(opening + turn.text)]
    else:
        messages_out = [_user(opening)] if opening else []
    for turn in turns:
        role, tag = _TAGS[turn.role]
        text = turn.text if turn.rows is None else json.dumps(turn.rows, indent=2)
        messages_out.append({"role": role, "content": tag + text})
    return messages_out


def _opening(system: str | None, functions: Sequence[Mapping[str, Any]], thinking: bool) -> str:
    """Return the text before the first user's text."""
    if not functions:
        return f"{system}\n\n" if system else ""
    instruction = (_INSTRUCTION if system is None else system) + (_THINKING if thinking else "")
    listed = json.dumps(functions, indent=2, ensure_ascii=False)
    return f"{instruction}\nFunctions:\n{listed}\n\nUser Message:\n"


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _turns(messages: Sequence[Mapping[str, Any]]) -> tuple[str | None, list[_Turn]]:
    """Return the text of a leading system message, and the turns after it, with consecutive messages of one role
    merged."""
    if not messages:
        raise UsageError("Messages cannot be empty")
    system = _text(messages[0]) if messages[0].get("role") == "system" else None
    skipped = int(messages[0].get("role") == "system")
    if len(messages) == skipped:
        raise UsageError("At least user message must be provided")
    turns: list[_Turn] = []
    for i, message in enumerate(messages[skipped:], skipped):
        try:
            _add(turns, message)
        except UsageError as error:
            error.add_note(f"messages[{i}]: {message!r:.200}")
            raise
    return system, turns


def _add(turns: list[_Turn], message: Mapping[str, Any]) -> None:
    role = message.get("role")
    last = turns[-1] if turns and turns[-1].role == role else None
    match role:
        case "tool" if not turns:
            raise UsageError("A conversation cannot begin with what a tool returned: nothing has called it")
        case "tool":
            _add_result(turns, last, message)
        case "user":
            _add_user(turns, last, message)
        case "assistant" if last:
            raise UsageError("Consecutive assistant messages are not allowed")
        case "assistant":
            turns.append(_Turn("assistant", message, _assistant(message)))
        case _:
            raise UsageError("Invalid role")


def _add_result(turns: list[_Turn], last: _Turn | None, message: Mapping[str, Any]) -> None:
    row = _row(message)
    if last and last.rows is not None:
        last.rows.append(row)
    else:
        turns.append(_Turn("tool", message, rows=[row]))


def _add_user(turns: list[_Turn], last: _Turn | None, message: Mapping[str, Any]) -> None:
    if message.get("content") is None:
        raise UsageError('"content" must be provided for message with role "user"')
    if last:
        last.text += "\n\n" + _text(message)
    else:
        turns.append(_Turn("user", message, _text(message)))


def _row(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool's result: its JSON, or {"result": ...} for other text."""
    if "content" not in message:
        raise UsageError('"content" must be provided for message with role "tool"')
    if not message.get("tool_call_id"):
        raise UsageError('"tool_call_id" must be provided for message with role "tool"')
    content = message["content"]
    try:
        value = json.loads(content)
    except (ValueError, TypeError, RecursionError):
        value = {"result": content}
    return {"value": value, "tool_call_id": message["tool_call_id"]}


def _assistant(message: Mapping[str, Any]) -> str:
    """Return a text after `<c>`, or calls after `<f>`; if there are both, the text comes first."""
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        raise UsageError("Tool calls must be an array")
    content = None if message.get("content") is None else _text(message)
    if content is None and calls is None:
        raise UsageError('Either "content" or "tool_calls" must be provided message with role "assistant"')
    functions = [_called(call) for call in cast("list[Any]", calls or [])]
    if content is not None and (content or calls is None) and not functions:
        return "<c>" + content
    return (content or "") + "<f>" + json.dumps(functions, indent=2, ensure_ascii=False)


def _called(call: Any) -> Any:
    if not isinstance(call, Mapping):
        raise UsageError("Tool call must be an object")
    if "id" not in call:
        raise UsageError('"id" must be provided for tool call')
    if "function" not in call:
        raise UsageError('"function" must be provided for tool call')
    function = cast("Mapping[str, Any]", call)["function"]
    if not isinstance(function, Mapping):
        raise UsageError("Tool call function must be an object")
    for key in ("name", "arguments"):
        if key not in function:
            raise UsageError(f'"{key}" must be provided for the function in tool call')
    return cast("Any", function)


def _text(message: Mapping[str, Any]) -> str:
    """Return a message's content as text: content parts are joined, other content is refused."""
    content: Any = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = cast("list[Any]", content)
        texts = [_part(part) for part in parts]
        if None not in texts:
            return "".join(text for text in texts if text is not None)
    raise UsageError(f"a message's content is a text or a list of text parts, not {content!r:.100}")


def _part(part: Any) -> str | None:
    text = cast("dict[str, Any]", part).get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else None


def _function(value: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """Return a function object that the package accepts, without OpenAI's wrapper."""
    if value.get("type") == "function" and isinstance(value.get("function"), Mapping):
        value, path = value["function"], f"{path}.function"
    if fault := _fault(value):
        error = InvalidTool(f"Function {fault}", tool=str(value.get("name", "")), path=path)
        error.add_note(f"{path}: {value!r:.200}")
        raise error
    return value


def _fault(function: Mapping[str, Any]) -> str:
    """Return what the package rejects in a function object, "" if nothing."""
    for key in ("name", "description", "parameters"):
        if function.get(key) is None:
            return f"{key} must be provided"
    schema = function["parameters"]
    if not isinstance(schema, Mapping) or "type" not in schema:
        return "parameters type must be provided"
    if schema["type"] != "object":
        return "parameters type must be object"
    if "properties" not in schema:
        return "parameters properties must be provided"
    if not isinstance(schema["properties"], Mapping):
        return "parameters properties must be an object"
    if "required" in schema and not isinstance(schema["required"], list):
        return "parameters required must be an array"
    return ""
