"""Detects that a conversation goes in circles: the same calls with the same results, again and again.

A turn is the calls of one assistant message with their results. Consecutive turns repeat if calls and results are
equal. An answer in text between them ends the repetition; a user message does not, because agents insert reminders
there. The notice to the model follows the result that came once too often. It stays there in every later request, so
that the beginning of the prompt does not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..api.json_stream import record, records
from ..schema.nonblocking_json import loads_or
from ..types import Message
from .messages import with_text

LOOKED_AT = "(The same call with the same result, {times} times in a row. Calling again changes nothing: do something else, or answer.)"
ENDED = "I stopped: {names} gave the same result {times} times in a row, to the same arguments."


Turns = Sequence[tuple[int, int]]
"""For each turn with all its results: the index of its last result, and the number of equal turns that end there."""


def counted_turns(messages: Sequence[Message]) -> Turns:
    """The turns of a conversation."""
    rows: list[tuple[int, int]] = []
    shape: object = None
    arguments: list[Any] = []
    times = start = 0
    for first, last in _turns(messages):
        if any(map(_answers, messages[start:first])):
            times = 0
        turn = messages[first : last + 1]
        before, others, shape, arguments = shape, arguments, _shape(turn), _arguments(turn)
        same = all(map(_same, arguments, others)) if shape == before else False
        times = times + 1 if same else 1
        start = last + 1
        rows.append((last, times))
    return rows


def noticed(messages: Sequence[Message], turns: Turns, times: int) -> Sequence[Message]:
    """The messages, with a notice to the model after each result that came so many times in a row."""
    places = [place for place, count in turns if count == times]
    if not places:
        return messages
    rows = list(messages)
    for place in places:
        rows[place] = with_text(rows[place], LOOKED_AT.format(times=times))
    return rows


def in_a_row(messages: Sequence[Message], turns: Turns) -> int:
    """The number of equal turns at the end of a conversation; 0 if it does not end with results."""
    last, times = turns[-1] if turns else (0, 0)
    return 0 if any(map(_answers, messages[last + 1 :])) else times


def ended(messages: Sequence[Message], times: int) -> str:
    """The message to the user when a conversation is ended because of repetition."""
    calls = next(_calls(message) for message in reversed(messages) if _calls(message))
    names = dict.fromkeys(str(record(call.get("function")).get("name")) for call in calls)
    return ENDED.format(names=", ".join(names), times=times)


def _turns(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """The index of each message with calls, and that of its last result."""
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


def _shape(turn: Sequence[Message]) -> object:
    """The names of a turn's calls, and the results: what is equal in turns that repeat, whatever the ids of the calls."""
    names = [record(call.get("function")).get("name") for call in _calls(turn[0])]
    return names, [message.get("content") for message in turn[1:]]


def _arguments(turn: Sequence[Message]) -> list[Any]:
    return [record(call.get("function")).get("arguments") for call in _calls(turn[0])]


def _same(arguments: Any, others: Any) -> bool:
    """Whether two calls have the same arguments, in whatever order. They are parsed only if their texts differ."""
    if arguments == others:
        return True
    return _canonical(arguments) == _canonical(others)


def _canonical(arguments: Any) -> object:
    return loads_or(arguments, arguments) if isinstance(arguments, str) else arguments
