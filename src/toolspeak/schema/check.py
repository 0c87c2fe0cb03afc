"""Finds every problem of a call's arguments, as data and as sentences for a model.

The validator's errors are made useful to a model. Pitfalls: a value that fits no alternative of a union has errors
from all of them, and only those of the alternative that was meant help. An error about a type says less than one that
lists the allowed values. A name that an alternative lists is not unknown, only because that alternative does not
match. And the validator builds all errors before it returns any, so large arguments are first reduced to one error
(`shrink_invalid`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import islice
from operator import getitem
from typing import Any, cast

from ..types import Problem, Tool
from . import nonblocking_json, text_grammars
from .evaluations import CHECKED, exceeds, value_size
from .pattern_cost import slow_patterns
from .phrases import short, spoken
from .schema_names import Names
from .shrink_invalid import Reduced, RelocatedError, TooMany
from .suggestions import did_you_mean, listed, near
from .validators import Judge, judge, too_much
from .walk import escape

AT_MOST = 50
"""The most problems of one call that are reported."""
HINTS = 5
"""Unknown names in an object for which similar ones are searched."""
HOLDERS = 20
"""The most fields of an object that are searched for a name that may belong inside one of them."""
EXPLAINED = 150_000
"""The most work that a validator may have with arguments of which all problems are reported."""
CHARACTERS = 20
"""Characters of a text that count as much as another value, in the size of an argument."""
MANY = 2_000
"""Of arguments with more values than this, only the first problem is reported."""

SCALARS = frozenset({str, int, bool, type(None)})
"""The classes of values that are JSON, without a look at the value."""
STRING = re.compile(r'("(?:[^"\\]++|\\.)*+")(\s*+:)?').findall
"""Matches the strings of a JSON text, each with the colon after it if it is a name."""


def check(tool: Tool[..., Any], arguments: Mapping[str, Any]) -> list[Problem]:
    """Every problem of `arguments`; empty if the tool may be called with them."""
    judged = judge(tool.parameters, tool.name)
    if too_much(judged, tool.parameters, arguments):
        return [_too_much(tool, arguments)]
    try:
        right, odd = judged.is_valid(arguments), not_json(arguments)
        problems = [] if right else _wrong(tool, arguments, judged)
    except (ValueError, TypeError) as error:  # a value without a JSON form
        return [Problem("", "JSON values", short(arguments), f"the arguments are not JSON: {error}")]
    return (problems + odd)[:AT_MOST]


def _wrong(tool: Tool[..., Any], arguments: Mapping[str, Any], judged: Judge) -> list[Problem]:
    """What is wrong with arguments; of many, or with many alternatives, only the first problem."""
    if _are_many(arguments):
        return _first(tool, arguments, judged)
    if exceeds(tool.parameters, arguments, EXPLAINED, errors=True):
        return _first(tool, arguments, judged)
    return _problems_of(tool, judged.iter_errors(arguments))


def _problems_of(tool: Tool[..., Any], errors: Iterator[Any]) -> list[Problem]:
    """The problems in the validator's errors."""
    names = Names(tool.parameters)
    explained = (problem for error in _informative(errors, names) for problem in explain(error, names))
    return list(islice(explained, AT_MOST))


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
    reduced = Reduced(arguments, judged.is_valid, Names(tool.parameters).known([]))
    try:
        reduced.shrink()
    except TooMany as error:
        return [_collective_problem(error, Names(tool.parameters))]
    if exceeds(tool.parameters, reduced.value, EXPLAINED, errors=True):
        return [_unexplained(arguments)]
    errors = [RelocatedError(error, reduced.places) for error in judged.iter_errors(reduced.value)]
    relevant = [error for error in errors if not _due_to_omission(error, arguments, reduced)]
    return _problems_of(tool, iter(relevant)) or [_unexplained(arguments, errors)]


def _unexplained(arguments: Any, errors: Sequence[Any] = ()) -> Problem:
    """The problem of wrong arguments of which it would take too long to say what is wrong. If all `errors` are about a
    single text that was cut, the text is wrong, though maybe not as they say."""
    where = "what the schema says"
    places = {tuple(error.instance_path) for error in errors}
    path = places.pop() if len(places) == 1 else ()
    value: Any = reduce(getitem, path, arguments)
    if not isinstance(value, str):
        return Problem(
            "", where, short(arguments), f"the arguments must be {where}; they are too many to say what is not"
        )
    pointer = "".join("/" + escape(str(part)) for part in path)
    message = f"the text at {pointer}, of {len(value):,} characters, must be {where}; it is too long to say what is not"
    return Problem(pointer, where, short(value), f"{message}. Give a shorter one")


