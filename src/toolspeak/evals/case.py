"""A case to put to a model, and the verdict on what came."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from ..types import Message, Reply, Tool

Kind = Literal[
    "",
    "wrong tool",
    "wrong value",
    "missing argument",
    "needless argument",
    "count",
    "needless call",
    "no call",
    "invalid",
    "error",
]
"""What is wrong with a reply. `count`: another number of calls than wanted. `needless call`: a call where none was wanted.
`invalid`: calls that fit no schema, or that no tool has. `error`: the model could not answer."""
KINDS: tuple[Kind, ...] = tuple(kind for kind in get_args(Kind) if kind)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a reply is right; else what kind of error it is, and a sentence on it."""

    right: bool
    kind: Kind = ""
    detail: str = ""


RIGHT = Verdict(True)
Judge = Callable[[Reply], Verdict]
Ask = Callable[[Sequence[Message], Sequence[Tool[..., Any]], int], Awaitable[Reply]]
"""Runs a turn of a conversation with these tools, in so many steps at most: see `toolspeak.run`."""
Play = Callable[[Ask], Awaitable[tuple[Reply, Verdict]]]


@dataclass(frozen=True, slots=True)
class Case:
    """A conversation, the tools offered, what is expected (to be shown, as JSON), and the judge of a reply.

    `group` is what accuracy is told for, `split` a further word that cases can be chosen by. With `play` a case is a
    conversation of many turns, whose calls are carried out and which `play` judges as a whole.
    """

    id: str
    group: str
    messages: tuple[Message, ...]
    tools: tuple[Tool[..., Any], ...]
    expected: Any
    judge: Judge = field(compare=False, repr=False)
    split: str = ""
    match: str = "exact"
    play: Play | None = field(default=None, compare=False, repr=False)

    @property
    def question(self) -> str:
        """The last thing that the user says."""
        said = [message.get("content") for message in self.messages if message.get("role") == "user"]
        return said[-1] if said and isinstance(said[-1], str) else ""


def digest(cases: Iterable[Case]) -> str:
    """A fingerprint of what is put and what is expected: two runs with the same one can be compared."""
    whole = hashlib.sha256()
    for case in cases:
        tools = [(tool.name, tool.description, tool.parameters) for tool in case.tools]
        told = (case.id, case.group, case.messages, tools, case.expected, case.match)
        whole.update(json.dumps(told, default=str, sort_keys=True).encode())
    return whole.hexdigest()[:16]


def calls_of(reply: Reply) -> list[dict[str, Any]]:
    """The calls of a reply as cases write them."""
    return [{"name": call.name, "arguments": call.arguments} for call in reply.calls]


def short(value: Any, length: int = 120) -> str:
    """A value as JSON, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= length else f"{text[: length - 1]}…"
