"""A case of an evaluation, and the verdict on a reply to it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from ..schema.phrases import beginning
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
"""What is wrong with a reply. `count`: not as many calls as expected. `needless call`: a call where none is wanted.
`invalid`: calls that fit no schema, or that name an unknown tool. `error`: the model could not answer."""
KINDS: tuple[Kind, ...] = tuple(kind for kind in get_args(Kind) if kind)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a reply is right; if not, the kind of error and a sentence about it."""

    right: bool
    kind: Kind = ""
    detail: str = ""


RIGHT = Verdict(True)
Judge = Callable[[Reply], Verdict]
Ask = Callable[[Sequence[Message], Sequence[Tool[..., Any]], int], Awaitable[Reply]]
"""Runs one turn of a conversation with these tools and at most so many steps; see `toolspeak.run`."""
Play = Callable[[Ask], Awaitable[tuple[Reply, Verdict]]]


@dataclass(frozen=True, slots=True)
class Case:
    """A conversation, the tools that are offered, the expected calls (JSON, for display), and the function that judges
    a reply.

    Accuracy is reported by `group`; `split` is a further label to select cases by. With `play` the case is a
    conversation of several turns whose calls are executed; `play` judges it as a whole.
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
        """The last message of the user."""
        texts = [message.get("content") for message in self.messages if message.get("role") == "user"]
        return texts[-1] if texts and isinstance(texts[-1], str) else ""


def digest(cases: Iterable[Case], *, tools: bool = True) -> str:
    """A fingerprint of the questions, the expected calls and, with `tools`, the tools. Two runs with the same
    fingerprint can be compared."""
    whole = hashlib.sha256()
    for case in cases:
        offered = [_definition(tool) for tool in case.tools] if tools else []
        content = (case.id, case.group, case.messages, offered, case.expected, case.match)
        whole.update(json.dumps(content, default=str, sort_keys=True).encode())
    return whole.hexdigest()[:16]


def tool_digests(cases: Iterable[Case]) -> dict[str, str]:
    """A fingerprint of each tool by its name; of a name with several definitions, one of all of them."""
    by_name: dict[str, set[str]] = {}
    for tool in {id(tool): tool for case in cases for tool in case.tools}.values():
        by_name.setdefault(tool.name, set()).add(json.dumps(_definition(tool), default=str, sort_keys=True))
    return {
        name: hashlib.sha256("\n".join(sorted(definitions)).encode()).hexdigest()[:16]
        for name, definitions in sorted(by_name.items())
    }


def _definition(tool: Tool[..., Any]) -> tuple[Any, ...]:
    return tool.name, tool.description, tool.parameters


def calls_of(reply: Reply) -> list[dict[str, Any]]:
    """The calls of a reply, in the form that cases use."""
    return [{"name": call.name, "arguments": call.arguments} for call in reply.calls]


def short(value: Any, length: int = 120) -> str:
    """A value as JSON, truncated if it is long."""
    return beginning(json.dumps(value, ensure_ascii=False, default=str), length)