def _too_much(tool: Tool[..., Any], arguments: Mapping[str, Any]) -> Problem:
    """The problem of arguments that cannot be checked in a bounded time. It names the largest argument, if that alone is
    too much, and the pattern that takes so long."""
    wanted = "arguments that can be checked"
    names = Names(tool.parameters)
    name = max(arguments, key=lambda one: value_size(arguments[one], CHARACTERS), default="")
    alone = exceeds(tool.parameters, {name: arguments.get(name)}, CHECKED)
    path, value = ("/" + escape(name), arguments[name]) if alone else ("", arguments)
    slow = slow_patterns(names.followed(names.node([name]))) if alone else []
    if slow:
        size = f"it has {len(value):,} characters, and " if isinstance(value, str) else ""
        why = f"{size}the pattern {short(slow[0])} looks around at each character. Give a shorter text"
    else:
        why = (
            "the values are too many or too long, or nest too deep, for a schema with so many alternatives, references"
            " to itself or such a pattern. Give fewer or shorter ones"
        )
    return Problem(path, wanted, short(value), f"{_named(path)} cannot be checked: {why}")


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
        return error.kind.name not in ("additionalProperties", "unevaluatedProperties", "type", "maxLength")
    for part in path:
        arguments = arguments[part]
    return error.kind.property in arguments


def _collective_problem(error: TooMany, names: Names) -> Problem:
    """The problem of a list or an object with valid parts that breaks a rule as a whole."""
    path = "".join("/" + escape(str(part)) for part in error.path)
    node = names.followed(names.node(list(error.path))) or {}
    limit = node.get("maxItems", node.get("maxProperties"))
    wanted = f"at most {limit} items" if isinstance(limit, int) and error.came > limit else "items that go together"
    got = f"{error.came} items, of which the first {error.most} are right"
    return Problem(path, wanted, got, f"{_named(path)} must be {wanted}; got {got}")


def repeated(text: str) -> list[Problem]:
    """Names with two values in a call's JSON text. Neither value can be chosen, so the call cannot be run. The readers of
    replies find them too; this is for calls that an application, or a model of its own, made."""
    if _names_differ(text):
        return []
    duplicates: list[str] = []

    def read(pairs: list[tuple[str, Any]]) -> None:
        if len(dict(pairs)) < len(pairs):  # counting takes many times as long
            names = Counter(name for name, _ in pairs)
            duplicates.extend(name for name, times in names.items() if times > 1)

    try:
        nonblocking_json.loads(text, object_pairs_hook=read)
    except (ValueError, RecursionError):  # invalid JSON is reported elsewhere
        return []
    return [
        Problem("", "every name once", f"{name} twice", f"the arguments give {name!r} twice; give it once")
        for name in duplicates[:AT_MOST]
    ]


def _names_differ(text: str) -> bool:
    """Whether all names in a short JSON text differ at a glance: whichever object they are in, and without escapes."""
    if len(text) >= nonblocking_json.LARGE:
        return False
    names = [text for text, colon in STRING(text) if colon]
    return len(names) == len(set(names)) and not any("\\" in name for name in names)


def _without_types(errors: list[Any]) -> list[Any]:
    """The errors, without those about the type of a value for which another error lists the allowed values."""
    listed = {tuple(error.instance_path) for error in errors if error.kind.name in ("enum", "const")}
    return [error for error in errors if error.kind.name != "type" or tuple(error.instance_path) not in listed]


def _informative(errors: Iterator[Any], names: Names) -> list[Any]:
    """The errors, without those that another error makes redundant.

    A type error is redundant beside one that lists the allowed values. If there are other errors, "name not allowed"
    counts only for names that no schema lists: when an alternative does not match, its names are not allowed either.
    """
    informative = _without_types(list(islice(errors, 10 * AT_MOST)))
    if all(error.kind.name == "unevaluatedProperties" for error in informative):
        return informative
    return [error for error in informative if error.kind.name != "unevaluatedProperties" or _unlisted(error, names)]


def _unlisted(error: Any, names: Names) -> list[str]:
    """The names that an error calls not allowed, and that no schema of that object lists."""
    known = names.known(list(error.instance_path))
    return [name for name in error.kind.unexpected if name not in known]


