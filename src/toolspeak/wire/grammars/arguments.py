"""Schemas and texts as the grammars of several holes need them: one type of a schema, a part of one, a text as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ...schema.kinds import Kinds, Shapes
from ...schema.validators import closed
from ...schema.walk import nodes, rebuild
from ...types import Schema
from .regexes import chars_of
from .rules import Lit, Node, Pattern, Rules, alt, seq, text_until
from .values import fitting_text, followed

SCALARS = ("boolean", "integer", "null", "number")


def an_object(schema: Schema) -> Schema:
    """The schema of arguments as it is judged, which are an object whether it says so or not."""
    return {**closed(schema), "type": "object"}


def part_of(sub: Any, root: Schema, kind: str = "") -> Schema:
    """A schema inside another as one that stands for itself; with `kind` only that type of it."""
    found: Schema = dict(cast("Schema", sub)) if isinstance(sub, Mapping) else {}
    if kind:
        found = {"type": kind} if "type" not in found and kind in SCALARS else narrowed(found, root, kind)
    if not any("$ref" in node for _, node in nodes(found)):
        return found
    return {**moved(found, "#/$defs/root"), "$defs": {"root": moved(root, "#/$defs/root")}}


def narrowed(schema: Schema, root: Schema, kind: str) -> Schema:
    """Of the values that fit a schema those of one type, as far as that can be said simply."""
    s = dict(cast("Schema", followed(schema, root)))
    for key in ("anyOf", "oneOf"):
        if isinstance(options := s.pop(key, None), list):
            fit = [option for option in cast("list[Any]", options) if kind in Shapes(root).kinds(option)]
            return {"anyOf": [narrowed(cast("Schema", option), root, kind) for option in fit]}
    return s if s.keys() & {"enum", "const"} else {**s, "type": kind}


def moved(schema: Schema, to: str) -> Schema:
    """The schema when it stands at `to`: its references point there."""

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
    """A string as it is, and what closes it: one of the schema's own, one that fits its grammar, or any text up to the
    closer."""
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
    """The types, of which no one is among another."""
    return types - {"integer"} if "number" in types else types
