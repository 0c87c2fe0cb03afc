"""Search queries from a conversation: its questions, the tools that it has used, and its beginning.

Also the cache of internal calls (`AnsweredCalls`). Clients never see these calls, so no later request contains them,
and they are found again by a digest of the conversation's beginning.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..api.json_stream import record, records
from ..plan.decide import NO_CALL, NO_FIT, NO_JSON
from ..plan.prompted import text_of
from ..types import Message
from .terms import length

LONGEST = 2_000
"""Characters of a text that are searched for: half of them from each end."""
SHORT = 4
"""A question with at most so many words may refer to the one before it: "and in Paris?"."""
EARLIER = 0.5
"""The weight of the question before a short one."""
ERRORS = 3
"""The most tool errors that are searched for, the latest ones."""
TAG = re.compile(r"<([A-Za-z][\w-]{0,60})[^<>]{0,200}>")
"""The start of a text that a program added beside the user's own text."""
FAILED = re.compile(r'\s*(?:\{\s*"error"|(?:Error|Exception|Traceback)\b)')
"""The start of a tool result that is an error."""


@dataclass(frozen=True, slots=True)
class Question:
    """A text to search for, and the weight of its scores."""

    text: str
    weight: float = 1.0


LONGEST_MESSAGE = 20_000
"""The most characters of a cached message with internal calls."""


def questions(messages: Sequence[Message]) -> list[Question]:
    """The user's last question; if it is short, also the one before it at a lower weight."""
    texts = _texts(messages, typed) or _texts(messages, text_of)  # else those that programs added
    results = [Question(text, weight) for text, weight in zip(texts, (1.0, EARLIER), strict=False)]
    return results[:2] if results and length(results[0].text) <= SHORT else results[:1]


def ranked(
    search: Callable[[str, int], Iterable[tuple[int, float]]], messages: Sequence[Message], k: int
) -> list[tuple[int, float]]:
    """The best places for the questions of a conversation with their scores, at most `k`, best first."""
    scores: dict[int, float] = {}
    for question in questions(messages):
        for place, score in search(question.text, k):
            scores[place] = scores.get(place, 0.0) + question.weight * score
    return sorted(scores.items(), key=lambda place_score: (-place_score[1], place_score[0]))[:k]


def error(message: Message) -> str:
    """The error in a tool result; "" if there is none."""
    if message.get("role") != "tool" or not FAILED.match(text := text_of(message)):
        return ""
    return bounded(text)


def errors(messages: Sequence[Message]) -> list[str]:
    """The errors of tools since the last user message, the latest first."""
    texts: list[str] = []
    for message in reversed(messages):
        if message.get("role") == "user" or len(texts) == ERRORS:
            break
        if text := error(message):
            texts.append(text)
    return texts


def used(messages: Sequence[Message]) -> list[str]:
    """The names of the tools that a conversation has called, the latest first."""
    names: dict[str, None] = {}
    for message in reversed(messages):
        names |= dict.fromkeys(reversed(called(message)))
    return list(names)


def bounded(text: str) -> str:
    """The part of a text that is searched for."""
    text = text.strip()
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} {text[-LONGEST // 2 :]}"


T = TypeVar("T")
Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnsweredRound(Generic[T]):
    """One reply with internal calls (searches, reads): the message with these calls, and the result of each (of a
    search: the names of tools).

    `beside`: the reply was passed on to the client, because it had other calls too or was the last one.
    """

    message: Message
    results: tuple[T, ...]
    beside: bool = False


Remember = Callable[[str, Sequence[str], Sequence[AnsweredRound[T]]], None]
"""Caches the rounds of a reply that ended with a text and with calls of these names."""


class AnsweredCalls(Generic[T]):
    """A cache of the internal calls of conversations, whose messages do not contain them. The key is the beginning of
    the conversation and the answer to it; the `most` latest are stored."""

    def __init__(self, most: int = 4_096) -> None:
        self._most = most
        self._rounds: OrderedDict[bytes, tuple[AnsweredRound[T], ...]] = OrderedDict()
        self._lock = threading.Lock()

    def recall(self, messages: Sequence[Message]) -> dict[int, tuple[AnsweredRound[T], ...]]:
        """The internal calls in the conversation that these messages continue, by the index of the answer that
        followed them."""
        calls: dict[int, tuple[AnsweredRound[T], ...]] = {}
        if not self._rounds:
            return calls
        digest = hashlib.blake2b(digest_size=16)
        for place, message in enumerate(messages):
            if message.get("role") == "assistant":
                key = _answered(digest, text_of(message), called(message))
                with self._lock:
                    if key in self._rounds:
                        calls[place] = self._rounds[key]
                        self._rounds.move_to_end(key)
            digest.update(_written(message))
        return calls

    def remember(
        self, messages: Sequence[Message], text: str, calls: Sequence[str], rounds: Sequence[AnsweredRound[T]]
    ) -> None:
        """Stores the internal calls that were made before these messages were answered with a text and calls of these
        names."""
        digest = hashlib.blake2b(digest_size=16)
        for message in messages:
            digest.update(_written(message))
        key = _answered(digest, text, calls)
        with self._lock:
            self._rounds[key] = tuple(map(_small, rounds))
            self._rounds.move_to_end(key)
            while len(self._rounds) > self._most:
                self._rounds.popitem(last=False)


def _small(one: AnsweredRound[T]) -> AnsweredRound[T]:
    """The round without its text if that is long, to limit the size of the cache."""
    if len(json.dumps(one.message, default=str)) <= LONGEST_MESSAGE:
        return one
    calls = one.message.get("tool_calls") or []
    return AnsweredRound({"role": "assistant", "content": "", "tool_calls": calls}, one.results, one.beside)


def _written(message: Message) -> bytes:
    return json.dumps(message, sort_keys=True, default=str).encode() + b"\n"


def _answered(begun: hashlib.blake2b, text: str, calls: Sequence[str]) -> bytes:
    """A key for the answer to a conversation with this beginning. Ids and whitespace, which clients change, do not
    count."""
    digest = begun.copy()
    digest.update(repr(list(calls) or text.strip()).encode("utf-8", "replace"))
    return digest.digest()


def called(message: Message) -> list[str]:
    """The names of the tools that a message calls."""
    functions = [record(call.get("function")) for call in records(message.get("tool_calls"))]
    return [name for function in functions if isinstance(name := function.get("name"), str)]


def _texts(messages: Sequence[Message], read: Callable[[Message], str]) -> list[str]:
    texts: list[str] = []
    for message in reversed(messages):
        text = bounded(read(message)) if message.get("role") == "user" else ""
        if text and not text.startswith(
            (NO_CALL, NO_FIT, NO_JSON)
        ):  # our own messages in the user's role are no questions
            texts.append(text)
            if len(texts) == 2:
                break
    return texts


def typed(message: Message) -> str:
    """The text of a user message without the parts that a program added, which are enclosed in one tag, as in
    `<environment>…</environment>`."""
    content = message.get("content")
    if not isinstance(content, list):
        return "" if _enclosed(text := text_of(message)) else text
    texts = [str(part.get("text") or "") for part in content]
    return " ".join(text for text in texts if text and not _enclosed(text))


def _enclosed(text: str) -> bool:
    """Whether one tag encloses the whole text."""
    text = text.strip()
    if not (opened := TAG.match(text)):
        return False
    return text.endswith(f"</{opened[1]}>")
