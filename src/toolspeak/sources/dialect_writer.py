"""Writes a dialect as the Python source of a file in `dialects/`."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from ..wire.dialect import Dialect


def source_of(d: Dialect) -> str:
    """Return a whole file with the dialect. Fields with their default value are left out."""
    used = {type(d).__name__}
    fields = "".join(f"    {field},\n" for field in _fields(d, used))
    imports = ", ".join(sorted(used, key=lambda name: (not name.isupper(), name)))
    name = re.sub(r"\W+", "_", d.name).upper()
    return (
        f'"""{d.name}: {d.origin}."""\n\nfrom toolspeak.wire.dialect import {imports}\n\n{name} = Dialect(\n{fields})\n'
    )


def _fields(value: Any, used: set[str]) -> Iterator[str]:
    """Yield the arguments that create the value: required ones by position, others by name if they differ from the
    default."""
    for field in dataclasses.fields(value):
        content = getattr(value, field.name)
        if field.default is dataclasses.MISSING:
            yield _literal(content, used)
        elif field.compare and content != field.default:
            yield f"{field.name}={_literal(content, used)}"


def _literal(value: Any, used: set[str]) -> str:
    """Return the value as Python source; names that must be imported are added to `used`."""
    from ..wire.dialect import Slot

    if isinstance(value, Slot):
        used.add(value.name)
        return value.name
    if isinstance(value, str):
        text = repr(value)
        return text if '"' in text or "\\'" in text else f'"{text[1:-1]}"'
    if isinstance(value, tuple):
        items = [_literal(item, used) for item in cast("tuple[Any, ...]", value)]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if dataclasses.is_dataclass(value):
        used.add(type(value).__name__)
        return f"{type(value).__name__}({', '.join(_fields(value, used))})"
    return repr(value)
