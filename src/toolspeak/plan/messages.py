"""Makes a conversation from what a user passes (a question or messages), and adds text to a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ..api.json_stream import record, records
from ..errors import UsageError
from ..schema.phrases import beginning
from ..schema.suggestions import did_you_mean, near
from ..types import Message
from .calls import UNNAMED


def with_text(message: Message, text: str) -> Message:
    """The message with a text after its own: as a new paragraph, or as a new part if the content is a list."""
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [*content, {"type": "text", "text": text}]}
    return {**message, "content": f"{content}\n\n{text}" if content else text}


BOTH = "Keep the assistant message with the call, or leave out the result"
ROLES = ("system", "developer", "user", "assistant", "tool", "function")
"""The roles of messages; `function` was OpenAI's first name for `tool`."""


def conversation(prompt: str | Sequence[Message], system: str | None) -> list[Message]:
    """The messages of a question or a conversation, after a system message. Raises UsageError for anything else."""
    first: list[Message] = [{"role": "system", "content": system}] if system else []
    if isinstance(prompt, str):
        return [*first, {"role": "user", "content": prompt}]
    as_bytes = isinstance(prompt, (bytes, bytearray, memoryview))
    if as_bytes or not isinstance(prompt, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        hint = "; decode them first, such as text.decode()" if as_bytes else ""
        raise UsageError(f"expected a question or a list of messages, received {type(prompt).__name__}{hint}")
    messages = list(prompt)
    for i, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None  # pyright: ignore[reportUnnecessaryIsInstance]
        if not isinstance(role, str):
            raise UsageError(
                f"message {i}: expected a dict with a role, such as {{'role': 'user', 'content': 'Hi'}}, "
                f"received {beginning(str(message), 80)!r}"
            )
        if role not in ROLES:
            meant = did_you_mean(near(role, ROLES))
            raise UsageError(f"message {i}: expected a role of {', '.join(ROLES)}, got {role!r:.80}.{meant}")
    if not messages:
        raise UsageError("expected a question or at least one message, received an empty list")
    _check_results(messages)
    return [*first, *with_names(messages)]


def with_names(messages: Sequence[Message]) -> list[Message]:
    """The messages with a name for each call whose name is a blank text: earlier versions stored such calls, and servers and
    chat templates refuse them."""
    return [
        {**message, "tool_calls": [*map(_named, calls)]} if (calls := _nameless(message)) else message
        for message in messages
    ]


def _nameless(message: Message) -> list[Any]:
    """The calls of a message, if one of them has a blank name."""
    calls = message.get("tool_calls")
    return cast("list[Any]", calls) if any(map(_is_nameless, records(calls))) else []


def _is_nameless(call: Any) -> bool:
    name = record(record(call).get("function")).get("name")
    return not name.strip() if isinstance(name, str) else False


def _named(call: Any) -> Any:
    return {**call, "function": {**call["function"], "name": UNNAMED}} if _is_nameless(call) else call


def _check_results(messages: Sequence[Message]) -> None:
    """Raises UsageError for a result of a call that is not in the messages before it. Hosted APIs refuse it, and other
    models would read a result of nothing. A result without an id belongs to the first call that has none."""
    called: set[str] = set()
    for i, message in enumerate(messages):
        called |= {str(call.get("id")) for call in records(message.get("tool_calls"))}
        if message.get("role") != "tool":
            continue
        key = message.get("tool_call_id")
        if key and str(key) not in called:
            raise UsageError(f"message {i}: no call before this result has the id {key!r:.100}. {BOTH}")
        if not called:
            raise UsageError(f"message {i}: there is no call before this result. {BOTH}")
