"""What is wrong with a call's arguments, all of it at once, as data and in sentences for a model.

There is one judge: the tool's JSON Schema (draft 2020-12, formats on). It never fetches anything. A
schema that lists its properties and does not speak of others is taken to allow no others: a model
that invents an argument is told so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, Protocol, cast

from ..errors import InvalidTool
from ..types import Problem, Schema, Tool
from .near import did_you_mean, near
from .walk import escape, rebuild, resolve

AT_MOST = 50
"""How many problems of one call are told."""


class Judge(Protocol):
    """The validator of one schema, as far as it is used here."""

    def is_valid(self, instance: Any) -> bool: ...

    def iter_errors(self, instance: Any) -> Iterator[Any]: ...


_judges: dict[int, tuple[Schema, Judge]] = {}
_branches: dict[tuple[int, int], tuple[Schema, Schema, Judge]] = {}
_KEPT = 4096
_ROOT = "urn:toolspeak:parameters"


def judge(schema: Schema, tool: str = "") -> Judge:
    """The judge of a schema, made once for each; InvalidTool where the schema is none."""
    known = _judges.get(id(schema))
    if known is not None and known[0] is schema:
        return known[1]
    made = _compile(_closed(schema), tool)
    while len(_judges) >= _KEPT:
        _judges.pop(next(iter(_judges)), None)
    _judges[id(schema)] = (schema, made)  # holding the schema keeps its id its own
    return made


def branch_judge(root: Schema, branch: Schema) -> Judge:
    """The judge of one schema inside `root`, whose `$ref`s still speak of `root`."""
    known = _branches.get((id(root), id(branch)))
    if known is not None and known[0] is root and known[1] is branch:
        return known[2]
    import jsonschema_rs as rs

    def outward(node: dict[str, Any], _path: str) -> dict[str, Any]:
        ref = node.get("$ref")
        return {**node, "$ref": _ROOT + ref} if isinstance(ref, str) and ref.startswith("#") else node

    made = rs.Draft202012Validator(
        rebuild(branch, outward),
        validate_formats=True,
        retriever=_fetch_nothing,
        registry=rs.Registry([(_ROOT, dict(root))]),
        pattern_options=rs.FancyRegexOptions(backtrack_limit=100_000),
    )
    while len(_branches) >= _KEPT:
        _branches.pop(next(iter(_branches)), None)
    _branches[id(root), id(branch)] = (root, branch, cast("Judge", made))
    return cast("Judge", made)


def check(tool: Tool[..., Any], arguments: Mapping[str, Any]) -> list[Problem]:
    """Every problem of `arguments`, none where the tool may be called with them."""
    judged = judge(tool.parameters, tool.name)
    try:
        if judged.is_valid(arguments) and not (odd := _not_json(arguments)):
            return []
        problems = [p for error in _telling(judged.iter_errors(arguments)) for p in explain(error, tool, arguments)]
        odd = _not_json(arguments)
    except (ValueError, TypeError) as error:  # a value that JSON has no form for
        return [Problem("", "JSON values", short(arguments), f"the arguments are not JSON: {error}")]
    return (problems + odd)[:AT_MOST]


def _telling(errors: Iterator[Any]) -> list[Any]:
    """The errors without those that say less than another about the same value: no type beside the choices."""
    found = list(errors)
    listed = {tuple(error.instance_path) for error in found if error.kind.name in ("enum", "const")}
    return [error for error in found if error.kind.name != "type" or tuple(error.instance_path) not in listed]


def explain(error: Any, tool: Tool[..., Any], arguments: Mapping[str, Any]) -> Iterator[Problem]:
    """The problems that one of the judge's errors stands for."""
    path = "".join("/" + escape(str(part)) for part in error.instance_path)
    value = error.instance
    kind = error.kind
    match kind.name:
        case "required":
            expected = _at(tool.parameters, [*error.instance_path, kind.property]) or "a value"
            where = f"{path}/{escape(kind.property)}"
            what = "argument" if not path else "field"
            yield Problem(
                where, expected, "nothing", f"the required {what} {kind.property!r} is missing: give {expected}"
            )
        case "additionalProperties" | "unevaluatedProperties":
            known = _known(tool.parameters, list(error.instance_path))
            for name in kind.unexpected:
                yield _unknown(path, name, value, known)
        case "anyOf" | "oneOf" if kind.name == "anyOf" or not hasattr(kind, "matches"):
            yield from _alternatives(error, path, value, tool)
        case _:
            expected = _expected(kind, error)
            yield Problem(path, expected, short(value), f"{_named(path)} must be {expected}; got {short(value)}")


