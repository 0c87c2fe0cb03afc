"""A draft of the dialect that an unknown chat template writes, read off what its renderings differ in.

The template is asked for one call, two calls, two arguments, an argument of each type. What stands between the
names, keys and values that went in are the dialect's literals; where they stand (in one JSON object, behind
the name, one by one) is its hole. The draft is a value like any other: data, never code.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import cast

from ...types import Reply, ToolCall
from ..decode import parse
from ..dialect import ID as ID_SLOT, INDEX, NAME as NAME_SLOT, Dialect, NumberedName, Part
from ..reading.lexicon import MARK
from .holes import NUMBER, Body, Samples, body_of
from .margins import margins
from .probe import BOTH, ID, NAME, TEXT, TOOLS, Probe, call, common_end, common_start, marked, probe


@lru_cache(64)
def draft(template: str) -> Dialect | None:
    """The dialect that the template writes, as far as its renderings tell; None where they do not tell one, or where
    the draft does not read what the template wrote."""
    p = probe(template)
    shown = _call_samples(p) if p else None
    if p is None or shown is None:
        return None
    body = body_of(p, shown)
    if body is None:
        return None
    d = margins(p, _dialect(body, shown.before))
    return d if reads(p, d) else None


def reads(p: Probe, d: Dialect, *calls: ToolCall) -> Reply | None:
    """How the dialect reads the calls, or else one with two arguments, as the template writes them; None where it
    reads other ones or none."""
    calls = calls or (BOTH,)
    prompt, written = p.reply(*calls)
    reply = parse(written, d, TOOLS, prompt)
    found = [(c.name, c.arguments) for c in reply.calls]
    return reply if found == [(c.name, c.arguments) for c in calls] else None


def _call_samples(p: Probe) -> Samples | None:
    """The calls as they stand alone or behind a text, whichever shows all that is theirs and nothing else."""
    alone, behind = p.calls(call(), alone=True), p.calls(call())
    core = alone.strip()
    turn = MARK.search(p.head())
    extra, found, _ = behind.partition(core) if core else ("", "", "")
    if found and turn and turn[0] in extra:
        extra = ""  # the template puts the text and the calls into turns of their own
    rotated = len(alone) == len(behind) and behind in alone + alone
    is_alone = bool(core) and (rotated or not behind or (bool(found) and not extra.strip()))
    if not (core if is_alone else behind):
        return None
    one, two = p.calls(call(), alone=is_alone), p.calls(call(), call(1), alone=is_alone)
    blank = " " if alone[:1] == " " == behind[:1] else ""
    rest = marked(p.show(call(), text=TEXT).rpartition(TEXT)[2])
    lead = rest[: max(rest.find(one.strip()), 0)]
    return Samples(blank + one.strip(), two and blank + two.strip(), "" if lead.strip() else lead.removesuffix(blank))


def _dialect(body: Body, before: str) -> Dialect:
    """The draft: what comes back for the second call belongs to the call, the rest to the section."""
    first, last, opened, closed, between = body.front, body.behind, "", "", ""
    items = body.items
    if items:
        opened, closed, first, last = first, last, "", ""
    elif body.middle is not None:
        opened, first, between, last, closed = _sections(body.front, body.middle, body.behind)
        if first.startswith(NAME) and opened.endswith("[") and closed.startswith("]"):
            items, opened, closed, between = ("[", between or ", ", "]"), opened[:-1], closed[1:], ""
    closed, ends = _excess(opened, closed)
    guard = not (opened.strip() or first.replace(NAME, "").strip())
    return Dialect(
        "drafted",
        (*_parts(first), body.hole, *_parts(last)),
        open=opened,
        close=closed,
        between=between or "\n" * guard,
        items=items,
        before=before,
        thinking=None,
        frame=ends,
        guard=guard,
        index_base=body.base,
        origin="drafted from its chat template",
    )


def _sections(front: str, middle: str, behind: str) -> tuple[str, str, str, str, str]:
    """The section's opener, the call's, what is between two calls, the call's closer, the section's.

    Blanks at the ends of a call are between the calls: so people write them, and reading does not mind.
    """
    first, last = _shared(front, middle, behind)
    opened, closed = front[: len(front) - len(first)], behind[len(last) :]
    between = middle[len(last) : len(middle) - len(first)]
    bare = last.rstrip()
    if closed or not bare:
        between, closed, last = last[len(bare) :] + between, last[len(bare) :] + closed, bare
    bare = first.lstrip()
    if opened or not bare:
        blank = first[: len(first) - len(bare)]
        between, opened, first = between + blank, opened + blank, bare
    return opened, first, between, last, closed


def _shared(front: str, middle: str, behind: str) -> tuple[str, str]:
    """How a call begins and how it ends: what comes back between two calls.

    A mark may belong to either; then the section has as many marks in front as behind.
    """
    last = common_start(behind, middle)
    first = common_end(front, middle[len(last) :])
    other = common_end(front, middle)
    rest = common_start(behind, middle[: len(middle) - len(other)])
    odd = [
        abs(len(MARK.findall(front[: len(front) - len(a)])) - len(MARK.findall(behind[len(b) :])))
        for a, b in ((first, last), (other, rest))
    ]
    return (first, last) if odd[0] <= odd[1] else (other, rest)


def _excess(opened: str, closed: str) -> tuple[str, tuple[str, ...]]:
    """The closer without marks that nothing opened, and those: they end the turn."""
    marks = list(MARK.finditer(closed))
    n = len(MARK.findall(opened))
    if len(marks) <= n:
        return closed, ()
    at = marks[n].start()
    return closed[:at].rstrip(), tuple(m[0] for m in marks[n:])


def _parts(text: str) -> list[Part]:
    """The text as literals and slots; an id that holds the name is one slot."""
    slots: dict[str, Part] = {NAME: NAME_SLOT, ID: ID_SLOT, NUMBER: INDEX}
    parts: list[Part] = [slots.get(t, t) for t in re.split(f"([{NAME}{ID}{NUMBER}])", text) if t]
    for i in range(1, len(parts) - 2):
        before, name, mid, number = parts[i - 1 : i + 3]
        holds = isinstance(before, str) and re.search(r"[\w.]*\Z", before)
        if name is NAME_SLOT and number is INDEX and isinstance(mid, str) and len(mid) == 1 and holds:
            whole = NumberedName(holds[0], mid)
            lead = cast("str", before)[: holds.start()]
            return [*parts[: i - 1], *([lead] if lead else []), whole, *parts[i + 3 :]]
    return parts
