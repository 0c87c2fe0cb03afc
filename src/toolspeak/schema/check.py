"""Finds every problem of a call's arguments, as data and as sentences for a model.

The validator's errors are made useful to a model. Pitfalls: a value that fits no alternative of a union has errors
from all of them, and only those of the alternative that was meant help. An error about a type says less than one that
lists the allowed values. A name that an alternative lists is not unknown, only because that alternative does not
match. And the validator builds all errors before it returns any, so large arguments are first reduced to one error
(`shrink_invalid`).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, cast

from ..types import Problem, Schema, Tool
from . import text_grammars
from .phrases import describe, expected, short, spoken
from .shrink_invalid import Reduced, RelocatedError, TooMany
from .suggestions import did_you_mean, listed, near
from .validators import Judge, judge, too_much
from .walk import branches, escape, resolve

AT_MOST = 50
"""The most problems of one call that are reported."""
HINTS = 5
"""Unknown names in an object for which similar ones are searched."""
HOLDERS = 20
"""The most fields of an object that are searched for a name that may belong inside one of them."""
CHECKED, EXPLAINED = 200_000, 10_000
"""The most schemas that references may apply to arguments, for a check, and for saying what is wrong. They multiply."""
MANY = 2_000
"""Of arguments with more values than this, only the first problem is reported."""

SCALARS = frozenset({str, int, bool, type(None)})
"""The classes of values that are JSON, without a look at the value."""
STRING = re.compile(r'("(?:[^"\\]++|\\.)*+")(\s*+:)?').findall
"""Matches the strings of a JSON text, each with the colon after it if it is a name."""


def check(tool: Tool[..., Any], arguments: Mapping[str, Any]) -> list[Problem]:
    """Every problem of `arguments`; empty if the tool may be called with them."""
    judged = judge(tool.parameters, tool.name)
    if too_much(judged, tool.parameters, arguments, CHECKED):
        return [_too_much(arguments)]
    try:
        right, odd = judged.is_valid(arguments), _not_json(arguments)
        if right:
            problems: list[Problem] = []
        elif _are_many(arguments):
            problems = _first(tool, arguments, judged)
        elif too_much(judged, tool.parameters, arguments, EXPLAINED):
            problems = [_unexplained(arguments)]
        else:
            problems = _problems_of(tool, judged.iter_errors(arguments))
    except (ValueError, TypeError) as error:  # a value without a JSON form
        return [Problem("", "JSON values", short(arguments), f"the arguments are not JSON: {error}")]
    return (problems + odd)[:AT_MOST]


def _problems_of(tool: Tool[..., Any], errors: Iterator[Any]) -> list[Problem]:
    """The problems in the validator's errors."""
    return [problem for error in _informative(errors, tool.parameters) for problem in explain(error, tool)]


def _are_many(arguments: object) -> bool:
    """Whether the arguments have more values than MANY."""
    left, todo = MANY, [arguments]
    while todo and left >= 0:
        value = todo.pop()
        if isinstance(value, Mapping | list | tuple):
            inner = cast("Mapping[Any, Any] | Sequence[Any]", value)
            left -= len(inner)
            todo += islice(inner.values() if isinstance(inner, Mapping) else inner, MANY)
    return left < 0


def _first(tool: Tool[..., Any], arguments: Mapping[str, Any], judged: Judge) -> list[Problem]:
    """One problem of large arguments. The validator would build all their errors before it returns the first."""
    reduced = Reduced(arguments, judged.is_valid, _known(tool.parameters, []))
    try:
        reduced.shrink()
    except TooMany as error:
        return [_collective_problem(error, tool.parameters)]
    errors = [RelocatedError(error, reduced.places) for error in judged.iter_errors(reduced.value)]
    relevant = [error for error in errors if not _due_to_omission(error, arguments, reduced)]
    return _problems_of(tool, iter(relevant)) or [_unexplained(arguments)]


def _unexplained(arguments: object) -> Problem:
    """The problem of wrong arguments of which it would take too long to say what is wrong."""
    where = "what the schema says"
    return Problem("", where, short(arguments), f"the arguments must be {where}; they are too many to say what is not")


def _too_much(arguments: object) -> Problem:
    """The problem of arguments that cannot be checked in a bounded time."""
    why = "the schema refers to itself in so many ways that they cannot be checked. Nest them less"
    return Problem("", "arguments that can be checked", short(arguments), f"the arguments nest too deep: {why}")


def _due_to_omission(error: Any, arguments: Any, reduced: Reduced) -> bool:
    """Whether an error exists only because values were removed to reduce the arguments."""
    path = tuple(error.instance_path)
    if path not in reduced.changed:
        return False
    if error.kind.name in ("anyOf", "oneOf"):
        return any(
            all(_due_to_omission(inner, arguments, reduced) for inner in branch) for branch in error.kind.context
        )
    if error.kind.name != "required":
        return error.kind.name not in ("additionalProperties", "unevaluatedProperties", "type")
    for part in path:
        arguments = arguments[part]
    return error.kind.property in arguments


