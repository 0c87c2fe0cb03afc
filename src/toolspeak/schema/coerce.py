"""Coerces arguments to their schema: a right value of the wrong type becomes that type.

Only lossless changes are made, by the schema and not by the Python type. `"42"` for an integer becomes 42, because 42
can only be written so. `"042"`, `"3.7"`, `""` and `true` do not become numbers, and `"yes"` is no boolean. Valid
values are never changed. What cannot be made valid stays as it is, so that `check` reports it.

Pitfalls: in a union a value is coerced only if exactly one result is valid, and alternatives inside alternatives
multiply. The work is therefore counted and limited (`Work`), in a way that does not depend on caches.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, cast

from ..types import Note, Schema, Tool
from .evaluations import value_size
from .kinds import takes_digits
from .nonblocking_json import Digits, exact_number, loads, loads_or, unique_names
from .phrases import limited_notes, short
from .validators import branch_judge, judge, too_much
from .walk import escape, followed

_INTEGER = re.compile(r"-?[1-9][0-9]{0,300}|0")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,300})(?:\.[0-9]{1,300})?(?:[eE][+-]?[0-9]{1,3})?")
_LONG_NUMBER = re.compile(r"[0-9.]{17}|[0-9][eE]-?[0-9]").search
"""Matches a JSON text that may have a number with more digits than a float holds."""
_BOOLEANS = {"true": True, "false": False, "True": True, "False": False}
_DEPTH = 60
_WORK = 20_000
"""Work allowed beyond what is proportional to the arguments, in values looked at and schema nodes read. About 0.1 s."""
_CHECKED = 32
"""Validating a value against this many nodes of a known schema counts as much as reading one node."""
_NOTHING: Any = object()
Coerced = tuple[dict[str, Any], tuple[Note, ...]]


def coerce(tool: Tool[..., Any], arguments: Mapping[str, Any], text: str = "") -> Coerced:
    """(coerced arguments, one note for each change); see `coerce_and_validate`."""
    return coerce_and_validate(tool, arguments, text)[:2]


def coerce_and_validate(
    tool: Tool[..., Any], arguments: Mapping[str, Any], text: str = ""
) -> tuple[dict[str, Any], tuple[Note, ...], bool]:
    """(coerced arguments, one note for each change, whether they are known to be valid). The dict is not changed.

    1.0, a valid integer, becomes 1 without a note. A Decimal gets all digits of the arguments' JSON `text`, as text where
    a float cannot hold them. Arguments that would take too much work are returned unchanged: a part would be a guess.
    """
    values = dict(arguments)
    try:
        judged = judge(tool.parameters, tool.name)
        if too_much(judged, tool.parameters, values):
            return values, (), False
        valid = judged.is_valid(values)
    except (ValueError, TypeError, RecursionError):
        return values, (), False  # not JSON: `check` reports it
    if valid and not _has_float(values):
        return values, (), True
    walk = _Walk(tool.parameters, WorkBudget(_WORK + 12 * value_size(values, 4)))
    try:
        if _LONG_NUMBER(text):
            exact = loads_or(text, None, parse_float=exact_number)
            values = cast("dict[str, Any]", walk.decimals(values, exact, tool.parameters, "", 0))
        coerced = values if valid else cast("dict[str, Any]", walk.value(values, tool.parameters, "", 0))
        coerced = walk.integers(coerced, tool.parameters) if _has_float(coerced) else coerced
        return coerced, limited_notes(walk.notes), False
    except WorkExceeded:
        return values, (), False


def fits(root: Schema, schema: Schema, value: Any) -> bool:
    """Whether a value is valid for a schema inside `root`, if need be after coercion; True if that is not known."""
    try:
        walk = _Walk(root, WorkBudget(_WORK + 12 * value_size(value, 4)))
        return too_much(judge(root), root, value) or walk.fits(value, schema)
    except (ValueError, TypeError, RecursionError, WorkExceeded):
        return True


class WorkExceeded(Exception):
    """The work is out of proportion to the arguments: nested alternatives multiply it."""


class WorkBudget:
    """The remaining work. Raises WorkExceeded when it is used up.

    What a validator cache already has costs the same as what it has not: the result must not depend on earlier calls.
    """

    __slots__ = ("_weights", "left")

    def __init__(self, left: int) -> None:
        self.left = left
        self._weights: dict[int, int] = {}

    def spend(self, units: int = 1) -> None:
        self.left -= units
        if self.left < 0:
            raise WorkExceeded

    def judged(self, root: Schema, schema: Schema) -> None:
        """Accounts for validating a value against a schema inside `root`: the schema is read once, with all that it
        refers to, and then applied."""
        if (weight := self._weights.get(id(schema))) is None:
            weight, refers = self._read(schema)
            weight += self._weight_of_root(root) if refers else 0
            self._weights[id(schema)] = weight
        self.spend(1 + weight // _CHECKED)

    def _weight_of_root(self, root: Schema) -> int:
        if (known := self._weights.get(id(root))) is None:
            known = self._weights[id(root)] = self._read(root)[0]
        self.spend(known // 8)
        return known

    def _read(self, schema: Any) -> tuple[int, bool]:
        """(number of nodes in a schema, whether it has references). The nodes are accounted for."""
        count, refers = 0, False
        todo: list[Any] = [schema]
        while todo:
            node = todo.pop()
            self.spend()
            count += 1
            if isinstance(node, Mapping):
                refers |= "$ref" in node
                todo += cast("Mapping[str, Any]", node).values()
            elif isinstance(node, list):
                todo += cast("list[Any]", node)
        return count, refers


class _Walk:
    """One pass through the arguments. `work` is shared by all passes of a call."""

    def __init__(self, root: Schema, work: WorkBudget) -> None:
        self.root = root
        self.notes: list[Note] = []
        self.work = work

    def value(self, value: Any, schema: Any, path: str, depth: int) -> Any:
        """`value` with everything coerced that `schema` allows; the same object if nothing changed."""
        self.work.spend()
        node = followed(self.root, schema)
        if node is None or depth > _DEPTH:
            return value
        for part in cast("list[Any]", node.get("allOf", [])):
            value = self.value(value, part, path, depth + 1)
        for key in ("anyOf", "oneOf"):
            if isinstance(node.get(key), list):
                value = self._one_of(value, node[key], path, depth)
        value = self._scalar(value, node, path)
        if isinstance(value, dict):
            return self._object(cast("dict[str, Any]", value), node, path, depth)
        if isinstance(value, list):
            return self._array(cast("list[Any]", value), node, path, depth)
        return value

    def integers(self, value: Any, schema: Any, depth: int = 0) -> Any:
        """The same JSON value, with 1 instead of 1.0 where the schema wants an integer."""
        self.work.spend()
        node = followed(self.root, schema)
        if node is None or depth > _DEPTH:
            return value
        if isinstance(value, float):
            return int(value) if value.is_integer() and "integer" in self._types(node, depth) else value
        if not isinstance(value, (dict, list)):
            return value
        changed = self._inner_integers(cast("dict[str, Any] | list[Any]", value), node, depth + 1)
        for part in self._applying(value, node):
            changed = self.integers(changed, part, depth + 1)
        return changed

    def decimals(self, value: Any, exact: Any, schema: Any, path: str, depth: int) -> Any:
        """The same value, with the digits as text where the schema takes a Decimal and a float has lost some.
        `exact` is the value with its `Digits`."""
        self.work.spend()
        node = followed(self.root, schema)
        if node is None or depth > _DEPTH or type(value) is not (float if isinstance(exact, Digits) else type(exact)):
            return value
        if isinstance(exact, Digits) and takes_digits(node):
            self.notes.append(
                Note("coerced", f"{path}: {exact[:80]} is passed on as text, since a float would lose digits")
            )
            return str(exact)
        if isinstance(value, dict):
            parts, digits = cast("dict[str, Any]", value), cast("dict[str, Any]", exact)
            value = {
                name: self.decimals(
                    part, digits.get(name), self._field(node, name), f"{path}/{escape(name)}", depth + 1
                )
                for name, part in parts.items()
            }
        elif isinstance(value, list):
            items = zip(cast("list[Any]", value), exact, strict=False)
            value = [
                self.decimals(part, one, _item(node, i), f"{path}/{i}", depth + 1)
                for i, (part, one) in enumerate(items)
            ]
        for part in self._applying(value, node):
            value = self.decimals(value, exact, part, path, depth + 1)
        return value

    def _inner_integers(self, value: dict[str, Any] | list[Any], node: Mapping[str, Any], depth: int) -> Any:
        if isinstance(value, dict):
            return {name: self.integers(part, self._field(node, name), depth) for name, part in value.items()}
        return [self.integers(part, _item(node, i), depth) for i, part in enumerate(value)]

    def _applying(self, value: Any, node: Mapping[str, Any]) -> Iterator[Any]:
        """The subschemas that apply to the value."""
        for key in ("anyOf", "oneOf"):
            yield from (part for part in cast("list[Any]", node.get(key, [])) if self._valid(value, part))
        yield from cast("list[Any]", node.get("allOf", []))

    def _types(self, node: Mapping[str, Any], depth: int) -> set[str]:
        """Every type that a number may have here. If `number` is among them, 1.0 stays 1.0."""
        self.work.spend()
        kinds = _types(node)
        if "number" in kinds:
            return set()
        for key in ("anyOf", "oneOf", "allOf"):
            for part in cast("list[Any]", node.get(key, [])):
                inner = followed(self.root, part)
                if inner is not None and depth < _DEPTH:
                    if "number" in _types(inner):
                        return set()
                    kinds = kinds | self._types(inner, depth + 1)
        return kinds

    def _one_of(self, value: Any, branches: list[Any], path: str, depth: int) -> Any:
        """The only valid value that the alternatives coerce `value` to; unchanged if there is none or more than one."""
        if any(self._valid(value, branch) for branch in branches):
            return value
        outcomes: dict[str, tuple[Any, list[Note]]] = {}
        for branch in branches:
            attempt = _Walk(self.root, self.work)
            coerced = attempt.value(value, branch, path, depth + 1)
            if attempt.notes and self._valid(coerced, branch):
                outcomes[json.dumps(coerced, sort_keys=True)] = (coerced, attempt.notes)
        if len(outcomes) != 1:
            return value
        ((coerced, notes),) = outcomes.values()
        self.notes += notes
        return coerced

    def fits(self, value: Any, schema: Any) -> bool:
        """Whether a value is valid, if need be after coercion."""
        return self._valid(value, schema) or self._valid(self.value(value, schema, "", 0), schema)

    def _valid(self, value: Any, schema: Any) -> bool:
        if not isinstance(schema, Mapping):
            return schema is not False
        self.work.judged(self.root, cast("Schema", schema))
        return branch_judge(self.root, cast("Schema", schema)).is_valid(value)

    def _scalar(self, value: Any, node: Mapping[str, Any], path: str) -> Any:
        if not isinstance(value, str):
            return value
        kinds, choices = _types(node), _choices(node)
        if choices is not None:
            self.work.spend(len(choices) // 8)
            if value in choices:
                return value
            kinds = (kinds or {_type_name(choice) for choice in choices}) - {"string"}
        if "string" in kinds:
            return value
        kind, new = _read_as(value, kinds)
        if new is _NOTHING or not (choices is None or any(_same(new, choice) for choice in choices)):
            return value
        self.notes.append(Note("coerced", f"{path or '/'}: the text {short(value)} was read as {kind}"))
        return new

    def _object(self, value: dict[str, Any], node: Mapping[str, Any], path: str, depth: int) -> dict[str, Any]:
        coerced = {
            name: self.value(part, self._field(node, name), f"{path}/{escape(str(name))}", depth + 1)
            for name, part in value.items()
        }
        return coerced if any(coerced[name] is not value[name] for name in value) else value

    def _array(self, value: list[Any], node: Mapping[str, Any], path: str, depth: int) -> list[Any]:
        coerced = [self.value(part, _item(node, i), f"{path}/{i}", depth + 1) for i, part in enumerate(value)]
        return coerced if any(a is not b for a, b in zip(coerced, value, strict=True)) else value

    def _field(self, node: Mapping[str, Any], name: str) -> Any:
        properties = node.get("properties")
        if isinstance(properties, Mapping) and name in properties:
            return cast("Mapping[str, Any]", properties)[name]
        return node.get("additionalProperties")


def _item(node: Mapping[str, Any], i: int) -> Any:
    first = node.get("prefixItems")
    if isinstance(first, list) and i < len(cast("list[Any]", first)):
        return cast("list[Any]", first)[i]
    return node.get("items")


def _types(node: Mapping[str, Any]) -> set[str]:
    kind = node.get("type")
    if isinstance(kind, str):
        return {kind}
    return {str(one) for one in cast("list[Any]", kind)} if isinstance(kind, list) else set()


def _choices(node: Mapping[str, Any]) -> list[Any] | None:
    """The values that `enum` or `const` allows; None if the schema has neither."""
    values = node.get("enum", [node["const"]] if "const" in node else None)
    return cast("list[Any]", values) if isinstance(values, list) else None


def _same(a: Any, b: Any) -> bool:
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def _type_name(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {int: "integer", float: "number", str: "string", dict: "object", list: "array"}
    return names.get(type(value), "null")  # pyright: ignore[reportUnknownArgumentType]


def _has_float(value: Any, depth: int = 0) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if depth > _DEPTH or not isinstance(value, (dict, list)):
        return False
    parts = cast("dict[str, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
    return any(_has_float(part, depth + 1) for part in parts if part.__class__ is not str)


def _integer(text: str) -> Any:
    return int(text) if _INTEGER.fullmatch(text) else _NOTHING


def _number(text: str) -> Any:
    if not _NUMBER.fullmatch(text):
        return _NOTHING
    if _INTEGER.fullmatch(text):
        return int(text)
    value = float(text)
    # Digits that a float cannot hold would be lost silently.
    return value if math.isfinite(value) and Decimal(repr(value)) == Decimal(text) else _NOTHING


def _boolean(text: str) -> Any:
    return _BOOLEANS.get(text, _NOTHING)


def _null(text: str) -> Any:
    return None if text == "null" else _NOTHING


def _structure(kind: type) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            value = loads(text, object_pairs_hook=unique_names, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return _NOTHING
        return value if isinstance(value, kind) else _NOTHING

    return read


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _read_as(text: str, kinds: Iterable[str]) -> tuple[str, Any]:
    """The type that a text can be read as, and the value; _NOTHING if there is none, or if several types give
    different values."""
    values = [(kind, value) for kind in kinds if (value := _READERS[kind](text)) is not _NOTHING]
    if not values:
        return "", _NOTHING
    return values[0] if all(value == values[0][1] for _, value in values) else ("", _NOTHING)


_READERS: dict[str, Callable[[str], Any]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "null": _null,
    "object": _structure(dict),
    "array": _structure(list),
    "string": lambda text: text,
}
