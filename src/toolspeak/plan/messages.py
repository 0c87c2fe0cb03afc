"""Makes a conversation from what a user passes (a question or messages), and adds text to a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..api.json_stream import records
from ..errors import UsageError
from ..schema.phrases import beginning
from ..schema.suggestions import did_you_mean, near
from ..types import Message


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
    return [*first, *messages]


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