def describe(schema: Any) -> str:
    """What a schema wants, in a few words: `integer`, `one of "a", "b"`, `array of string`."""
    if not isinstance(schema, Mapping):
        return "nothing" if schema is False else "any JSON value"
    node = cast("Mapping[str, Any]", schema)
    if "const" in node:
        return short(node["const"])
    if isinstance(node.get("enum"), list):
        return "one of " + short_list(node["enum"])
    for key in ("anyOf", "oneOf"):
        if isinstance(node.get(key), list):
            return " or ".join(dict.fromkeys(describe(part) for part in node[key]))
    kind = node.get("type")
    if isinstance(kind, list):
        return " or ".join(str(one) for one in cast("list[Any]", kind))
    if kind == "array" and isinstance(node.get("items"), Mapping):
        return f"array of {describe(node['items'])}"
    if kind == "string" and "format" in node:
        return _format(node["format"])
    if kind is None:
        return "object" if "$ref" in node else "any JSON value"
    return str(kind)


def short(value: Any, at_most: int = 80) -> str:
    """A value as JSON, cut to `at_most` characters, for a message."""
    if isinstance(value, str):
        value = value[: at_most * 2]
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= at_most else text[: at_most - 1] + "…"


def short_list(values: list[Any]) -> str:
    shown = ", ".join(short(value, 40) for value in values[:20])
    return shown + (f", … ({len(values)} in all)" if len(values) > 20 else "")


def _compile(schema: Schema, tool: str) -> Judge:
    import jsonschema_rs as rs

    refused: rs.ValidationError | None = None
    # Linear regular expressions; a pattern that looks around needs the other engine, held to a bound.
    for options in (rs.RegexOptions(), rs.FancyRegexOptions(backtrack_limit=100_000)):
        try:
            made = rs.Draft202012Validator(
                dict(schema), validate_formats=True, retriever=_fetch_nothing, pattern_options=options
            )
        except rs.ValidationError as error:
            refused = error
        except ValueError as error:
            raise InvalidTool(f"the schema of the tool {tool!r} is not JSON: {error}", tool=tool) from None
        else:
            return cast("Judge", made)
    path = "".join("/" + escape(str(part)) for part in refused.instance_path) if refused else ""
    where = f", at {path}" if path else ""
    why = refused.message if refused else ""
    raise InvalidTool(f"the schema of the tool {tool!r} means nothing{where}: {why}", tool=tool, path=path) from None


def _fetch_nothing(uri: str) -> NoReturn:
    raise LookupError(f"{uri} is not part of the schema, and nothing is fetched")


def _closed(schema: Schema) -> Schema:
    says = (
        "additionalProperties",
        "patternProperties",
        "unevaluatedProperties",
        "$ref",
        "anyOf",
        "oneOf",
        "allOf",
        "if",
    )
    return schema if any(key in schema for key in says) else {**schema, "additionalProperties": False}


def _not_json(value: Any, path: str = "", depth: int = 0) -> list[Problem]:
    """What JSON has no form for, NaN and the infinities among it, which Python's JSON reader takes."""
    if isinstance(value, float):
        if math.isfinite(value):
            return []
        return [Problem(path, "a finite number", str(value), f"{_named(path)} must be a finite number; got {value}")]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
    elif isinstance(value, (list, tuple)):
        items = enumerate(cast("list[Any]", value))
    elif value is None or isinstance(value, (str, int)):
        return []
    else:
        return [Problem(path, "a JSON value", short(value), f"{_named(path)} is not JSON: {short(value)}")]
    if depth > 500:
        return [Problem("", "less nesting", "a very deep value", "the arguments nest too deep")]
    return [p for key, part in items for p in _not_json(part, f"{path}/{escape(str(key))}", depth + 1)]


def _named(path: str) -> str:
    if not path:
        return "the arguments"
    name = path[1:].replace("~1", "/").replace("~0", "~")
    return f"the argument {name!r}" if path.count("/") == 1 else f"the value at {path}"


