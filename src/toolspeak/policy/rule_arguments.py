"""Compares the arguments of a rule with those of tools: one that no tool has, such as a misspelled one, matches nothing.

Only what a schema certainly lacks counts. A schema that may define more elsewhere, or allows any field, may have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from ..api.json_stream import record
from ..schema.suggestions import did_you_mean, listed, near

ELSEWHERE = frozenset([
    "$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "patternProperties"
])  # fmt: skip
"""Keywords of a schema under which it may define further arguments."""
NAMES = 1_000
"""The most names of arguments, and of their fields, that are compared with a misspelled one."""
Schemas = Sequence[Mapping[str, Any]]


def without_arguments(names: Sequence[str], schemas: Schemas) -> Iterator[str]:
    """Yield what none of the tools with these schemas has: an argument of these names, or all of them together."""
    lacking = [{name for name in names if not _may_have(name, schema)} for schema in schemas]
    nowhere = set(names).intersection(*lacking)
    for name in filter(nowhere.__contains__, names):
        known = list(dict.fromkeys(islice((one for schema in schemas for one in _names(schema)), NAMES)))
        yield f"none of the tools that it matches has the argument {name!r}.{did_you_mean(near(name, known))}"
    if not nowhere and all(lacking):
        yield f"none of the tools that it matches has all its arguments together: {listed(names)}"


def _may_have(name: str, schema: Mapping[str, Any]) -> bool:
    """Whether a value may have a field of this dotted name, in any reading of the name."""
    fields = _fields(schema)
    if fields is None:
        return True
    ends = [at for at in range(1, len(name)) if name[at] == "." if name[:at] in fields]
    return any((name in fields, *(_may_have(name[at + 1 :], record(fields[name[:at]])) for at in ends)))


def _fields(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the fields of an object, none for another value, None if it may have any field."""
    if any((ELSEWHERE & schema.keys(), schema.get("additionalProperties", False) is not False)):
        return None
    if "properties" in schema:
        return record(schema["properties"])
    return None if "object" in schema.get("type", "object") else {}


def _names(schema: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """Yield the names of the arguments, and the dotted ones of their fields."""
    for name, inner in record(_fields(schema)).items():
        yield f"{before}{name}"
        yield from _names(record(inner), f"{before}{name}.")
