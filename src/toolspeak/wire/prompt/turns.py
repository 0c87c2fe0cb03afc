"""Converts a conversation in OpenAI's format to checked turns with separate text, thought and calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from ...errors import TemplateError
from ...schema.nonblocking_json import loads_or
from ...types import Message, Note, ToolCall

ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message: its role, text and calls.

    `id`, `name`, `index` and `place` are those of the call that a result belongs to: `index` is its number in the
    conversation from 0 (-1: unknown), `place` its number in the turn. `at` is the number of the message.
    """

    role: str
    text: str = ""
    thought: str = ""
    calls: tuple[ToolCall, ...] = ()
    id: str = ""
    name: str = ""
    index: int = -1
    place: int = 0
    at: int = 0


def turns_of(messages: Sequence[Message], notes: list[Note]) -> list[Turn]:
    """The turns of the messages, at least one; a system message without content is dropped. Raises TemplateError for
    an invalid conversation."""
    if not messages:
        raise TemplateError("Expected non-empty messages")
    called: list[tuple[ToolCall, int]] = []
    waiting: list[int] = []
    turns: list[Turn] = []
    for i, message in enumerate(messages):
        role = _role(message)
        if role == "system" and message.get("content") is None:
            continue
        calls = _calls(message, i, notes) if role == "assistant" else ()
        waiting += range(len(called), len(called) + len(calls))
        called += [(call, place) for place, call in enumerate(calls)]
        thought = str(message.get("reasoning_content") or "")
        turn = Turn(role, text_of(message.get("content"), i, notes), thought, calls, at=i)
        turns.append(_answer(turn, message, called, waiting) if role == "tool" else turn)
    if not turns:
        raise TemplateError("Expected a message with content, got only system messages without")
    return turns


def _answer(turn: Turn, message: Message, called: Sequence[tuple[ToolCall, int]], waiting: list[int]) -> Turn:
    """The result with its call: the one with its id, otherwise the first without a result."""
    answered = str(message.get("tool_call_id") or "")
    named = (n for n in reversed(range(len(called))) if answered and called[n][0].id == answered)
    index = next(named, waiting[0] if waiting and not answered else -1)
    if index in waiting:
        waiting.remove(index)
    call, place = called[index] if index >= 0 else (None, 0)
    name = str(message.get("name") or (call.name if call else ""))
    return replace(turn, id=answered, name=name, index=index, place=place)


def _role(message: Message) -> str:
    name = message.get("role")
    role = name.lower() if isinstance(name, str) else ""
    role = {"developer": "system", "function": "tool"}.get(role, role)
    if role not in ROLES:
        raise TemplateError(f"Invalid role {name}. Only {', '.join(ROLES)} are supported.")
    return role


def text_of(content: object, i: int, notes: list[Note]) -> str:
    """A message's content as text: parts are joined; those that are not text are dropped with a note."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise TemplateError(f"message {i}: expected content as text or a list of parts, got {type(content).__name__}")
    texts: list[str] = []
    for part in cast("list[Any]", content):
        text = cast("Mapping[str, Any]", part).get("text") if isinstance(part, Mapping) else part
        if isinstance(text, str):
            texts.append(text)
        else:
            notes.append(Note("part-lost", f"message {i} has a part that is not text"))
    return "".join(texts)


def _calls(message: Message, i: int, notes: list[Note]) -> tuple[ToolCall, ...]:
    rows = cast("object", message.get("tool_calls") or [])
    if not isinstance(rows, list):
        raise TemplateError(f"message {i}: Tool calls must be an array")
    return tuple(_call(row, i, notes) for row in cast("list[object]", rows))


def _call(row: object, i: int, notes: list[Note]) -> ToolCall:
    where = f"message {i}"
    if not isinstance(row, Mapping):
        raise TemplateError(f"{where}: Tool call must be an object")
    call = cast("Mapping[str, Any]", row)
    function: object = call.get("function")
    if not isinstance(function, Mapping):
        raise TemplateError(f'{where}: "function" must be provided for tool call')
    fields = cast("Mapping[str, Any]", function)
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        raise TemplateError(f'{where}: "name" must be provided for the function in tool call')
    return _arguments(ToolCall(str(call.get("id") or ""), name, {}), fields.get("arguments"), where, notes)


def _arguments(call: ToolCall, arguments: object, where: str, notes: list[Note]) -> ToolCall:
    """The call with its arguments; text that is a JSON object stays as written."""
    if arguments in (None, ""):
        return replace(call, json="{}")
    if isinstance(arguments, Mapping):
        return replace(call, arguments=dict(cast("Mapping[str, Any]", arguments)))
    if not isinstance(arguments, str):
        raise TemplateError(f"{where}: expected arguments as JSON text or an object, got {type(arguments).__name__}")
    value: object = loads_or(arguments, None)
    if isinstance(value, dict):
        return replace(call, arguments=cast("dict[str, Any]", value), json=arguments.strip())
    notes.append(Note("arguments-not-json", f"{where}: the arguments of {call.name} are no JSON object"))
    return replace(call, json=json.dumps(arguments, ensure_ascii=False))


def message_of(turn: Turn, objects: bool, blank: str | None = "", thought: str = "reasoning_content") -> dict[str, Any]:
    """The turn in OpenAI's format for a chat template, with arguments as an object or as text. `blank` is the text of
    a turn with only calls, `thought` the key of a thought."""
    message: dict[str, Any] = {"role": turn.role, "content": turn.text or (blank if turn.calls else "")}
    if turn.thought:
        message[thought] = turn.thought
    if turn.calls:
        message["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": _wire_arguments(c, objects)}}
            for c in turn.calls
        ]
    if turn.role == "tool":
        message |= {"tool_call_id": turn.id, "name": turn.name}
    return message


def _wire_arguments(call: ToolCall, objects: bool) -> object:
    if not objects:
        return call.json or json.dumps(call.arguments, ensure_ascii=False)
    if call.json:
        return loads_or(call.json, call.json)
    return call.arguments
