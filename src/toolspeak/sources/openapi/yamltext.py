"""YAML as JSON data: scalars are what YAML 1.2 says they are, so that `on` and `12:30` stay texts and dates too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from ...errors import MissingExtra, UsageError

DEPTH = 200
"""How deep a document may be nested."""
MOST = 5_000_000
"""How many values a document may unfold into: one may refer to the same part of itself again and again."""

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


def read_yaml(text: str, name: str) -> Any:
    """The data that a YAML text is. UsageError where it is none; MissingExtra where PyYAML is not installed."""
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
        # The library's reader in C goes down with the whole process where data is nested too deep: looked at first.
        depth = 0
        for event in cast("Iterable[Any]", cast("Any", yaml).parse(text, Loader=Loader)):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEPTH:
                raise UsageError(f"{name} is nested deeper than {DEPTH} levels")
        data: Any = loader.get_single_data()
    except yaml.YAMLError as error:
        raise UsageError(f"{name} is neither JSON nor YAML: {_yaml_problem(error)}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is no YAML that can be read: {error}") from None
    finally:
        loader.dispose()
    return _plain(data, name)


def _yaml_problem(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    said = getattr(error, "problem", None) or str(error)
    return f"{said}, line {mark.line + 1}, column {mark.column + 1}" if mark else str(said)


def _plain(data: Any, name: str) -> Any:
    """The data with texts for names of fields, as JSON has them; each value that is used twice made once."""

    def copied(value: Any) -> Any:
        if isinstance(value, dict):
            fields = cast("dict[Any, Any]", value).items()
            return {key if isinstance(key, str) else _key(key, name): copied(part) for key, part in fields}
        if isinstance(value, list):
            return [copied(part) for part in cast("list[Any]", value)]
        if value is None or isinstance(value, (str, int, float)):
            return value
        raise UsageError(f"{name} holds a value that JSON has no form for: {type(value).__name__}")

    try:
        if _unfolded(data, {}, name) > MOST:
            raise UsageError(f"{name} unfolds into more than {MOST:,} values")
        return copied(data)
    except RecursionError:
        raise UsageError(f"{name} is nested too deeply") from None


def _unfolded(value: Any, known: dict[int, int], name: str) -> int:
    """How many values there are in data when each is written out wherever it is used; each is looked at once."""
    if not isinstance(value, (dict, list)):
        return 1
    key = id(cast("object", value))
    if key not in known:
        known[key] = 0  # under way
        inner = cast("dict[Any, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
        known[key] = 1 + sum(_unfolded(part, known, name) for part in inner)
    if not known[key]:
        raise UsageError(f"{name} holds a part that is inside itself")
    return known[key]


def _key(key: Any, name: str) -> str:
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, (int, float)):
        return str(key)
    raise UsageError(f"{name} has a field whose name is no text: {type(key).__name__}")
