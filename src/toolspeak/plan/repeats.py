"""Detects that a conversation goes in circles: the same calls with the same results, again and again.

A turn is the calls of one assistant message with their results. Consecutive turns repeat if calls and results are
equal. They nearly repeat if the results differ only in words with a digit: ids, times and counters, which some agents
add to every result. Such turns get the notice as early, but end the conversation later, because an agent may wait for
progress. An answer in text between them ends the repetition; a user message does not, because agents insert reminders
there. The notice to the model follows the result that came once too often. It stays there in every later request, so
that the beginning of the prompt does not change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..api.json_stream import record, records
from ..schema.nonblocking_json import loads_or
from ..types import Message
from .messages import with_text

LOOKED_AT = "(The same call with the same result, {times} times in a row. Calling again changes nothing: do something else, or answer.)"
LOOKED_AT_NEARLY = (
    "(The same call {times} times in a row, and the results differ only in numbers and ids. Unless you wait for something, "
    "do something else, or answer.)"
)
ENDED = "I stopped: {names} gave {what} {times} times in a row, to the same arguments."
PATIENCE = 5
"""How many times later a conversation is ended whose results differ in numbers and ids."""
NUMBERED = re.compile(r"(?<![\w.:-])(?:[A-Za-z_.:-])*+\d[\w.:-]*+", re.ASCII)
"""A word with a digit. It is searched only where a word begins, and never again after a failure, so in linear time."""


class RepeatedTurn(NamedTuple):
    """A turn with all its results: the index of the last one, and how many turns in a row are `equal` and `similar` to
    it, itself included. Equal turns are similar, too."""

    last: int
    equal: int
    similar: int

    def reaches(self, times: int) -> bool:
        """Whether the conversation is to be ended after so many equal turns."""
        return self.equal >= times or self.similar >= PATIENCE * times


Turns = Sequence[RepeatedTurn]


def counted_turns(messages: Sequence[Message]) -> Turns:
    """The turns of a conversation."""
    rows: list[RepeatedTurn] = []
    before: Sequence[Message] = ()
    equal = similar = start = 0
    for first, last in _turns(messages):
        if any(map(_answers, messages[start:first])):
            equal = similar = 0
        turn = messages[first : last + 1]
        same, again = _compared(turn, before)
        equal = equal + 1 if same else 1
        similar = similar + 1 if again else 1
        before, start = turn, last + 1
        rows.append(RepeatedTurn(last, equal, similar))
    return rows


def noticed(messages: Sequence[Message], turns: Turns, times: int) -> Sequence[Message]:
    """The messages, with a notice to the model after each result that came so many times in a row."""
    places = [turn for turn in turns if turn.similar == times]
    if not places:
        return messages
    rows = list(messages)
    for last, equal, similar in places:
        text = LOOKED_AT if equal == similar else LOOKED_AT_NEARLY
        rows[last] = with_text(rows[last], text.format(times=times))
    return rows


def in_a_row(messages: Sequence[Message], turns: Turns) -> RepeatedTurn:
    """The turn that ends a conversation; one without any repetition if the conversation does not end with results."""
    end = turns[-1] if turns else RepeatedTurn(0, 0, 0)
    return RepeatedTurn(end.last, 0, 0) if any(map(_answers, messages[end.last + 1 :])) else end


def ended(messages: Sequence[Message], turn: RepeatedTurn) -> str:
    """The message to the user when a conversation is ended because of repetition."""
    calls = next(_calls(message) for message in reversed(messages) if _calls(message))
    names = dict.fromkeys(str(record(call.get("function")).get("name")) for call in calls)
    what = "the same result" if turn.equal == turn.similar else "results that differ only in numbers and ids"
    return ENDED.format(names=", ".join(names), what=what, times=turn.similar)


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


def _compared(turn: Sequence[Message], before: Sequence[Message]) -> tuple[bool, bool]:
    """Whether a turn is equal, and similar, to the one before. The cheap comparisons come first: arguments are parsed only
    if the results are equal, and results are masked only if the texts of the arguments are equal."""
    calls, others = _functions(turn), _functions(before)
    if [call.get("name") for call in calls] != [call.get("name") for call in others]:
        return False, False
    pairs = [(one.get("arguments"), two.get("arguments")) for one, two in zip(calls, others, strict=True)]
    if _results(turn) == _results(before):
        same = all(_same(one, two) for one, two in pairs)
        return same, same
    return False, all(one == two for one, two in pairs) and _masked(turn) == _masked(before)


def _results(turn: Sequence[Message]) -> list[Any]:
    return [message.get("content") for message in turn[1:]]


def _masked(turn: Sequence[Message]) -> list[Any]:
    """The results without their words with digits. Only text has words: images and other parts stay as they are."""
    return [_masked_value(content) for content in _results(turn)]


def _masked_value(content: Any) -> Any:
    if isinstance(content, str):
        return NUMBERED.sub("0", content)
    if isinstance(content, list):
        return [{**part, "text": _masked_value(part.get("text"))} for part in records(content)]
    return content


def _functions(turn: Sequence[Message]) -> list[dict[str, Any]]:
    return [record(call.get("function")) for message in turn[:1] for call in _calls(message)]


def _same(arguments: Any, others: Any) -> bool:
    """Whether two calls have the same arguments, in whatever order. They are parsed only if their texts differ."""
    if arguments == others:
        return True
    return _canonical(arguments) == _canonical(others)


def _canonical(arguments: Any) -> object:
    return loads_or(arguments, arguments) if isinstance(arguments, str) else arguments
