"""The state of a call that is being read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Call:
    """A call being read.

    `guard`: it counts only for an offered tool; `strict`: the tool must be offered by name. `filled`: its arguments
    are complete, whatever happens to its closer. `open_ended`: nothing closes it. `unclosed`: nothing closes its
    arguments or its object.
    """

    guard: bool = False
    strict: bool = False
    name: str | None = None
    id: str = ""
    late_id: str | None = None
    started: bool = False
    filled: bool = False
    ended: bool = False
    open_ended: bool = False
    unclosed: bool = False
