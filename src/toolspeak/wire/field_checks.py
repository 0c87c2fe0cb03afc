"""Checks the types of a dialect's fields when it is made. Each error names the field."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import cast

from ..errors import UsageError
from .marker_forms import BREAKABLE, LABEL

TEXTS = ("name", "open", "close", "between", "before")
LISTS = ("frame", "stop", "control", "models", "thinkers")
"""Fields that are a text, and fields that are a tuple of texts."""


def check_fields(dialect: object, name: str, values: Mapping[str, type]) -> None:
    """Raises UsageError for a field of a wrong type. `values` are the types of the fields that are a value of their own;
    all but `speech` may be None."""
    where = f"the dialect {name!r}"
    for field in TEXTS:
        if not isinstance(getattr(dialect, field), str):
            raise _wrong(dialect, where, field, "a text")
    for field in LISTS:
        _check_texts(dialect, where, field)
    for field, kind in values.items():
        allowed = kind if field == "speech" else kind | None
        if not isinstance(getattr(dialect, field), allowed):
            raise _wrong(dialect, where, field, f"{kind.__name__}(…)")
    for marker in cast("tuple[str, ...]", getattr(dialect, "control")):  # noqa: B009 - its class is not known here
        if not (BREAKABLE.fullmatch(marker.strip()) or LABEL.fullmatch(marker.strip())):
            raise UsageError(
                f"{where}: control: {marker!r} cannot be broken in outside text: a marker begins with a bracket or another "
                "symbol, such as <, [, ⟦, {, ( or @, and has at least two characters, or is a label such as 'User:'"
            )


def _wrong(dialect: object, where: str, field: str, expected: str) -> UsageError:
    return UsageError(f"{where}: {field}: expected {expected}, received {getattr(dialect, field)!r:.80}")


def _check_texts(dialect: object, where: str, field: str) -> None:
    value: object = getattr(dialect, field)
    if isinstance(value, str):
        raise _wrong(dialect, where, field, f"a tuple of texts: ({value!r:.40},) instead of ({value!r:.40})")
    texts = cast("tuple[object, ...]", value) if isinstance(value, tuple) else ("",)
    if not all(isinstance(text, str) and text for text in texts):
        raise _wrong(dialect, where, field, 'a tuple of texts such as ("<end>",)')


def check_parts(parts: object, where: str, kinds: type | UnionType) -> None:
    """Raises UsageError unless this is a tuple of parts of these `kinds`."""
    if not isinstance(parts, tuple):
        kind = type(parts).__name__
        raise UsageError(f'{where}: expected a tuple of parts such as ("<call>", JsonCall(), "</call>"), got {kind}')
    for part in cast("tuple[object, ...]", parts):
        if not isinstance(part, kinds):
            raise UsageError(f"{where}: expected literals and holes, got {part!r:.80}")