def _collective_problem(error: TooMany, root: Schema) -> Problem:
    """The problem of a list or an object with valid parts that breaks a rule as a whole."""
    path = "".join("/" + escape(str(part)) for part in error.path)
    node = _followed(root, _node(root, list(error.path))) or {}
    limit = node.get("maxItems", node.get("maxProperties"))
    wanted = f"at most {limit} items" if isinstance(limit, int) and error.came > limit else "items that go together"
    got = f"{error.came} items, of which the first {error.most} are right"
    return Problem(path, wanted, got, f"{_named(path)} must be {wanted}; got {got}")


def repeated(text: str) -> list[Problem]:
    """Names with two values in a call's JSON text. Neither value can be chosen, so the call cannot be run."""
    names = [text for text, colon in STRING(text) if colon]
    if len(names) == len(set(names)) and not any("\\" in name for name in names):
        return []
    duplicates: list[str] = []

    def read(pairs: list[tuple[str, Any]]) -> None:
        names = Counter(name for name, _ in pairs)
        duplicates.extend(name for name, times in names.items() if times > 1)

    try:
        json.loads(text, object_pairs_hook=read)
    except (ValueError, RecursionError):  # invalid JSON is reported elsewhere
        return []
    return [
        Problem("", "every name once", f"{name} twice", f"the arguments give {name!r} twice; give it once")
        for name in duplicates[:AT_MOST]
    ]


def _without_types(errors: list[Any]) -> list[Any]:
    """The errors, without those about the type of a value for which another error lists the allowed values."""
    listed = {tuple(error.instance_path) for error in errors if error.kind.name in ("enum", "const")}
    return [error for error in errors if error.kind.name != "type" or tuple(error.instance_path) not in listed]


def _informative(errors: Iterator[Any], root: Schema) -> list[Any]:
    """The errors, without those that another error makes redundant.

    A type error is redundant beside one that lists the allowed values. If there are other errors, "name not allowed"
    counts only for names that no schema lists: when an alternative does not match, its names are not allowed either.
    """
    informative = _without_types(list(islice(errors, 10 * AT_MOST)))
    if all(error.kind.name == "unevaluatedProperties" for error in informative):
        return informative
    return [error for error in informative if error.kind.name != "unevaluatedProperties" or _unlisted(error, root)]


def _unlisted(error: Any, root: Schema) -> list[str]:
    """The names that an error calls not allowed, and that no schema of that object lists."""
    known = _known(root, list(error.instance_path))
    return [name for name in error.kind.unexpected if name not in known]


def explain(error: Any, tool: Tool[..., Any]) -> Iterator[Problem]:
    """The problems in one error of the validator."""
    path = "".join("/" + escape(str(part)) for part in error.instance_path)
    value = error.instance
    kind = error.kind
    match kind.name:
        case "required":
            wanted = _at(tool.parameters, [*error.instance_path, kind.property]) or "a value"
            where = f"{path}/{escape(kind.property)}"
            what = "argument" if not path else "field"
            message = f"the required {what} {kind.property!r} is missing ({spoken(wanted)})"
            yield Problem(where, wanted, "nothing", message)
        case "additionalProperties" | "unevaluatedProperties":
            place = list(error.instance_path)
            known = _known(tool.parameters, place)
            for at, name in enumerate((_unlisted(error, tool.parameters) or kind.unexpected)[:AT_MOST]):
                yield _unknown(path, name, value, known, _hint(tool.parameters, place, name, known, at < HINTS))
        case "anyOf" | "oneOf":
            yield from _alternatives(error, path, value, tool)
        case text_grammars.KEYWORD:
            message = f"{_named(path)} does not fit its grammar: {error.message}"
            yield Problem(path, "a text that fits the grammar", short(value), message)
        case _:
            wanted = expected(error)
            yield Problem(path, wanted, short(value), f"{_named(path)} must be {spoken(wanted)}; got {short(value)}")


def _not_json(value: Any, path: str = "", depth: int = 0) -> list[Problem]:
    """Problems for values without a JSON form. NaN and the infinities are among them, although Python's JSON reader
    accepts them."""
    if isinstance(value, float):
        if math.isfinite(value):
            return []
        return [Problem(path, "a finite number", str(value), f"{_named(path)} must be a finite number; got {value}")]
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        if not all(isinstance(key, str) for key, _ in items):
            return [Problem(path, "names that are text", short(value), f"{_named(path)} is not JSON: {short(value)}")]
    elif isinstance(value, (list, tuple)):
        items = enumerate(cast("list[Any]", value))
    elif value is None or isinstance(value, (str, int)):
        return []
    else:
        return [Problem(path, "a JSON value", short(value), f"{_named(path)} is not JSON: {short(value)}")]
    if depth > 100:
        return [Problem("", "less nesting", "a very deep value", "the arguments nest too deep")]
    return [p for key, part in _odd(items) for p in _not_json(part, f"{path}/{escape(str(key))}", depth + 1)]


