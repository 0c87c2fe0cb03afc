"""Old results out of a conversation that has grown too long, by a rule of the operator's.

A conversation is read as it grew, turn by turn. Whenever it has come to hold more tokens than it may, all results but
the last ones are cleared: a line stands in the place of each. The next time is when as many new ones have come, so that
between two times the beginning of the prompt stays as it is. What is cleared depends on the conversation alone: in
every later request the same results are."""

from __future__ import annotations

from collections.abc import Sequence

from ..types import Message
from .token_estimate import about, about_message

NOTE = "(This result was cleared to make room. Call again if it is needed.)"


def clear_results(messages: Sequence[Message], tokens: int, last: int) -> tuple[list[Message], list[int]]:
    """The messages without the old results, all but the `last`, of what holds more than `tokens`; the places of those
    that are cleared."""
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
