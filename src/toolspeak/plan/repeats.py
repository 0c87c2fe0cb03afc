"""The same call again and again: where a conversation goes in circles, and what the model reads of it.

A turn is what an assistant calls at once, with the results. Turns repeat where calls and results are equal, one behind
the other; an answer in words between them ends a run of them, a word of the user's does not: agents put reminders
there. What the model reads stands behind the result that made it one time too many, and stands there in every later
request too, so that the beginning of the prompt stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ..api.json_stream import record, records
from ..types import Message
from .messages import with_text

LOOKED_AT = "(The same call with the same result, {times} times in a row. Calling again changes nothing: do something else, or answer.)"
ENDED = "I stopped: {names} gave the same result {times} times in a row, to the same arguments."


Turns = Sequence[tuple[int, int]]
"""Of each turn of calls that has its results: the place of its last result, and how many equal turns end there."""


def counted_turns(messages: Sequence[Message]) -> Turns:
    """The turns of a conversation."""
    rows: list[tuple[int, int]] = []
    signature: object = None
    times = start = 0
    for first, last in _turns(messages):
        if any(map(_answers, messages[start:first])):
            times = 0
        now = _signature(messages[first], messages[first + 1 : last + 1])
        times, signature = (times + 1 if now == signature else 1), now
        start = last + 1
        rows.append((last, times))
    return rows


def noticed(messages: Sequence[Message], turns: Turns, times: int) -> Sequence[Message]:
    """The messages, with a word to the model behind each result that came so many times in a row."""
    places = [place for place, count in turns if count == times]
    if not places:
        return messages
    rows = list(messages)
    for place in places:
        rows[place] = with_text(rows[place], LOOKED_AT.format(times=times))
    return rows


def in_a_row(messages: Sequence[Message], turns: Turns) -> int:
    """How many equal turns of calls a conversation ends with; 0 where it does not end with results."""
    last, times = turns[-1] if turns else (0, 0)
    return 0 if any(map(_answers, messages[last + 1 :])) else times


def ended(messages: Sequence[Message], times: int) -> str:
    """What is said to the user where a conversation is ended for its repeats."""
    calls = next(_calls(message) for message in reversed(messages) if _calls(message))
    names = dict.fromkeys(str(record(call.get("function")).get("name")) for call in calls)
    return ENDED.format(names=", ".join(names), times=times)


def _turns(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """The place of each message that calls, with that of its last result."""
    first = -1
    for i, message in enumerate(messages):
        if _calls(message):
            first = i
        ends = message.get("role") == "tool" and all(after.get("role") != "tool" for after in messages[i + 1 : i + 2])
        if ends and first >= 0:
            yield first, i
            first = -1


def _calls(message: Message) -> Sequence[dict[str, Any]]:
    return records(message.get("tool_calls")) if message.get("role") == "assistant" else ()


def _answers(message: Message) -> bool:
    return message.get("role") == "assistant" and not _calls(message)


def _signature(asked: Message, results: Sequence[Message]) -> object:
    """What is equal where the same calls had the same results, whatever their ids and the order of their arguments."""
    calls = [record(call.get("function")) for call in _calls(asked)]
    return (
        [(call.get("name"), _canonical(call.get("arguments"))) for call in calls],
        [message.get("content") for message in results],
    )


def _canonical(arguments: Any) -> object:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