def _odd(items: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The members that need a look."""
    return [(key, part) for key, part in items if part.__class__ not in SCALARS]


def _named(path: str) -> str:
    if not path:
        return "the arguments"
    name = path[1:].replace("~1", "/").replace("~0", "~")
    return f"the argument {name!r}" if path.count("/") == 1 else f"the value at {path}"


def _hint(root: Schema, place: list[str | int], name: str, known: list[str], wanted: bool) -> str:
    """What was probably meant by an unknown name: a field inside one of the known ones, or a known one."""
    if not wanted:
        return ""
    holders = [one for one in known[:HOLDERS] if name in _known(root, [*place, one])]
    if len(holders) == 1:
        return f"; it belongs inside {short(holders[0])}"
    return did_you_mean(near(name, known)).replace(" Did", "; did", 1)


def _unknown(path: str, name: str, value: Any, known: list[str], hint: str) -> Problem:
    got = cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None
    if name in known:
        message = f"{short(name)} does not go with the others: it belongs to an alternative that they do not fit"
        return Problem(f"{path}/{escape(name)}", "nothing beside the others", short(got), message)
    return Problem(
        f"{path}/{escape(name)}",
        f"only {listed(known)}" if known else "no arguments",
        short(got),
        _unknown_text(path, name, known, hint),
    )


def _unknown_text(path: str, name: str, known: list[str], hint: str) -> str:
    what = f"field of {path}" if path else "argument"
    names = f"the {'fields' if path else 'arguments'} are: {listed(known)}" if known else "there are none"
    return f"unknown {what}: {short(name)} ({names}{hint})"


def _alternatives(error: Any, path: str, value: Any, tool: Tool[..., Any]) -> Iterator[Problem]:
    """The problems of the alternative that was meant, if that is clear; otherwise what the alternatives expect."""
    branches = cast("list[list[Any]]", getattr(error.kind, "context", []))
    fitting = sum(not branch for branch in branches)
    if fitting:
        wanted = f"only one of the alternatives, not {fitting} at once"
        yield Problem(path, wanted, short(value), f"{_named(path)} must be {wanted}; got {short(value)}")
        return
    depth = len(error.instance_path)
    meant = _intended_branches(branches, depth)
    if len(meant) == 1:
        for inner in meant[0]:
            yield from explain(inner, tool)
        return
    heads, at, got = [b[0] for b in (meant or branches)], path, value
    if telling := _one_tag(meant, depth):
        heads, at, got = telling, f"{path}/{escape(str(telling[0].instance_path[-1]))}", telling[0].instance
    wanted = " or ".join(dict.fromkeys(expected(e) for e in heads))
    yield Problem(at, wanted, short(got), f"{_named(at)} must be {spoken(wanted)}; got {short(got)}")


def _intended_branches(branches: list[list[Any]], depth: int) -> list[list[Any]]:
    """The alternatives for the value's own type; of these only the ones whose tag it has, if there are any."""
    alike = [b for b in branches if not any(_is_other(e, depth) for e in b)]
    return [b for b in alike if not any(_is_tag(e, depth) for e in b)] or alike


def _one_tag(branches: list[list[Any]], depth: int) -> list[Any]:
    """The errors at the one field for which every alternative wants another value; empty if there is no such field."""
    telling = [e for b in branches for e in b if _is_tag(e, depth)]
    tags = {tuple(e.instance_path) for e in telling}
    return telling if len(tags) == 1 and len(telling) == len(branches) else []


def _is_other(error: Any, depth: int) -> bool:
    """Whether an error says that the value at this depth has the wrong type."""
    return len(error.instance_path) == depth and error.kind.name in ("type", "enum", "const")


def _is_tag(error: Any, depth: int) -> bool:
    """Whether an error says that a field of the value at this depth (its tag) selects another alternative."""
    return len(error.instance_path) == depth + 1 and error.kind.name in ("enum", "const")


def _known(root: Schema, path: list[str | int]) -> list[str]:
    """The names that the object at `path` may have."""
    return list(_fields(root, _node(root, path)))


def _at(root: Schema, path: list[str | int]) -> str:
    node = _followed(root, _node(root, path))
    return "" if node is None else describe(node)


def _node(root: Schema, path: list[str | int]) -> Any:
    """The schema for the value at `path`, which may be a reference; None if it cannot be determined."""
    node: Any = root
    for part in path:
        if isinstance(part, str):
            node = _fields(root, node).get(part)
        else:
            followed = _followed(root, node)
            node = followed.get("items") if followed is not None else None
    return node


def _followed(root: Schema, node: Any) -> Mapping[str, Any] | None:
    for _ in range(20):
        if not isinstance(node, Mapping):
            return None
        here = cast("Mapping[str, Any]", node)
        if "$ref" not in here:
            return here
        node = resolve(root, str(here["$ref"]))
    return None


def _fields(root: Schema, node: Any) -> dict[str, Any]:
    """The properties in an object's schema, also in its alternatives and in what it refers to."""
    result: dict[str, Any] = {}
    for part in branches(root, node, conditions=True):
        for name, schema in cast("Mapping[str, Any]", part.get("properties", {})).items():
            result.setdefault(name, schema)
    return result
