"""Parses values in a model's output: one that is the whole answer, or every one that can be found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from ...plan.code_fences import fenced, unfenced
from .literals import loads, read
from .results import TransformError

_ONE_LINE_FENCE = re.compile(r"```(?:\w+\s+|(?:json|python)(?=\W))?(.*)```", re.DOTALL)


def loadch(resp: Any) -> Any:
    """Return the value of a whole answer, without the code fence around it, if there is exactly one.

    A list, dict, tuple, number or bool is returned unchanged. Raises TransformError: `no-message-given` for None,
    `parse-failed` for everything else.
    """
    if resp is None:
        raise TransformError("no-message-given")
    if isinstance(resp, list | dict | tuple | float | int):
        return cast("Any", resp)
    if not isinstance(resp, str):
        raise TransformError("parse-failed", raw=resp)
    try:
        return loads(_unfence(resp.strip()))
    except ValueError as error:
        raise TransformError("parse-failed", raw=resp) from error


def loadchmulti(resp: Any) -> list[Any]:
    """Return every value in an answer: those in its code fences, else every object in its text.

    A fence with a list yields the list's items. Raises TransformError: `no-message-given` for None, `parse-failed` if
    there is no value.
    """
    if resp is None:
        raise TransformError("no-message-given")
    if isinstance(resp, list | tuple):
        return list(cast("list[Any]", resp))
    if isinstance(resp, dict):
        return [cast("Any", resp)]
    if not isinstance(resp, str):
        raise TransformError("parse-failed", raw=resp)
    values = list(_in_fences(resp)) or list(_objects(_outside_fences(resp)))
    if not values:
        raise TransformError("parse-failed", raw=resp)
    return values


def _unfence(text: str) -> str:
    inner, fence = unfenced(text), _ONE_LINE_FENCE.fullmatch(text)
    return (fence[1] if fence and inner == text else inner).strip()


def _in_fences(text: str) -> Iterator[Any]:
    for inside in fenced(text):
        try:
            value = loads(inside.strip())
        except ValueError:
            continue
        if isinstance(value, list):
            yield from cast("list[Any]", value)
        else:
            yield value


def _outside_fences(text: str) -> str:
    parts: list[str] = []
    fenced = False
    for line in text.splitlines():
        if line.strip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            parts.append(line)
    return "\n".join(parts)


def _objects(text: str) -> Iterator[Any]:
    """Yield every object in a text. Each is parsed from its start, so a brace inside a string does not count."""
    at = text.find("{")
    while at >= 0:
        try:
            value, end = read(text, at)
        except ValueError:
            end = at + 1
        else:
            yield value
        at = text.find("{", end)
