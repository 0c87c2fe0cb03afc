"""Loads cases by name: `bfcl:CATEGORY[a:b]`, or a file of the user."""

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
    """The cases of all names: `bfcl:multiple[:100]`, or a path to a JSON Lines file, which may have brackets as well.

    `tools` are offered in the cases of files that list none. `split` selects the cases of that split. `plain_names`
    names the leaderboard's functions `a_b` instead of `a.b`. Raises UsageError for what cannot be read, and
    WeightsError if the leaderboard's package cannot be downloaded.
    """
    offered = None if tools is None else tuple(tools)
    cases: dict[str, Case] = {}
    for name in names:
        for case in _named(name, offered, plain_names):
            if case.id in cases:
                raise UsageError(f"the case {case.id!r} comes twice, the second time from {name}")
            cases[case.id] = case
    every = list(cases.values()) if split is None else _of_split(list(cases.values()), split)
    if not every:
        raise UsageError("no cases: expected bfcl:CATEGORY, such as bfcl:simple[100:110], or a file of JSON lines")
    return every


def _of_split(cases: Sequence[Case], split: str) -> list[Case]:
    chosen = [case for case in cases if case.split == split]
    if not chosen:
        known = sorted({case.split for case in cases} - {""})
        raise UsageError(f"no case is of the split {split!r}; there are: {', '.join(known) or 'none'}")
    return chosen


def _named(name: str, tools: Sequence[Tool[..., Any]] | None, plain_names: bool) -> list[Case]:
    kind, colon, rest = name.partition(":")
    if kind == "bfcl" and colon:
        return bfcl.load(rest, plain_names=plain_names)
    path = Path(name).expanduser()
    match = None if path.exists() else SLICE.fullmatch(name)
    if match is None:
        return jsonl_cases.load(_file(path, name), tools)
    start, stop = (int(part) if part else None for part in (match[2], match[3]))
    chosen = jsonl_cases.load(_file(Path(match[1]).expanduser(), name), tools)[start:stop]
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
    """The cases reordered so that groups take turns: a run that stops early has seen all of them."""
    at: dict[str, int] = {}
    places: list[tuple[int, int]] = []
    for i, case in enumerate(cases):
        at[case.group] = at.get(case.group, -1) + 1
        places.append((at[case.group], i))
    return [cases[i] for _, i in sorted(places)]