def explain(error: Any, names: Names) -> Iterator[Problem]:
    """The problems in one error of the validator."""
    path = "".join("/" + escape(str(part)) for part in error.instance_path)
    value = error.instance
    kind = error.kind
    match kind.name:
        case "required":
            wanted = names.described([*error.instance_path, kind.property])
            where = f"{path}/{escape(kind.property)}"
            what = "argument" if not path else "field"
            message = f"the required {what} {kind.property!r} is missing ({spoken(wanted)})"
            yield Problem(where, wanted, "nothing", message)
        case "additionalProperties" | "unevaluatedProperties":
            place = list(error.instance_path)
            known = names.known(place)
            for at, name in enumerate((_unlisted(error, names) or kind.unexpected)[:AT_MOST]):
                yield _unknown(path, name, value, known, _hint(names, place, name) if at < HINTS else "")
        case "anyOf" | "oneOf":
            yield from _alternatives(error, path, value, names)
        case text_grammars.KEYWORD:
            message = f"{_named(path)} does not fit its grammar: {error.message}"
            yield Problem(path, "a text that fits the grammar", short(value), message)
        case _:
            wanted = names.wanted(error)
            yield Problem(path, wanted, short(value), f"{_named(path)} must be {spoken(wanted)}; got {short(value)}")


def not_json(value: Any, path: str = "", depth: int = 0) -> list[Problem]:
    """Problems for values without a JSON form. NaN and the infinities are among them, although Python's JSON reader and
    the validator accept them."""
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
    return [p for key, part in _odd(items) for p in not_json(part, f"{path}/{escape(str(key))}", depth + 1)]


def _odd(items: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The members that need a look."""
    return [(key, part) for key, part in items if part.__class__ not in SCALARS]


def _named(path: str) -> str:
    if not path:
        return "the arguments"
    name = path[1:].replace("~1", "/").replace("~0", "~")
    return f"the argument {name!r}" if path.count("/") == 1 else f"the value at {path}"


def _hint(names: Names, place: list[str | int], name: str) -> str:
    """What was probably meant by an unknown name: a field inside one of the known ones, or a known one."""
    known = names.known(place)
    holders = [one for one in islice(known, HOLDERS) if name in names.known([*place, one])]
    if len(holders) == 1:
        return f"; it belongs inside {short(holders[0])}"
    return did_you_mean(near(name, known)).replace(" Did", "; did", 1)


def _unknown(path: str, name: str, value: Any, known: Mapping[str, Any], hint: str) -> Problem:
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


def _unknown_text(path: str, name: str, known: Mapping[str, Any], hint: str) -> str:
    what = f"field of {path}" if path else "argument"
    names = f"the {'fields' if path else 'arguments'} are: {listed(known)}" if known else "there are none"
    return f"unknown {what}: {short(name)} ({names}{hint})"


def _alternatives(error: Any, path: str, value: Any, names: Names) -> Iterator[Problem]:
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
            yield from explain(inner, names)
        return
    heads, at, got = [_without_types(branch)[0] for branch in (meant or branches)], path, value
    if telling := _one_tag(meant, depth):
        heads, at, got = telling, f"{path}/{escape(str(telling[0].instance_path[-1]))}", telling[0].instance
    wanted = " or ".join(dict.fromkeys(map(names.wanted, heads)))
    yield Problem(at, wanted, short(got), f"{_named(at)} must be {spoken(wanted)}; got {short(got)}")


def _intended_branches(branches: list[list[Any]], depth: int) -> list[list[Any]]:
    """The alternatives for the value's own type; of these only the ones whose tag it has, if there are any.

    One that lists other values of that type is not meant by itself, but is told beside those that are.
    """
    if all(any(_is_other(e, depth) for e in b) for b in branches):
        return []
    alike = [b for b in branches if not any(_is_other(e, depth) and not _lists_alike(e) for e in b)]
    return [b for b in alike if not any(_is_tag(e, depth) for e in b)] or alike


def _one_tag(branches: list[list[Any]], depth: int) -> list[Any]:
    """The errors at the one field for which every alternative wants another value; empty if there is no such field."""
    telling = [e for b in branches for e in b if _is_tag(e, depth)]
    tags = {tuple(e.instance_path) for e in telling}
    return telling if len(tags) == 1 and len(telling) == len(branches) else []


def _is_other(error: Any, depth: int) -> bool:
    """Whether an error says that the value at this depth has the wrong type."""
    return len(error.instance_path) == depth and error.kind.name in ("type", "enum", "const")


def _lists_alike(error: Any) -> bool:
    """Whether an error lists the allowed values, and one of them has the type of the value."""
    options = getattr(error.kind, "options", None)
    return any(type(option) is type(error.instance) for option in cast("list[Any]", options or []))


def _is_tag(error: Any, depth: int) -> bool:
    """Whether an error says that a field of the value at this depth (its tag) selects another alternative."""
    return len(error.instance_path) == depth + 1 and error.kind.name in ("enum", "const")
