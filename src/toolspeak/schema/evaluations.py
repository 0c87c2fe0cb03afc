"""Counts how many schemas a validator applies to a value, before it does.

A validator remembers no results, and it is one step of C code that nothing can interrupt. Three thousand alternatives for
each of ten thousand items take ten seconds. Where two alternatives refer to the same schema, that schema is applied
twice, and twice at each level that the schema and the value repeat: forty levels in a kilobyte would never end.

The count applies a schema to all values of one place at once: the items of a list, or a field of all of them. So it
takes about as many steps as there are places in the schema, and ends as soon as the count is too high.

Texts count by their length where a pattern or a format is matched. A pattern with lookaround may look at the rest of the
text from each of its characters, which takes the square of its length.

Errors cost more than a check: the validator copies the value into each of them, also into those of each alternative. It
matches as much as the check did, which is not counted again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, cast

from ..types import Schema
from .pattern_cost import match_work, slow_to_match
from .walk import resolve

MEMBERS = ("additionalProperties", "unevaluatedProperties")
ITEMS = ("items", "contains", "unevaluatedItems")
"""Keywords whose schema is applied to each member of an object, to each item of a list."""
MULTIPLYING = frozenset(
    [
        "$ref",
        "$dynamicRef",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "if",
        "then",
        "else",
        "dependentSchemas",
        "patternProperties",
    ]
)
"""Keywords that apply further schemas to a value."""
SCALARS = frozenset({str, int, float, bool, type(None)})
AGAIN = frozenset({"unevaluatedProperties", "unevaluatedItems"})
"""Keywords for which the schemas beside them are applied once more."""
CHECKED = 1_000_000
"""The most work that a check of arguments may be. It takes about 0.1 s in one step."""
IN_PLACE = 5
"""What a schema counts that is applied to a value to which another is applied already, such as an alternative: it takes
so many times as long as the type of an item."""
STEP = 50
"""What a step of the count itself counts, so that it is short as well."""
CHOICE = 10
"""What a number, a list or an object in an `enum` counts: each is compared with the value. Each value in it counts INNER."""
INNER = 2
COPIED = 20
"""Characters that are copied into an error in the time of one unit of work."""


def exceeds(schema: Schema, value: object, most: int, *, errors: bool = False) -> bool:
    """Whether a validator of `schema` may have more work with a value than `most`, in schemas that it applies; with
    `errors`, also in errors that it builds."""
    try:
        return _Count(schema, most, errors).of(schema, [value]) > most
    except (OverflowError, RecursionError):
        return True


def multiplies(schema: object) -> bool:
    """Whether a schema may apply several schemas to a value, or compare it with many. Otherwise nothing is counted."""
    return any(not MULTIPLYING.isdisjoint(node) or _compared(node) or slow_to_match(node) for node in _objects(schema))


def schemas_inside(schema: object) -> int:
    """How many schemas and other objects a schema consists of, itself among them."""
    return sum(1 for _ in _objects(schema))


def _objects(schema: object) -> Iterator[Mapping[str, Any]]:
    todo = [schema]
    for node in todo:
        inner: Iterable[object] = ()
        if isinstance(node, Mapping):
            here = cast("Mapping[str, Any]", node)
            yield here
            inner = here.values()
        elif isinstance(node, list):
            inner = cast("list[object]", node)
        todo += [part for part in inner if part.__class__ not in SCALARS]


class _Count:
    """Counts the work. Raises OverflowError once it is more than `most`."""

    def __init__(self, root: Schema, most: int, errors: bool = False) -> None:
        self._root = root
        self._most = most
        self._errors = errors
        self._left = most  # for the count itself
        self._known: dict[tuple[int, int], int] = {}  # of a schema and a single value: references repeat them
        self._open: set[tuple[int, int]] = set()

    def of(self, schema: Any, values: list[Any]) -> int:
        """Return the work of a schema with all of these values."""
        if not (values and isinstance(schema, Mapping)):
            return 0
        key = (id(cast("Any", schema)), id(values[0]) if len(values) == 1 else id(values))
        if key in self._known:
            return self._known[key]
        if key in self._open:  # what refers to itself in place ends here
            return 0
        node = cast("Mapping[str, Any]", schema)
        self._left -= STEP + len(values)
        self._open.add(key)
        again = 1 if AGAIN.isdisjoint(node) else 2
        count = (1 + _compared(node)) * len(values)
        count += sum(_copied(node, value) for value in values) if self._errors else match_work(node, values)
        for part in _in_place(node, self._root):
            count += again * (self.of(part, values) + (IN_PLACE - 1) * len(values))
            self._check(count)
        for part, inner in _below(node, values):
            count += self.of(part, inner)
            self._check(count)
        self._open.discard(key)
        if len(values) == 1:
            self._known[key] = count
        return count

    def _check(self, count: int) -> None:
        if min(self._left, self._most - count) < 0:
            raise OverflowError


def _compared(node: Mapping[str, Any]) -> int:
    """What a schema counts for comparing a value with what it lists. Texts are looked up."""
    choices, depending = node.get("enum"), node.get("dependentRequired")
    work = len(cast("Mapping[str, Any]", depending)) if isinstance(depending, Mapping) else 0
    if isinstance(choices, list):
        work += sum(
            CHOICE + INNER * (value_size(choice) - 1)
            for choice in cast("list[Any]", choices)
            if not isinstance(choice, str)
        )
    if isinstance(one := node.get("const"), list | dict):
        work += INNER * (value_size(cast("Any", one)) - 1)
    return work


def _copied(node: Mapping[str, Any], value: Any) -> int:
    """What the errors about a value itself count, in each of which it is copied: one, and one for each field that is
    missing."""
    if isinstance(value, str):
        return len(value) // COPIED
    missing = 1
    if isinstance(value, Mapping):
        missing += sum(name not in value for name in cast("list[Any]", node.get("required") or ()))
    return missing * value_size(value, COPIED)


def value_size(value: Any, characters: int = 0) -> int:
    """The number of values in a value, itself among them. With `characters`, so many of a text count as one more."""
    count, todo = 0, [value]
    for part in todo:
        count += 1
        if isinstance(part, str):
            count += len(part) // characters if characters else 0
        elif isinstance(part, dict):
            todo += cast("dict[str, Any]", part).values()
        elif isinstance(part, list):
            todo += cast("list[Any]", part)
    return count


def _in_place(node: Mapping[str, Any], root: Schema) -> Iterator[Any]:
    """The schemas that are applied to the same value."""
    for word in ("anyOf", "oneOf", "allOf"):
        if isinstance(node.get(word), list):
            yield from node[word]
    yield from (node[word] for word in ("not", "if", "then", "else") if word in node)
    if isinstance(depending := node.get("dependentSchemas"), Mapping):
        yield from cast("Mapping[str, Any]", depending).values()
    for word in ("$ref", "$dynamicRef"):
        if isinstance(ref := node.get(word), str):
            yield resolve(root, ref)


def _below(node: Mapping[str, Any], values: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """The schemas that may be applied to parts of the values, each with these parts."""
    yield from _fields(node.get("properties", {}), values)
    if "propertyNames" in node:
        yield node["propertyNames"], list(chain.from_iterable(_are(Mapping, values)))
    each = [*_each(node, MEMBERS), *node.get("patternProperties", {}).values()]
    members = list(chain.from_iterable(value.values() for value in _are(Mapping, values))) if each else []
    yield from ((part, members) for part in each)
    for place, part in enumerate(node.get("prefixItems", ())):
        yield part, [value[place] for value in _are(list, values) if place < len(value)]
    each = _each(node, ITEMS)
    items = list(chain.from_iterable(_are(list, values))) if each else []
    yield from ((part, items) for part in each)


def _fields(listed: Mapping[str, Any], values: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """The schemas of the fields that objects have, each with its values in all of them."""
    by_name: dict[str, list[Any]] = {}
    for name, inner in chain.from_iterable(value.items() for value in _are(Mapping, values)) if listed else ():
        if name in listed:
            by_name.setdefault(name, []).append(inner)
    return ((listed[name], inner) for name, inner in by_name.items())


def _are(kind: type[Any], values: list[Any]) -> Iterator[Any]:
    return (value for value in values if isinstance(value, kind))


def _each(node: Mapping[str, Any], words: tuple[str, ...]) -> list[Any]:
    return [node[word] for word in words if word in node]
