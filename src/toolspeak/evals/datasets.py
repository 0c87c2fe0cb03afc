"""Cases by name: `bfcl:CATEGORY[a:b]`, or a file of one's own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..types import Tool
from . import bfcl, jsonl_cases
from .case import Case

SLICE = re.compile(r"(.+)\[(-?\d*):(-?\d*)\]", re.DOTALL)


def load(
    *names: str,
    tools: Iterable[Tool[..., Any]] | None = None,
    split: str | None = None,
    plain_names: bool = False,
) -> list[Case]:
    """The cases of all names together: `bfcl:multiple[:100]`, or a path to JSON lines, with brackets too.

    `tools` go with the lines of files that have none. `split` keeps the cases of that split. `plain_names` calls the
    leaderboard's functions `a_b` where it has `a.b`. Raises UsageError for
    what cannot be read, WeightsError where the leaderboard's package cannot be fetched.
    """
    offered = None if tools is None else tuple(tools)
    cases: dict[str, Case] = {}
    for name in names:
        for case in _named(name, offered, plain_names):
            if case.id in cases:
                raise UsageError(f"the case {case.id!r} comes twice, the second time from {name}")
            cases[case.id] = case
    found = list(cases.values()) if split is None else _of_split(list(cases.values()), split)
    if not found:
        raise UsageError("no cases: expected bfcl:CATEGORY, such as bfcl:simple[100:110], or a file of JSON lines")
    return found


def _of_split(cases: Sequence[Case], split: str) -> list[Case]:
    found = [case for case in cases if case.split == split]
    if not found:
        known = sorted({case.split for case in cases} - {""})
        raise UsageError(f"no case is of the split {split!r}; there are: {', '.join(known) or 'none'}")
    return found


def _named(name: str, tools: Sequence[Tool[..., Any]] | None, plain_names: bool) -> list[Case]:
    kind, colon, rest = name.partition(":")
    if kind == "bfcl" and colon:
        return bfcl.load(rest, plain_names=plain_names)
    path = Path(name).expanduser()
    found = None if path.exists() else SLICE.fullmatch(name)
    if found is None:
        return jsonl_cases.load(_file(path, name), tools)
    start, stop = (int(part) if part else None for part in (found[2], found[3]))
    chosen = jsonl_cases.load(_file(Path(found[1]).expanduser(), name), tools)[start:stop]
    if not chosen:
        raise UsageError(f"{name} is empty")
    return chosen


def _file(path: Path, name: str) -> Path:
    if path.is_dir():
        raise UsageError(f"{path} is a folder; expected a file of JSON lines")
    if not path.is_file():
        hint = f" Did you mean bfcl:{name}?" if name.partition("[")[0] in (*bfcl.CATEGORIES, *bfcl.ALIASES) else ""
        raise UsageError(f"there is no file {path}.{hint} Expected bfcl:CATEGORY or a file of JSON lines")
    return path


def mixed(cases: Sequence[Case]) -> list[Case]:
    """The cases with their groups taking turns, so that a run cut short has some of each."""
    at: dict[str, int] = {}
    places: list[tuple[int, int]] = []
    for i, case in enumerate(cases):
        at[case.group] = at.get(case.group, -1) + 1
        places.append((at[case.group], i))
    return [cases[i] for _, i in sorted(places)]
