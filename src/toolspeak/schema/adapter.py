"""Creates pydantic's TypeAdapter for a Python type: it gives the type's JSON Schema, and its values from JSON data."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def adapter(annotation: Any) -> TypeAdapter[Any]:
    """The adapter of a type. Raises pydantic's own errors if the type has no JSON form."""
    from pydantic import TypeAdapter

    with _typed_dicts():
        return TypeAdapter(annotation)


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
