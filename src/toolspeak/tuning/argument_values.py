"""Generates values for arguments from their schemas: each as JSON, and in the words that a person would use."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ..stems import parts

Schema = Mapping[str, Any]
DEEPEST = 3
"""How deep objects may nest before no value is generated."""

POOLS: Mapping[str, Sequence[str]] = {
    "city town place location destination origin where": ("Lisbon", "Oslo", "Nairobi", "Kyoto", "Montreal", "Cusco", "Hanoi", "Leeds"),
    "country nation region": ("Norway", "Kenya", "Peru", "Japan", "Portugal", "Canada", "Vietnam"),
    "language lang": ("French", "Swahili", "Japanese", "Portuguese", "Norwegian"),
    "email mail address": ("maria@example.com", "tom.berg@example.org", "aisha@example.net", "jo@example.com"),
    "currency": ("EUR", "USD", "JPY", "GBP", "CHF"),
    "date day deadline": ("2027-03-14", "2026-12-01", "2027-07-30", "2027-01-09", "2026-11-23"),
    "time hour": ("14:30", "09:15", "18:00", "07:45", "21:10"),
    "file filename path folder": ("report.pdf", "notes.txt", "photos.zip", "budget.csv", "draft.md"),
    "url uri link website": ("https://example.com/news", "https://example.org/a", "https://example.net/shop"),
    "phone": ("+47 22 12 34 56", "+351 21 123 4567", "+81 3 1234 5678"),
    "color colour": ("red", "dark green", "blue", "yellow", "violet"),
    "query topic keyword keywords term subject question": ("solar power", "jazz history", "electric bikes", "bread recipes", "old maps"),
    "message text body content note comment description": ("the meeting is moved to Friday", "dinner is ready", "please call me back", "the parcel has arrived"),
    "title": ("Weekly plan", "Garden party", "Spring budget", "First draft"),
    "id code key serial sku": ("A1042", "B7731", "C2209", "K5518", "T9004"),
    "name person user recipient author contact customer owner to": ("Maria Lopez", "Tom Berg", "Aisha Khan", "Jonas Weber", "Mei Tanaka"),
    "company stock ticker symbol": ("ACME", "GLOBEX", "INITECH", "HOOLI"),
    "product item food ingredient dish": ("coffee", "green tea", "a bicycle", "rice", "olive oil"),
    "": ("chess", "garden", "piano", "harbor", "winter", "violet", "bridge", "copper"),
}  # fmt: skip
"""Values for strings, by words in the argument's name. The last pool serves every other name."""
FORMATS = {"date": "date", "time": "time", "email": "email", "uri": "url", "url": "url"}
MOMENTS = ("2027-03-14T09:30:00Z", "2026-12-01T18:00:00Z", "2027-07-30T07:45:00Z")
WHOLE = (3, 12, 7, 25, 40, 5, 18, 60, 9, 2, 33, 150)
BROKEN = (4, 12.5, 30, 7.25, 2, 99.5, 18, 250, 0.5, 61)
YEARS = (2019, 2024, 1998, 2021, 2008)
EXAMPLE = re.compile(r"(?:e\.g\.|such as|for example),?\s+[\"'`]?([A-Z0-9][\w-]*(?:\s[A-Z][\w-]*)*)")


@dataclass(frozen=True, slots=True)
class Value:
    """A value as JSON, and as text in a sentence."""

    json: Any
    text: str


class NoValue(Exception):
    """No value can be made for a schema: the message says why."""


def value(name: str, schema: Schema, i: int, root: Schema, depth: int = 0) -> Value:
    """The `i`-th value for an argument of this name and schema. References are resolved in `root`. Raises NoValue."""
    schema = plain(schema, root)
    if "const" in schema:
        return as_value(schema["const"])
    listed = schema.get("enum") or _examples(schema)
    if listed:
        return as_value(listed[i % len(listed)])
    kind = schema.get("type", "string")
    match kind:
        case "boolean":
            return Value(i % 2 == 0, "yes" if i % 2 == 0 else "no")
        case "integer" | "number":
            return as_value(_number(name, schema, i, kind == "integer"))
        case "string":
            return as_value(_text(name, schema, i))
        case "array":
            return _list(name, schema, i, root, depth)
        case "object":
            return _object(name, schema, i, root, depth)
        case _:
            raise NoValue(f"{name}: no value is known for the type {json.dumps(kind)[:40]}")


CHOICES = ("anyOf", "oneOf", "allOf")


def _referred(schema: Schema, root: Schema) -> Any:
    """The schema that a reference points to, or the first alternative that is not null; otherwise the schema itself."""
    if isinstance(ref := schema.get("$ref"), str):
        node: Any = root
        for part in ref.removeprefix("#/").split("/"):
            node = cast("Any", node).get(part, {}) if isinstance(node, Mapping) else {}
        return node
    choices = next((schema[key] for key in CHOICES if schema.get(key)), None)
    if choices is None:
        return schema
    return next((one for one in choices if one.get("type") != "null"), cast("Schema", {}))


