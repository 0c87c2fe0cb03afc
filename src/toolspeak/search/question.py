"""What a conversation asks of its tools: the questions to search by, the tools it has used, and what it began with."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..api.payloads import record, records
from ..plan.decide import NO_CALL, NO_FIT
from ..plan.speak import text_of
from ..types import Message
from .words import length

LONGEST = 2_000
"""Characters of a text that are searched by: its beginning and its end, half each."""
SHORT = 4
"""Words up to which a question may point back to the one before it: "and in Paris?"."""
EARLIER = 0.5
"""What the question before a short one counts."""
ERRORS = 3
"""Errors of tools that are searched by, the last ones."""
FAILED = re.compile(r'\s*(?:\{\s*"error"|(?:Error|Exception|Traceback)\b)')
"""How a tool's result begins that is an error."""


@dataclass(frozen=True, slots=True)
class Question:
    """A text to search by, and what its scores count."""

    text: str
    weight: float = 1.0


def questions(messages: Sequence[Message]) -> list[Question]:
    """What the user asked last and, where that is short, before it at a lower weight."""
    said = _said(messages)
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


def errors(messages: Sequence[Message]) -> list[str]:
    """The errors that tools gave since the user spoke last, the latest first."""
    found: list[str] = []
    for message in reversed(messages):
        if message.get("role") == "user" or len(found) == ERRORS:
            break
        if message.get("role") == "tool" and FAILED.match(text := text_of(message)):
            found.append(bounded(text))
    return found


def used(messages: Sequence[Message]) -> list[str]:
    """The names of the tools that were called in a conversation, the one called last first."""
    found: dict[str, None] = {}
    for message in reversed(messages):
        found |= dict.fromkeys(reversed(_called(message)))
    return list(found)


def bounded(text: str) -> str:
    """A text as far as it is searched by."""
    text = text.strip()
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} {text[-LONGEST // 2 :]}"


class Finds:
    """What the searches in conversations found, which stands in none of their messages: kept by how a conversation began
    and was answered then, for the `most` latest of them."""

    def __init__(self, most: int = 4_096) -> None:
        self._most = most
        self._kept: OrderedDict[bytes, tuple[str, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def recall(self, messages: Sequence[Message]) -> tuple[str, ...]:
        """The names of the tools that were found in the conversation that these messages go on, the latest first."""
        if not self._kept:
            return ()
        found: tuple[str, ...] = ()
        digest = hashlib.blake2b(digest_size=16)
        for message in messages:
            if message.get("role") == "assistant":
                found = self._kept.get(_answered(digest, text_of(message), _called(message)), found)
            digest.update(_written(message))
        return found

    def remember(self, messages: Sequence[Message], text: str, calls: Sequence[str], found: Sequence[str]) -> None:
        """Keeps what was found while these messages were answered by a text, and calls of these names."""
        digest = hashlib.blake2b(digest_size=16)
        for message in messages:
            digest.update(_written(message))
        key = _answered(digest, text, calls)
        with self._lock:
            self._kept[key] = tuple(dict.fromkeys(found))
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)


def _written(message: Message) -> bytes:
    return json.dumps(message, sort_keys=True, default=str).encode() + b"\n"


def _answered(begun: hashlib.blake2b, text: str, calls: Sequence[str]) -> bytes:
    """A key for the answer to what has begun so. What clients write anew, such as ids and blanks, does not count."""
    digest = begun.copy()
    digest.update(repr(list(calls) or text.strip()).encode("utf-8", "replace"))
    return digest.digest()


def _called(message: Message) -> list[str]:
    """The names of the tools that a message calls."""
    functions = [record(call.get("function")) for call in records(message.get("tool_calls"))]
    return [name for function in functions if isinstance(name := function.get("name"), str)]


def _said(messages: Sequence[Message]) -> list[str]:
    """What the user said, the last first, as far as it is looked at."""
    found: list[str] = []
    for message in reversed(messages):
        text = bounded(text_of(message)) if message.get("role") == "user" else ""
        if text and not text.startswith((NO_CALL, NO_FIT)):  # what we say in the user's place asks for nothing new
            found.append(text)
            if len(found) == 2:
                break
    return found
