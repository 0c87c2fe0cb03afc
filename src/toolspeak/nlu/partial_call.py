"""A call while its arguments are being filled: the values so far, the used spans of the request, and the schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, cast

from .. import stems
from ..schema.kinds import DECIMAL, decimal_number
from ..schema.walk import resolve
from ..types import Note, Schema
from .entities import spans
from .entities.spans import Span
from .prompt import literal

UNIONS = ("anyOf", "oneOf")
MISSING: Any = object()
"""The value of an argument that is not given."""


@dataclass(slots=True)
class PartialCall:
    """The call so far, and the spans of the request that it has used."""

    text: str
    prefix: str
    cues: Mapping[str, Mapping[str, float]]
    """The weight of each word for each argument."""
    common: Set[str] = frozenset()
    """The stems in the tool's own description, which say nothing about its booleans."""
    reserved: Sequence[Span] = ()
    """Spans of the request that are an option of some argument, and so are not available as strings."""
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    used: list[Span] = field(default_factory=list[Span])
    notes: list[Note] = field(default_factory=list[Note])
    settled: dict[str, Any] = field(default_factory=dict[str, Any])
    """Numbers and lists that are assigned already, before their turn to be written."""

    def lead(self, name: str) -> str:
        """The prompt up to the value of the next argument."""
        return f"{self.prefix}{self.joint}{name}="

    @property
    def joint(self) -> str:
        return ", " if self.arguments else ""

    def give(self, name: str, value: Any) -> None:
        self.prefix = self.lead(name) + literal(value)
        self.arguments[name] = value
        if isinstance(value, str):
            self.use(self.find(value))

    def find(self, piece: str) -> Span | None:
        return spans.find(self.text, piece)

    def free(self, span: Span) -> bool:
        return not any(span[0] < end and start < span[1] for start, end in self.used)

    def use(self, span: Span | None) -> None:
        if span:
            self.used.append(span)


def described(schema: Schema) -> str:
    """The description of a schema's value."""
    return str(schema.get("description", ""))


def schemas_of(parent: Schema, root: Schema | None = None) -> dict[str, Schema]:
    """The simplified schema of each property of an object's schema; references are resolved in `root`."""
    properties: Mapping[str, Any] = parent.get("properties", {})
    return {name: simple(schema, parent if root is None else root) for name, schema in properties.items()}


def word_weights(schemas: Mapping[str, Schema]) -> dict[str, dict[str, float]]:
    """The weight of each word for each argument, from their names and descriptions."""
    return stems.weights({name: (name, described(schema)) for name, schema in schemas.items()})


def is_text(schema: Schema) -> bool:
    """Whether the value is a string that is copied from the request."""
    kind = schema.get("type", "string" if not schema.keys() & {"anyOf", "oneOf", "allOf", "properties"} else None)
    return kind == "string" and not schema.keys() & {"enum", "const", "pattern"}


def is_number(schema: Schema) -> bool:
    """Whether the value is a single number."""
    return schema.get("type") in ("integer", "number") and not schema.keys() & {"enum", "const"}


def simple(schema: Any, root: Schema) -> Schema:
    """The schema with its reference resolved, and without `null` in a union of two. A Decimal is a number."""
    seen = 0
    while isinstance(schema, Mapping) and "$ref" in schema and seen < 16:
        schema, seen = {**cast("Schema", resolve(root, str(schema["$ref"])) or {}), **_without_ref(schema)}, seen + 1  # pyright: ignore[reportUnknownArgumentType]
    if not isinstance(schema, Mapping):
        return {}
    plain = _decimal(cast("Schema", schema))
    for union in UNIONS:
        real = [option for option in plain.get(union, ()) if option != {"type": "null"}]
        if len(real) == 1:
            rest = {key: value for key, value in plain.items() if key != union}
            return {**simple(real[0], root), **rest}
    kind = plain.get("type")
    if isinstance(kind, list):
        kinds = [k for k in cast("list[str]", kind) if k != "null"]
        return {**plain, "type": kinds[0]} if len(kinds) == 1 else plain
    return plain


def _decimal(schema: Schema) -> Schema:
    """The schema; that of a number with the pattern of its digits for a Decimal, also for the items of a list."""
    if number := decimal_number(schema):
        return {**number, "pattern": DECIMAL, **{key: value for key, value in schema.items() if key not in UNIONS}}
    items: Any = schema.get("items")
    return {**schema, "items": _decimal(items)} if decimal_number(items) else schema


def _without_ref(schema: Mapping[str, Any]) -> Schema:
    return {key: value for key, value in schema.items() if key != "$ref"}