def plain(schema: Schema, root: Schema) -> Schema:
    """The schema with references resolved; of several alternatives the first that is not null."""
    for _ in range(8):
        node = _referred(schema, root)
        if node is schema:
            break
        rest = {key: schema[key] for key in schema if key not in ("$ref", *CHOICES)}
        schema = {**node, **rest}
    if "$ref" in schema:
        raise NoValue(f"{schema['$ref']} refers to itself")
    kinds = schema.get("type")
    if isinstance(kinds, list):
        schema = {**schema, "type": next((kind for kind in cast("list[str]", kinds) if kind != "null"), "null")}
    if "type" not in schema and "properties" in schema:
        schema = {**schema, "type": "object"}
    return schema


def as_value(value: Any) -> Value:
    """A value with its text: strings as they are, whole numbers without a decimal point."""
    if isinstance(value, bool):
        return Value(value, "yes" if value else "no")
    if isinstance(value, str):
        return Value(value, f'"{value}"' if " " in value and value[:1].islower() else value)
    return Value(value, f"{value:g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False))


def _examples(schema: Schema) -> list[Any]:
    """The examples that the schema gives, also those in its description."""
    examples: Any = schema.get("examples") or ([schema["example"]] if "example" in schema else [])
    if isinstance(examples, list) and examples:
        return cast("list[Any]", examples)
    quoted = EXAMPLE.findall(str(schema.get("description", ""))) if schema.get("type") == "string" else []
    pool = _pool(quoted[0], quoted[0]) if quoted else ()
    return [*quoted, *(one for one in pool if one not in quoted)] if pool else []


def _pool(name: str, like: str = "") -> Sequence[str]:
    """The values for an argument, chosen by the words in its name. With `like`, the pool that contains that value."""
    if like:
        return next((pool for pool in POOLS.values() if like in pool), (like,))
    terms = [part.casefold() for part in parts(name)]
    return next((pool for words, pool in POOLS.items() for word in terms[::-1] if word in words.split()), POOLS[""])


def _text(name: str, schema: Schema, i: int) -> str:
    kind = schema.get("format", "")
    if "pattern" in schema:
        raise NoValue(f"{name}: it has a pattern. Give it examples")
    pool = MOMENTS if kind == "date-time" else _pool(FORMATS.get(kind, name))
    longest = schema.get("maxLength")
    fits = [one for one in pool if longest is None or len(one) <= longest]
    if not fits:
        raise NoValue(f"{name}: no text of {longest} characters is known. Give it examples")
    return fits[i % len(fits)]


def _number(name: str, schema: Schema, i: int, whole: bool) -> float:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    step = schema.get("multipleOf")
    within = [n for n in _numbers(name, whole) if (low is None or n > low) and (high is None or n < high)]
    fits = [n for n in within if n % step == 0] if step else within
    if fits:
        return fits[i % len(fits)]
    number = _stepped(low, high, step or 1, i)
    return int(number) if whole else number


def _stepped(low: float | None, high: float | None, step: float, i: int) -> float:
    """A number a few steps above `low`, or slightly below `high`."""
    start = low if low is not None else (high or 0) - 10
    end = high if high is not None else start + 20 * step
    return start + step * (1 + i % max(1, int((end - start) / step)))


def _numbers(name: str, whole: bool) -> Sequence[float]:
    if "year" in [part.casefold() for part in parts(name)]:
        return YEARS
    return WHOLE if whole else BROKEN


def _list(name: str, schema: Schema, i: int, root: Schema, depth: int) -> Value:
    if depth >= DEEPEST:
        raise NoValue(f"{name}: it is nested too deep")
    items = cast("Schema", schema.get("items") or {})
    count = max(schema.get("minItems", 1), min(2 + i % 2, schema.get("maxItems", 3)))
    values = [value(name, items, i + k, root, depth + 1) for k in range(count)]
    return Value([one.json for one in values], joined([one.text for one in values]))


def _object(name: str, schema: Schema, i: int, root: Schema, depth: int) -> Value:
    properties = cast("Mapping[str, Schema]", schema.get("properties") or {})
    if depth >= DEEPEST or not properties:
        raise NoValue(f"{name}: it is an object " + ("nested too deep" if properties else "of anything"))
    wanted = [key for key in properties if key in schema.get("required", ())] or list(properties)[:1]
    values = {key: value(key, properties[key], i + k, root, depth + 1) for k, key in enumerate(wanted)}
    return Value(
        {key: one.json for key, one in values.items()},
        joined([f"{spoken(key)} {one.text}" for key, one in values.items()]),
    )


def spoken(name: str) -> str:
    """The name split into words."""
    return " ".join(part if part.isupper() else part.lower() for part in parts(name)) or name


def joined(texts: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1]))) if texts else ""
