"""pydantic's adapter of a Python type: what makes its JSON Schema, and its values from JSON data."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def adapter(annotation: Any) -> TypeAdapter[Any]:
    """The adapter of a type; raises what pydantic raises where the type has no JSON form."""
    from pydantic import TypeAdapter

    with _typed_dicts():
        return TypeAdapter(annotation)


@contextlib.contextmanager
def _typed_dicts() -> Generator[None]:
    """Lets pydantic read `typing.TypedDict` on Python 3.11, wherever in a type it stands.

    It refuses there, because it could not find validators among the bases of one. A tool's arguments do
    without them, and to ask people for another TypedDict is worse. Where this switch is gone, it refuses again.
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
