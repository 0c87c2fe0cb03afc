"""The beginning of a call at the end of a text that its server cut, in a dialect that nobody knows."""

from __future__ import annotations

from collections.abc import Iterable

from ..events import Event, Noted, TextDelta
from ..wire.reading.cut_replies import CUT_CALL


def without_half_call(events: list[Event], ended: Iterable[Event], size: int) -> list[Event]:
    """The last events of a reply without the beginning of a call, if a decoder that read all its text, of so many
    characters, left one out: `ended` are that decoder's last events."""
    note = next((one for one in ended if isinstance(one, Noted) and one.note.rule == CUT_CALL), None)
    if note is None:
        return events
    text = "".join(one.text for one in events if isinstance(one, TextDelta))
    before = text[: max(0, len(text) - size + note.note.at)]
    others = [one for one in events if not isinstance(one, TextDelta)]
    return [*([TextDelta(before)] if before else []), *others, note]
