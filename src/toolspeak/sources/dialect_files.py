"""Loads a dialect by name, from a Python file, or from a JSON file that declares a model's reply format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ..dialects import get
from ..errors import UsageError
from ..files import read_json
from ..wire.detect import detect
from ..wire.dialect import Dialect
from ..wire.round_trip import readable
from .modules import load

SUFFIXES = (".py", ".json")


def load_dialect(name: str, folder: Path = Path()) -> Dialect:
    """Return the dialect of that name, or the one in that file; a relative path starts at `folder`.

    A .py file is executed and must contain one Dialect, as `toolspeak detect --source` prints it. For a .json file, a
    tokenizer's configuration or a response template, the dialect is the one that `ts.detect` finds in it. Raises
    UnknownDialect, UsageError, TemplateError.
    """
    path = folder / Path(name.strip()).expanduser()
    if path.suffix not in SUFFIXES:
        return get(name)
    if not path.is_file():
        raise UsageError(f"{name}: there is no such file. Expected the name of a dialect, or a .py or .json file")
    return _from_python(path, name) if path.suffix == ".py" else _from_json(path, name)


def _from_python(path: Path, name: str) -> Dialect:
    dialects = {id(value): value for value in vars(load(path)).values() if isinstance(value, Dialect)}
    if len(dialects) != 1:
        names = ", ".join(repr(one.name) for one in dialects.values())
        there = f"{len(dialects)} of them: {names}" if dialects else "none"
        raise UsageError(f"{name}: expected one Dialect, such as MINE = Dialect(…), found {there}")
    return readable(next(iter(dialects.values())))


def _from_json(path: Path, name: str) -> Dialect:
    value = read_json(path)
    config: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    declared = config if "fields" in config else config.get("response_template")
    template = chat_template_of(config.get("chat_template"))
    if not isinstance(declared, dict) and not template:
        raise UsageError(
            f"{name} declares no dialect: expected a response template (with fields), or a tokenizer_config.json with a "
            "chat_template"
        )
    if isinstance(declared, dict):
        return detect(response_template=cast("Mapping[str, Any]", declared))
    dialect = detect(template)
    if dialect.origin.startswith("by default"):
        raise UsageError(f"{name}: its chat template identifies no dialect")
    return dialect


def chat_template_of(value: Any) -> str:
    """Return the chat template of a tokenizer's configuration; if it has several, the one for tools."""
    if isinstance(value, list):
        rows = [cast("dict[str, Any]", row) for row in cast("list[Any]", value) if isinstance(row, dict)]
        named = {str(row.get("name")): row.get("template") for row in rows}
        value = next((named[name] for name in ("tool_use", "default", *named) if named.get(name)), "")
    return value if isinstance(value, str) else ""
