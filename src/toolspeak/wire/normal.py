"""A conversation made to fit: ids as a dialect or a template wants them, one call at a time, roles in their order."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..types import ToolCall
from .syntax import Dialect, NumberedName
from .turns import Turn

Form = Callable[[ToolCall, int], str]
"""(call, how many calls were before it in the chat) -> its id."""


def with_ids(turns: Sequence[Turn], form: Form) -> list[Turn]:
    """The turns with each call's id as `form` makes it; a result has that of the call it answers."""
    out: list[Turn] = []
    ids: list[str] = []
    for turn in turns:
        if turn.calls:
            new = tuple(replace(call, id=form(call, len(ids) + i)) for i, call in enumerate(turn.calls))
            ids += [call.id for call in new]
            turn = replace(turn, calls=new)
        elif 0 <= turn.index < len(ids):
            turn = replace(turn, id=ids[turn.index])
        out.append(turn)
    return out


def id_form(d: Dialect) -> Form | None:
    """How the dialect makes ids of its own; None where it takes any."""
    for part in d.call:
        if isinstance(part, NumberedName):
            prefix, mid = part.prefix, part.mid
            return lambda call, n: f"{prefix}{call.name}{mid}{n + d.index_base}"
    return short_ids(d.id_length) if d.id_length else None


def short_ids(length: int) -> Form:
    """Ids of that many letters and digits: an id that is one stays, any other becomes the number of its call."""
    fits = re.compile(f"[A-Za-z0-9]{{{length}}}")
    return lambda call, n: call.id if fits.fullmatch(call.id) else f"{n + 1:0{length}d}"[-length:]
