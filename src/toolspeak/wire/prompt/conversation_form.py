"""Adapts a conversation: ids in the form that a dialect or template needs, one call at a time, roles in order."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

from ...types import Note, ToolCall
from ..dialect import Dialect, NumberedName
from .turns import Turn

Form = Callable[[ToolCall, int], str]
"""(call, number of earlier calls in the conversation) -> its id."""


def with_ids(turns: Sequence[Turn], form: Form) -> list[Turn]:
    """The turns with each call's id made by `form`; a result has the id of its call."""
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
    """The dialect's form of ids; None if it accepts any."""
    for part in d.call:
        if isinstance(part, NumberedName):
            prefix, mid = part.prefix, part.mid
            return lambda call, n: f"{prefix}{call.name}{mid}{n + d.index_base}"
    return short_ids(d.id_length) if d.id_length else None


def short_ids(length: int) -> Form:
    """Ids of that many letters and digits: such an id stays, any other becomes the number of its call."""
    fits = re.compile(f"[A-Za-z0-9]{{{length}}}")
    return lambda call, n: call.id if fits.fullmatch(call.id) else f"{n + 1:0{length}d}"[-length:]


def one_at_a_time(turns: Sequence[Turn]) -> list[Turn]:
    """The turns with at most one call in each: a call, its results, the next call."""
    out: list[Turn] = []
    rest = deque(turns)
    while rest:
        turn = rest.popleft()
        if len(turn.calls) < 2:
            out.append(turn)
            continue
        results: list[Turn] = []
        while rest and rest[0].role == "tool":
            results.append(rest.popleft())
        for i, call in enumerate(turn.calls):
            out.append(replace(turn, calls=(call,)) if i == 0 else Turn("assistant", calls=(call,), at=turn.at))
            own = [result for result in results if result.id == call.id] if i + 1 < len(turn.calls) else results
            out += own
            results = [result for result in results if result not in own]
    return out


def joined_users(turns: Sequence[Turn], notes: list[Note]) -> list[Turn]:
    """The turns with consecutive user turns merged."""
    out: list[Turn] = []
    for turn in turns:
        if out and turn.role == out[-1].role == "user":
            out[-1] = replace(out[-1], text=f"{out[-1].text}\n\n{turn.text}")
            notes.append(Note("turns-joined", f"message {turn.at} is merged into the user's turn before it"))
        else:
            out.append(turn)
    return out


def text_apart(turns: Sequence[Turn]) -> list[Turn]:
    """The turns with a text beside calls as a turn of its own before them."""
    out: list[Turn] = []
    for turn in turns:
        if turn.calls and turn.text.strip():
            out += [Turn("assistant", turn.text, turn.thought, at=turn.at), replace(turn, text="", thought="")]
        else:
            out.append(turn)
    return out


def thoughts_apart(turns: Sequence[Turn], d: Dialect) -> list[Turn]:
    """The turns with a thought at the beginning of an assistant's text, in the dialect's markers, moved to `thought`."""
    if not d.thinking:
        return list(turns)
    opener, closer = d.thinking.open.strip(), d.thinking.close.strip()
    out: list[Turn] = []
    for turn in turns:
        text = turn.text.lstrip()
        if turn.role == "assistant" and not turn.thought and opener and closer and text.startswith(opener):
            thought, closed, rest = text[len(opener) :].partition(closer)
            turn = replace(turn, text=rest.lstrip("\n"), thought=thought.strip("\n")) if closed else turn
        out.append(turn)
    return out
