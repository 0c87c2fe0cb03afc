"""Describes a way of writing arguments: how it opens, how it is read and written, and its grammar."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from ...schema.nonblocking_json import loads_or
from ...types import Schema, ToolCall
from ..dialect import Arguments
from ..reading.source import Scan
from ..reading.state import State

if TYPE_CHECKING:
    from ..grammars.rules import Node, Rules

H = TypeVar("H", bound=Arguments)


class Tail(NamedTuple):
    """What may follow a hole: `words` that end its call, what may come `after` the call, the word that begins another
    call between the same marks (`again`), and the words before the name of a call (`begin`)."""

    words: tuple[str, ...]
    after: tuple[str, ...]
    again: str = ""
    begin: tuple[str, ...] = ()

    @property
    def follow(self) -> tuple[str, ...]:
        """Everything that may follow a hole and ends it."""
        return (*self.words, *self.after)


def _brace(_: Arguments) -> tuple[str, ...]:
    return ("{",)


def _same(_: Arguments, ends: tuple[str, ...]) -> tuple[str, ...]:
    return ends


def _nothing(_: Arguments) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class ArgumentsHole(Generic[H]):
    """One way of writing arguments.

    `openers` are the words that it may begin with; if it is `optional`, what follows it may come at once. `prefix` is
    a literal that it always begins with and that its grammar omits. `name_ends` selects those of the words after a
    name that end it, if the hole follows the name. `anywhere`: its grammar does not depend on its place.
    """

    kind: type[H]
    read: Callable[[State, H, Schema, Tail], Scan[None]]
    write: Callable[[H, ToolCall], str]
    grammar: Callable[[H, Schema, Rules], Node]
    openers: Callable[[H], tuple[str, ...]] = _brace
    optional: bool = False
    prefix: Callable[[H], str] = _nothing
    name_ends: Callable[[H, tuple[str, ...]], tuple[str, ...]] = _same
    anywhere: bool = True


def arguments_of(call: ToolCall) -> Mapping[str, Any]:
    """The arguments as data, also for a call with only their text."""
    if call.arguments or not call.json:
        return call.arguments
    value: object = loads_or(call.json, None)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
