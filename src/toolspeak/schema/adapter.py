"""Creates pydantic's TypeAdapter for a Python type: it gives the type's JSON Schema, and its values from JSON data."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def adapter(annotation: Any) -> TypeAdapter[Any]:
    """The adapter of a type. An `Iterable` becomes a list: pydantic's own value for it can be read only once, and checks
    its items only then. A pydantic model has its own validator, and keeps that. Raises pydantic's own errors if the type
    has no JSON form."""
    from pydantic import TypeAdapter
    from pydantic_core import SchemaValidator

    with _typed_dicts():
        values = TypeAdapter[Any](annotation)
    core = _with_lists(values.core_schema)
    if core is not values.core_schema:
        values.validator = SchemaValidator(core)
    return values


def _with_lists(core: Any) -> Any:
    """A core schema of pydantic with lists instead of iterators; the same object if it has none."""
    if isinstance(core, dict):
        node = cast("dict[str, Any]", core)
        parts = {name: _with_lists(part) for name, part in node.items()}
        if node.get("type") == "generator":
            return {**parts, "type": "list"}
        return parts if any(parts[name] is not node[name] for name in node) else node
    if isinstance(core, list):
        items = cast("list[Any]", core)
        parts = [_with_lists(part) for part in items]
        return parts if any(new is not old for new, old in zip(parts, items, strict=True)) else items
    return core


@contextlib.contextmanager
def _typed_dicts() -> Generator[None]:
    """Lets pydantic accept `typing.TypedDict` on Python 3.11, at any depth of a type.

    pydantic rejects it there because it could not find validators in the base classes of one. A tool's arguments need
    none, and people should not have to switch to another TypedDict. In a pydantic version without this setting it is
    rejected.
    """
    inner: Any = importlib.import_module("pydantic._internal._generate_schema")
    before = getattr(inner, "_SUPPORTS_TYPEDDICT", None)
    if sys.version_info >= (3, 12) or before is not False:
        yield
        return
    inner._SUPPORTS_TYPEDDICT = True
    try:
        yield
    finally:
        inner._SUPPORTS_TYPEDDICT = before
