"""The dialects of model families. Each family has one small file of data, and the file's name registers it."""

from __future__ import annotations

import difflib
import pkgutil
from functools import cache
from importlib import import_module

from ..errors import UnknownDialect
from ..wire.dialect import Dialect


def names() -> list[str]:
    """The names of all dialects, sorted."""
    return sorted(_all())


def get(name: str | Dialect) -> Dialect:
    """The dialect of that name (`-` and `_` are the same), or the dialect itself if it is one. Raises UnknownDialect
    with the nearest names, or with that of the dialect which models of this name speak."""
    if isinstance(name, Dialect):
        return name
    wanted = name.strip().lower().replace("_", "-")
    dialect = _all().get(wanted)
    if dialect is None:
        near = difflib.get_close_matches(wanted, names(), 3, 0.5)
        if wanted.endswith((".py", ".json")):
            raise UnknownDialect(
                f"no dialect is called {name!r}; a file is read by --dialect and in the gateway's configuration: in Python "
                "give the Dialect that it holds",
                name=name,
            )
        if spoken := _of_model(wanted):
            hint = f"did you mean {spoken!r}? Models with this name speak it"
            raise UnknownDialect(f"no dialect is called {name!r}; {hint}", name=name, near=[spoken])
        hint = f"near ones: {', '.join(near)}" if near else f"`toolspeak dialects` lists all {len(names())}"
        raise UnknownDialect(f"no dialect is called {name!r}; {hint}", name=name, near=near)
    return dialect


def _of_model(name: str) -> str:
    """The name of the dialect which models whose names begin like this certainly speak; "" if there is none."""
    rows = [
        (len(part), d.name) for d in _all().values() for part in d.models if f"{name}-".startswith(f"{part.lower()}-")
    ]
    return max(rows, default=(0, ""))[1]


@cache
def _all() -> dict[str, Dialect]:
    files = [m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")]
    values = [v for f in files for v in vars(import_module(f"{__name__}.{f}")).values()]
    return {v.name: v for v in values if isinstance(v, Dialect)}
