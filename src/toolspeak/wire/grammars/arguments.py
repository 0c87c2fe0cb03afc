"""Building blocks for the grammars of holes: a part of a schema, one type of it, and verbatim text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ...schema.kinds import Kinds, Shapes
from ...schema.validators import closed
from ...schema.walk import nodes, rebuild
from ...types import Schema
from .regexes import chars_of
from .rules import Lit, Node, Pattern, Rules, alt, seq, text_until
from .value_grammar import fitting_text, followed

SCALARS = ("boolean", "integer", "null", "number")


def an_object(schema: Schema) -> Schema:
    """The schema of arguments as it is validated. They are an object, whether or not it says so."""
    return {**closed(schema), "type": "object"}


def part_of(sub: Any, root: Schema, kind: str = "") -> Schema:
    """A self-contained schema for a part of another; with `kind`, restricted to that type."""
    part: Schema = dict(cast("Schema", sub)) if isinstance(sub, Mapping) else {}
    if kind:
        part = {"type": kind} if "type" not in part and kind in SCALARS else narrowed(part, root, kind)
    if not any("$ref" in node for _, node in nodes(part)):
        return part
    return {**moved(part, "#/$defs/root"), "$defs": {"root": moved(root, "#/$defs/root")}}


def narrowed(schema: Schema, root: Schema, kind: str) -> Schema:
    """The schema restricted to one type, as far as that is simple to express."""
    s = dict(cast("Schema", followed(schema, root)))
    for key in ("anyOf", "oneOf"):
        if isinstance(options := s.pop(key, None), list):
            fit = [option for option in cast("list[Any]", options) if kind in Shapes(root).kinds(option)]
            return {"anyOf": [narrowed(cast("Schema", option), root, kind) for option in fit]}
    return s if s.keys() & {"enum", "const"} else {**s, "type": kind}


def moved(schema: Schema, to: str) -> Schema:
    """The schema for use at the pointer `to`, with its references adjusted."""

    def change(node: dict[str, Any], _: str) -> Any:
        ref = str(node.get("$ref"))
        if ref.startswith("#"):
            node["$ref"] = to + ref[1:]
        return node

    return cast("Schema", rebuild(schema, change))


def verbatim(
    schema: Any,
    root: Schema,
    close: str,
    rules: Rules,
    quote: tuple[str, str] | None = None,
    barred: tuple[Pattern, ...] = (),
) -> Node:
    """A verbatim string with its closer: one of the schema's values, one that matches its grammar, or any text up to
    the closer."""
    s = followed(schema, root)
    own: Schema = cast("Schema", s) if isinstance(s, Mapping) else {}
    if (text := fitting_text(own, chars_of, rules, "verbatim")) is not None:
        quoted = () if quote is None else (seq(Lit(quote[0]), text, Lit(quote[1] + close)),)
        return alt(seq(text, Lit(close)), *quoted)
    values: Any = own.get("enum")
    if isinstance(values, list) and set(map(type, cast("list[object]", values))) == {str}:
        return alt(*(Lit(v + close) for v in cast("list[str]", values)))
    if quote is None:
        return text_until(close, barred)
    inner = seq(Lit(quote[0]), text_until(quote[1] + close))
    return alt(text_until(close, barred, (tuple(quote[0]),)), inner)


def simple(types: Kinds) -> Kinds:
    """The types without those that are included in another."""
    return types - {"integer"} if "number" in types else types
