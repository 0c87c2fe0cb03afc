"""Messages of a chat completion: their JSON Schema, reading and writing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from ...errors import Refused
from ...schema import nonblocking_json
from ...schema.phrases import NOT_BLANK
from ...types import Message, Schema
from ..field_schemas import TEXT, cannot
from ..json_stream import Payload, record, records

ID: Schema = {"type": "string", "minLength": 1, "maxLength": 512}
NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 256, "pattern": NOT_BLANK}
ARGUMENTS: Schema = {"type": ["string", "object", "null"]}
CALL: Schema = {
    "type": "object",
    "required": ["id"],
    "anyOf": [{"required": ["function"]}, {"required": ["custom"]}],
    "properties": {
        "id": ID,
        "function": {"type": "object", "required": ["name"], "properties": {"name": NAME, "arguments": ARGUMENTS}},
        "custom": {"type": "object", "required": ["name", "input"], "properties": {"name": NAME, "input": TEXT}},
    },
}
PART_FIELDS: dict[str, Schema] = {
    "text": TEXT,
    "refusal": TEXT,
    "image_url": {"type": ["object", "string"], "required": ["url"], "properties": {"url": TEXT}},
    "input_audio": {"type": "object"},
    "file": {"type": "object"},
}
"""The schema of a content part by its type, which is also the name of the field with its data."""
PART: Schema = {
    "type": "object",
    "required": ["type"],
    "properties": {"type": {"type": "string", "maxLength": 64}, **PART_FIELDS},
    "allOf": [{"if": {"properties": {"type": {"const": kind}}}, "then": {"required": [kind]}} for kind in PART_FIELDS],
}
MESSAGE: Schema = {
    "type": "object",
    "required": ["role"],
    "properties": {
        "role": {"enum": ["system", "developer", "user", "assistant", "tool", "function"]},
        "content": {"anyOf": [{"type": ["string", "null"]}, {"type": "array", "maxItems": 10_000, "items": PART}]},
        "name": {"type": ["string", "null"], "maxLength": 256},
        "tool_call_id": {"type": ["string", "null"], "maxLength": 512},
        "reasoning_content": {"type": ["string", "null"]},
        "reasoning": {"type": ["string", "null"]},
        "tool_calls": {"type": ["array", "null"], "maxItems": 1024, "items": CALL},
        "function_call": {
            "type": ["object", "null"], "required": ["name"], "properties": {"name": NAME, "arguments": ARGUMENTS}},
    },
}  # fmt: skip
"""One message of a body."""

PLAIN = frozenset({"role", "content", "name"})
"""The fields of most messages. A message without others needs no conversion."""


def write_messages(messages: Sequence[Message], *, thoughts: bool = False) -> list[Payload]:
    """Return messages in the API's format. They have it already, except for reasoning, the `phase` of another API, and
    arguments that are objects."""
    return [_written(message, thoughts) for message in messages]


def _written(message: Message, thoughts: bool) -> Payload:
    out: Payload = dict(cast("Payload", message))
    out.pop("phase", None)
    if not thoughts:
        out.pop("reasoning_content", None)
    if calls := records(out.get("tool_calls")):
        out["tool_calls"] = [_call(call) for call in calls]
    return out


def _call(call: Payload) -> Payload:
    function = record(call.get("function"))
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        return call
    text = nonblocking_json.dumps({} if arguments is None else arguments)
    return {**call, "function": {**function, "arguments": text}}


def read_messages(rows: Sequence[Payload]) -> list[Message]:
    """Return messages that match MESSAGE in our format. Raises Refused for a result without its call."""
    called: dict[str, str] = {}
    return [_read(row, at, called) for at, row in enumerate(rows)]


def _read(row: Payload, at: int, called: dict[str, str]) -> Message:
    """Return one message. `called` maps ids of earlier calls to tool names; the calls of this message are added."""
    role = row["role"]
    if row.keys() <= PLAIN and role not in ("tool", "function"):
        return cast("Message", row if row.get("name", "") is not None else _without_nulls(row))
    out = _without_nulls(row)
    if role == "assistant":
        _read_assistant(out, at, called)
    elif role == "function":
        name = out.get("name", "")
        key = next((key for key, known in reversed(called.items()) if known == name), "")
        _paired(key, f"messages.{at}", f"no call of a function {name[:100]!r} comes before it", called)
        out |= {"role": "tool", "tool_call_id": key}
    elif role == "tool":
        key = out.get("tool_call_id", "")
        why = f"no call before it has the id {key[:100]!r}" if key else "it must say which call it answers"
        _paired(key, f"messages.{at}.tool_call_id", why, called)
    return cast("Message", out)


def _without_nulls(row: Payload) -> Payload:
    """Return a message without null fields, which SDKs write, and without a trust label: a client may not decide
    whether a result is trusted."""
    return {name: value for name, value in row.items() if (value is not None or name == "content") and name != "origin"}


def _paired(key: str, param: str, why: str, called: Mapping[str, str]) -> None:
    if key not in called:
        raise Refused(f"{param}: {why}", code="invalid_value", param=param)


def _read_assistant(out: Payload, at: int, called: dict[str, str]) -> None:
    if "audio" in out:
        raise cannot(f"messages.{at}.audio", "earlier audio of the assistant cannot be sent to the model")
    if thought := out.pop("reasoning", ""):
        out.setdefault("reasoning_content", thought)
    if legacy := out.pop("function_call", None):
        out["tool_calls"] = [{"id": f"call_function_{at:08d}", "type": "function", "function": legacy}]
    if calls := [_call_read(call) for call in records(out.get("tool_calls"))]:
        out["tool_calls"] = calls
        out.setdefault("content", None)
        called.update((str(call["id"]), str(call["function"]["name"])) for call in calls)
    else:
        out.pop("tool_calls", None)


def _call_read(call: Payload) -> Payload:
    if "function" in call:
        return call if "type" in call else {**call, "type": "function"}
    custom = record(call["custom"])
    text = nonblocking_json.dumps({"input": custom["input"]})
    return {"id": call["id"], "type": "function", "function": {"name": custom["name"], "arguments": text}}
