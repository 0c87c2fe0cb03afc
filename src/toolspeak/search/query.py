"""Search queries of a conversation: its questions, the tools that it has used, and its beginning."""

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
from ..plan.decide import NO_CALL, NO_FIT
from ..plan.prompted import text_of
from ..types import Message
from .terms import length

LONGEST = 2_000
"""Characters of a text that are searched by: its beginning and its end, half each."""
SHORT = 4
"""Words up to which a question may point back to the one before it: "and in Paris?"."""
EARLIER = 0.5
"""What the question before a short one counts."""
ERRORS = 3
"""Errors of tools that are searched by, the last ones."""
TAG = re.compile(r"<([A-Za-z][\w-]{0,60})[^<>]{0,200}>")
"""How a text begins that a program put beside what the user typed."""
FAILED = re.compile(r'\s*(?:\{\s*"error"|(?:Error|Exception|Traceback)\b)')
"""How a tool's result begins that is an error."""


@dataclass(frozen=True, slots=True)
class Question:
    """A text to search by, and what its scores count."""

    text: str
    weight: float = 1.0


LONGEST_MESSAGE = 20_000
"""Characters of a message with searches that are kept."""


def questions(messages: Sequence[Message]) -> list[Question]:
    """What the user asked last and, where that is short, before it at a lower weight."""
    said = _user_texts(messages)
    found = [Question(text, weight) for text, weight in zip(said, (1.0, EARLIER), strict=False)]
    return found[:2] if found and length(found[0].text) <= SHORT else found[:1]


def ranked(
    search: Callable[[str, int], Iterable[tuple[int, float]]], messages: Sequence[Message], k: int
) -> list[tuple[int, float]]:
    """The at most `k` places, with their scores, that a search finds best for what a conversation asks, best first."""
    scores: dict[int, float] = {}
    for question in questions(messages):
        for place, score in search(question.text, k):
            scores[place] = scores.get(place, 0.0) + question.weight * score
    return sorted(scores.items(), key=lambda found: (-found[1], found[0]))[:k]


def error(message: Message) -> str:
    """The error that a tool's result tells, "" for none."""
    if message.get("role") != "tool" or not FAILED.match(text := text_of(message)):
        return ""
    return bounded(text)


def errors(messages: Sequence[Message]) -> list[str]:
    """The errors that tools gave since the user spoke last, the latest first."""
    found: list[str] = []
    for message in reversed(messages):
        if message.get("role") == "user" or len(found) == ERRORS:
            break
        if text := error(message):
            found.append(text)
    return found


def used(messages: Sequence[Message]) -> list[str]:
    """The names of the tools that were called in a conversation, the one called last first."""
    found: dict[str, None] = {}
    for message in reversed(messages):
        found |= dict.fromkeys(reversed(called(message)))
    return list(found)


def bounded(text: str) -> str:
    """A text as far as it is searched by."""
    text = text.strip()
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} {text[-LONGEST // 2 :]}"


T = TypeVar("T")
Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnsweredRound(Generic[T]):
    """One reply of a model with calls that were answered here (searches, reads): the message with these calls, and what
    each of them found (a search: the names of tools).

    `beside`: the reply went on to the client, for it held other calls too, or was the last."""

    message: Message
    results: tuple[T, ...]
    beside: bool = False


Remember = Callable[[str, Sequence[str], Sequence[AnsweredRound[T]]], None]
"""Keeps the rounds of a reply that ended with a text and calls of these names."""


class AnsweredCalls(Generic[T]):
    """The calls that were answered here in conversations, which stand in none of their messages: kept by how a
    conversation began and was answered then, for the `most` latest of them."""

    def __init__(self, most: int = 4_096) -> None:
        self._most = most
        self._kept: OrderedDict[bytes, tuple[AnsweredRound[T], ...]] = OrderedDict()
        self._lock = threading.Lock()

    def recall(self, messages: Sequence[Message]) -> dict[int, tuple[AnsweredRound[T], ...]]:
        """The calls that were made in the conversation that these messages go on, by the place of the answer that
        followed them."""
        found: dict[int, tuple[AnsweredRound[T], ...]] = {}
        if not self._kept:
            return found
        digest = hashlib.blake2b(digest_size=16)
        for place, message in enumerate(messages):
            if message.get("role") == "assistant":
                key = _answered(digest, text_of(message), called(message))
                with self._lock:
                    if key in self._kept:
                        found[place] = self._kept[key]
                        self._kept.move_to_end(key)
            digest.update(_written(message))
        return found

    def remember(
        self, messages: Sequence[Message], text: str, calls: Sequence[str], rounds: Sequence[AnsweredRound[T]]
    ) -> None:
        """Keeps what was called here while these messages were answered by a text, and calls of these names."""
        digest = hashlib.blake2b(digest_size=16)
        for message in messages:
            digest.update(_written(message))
        key = _answered(digest, text, calls)
        with self._lock:
            self._kept[key] = tuple(map(_small, rounds))
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)


def _small(one: AnsweredRound[T]) -> AnsweredRound[T]:
    """The same without its words where these are many: what is kept is bounded."""
    if len(json.dumps(one.message, default=str)) <= LONGEST_MESSAGE:
        return one
    calls = one.message.get("tool_calls") or []
    return AnsweredRound({"role": "assistant", "content": "", "tool_calls": calls}, one.results, one.beside)


def _written(message: Message) -> bytes:
    return json.dumps(message, sort_keys=True, default=str).encode() + b"\n"


def _answered(begun: hashlib.blake2b, text: str, calls: Sequence[str]) -> bytes:
    """A key for the answer to what has begun so. What clients write anew, such as ids and blanks, does not count."""
    digest = begun.copy()
    digest.update(repr(list(calls) or text.strip()).encode("utf-8", "replace"))
    return digest.digest()


def called(message: Message) -> list[str]:
    """The names of the tools that a message calls."""
    functions = [record(call.get("function")) for call in records(message.get("tool_calls"))]
    return [name for function in functions if isinstance(name := function.get("name"), str)]


def _user_texts(messages: Sequence[Message]) -> list[str]:
    """What the user said, the last first, as far as it is looked at; where that is nothing, what programs said
    there."""
    return _texts(messages, typed) or _texts(messages, text_of)


def _texts(messages: Sequence[Message], read: Callable[[Message], str]) -> list[str]:
    found: list[str] = []
    for message in reversed(messages):
        text = bounded(read(message)) if message.get("role") == "user" else ""
        if text and not text.startswith((NO_CALL, NO_FIT)):  # what we say in the user's place asks for nothing new
            found.append(text)
            if len(found) == 2:
                break
    return found


def typed(message: Message) -> str:
    """The text of a user's message, without the parts that a program put beside it: those that stand in one tag whole,
    as `<environment>…</environment>`."""
    content = message.get("content")
    if not isinstance(content, list):
        return "" if _enclosed(text := text_of(message)) else text
    texts = [str(part.get("text") or "") for part in content]
    return " ".join(text for text in texts if text and not _enclosed(text))


def _enclosed(text: str) -> bool:
    """Whether all of a text stands within one tag."""
    text = text.strip()
    if not (opened := TAG.match(text)):
        return False
    return text.endswith(f"</{opened[1]}>")
