"""Clears old tool results from a conversation that has grown too long, by a rule of the operator.

The conversation is processed turn by turn. Whenever it exceeds the token limit, all results but the last ones are
cleared: each is replaced by one line. The next clearing waits until as many new results have come, so that the
beginning of the prompt (and with it the server's prefix cache) stays the same in between. What is cleared depends only
on the conversation, so that every later request clears the same results.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..types import Message
from .token_estimate import about, about_message

NOTE = "(This result was cleared to make room. Call again if it is needed.)"


def clear_results(messages: Sequence[Message], tokens: int, last: int) -> tuple[list[Message], list[int]]:
    """The messages with old results cleared, all but the `last`, whenever they exceed `tokens`; and the indices of the
    cleared messages."""
    results: list[int] = []
    gone = total = 0
    for i, message in enumerate(messages):
        total += about_message(message)
        if message.get("role") != "tool":
            continue
        results.append(i)
        if total > tokens and len(results) - gone >= 2 * last:
            total -= sum(about_message(messages[place]) - about(NOTE) for place in results[gone:-last])
            gone = len(results) - last
    cleared = results[:gone]
    rows: list[Message] = list(messages)
    for place in cleared:
        rows[place] = {**rows[place], "content": NOTE}
    return rows, cleared