def _unknown(path: str, name: str, value: Any, known: list[str]) -> Problem:
    what = "argument" if not path else f"field of {path}"
    there = f"there are {', '.join(known)}" if known else "it takes none"
    got = cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None
    return Problem(
        f"{path}/{escape(name)}",
        f"only {', '.join(known)}" if known else "no arguments",
        short(got),
        f"{name!r} is no {what}; {there}." + did_you_mean(near(name, known)),
    )


def _alternatives(error: Any, path: str, value: Any, tool: Tool[..., Any]) -> Iterator[Problem]:
    """The problems of the one alternative that was meant, if that can be told; else what they all want."""
    branches = cast("list[list[Any]]", getattr(error.kind, "context", []))
    of_type = [b for b in branches if not any(e.kind.name in ("type", "enum", "const") and _here(e, error) for e in b)]
    if len(of_type) == 1 and of_type[0]:
        for inner in of_type[0]:
            yield from explain(inner, tool, {})
        return
    wants = list(dict.fromkeys(_expected(b[0].kind, b[0]) for b in branches if b))
    fitting = sum(not b for b in branches)
    expected = " or ".join(wants) if not fitting else f"only one of the alternatives, not {fitting} at once"
    yield Problem(path, expected, short(value), f"{_named(path)} must be {expected}; got {short(value)}")


def _here(inner: Any, outer: Any) -> bool:
    return len(inner.instance_path) == len(outer.instance_path)


def _known(schema: Schema, path: list[str | int]) -> list[str]:
    node = _node(schema, path)
    properties = node.get("properties") if isinstance(node, Mapping) else None  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
    return list(cast("Mapping[str, Any]", properties)) if isinstance(properties, Mapping) else []


def _at(schema: Schema, path: list[str | int]) -> str:
    node = _node(schema, path)
    return "" if node is None else describe(node)


def _node(schema: Schema, path: list[str | int]) -> Any:
    node: Any = schema
    for part in path:
        for _ in range(20):
            if not isinstance(node, Mapping) or "$ref" not in node:
                break
            node = resolve(schema, str(cast("Mapping[str, Any]", node)["$ref"]))
        if not isinstance(node, Mapping):
            return None
        here = cast("Mapping[str, Any]", node)
        key = "properties" if isinstance(part, str) else "items"
        node = here.get(key)
        if isinstance(part, str) and isinstance(node, Mapping):
            node = cast("Mapping[str, Any]", node).get(part)
    while isinstance(node, Mapping) and "$ref" in node and len(cast("Mapping[str, Any]", node)) == 1:
        seen = cast("Mapping[str, Any]", node)["$ref"]
        node = resolve(schema, str(seen))
        if isinstance(node, Mapping) and cast("Mapping[str, Any]", node).get("$ref") == seen:
            return None
    return cast("Any", node)


def _format(name: str) -> str:
    example = {
        "date": "2026-01-31",
        "date-time": "2026-01-31T09:30:00Z",
        "time": "09:30:00Z",
        "duration": "PT1H30M",
        "uuid": "123e4567-e89b-12d3-a456-426614174000",
        "email": "name@example.org",
        "uri": "https://example.org/",
    }.get(name)
    return f"{name} string" + (f" such as {example}" if example else "")


_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "greater than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters long",
    "maxLength": "at most {} characters long",
    "minItems": "a list of at least {} items",
    "maxItems": "a list of at most {} items",
    "minProperties": "an object of at least {} fields",
    "maxProperties": "an object of at most {} fields",
    "pattern": "a string that matches {}",
}


def _expected(kind: Any, error: Any) -> str:
    name = kind.name
    if name == "type":
        return " or ".join(kind.types)
    if name == "enum":
        return "one of " + short_list(kind.options)
    if name == "const":
        return short(kind.value)
    if name == "format":
        return f"a {_format(kind.value)}"
    if name in _LIMITS:
        return _LIMITS[name].format(kind.value)
    if name == "uniqueItems":
        return "a list without repetitions"
    if name == "not":
        return f"anything but {describe(kind.value)}"
    if name == "falseSchema":
        return "left out"
    if name in ("required", "additionalProperties"):
        return "an object with other fields"
    return f"what the schema says ({error.message[:200]})"
