"""Joins adjacent events of the same kind, so that later stages handle them once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from ..events import ArgumentsDelta, Event, TextDelta, ThoughtDelta


def joined(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events with adjacent deltas of text, thought or arguments joined. The boundaries of deltas carry no
    meaning."""
    if len(events) < 2:
        return events
    out: list[Event] = []
    values: Sequence[Any] = events
    for kind, group in groupby(values, type):
        if kind is TextDelta or kind is ThoughtDelta:
            out.append(kind("".join([event.text for event in group])))
        elif kind is ArgumentsDelta:
            out.append(ArgumentsDelta("".join([event.json for event in group])))
        else:
            out += group
    return out
