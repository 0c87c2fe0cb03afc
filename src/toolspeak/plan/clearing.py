"""Old results out of a conversation that has grown too long, by a rule of the operator's.

A conversation is read as it grew, turn by turn. Whenever it has come to hold more tokens than it may, all results but the last
ones are cleared: a line stands in the place of each. The next time is when as many new ones have come, so that between two
times the beginning of the prompt stays as it is. What is cleared depends on the conversation alone: in every later request
the same results are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..api.payloads import records
from ..types import Message

NOTE = "(This result was cleared to make room. Call again if it is needed.)"
LETTERS = 4
"""Characters of a token, about."""


def clear_results(messages: Sequence[Message], tokens: int, last: int) -> tuple[Sequence[Message], int]:
    """The messages without the old results, all but the `last`, of what holds more than `tokens`; how many are cleared."""
    results: list[int] = []
    gone = total = 0
    for i, message in enumerate(messages):
        total += _size(message)
        if message.get("role") != "tool":
            continue
        results.append(i)
        if total > tokens and len(results) - gone >= 2 * last:
            total -= sum(_size(messages[place]) - len(NOTE) // LETTERS for place in results[gone:-last])
            gone = len(results) - last
    if not gone:
        return messages, 0
    places = set(results[:gone])
    rows: list[Message] = [
        {**message, "content": NOTE} if i in places else message for i, message in enumerate(messages)
    ]
    return rows, gone


def _size(message: Message) -> int:
    """About how many tokens a message has."""
    content: Any = message.get("content")
    texts = [content] if isinstance(content, str) else [part.get("text") for part in records(content)]
    calls = [str(call.get("function")) for call in records(message.get("tool_calls"))]
    return sum(len(text) for text in (*texts, *calls) if isinstance(text, str)) // LETTERS
