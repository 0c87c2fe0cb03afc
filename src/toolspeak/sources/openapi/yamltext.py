"""Reads YAML as JSON data, with the scalars of YAML 1.2, so that `on`, `12:30` and dates stay strings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from ...errors import MissingExtra, UsageError

DEPTH = 200
"""The most levels of nesting."""

_SCALARS = (
    ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("tag:yaml.org,2002:int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    (
        "tag:yaml.org,2002:float",
        r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)",
        "-+.0123456789",
    ),
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", "~nN\0"),
    ("tag:yaml.org,2002:merge", r"<<", "<"),
)


def read_yaml(text: str, name: str, most: int) -> Any:
    """Return the data in a YAML text. Raises UsageError for invalid text, and for more than `most` values after expansion
    of aliases and merges (`<<`), which may refer to the same part many times; MissingExtra without PyYAML."""
    try:
        import yaml
    except ImportError as error:
        raise MissingExtra(
            f"{name} is not JSON; to read it as YAML: pip install 'toolspeak[openapi]' (or convert it to JSON)"
        ) from error
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):
        yaml_implicit_resolvers: Mapping[str, Any] = {}

    for tag, pattern, first in _SCALARS:
        letters = ["" if letter == "\0" else letter for letter in first]
        Loader.add_implicit_resolver(tag, re.compile(rf"(?:{pattern})\Z"), letters)
    loader: Any = Loader(text)
    try:
        # Checked first, because the C parser crashes the process on data that is nested too deep.
        depth = 0
        for event in cast("Iterable[Any]", cast("Any", yaml).parse(text, Loader=Loader)):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEPTH:
                raise UsageError(f"{name} is nested deeper than {DEPTH} levels")
        node: Any = loader.get_single_node()
        if _unfolded(node, {}, name) > most:
            raise UsageError(f"{name} expands into more than {most:,} values")
        data: Any = None if node is None else loader.construct_document(node)
    except UsageError:
        raise
    except yaml.YAMLError as error:
        raise UsageError(f"{name} is neither JSON nor YAML: {_yaml_problem(error)}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} cannot be read as YAML: {error}") from None
    finally:
        loader.dispose()
    return _plain(data, name)


def _yaml_problem(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"{problem}, line {mark.line + 1}, column {mark.column + 1}" if mark else str(problem)


def _plain(data: Any, name: str) -> Any:
    """Return the data with string keys, as in JSON. A part that is used twice is converted once."""

    def copied(value: Any) -> Any:
        if isinstance(value, dict):
            fields = cast("dict[Any, Any]", value).items()
            return {key if isinstance(key, str) else _key(key, name): copied(part) for key, part in fields}
        if isinstance(value, list):
            return [copied(part) for part in cast("list[Any]", value)]
        if value is None or isinstance(value, (str, int, float)):
            return value
        raise UsageError(f"{name} contains a value that JSON cannot express: {type(value).__name__}")

    try:
        return copied(data)
    except RecursionError:
        raise UsageError(f"{name} is nested too deeply") from None


def _unfolded(node: Any, known: dict[int, int], name: str) -> int:
    """Return the number of values in a node of YAML after expansion; each node is visited once."""
    parts: Any = getattr(node, "value", None)
    if not isinstance(parts, list):
        return 1
    key = id(cast("object", node))
    if key not in known:
        known[key] = 0  # under way
        inner: list[Any] = [
            cast("Any", part)[-1] if isinstance(part, tuple) else part for part in cast("list[Any]", parts)
        ]
        known[key] = 1 + sum(_unfolded(part, known, name) for part in inner)
    if not known[key]:
        raise UsageError(f"{name} contains a part that is inside itself")
    return known[key]


def _key(key: Any, name: str) -> str:
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, (int, float)):
        return str(key)
    raise UsageError(f"{name} has a field whose name is not a string: {type(key).__name__}")
