"""Compares a reply's calls with the expected ones, in any order, and says what differs."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ..errors import UsageError
from ..types import Reply, Tool
from .case import RIGHT, Judge, Kind, Verdict, calls_of, short

Call = Mapping[str, Any]
Fits = Callable[[Call, Call], bool]


def exactly(expected: Sequence[Call], tools: Sequence[Tool[..., Any]]) -> Judge:
    """A judge that wants these calls and no others. An omitted argument counts as the default in its schema."""
    defaults = {tool.name: _defaults(tool) for tool in tools}

    def fits(wanted: Call, came: Call) -> bool:
        assumed = defaults.get(wanted["name"], {})
        return same({**assumed, **wanted["arguments"]}, {**assumed, **came["arguments"]})

    return functools.partial(_judged, expected, fits, False)


def subset(expected: Sequence[Call]) -> Judge:
    """A judge that wants these calls with at least these arguments, and ignores all others."""

    def fits(wanted: Call, came: Call) -> bool:
        arguments = came["arguments"]
        return all(name in arguments and same(value, arguments[name]) for name, value in wanted["arguments"].items())

    return functools.partial(_judged, expected, fits, True)


def _defaults(tool: Tool[..., Any]) -> dict[str, Any]:
    properties: Mapping[str, Any] = tool.parameters.get("properties") or {}
    return {
        name: node["default"] for name, node in properties.items() if isinstance(node, Mapping) and "default" in node
    }


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal as JSON: 2 equals 2.0, but true does not equal 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        a, b = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(one, list) and isinstance(other, list):
        c, d = cast("list[Any]", one), cast("list[Any]", other)
        return len(c) == len(d) and all(same(x, y) for x, y in zip(c, d, strict=True))
    return one == other


def _judged(expected: Sequence[Call], fits: Fits, more: bool, reply: Reply) -> Verdict:
    came = calls_of(reply)
    if not expected and came:
        return Verdict(False, "needless call", f"called {came[0]['name']} {short(came[0]['arguments'])}")
    if expected and not came:
        return Verdict(False, "no call", short(reply.text))
    left, unused = unmatched(expected, came, lambda a, b: a["name"] == b["name"] and fits(a, b))
    if not left and (more or not unused):
        return RIGHT
    if len(came) < len(expected) or (not more and len(came) != len(expected)):
        return Verdict(False, "count", f"{len(expected)} calls expected, {len(came)} came")
    return _difference(expected[left[0]], [came[i] for i in unused], more)


def unmatched(
    expected: Sequence[Any], came: Sequence[Any], fit: Callable[[Any, Any], bool]
) -> tuple[list[int], list[int]]:
    """The indices in `expected` and in `came` that stay unpaired in a maximum matching (found by augmenting paths)."""
    partner: dict[int, int] = {}  # index in `came` -> index in `expected`

    def place(i: int, tried: set[int]) -> bool:
        for j, one in enumerate(came):
            if j not in tried and fit(expected[i], one):
                tried.add(j)
                if j not in partner or place(partner[j], tried):
                    partner[j] = i
                    return True
        return False

    left = [i for i in range(len(expected)) if not place(i, set())]
    return left, [j for j in range(len(came)) if j not in partner]


def _difference(wanted: Call, unused: Sequence[Call], more: bool) -> Verdict:
    """The difference between a missing call and the most similar unexpected call."""
    named = [call for call in unused if call["name"] == wanted["name"]]
    if not named:
        names = ", ".join(call["name"] for call in unused)
        return Verdict(False, "wrong tool", f"expected {wanted['name']}, came {names}")
    expected: Mapping[str, Any] = wanted["arguments"]
    came = min((call["arguments"] for call in named), key=lambda arguments: len(_wrong(expected, arguments)))
    for kind, name in _faults(expected, came, more):
        detail = f"{name}: expected {short(expected.get(name, 'none'))}, came {short(came.get(name, 'none'))}"
        return Verdict(False, kind, detail)
    return Verdict(False, "wrong value", f"expected {short(expected)}, came {short(came)}")


def _faults(expected: Mapping[str, Any], came: Mapping[str, Any], more: bool) -> Iterator[tuple[Kind, str]]:
    """What is wrong with each argument, the most serious first."""
    missing = [name for name in expected if name not in came]
    needless = [] if more else [name for name in came if name not in expected]
    faults: dict[Kind, Sequence[str]] = {
        "missing argument": missing,
        "wrong value": _wrong(expected, came),
        "needless argument": needless,
    }
    return ((kind, name) for kind, names in faults.items() for name in names)


def _wrong(expected: Mapping[str, Any], came: Mapping[str, Any]) -> list[str]:
    return [name for name, value in expected.items() if name not in came or not same(value, came[name])]


# ------------------------------------------------------------------ a Python function as the judge


def predicate(name: str, folder: Path) -> Judge:
    """A judge that calls `module:function` with the Reply. The module may be in `folder`, beside the cases.

    True or None means right. False, a text (the reason) or an exception means wrong.
    """
    function = _function(name, folder)

    def judge(reply: Reply) -> Verdict:
        kind: Kind = "wrong value" if reply.calls else "no call"
        try:
            why = function(reply)
        except (AssertionError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            return Verdict(False, kind, f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
        if why is None or why is True:
            return RIGHT
        return Verdict(False, kind, why if isinstance(why, str) else f"{name} said {why!r}")

    return judge


def _function(name: str, folder: Path) -> Callable[[Reply], Any]:
    module_name, _, function_name = name.partition(":")
    places = [str(folder.resolve()), str(Path.cwd())]
    sys.path[:0] = places
    try:
        function: Any = importlib.import_module(module_name.removesuffix(".py"))
        for part in function_name.split("."):
            function = getattr(function, part)
    except (ImportError, SyntaxError, AttributeError, ValueError) as error:
        raise UsageError(f"match: {name} cannot be had: {type(error).__name__}: {error}") from None
    finally:
        for place in places:
            sys.path.remove(place)
    if not callable(function):
        raise UsageError(f"match: {name} is no function but {type(function).__name__}")
    return cast("Callable[[Reply], Any]", function)
