"""Compares two readings of a call: the call in a model's text, and the call that its server made of that text.

Arguments are compared in one spelling, and without those that have the default of the tool's schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any, cast

from ..api.json_stream import record
from ..schema import nonblocking_json


class Reading:
    """A call as it was read: the JSON text of its arguments, the schema of its tool's parameters, and whether it is whole.

    `doubtful`: a part of it would be left out, or it can be read in two ways."""

    def __init__(self, text: str, parameters: Mapping[str, Any], *, whole: bool, doubtful: bool) -> None:
        if not text:
            text = "{}" if whole else "{"
        value = _object(nonblocking_json.loads_or(text, None))
        self.whole = whole
        self.begun = _without_defaults(_beginning(text) if value is None else value, parameters)
        """Its arguments as far as they go; None if they cannot be read."""
        self.arguments = text if value is None else self.begun
        """Its arguments; their text if that is no JSON object."""
        known = all((whole is not (value is None), not doubtful))
        self.clear = self.begun if known else None
        """What has begun, if the call is whole, or nothing but cut."""

    @cached_property
    def compact(self) -> set[tuple[str, str]]:
        """The names of what has begun, each with its value as a text without white space. A reading is compared with many."""
        return _without_space({} if self.begun is None else self.begun)


def of_one_call(text: Reading, own: Reading) -> bool:
    """Whether the call in the text and the server's own may be readings of one call of the model."""
    one, two, whole = text.begun, own.begun, all((text.whole, own.whole))
    if one is None or two is None:
        return not whole
    if whole:
        few, many = sorted((text.compact, own.compact), key=len)
        return few <= many
    shared = one.keys() & two.keys()
    return all(any((_begins(one[name], two[name]), _begins(two[name], one[name]))) for name in shared)


def worse(text: Reading, own: Reading) -> Reading | None:
    """Of two readings of one call, the one that does not count; None if that is not known."""
    one, two = text.clear, own.clear
    if one is None or two is None:
        return None
    if not own.whole:
        return own if all((text.whole, two.keys() <= one.keys())) else None
    if not text.whole:
        return text if all((one.keys() <= two.keys(), one != two)) else None
    if _stripped(one) == _stripped(two):
        return own
    few, many = sorted((one, two), key=len)
    if not few.items() <= many.items():
        return None
    return text if few is one else own


def _object(value: Any) -> dict[str, Any] | None:
    """The value, if it is a JSON object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _beginning(text: str) -> dict[str, Any] | None:
    """The arguments as far as a text goes that was cut; None if it is too long, or no beginning of an object."""
    from pydantic_core import from_json

    if len(text) > nonblocking_json.LARGE:
        return None
    try:
        return _object(from_json(text, allow_partial="trailing-strings"))
    except ValueError:
        return None


def _without_defaults(arguments: dict[str, Any] | None, parameters: Mapping[str, Any]) -> dict[str, Any] | None:
    """The arguments in one spelling, without those that have the default of the schema."""
    if arguments is None:
        return None
    schemas = {name: record(one) for name, one in record(parameters.get("properties")).items()}
    defaults = {name: _in_one_spelling(one["default"]) for name, one in schemas.items() if "default" in one}
    spelled: dict[str, Any] = _in_one_spelling(arguments)
    return {name: one for name, one in spelled.items() if defaults.get(name) != one}


def _in_one_spelling(value: Any) -> Any:
    """The value with its numbers and truth values as texts, its lists and objects as such, and without what is null: dialects
    write values without their type, and servers add nulls and fractions."""
    if isinstance(value, str) and value.startswith(("[", "{")):
        value = nonblocking_json.loads_or(value, value)
    if isinstance(value, dict):
        values = {name: _in_one_spelling(one) for name, one in cast("dict[str, Any]", value).items()}
        return {name: one for name, one in values.items() if one != "null"}
    if isinstance(value, list):
        return [_in_one_spelling(one) for one in cast("list[Any]", value)]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) else json.dumps(value)


def _begins(part: Any, value: Any) -> bool:
    """Whether a value in one spelling may be the beginning of another one."""
    match part, value:
        case str(), str():
            return value.startswith(part)
        case list(), list():
            items, others = cast("list[Any]", part), cast("list[Any]", value)
            return all((len(items) <= len(others), *map(_begins, items, others)))
        case dict(), dict():
            parts, values = cast("dict[str, Any]", part), cast("dict[str, Any]", value)
            return all(_begins(one, values.get(name)) for name, one in parts.items())
        case _:
            return False


def _stripped(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without the white space around texts."""
    return {name: one.strip() if isinstance(one, str) else one for name, one in arguments.items()}


def _without_space(arguments: Mapping[str, Any]) -> set[tuple[str, str]]:
    """The names of the arguments, each with its value as a text without white space."""
    values = arguments.items()
    return {(name, "".join((one if isinstance(one, str) else json.dumps(one)).split())) for name, one in values}
