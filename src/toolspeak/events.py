"""The events of a model's reply, in the order in which they arrive.

    TextDelta* ThoughtDelta* (CallStart ArgumentsDelta* CallEnd)* Noted* Finished

in any order, with one call open at a time and `Finished` last. A run continues after `Finished` with a `CallResult` for
each call. Treat events as immutable values: they have slots but are not frozen, because every chunk of a stream creates
one and freezing doubles that cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .types import Finish, Note, ToolResult, Usage


@dataclass(slots=True, unsafe_hash=True)
class TextDelta:
    """More of the text that is meant for the user."""

    text: str


@dataclass(slots=True, unsafe_hash=True)
class ThoughtDelta:
    """More of the model's reasoning."""

    text: str


@dataclass(slots=True, unsafe_hash=True)
class CallStart:
    """A call begins: its name and id are known."""

    name: str
    id: str


@dataclass(slots=True, unsafe_hash=True)
class ArgumentsDelta:
    """More of the JSON text of the open call's arguments."""

    json: str


@dataclass(slots=True, unsafe_hash=True)
class CallEnd:
    """The open call ends. `whole` is False if its text was cut or broke off. `id` is set if the id comes after the
    arguments. A later note with the rule `unbalanced-closers`, `drafted-call` or `two-readings` says that no call before it
    is whole. One with the rule `superseded-call` takes back the last call whose id is its detail."""

    whole: bool = True
    id: str | None = None


@dataclass(slots=True, eq=True)
class Logprobs:
    """The log-likelihoods of the tokens of the text that comes next, each in OpenAI's token format."""

    tokens: list[dict[str, Any]]


@dataclass(slots=True, unsafe_hash=True)
class Noted:
    """Something was repaired, dropped or doubtful."""

    note: Note


@dataclass(slots=True, unsafe_hash=True)
class Finished:
    """The reply ends."""

    finish: Finish = "stop"
    usage: Usage = Usage()


@dataclass(slots=True, unsafe_hash=True)
class CallResult:
    """The result of a call that a run executed."""

    result: ToolResult


Event = TextDelta | ThoughtDelta | CallStart | ArgumentsDelta | CallEnd | Logprobs | Noted | Finished | CallResult
