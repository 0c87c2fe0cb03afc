"""Rules of a policy: a pattern of tool names, optionally with patterns of arguments in parentheses.

    read_*                       tools by name
    effect:read                  tools by their effect
    remove(path="build/**")      a tool by name, with matching arguments
    pay(to.country="FI", test=true)

A value is a text with `*` and `**` (see `globs`), or JSON that must be equal. A dot selects a field of an object.
Arguments that a rule does not name may have any value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args

from ..errors import UsageError
from ..types import ToolEffect
from .globs import name_fits, text_fits, text_may_fit

EFFECT = "effect:"
EFFECTS = get_args(ToolEffect)
_ARGUMENT = re.compile(r"""\s*([^\W\d][\w.\-]*|"[^"]+")\s*=\s*""")
_RULE = re.compile(r"""([^\s()="']+)\s*(?:\((.*)\))?""", re.DOTALL)
_SINGLE = re.compile(r"'([^'\\]*)'")
_NEXT = re.compile(r"\s*(,|\Z)\s*")

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its `text`, the pattern of names, and the patterns of arguments by their dotted names."""

    text: str
    name: str
    arguments: tuple[tuple[str, Any], ...] = ()

    def allows(self, name: str, effect: str, arguments: Arguments) -> bool:
        """Whether the rule matches this call in every reading."""
        if not self._means(effect, [name], wide=False):
            return False
        return all(_all_fit(pattern, _values(arguments, key)) for key, pattern in self.arguments)

    def forbids(
        self, names: Sequence[str], effect: str, arguments: Arguments, takes: Container[str] | None = None
    ) -> bool | None:
        """Whether the rule may match this call of a tool with any of these names; None if that cannot be decided.

        `takes` are the arguments of the tool, None if they are unknown.
        """
        if not self._means(effect, names, wide=True):
            return False
        answers = [
            _any_fits(pattern, values) if (values := _values(arguments, key)) or is_there(key, takes) else False
            for key, pattern in self.arguments
        ]
        return False if False in answers else None if None in answers else True

    def may_mean(self, names: Sequence[str], effect: str) -> bool:
        """Whether the rule may match a tool, whatever its arguments are."""
        return self._means(effect, names, wide=True)

    def _means(self, effect: str, names: Sequence[str], *, wide: bool) -> bool:
        """Whether the rule matches a tool, whatever its arguments are."""
        if self.name.startswith(EFFECT):
            return effect == self.name[len(EFFECT) :]
        return any(name_fits(self.name, name, wide=wide) for name in names)


def rule(text: Any) -> Rule:
    """Parse a rule. Raises UsageError."""
    if not str(text).strip() or not isinstance(text, str):
        raise UsageError(f'expected a rule, such as "read_*" or "remove(path=\\"build/**\\")", got {text!r:.80}')
    name, arguments = parsed(text)
    if name.startswith(EFFECT) > (name[len(EFFECT) :] in EFFECTS):
        raise UsageError(f"{text!r:.200}: expected {EFFECT}{' or '.join(EFFECTS)}, got {name!r:.80}")
    return Rule(text, name, arguments)


def parsed(text: str) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """Split `name(a="x", b=1)` into the name and the arguments. Raises UsageError."""
    match = _RULE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f'{text!r:.200}: expected a name, or name(argument="value", …)')
    return match[1], tuple(_arguments(match[2] or "", text))


def _arguments(inner: str, text: str) -> Iterator[tuple[str, Any]]:
    at = 0
    seen: set[str] = set()
    while inner[at:].strip():
        match = _ARGUMENT.match(inner, at)
        if match is None:
            raise UsageError(f'{text!r:.200}: expected argument="value" at {inner[at : at + 40]!r}')
        name = match[1].strip('"')
        if name in seen:
            raise UsageError(f"{text!r:.200}: the argument {name!r:.80} occurs twice")
        seen.add(name)
        value, at = _value(inner, match.end(), text)
        yield name, value
        after = _NEXT.match(inner, at)
        if after is None:
            raise UsageError(f"{text!r:.200}: expected a comma at {inner[at : at + 40]!r}")
        at = after.end()


def _value(inner: str, at: int, text: str) -> tuple[Any, int]:
    if single := _SINGLE.match(inner, at):
        return single[1], single.end()
    try:
        return json.JSONDecoder().raw_decode(inner, at)
    except (ValueError, RecursionError):
        raise UsageError(f"{text!r:.200}: expected a quoted string or JSON at {inner[at : at + 40]!r}") from None


# ------------------------------------------------------------------ values


def _values(arguments: Any, name: str) -> list[Any]:
    """Return the values under a dotted name, in every reading of the name; none if there are none."""
    if not isinstance(arguments, Mapping):
        return []
    inside = cast("Arguments", arguments)
    values = [inside[name]] if name in inside else []
    for at in (i for i, c in enumerate(name) if c == "."):
        if name[:at] in inside:
            values += _values(inside[name[:at]], name[at + 1 :])
    return values


def is_there(name: str, takes: Container[str] | None) -> bool:
    """Whether a tool with these arguments may have one with this dotted name."""
    return takes is None or any(name[:at] in takes for at in range(1, len(name) + 1))


def _all_fit(pattern: Any, values: Sequence[Any]) -> bool:
    """Whether there are values, and each is allowed."""
    return all(_fits(pattern, value) for value in values) if values else False


def _fits(pattern: Any, value: Any) -> bool:
    match pattern, value:
        case list(), list():
            return _equal(pattern, value)
        case _, list():
            return _all_fit(pattern, cast("list[Any]", value))
        case str(), str():
            return text_fits(pattern, value)
        case _:
            return _equal(pattern, value)


def _any_fits(pattern: Any, values: Sequence[Any]) -> bool | None:
    """Whether any of the values may match. A missing value may be anything: a tool has defaults of its own."""
    answers = [_may_fit(pattern, value) for value in values] or [None]
    return True if True in answers else None if None in answers else False


def _may_fit(pattern: Any, value: Any) -> bool | None:
    match pattern, value:
        case list(), list():
            return _equal(pattern, value)
        case _, []:
            return False
        case _, list():
            return _any_fits(pattern, cast("list[Any]", value))
        case str(), str():
            return text_may_fit(pattern, value)
        case _:
            return True if _equal(pattern, value) else False if _kind(pattern) == _kind(value) else None


def _equal(one: Any, other: Any) -> bool:
    """Whether two values are equal in JSON, where true is not 1, but 1.0 is."""
    if _kind(one) == _kind(other) == "number":
        return one == other
    return json.dumps(one, sort_keys=True, default=repr) == json.dumps(other, sort_keys=True, default=repr)


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case _:
            return type(value).__name__
