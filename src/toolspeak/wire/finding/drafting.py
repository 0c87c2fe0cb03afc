"""Drafts the dialect of an unknown chat template from the differences between its renderings.

The template renders one call, two calls, two arguments, and an argument of each type. The text between the names, keys
and values that were put in gives the dialect's literals. Their arrangement (in one JSON object, after the name, one by
one) gives the hole. A draft is data like any other dialect, never code.
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
from .probe import BOTH, ID, NAME, TEXT, TOOLS, Probe, call, common_end, common_start, marked, probe
from .turn_literals import margins


@lru_cache(64)
def draft(template: str) -> Dialect | None:
    """The dialect that the template writes, as far as its renderings show it. None if they do not show one, or if the
    draft cannot read what the template wrote."""
    p = probe(template)
    samples = _call_samples(p) if p else None
    if p is None or samples is None:
        return None
    body = body_of(p, samples)
    if body is None:
        return None
    d = margins(p, _dialect(body, samples.before))
    return d if reads(p, d) else None


def reads(p: Probe, d: Dialect, *calls: ToolCall) -> Reply | None:
    """How the dialect reads the calls, or one call with two arguments, as the template writes them; None if it reads
    other calls or none."""
    calls = calls or (BOTH,)
    prompt, written = p.reply(*calls)
    reply = parse(written, d, TOOLS, prompt)
    pairs = [(c.name, c.arguments) for c in reply.calls]
    return reply if pairs == [(c.name, c.arguments) for c in calls] else None


def _call_samples(p: Probe) -> Samples | None:
    """The calls as rendered alone or after a text, whichever shows all of them and nothing else."""
    alone, behind = p.calls(call(), alone=True), p.calls(call())
    core = alone.strip()
    turn = MARK.search(p.head())
    extra, match, _ = behind.partition(core) if core else ("", "", "")
    if match and turn and turn[0] in extra:
        extra = ""  # the template puts text and calls into separate turns
    rotated = len(alone) == len(behind) and behind in alone + alone
    is_alone = bool(core) and (rotated or not behind or (bool(match) and not extra.strip()))
    if not (core if is_alone else behind):
        return None
    one, two = p.calls(call(), alone=is_alone), p.calls(call(), call(1), alone=is_alone)
    blank = " " if alone[:1] == " " == behind[:1] else ""
    rest = marked(p.show(call(), text=TEXT).rpartition(TEXT)[2])
    lead = rest[: max(rest.find(one.strip()), 0)]
    return Samples(blank + one.strip(), two and blank + two.strip(), "" if lead.strip() else lead.removesuffix(blank))


def _dialect(body: Body, before: str) -> Dialect:
    """The draft. What is repeated for the second call belongs to the call, the rest to the section."""
    first, last, opened, closed, between = body.front, body.behind, "", "", ""
    items = body.items
    if items:
        opened, closed, first, last = first, last, "", ""
    elif body.middle is not None:
        opened, first, between, last, closed = _sections(body.front, body.middle, body.behind)
        if first.startswith(NAME) and opened.endswith("[") and closed.startswith("]"):
            items, opened, closed, between = ("[", between or ", ", "]"), opened[:-1], closed[1:], ""
    closed, ends = _without_end_marks(opened, closed)
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
    """The section's opener, the call's opener, the text between two calls, the call's closer, the section's closer.

    Whitespace at the ends of a call counts as being between the calls, which is how people write it; it makes no
    difference for reading.
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
    """The beginning and the end of a call: what is repeated between two calls.

    A mark that may belong to either is assigned so that the section has as many marks before as after.
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


def _without_end_marks(opened: str, closed: str) -> tuple[str, tuple[str, ...]]:
    """The closer without marks that no opener matches, and these marks: they end the turn."""
    marks = list(MARK.finditer(closed))
    n = len(MARK.findall(opened))
    if len(marks) <= n:
        return closed, ()
    at = marks[n].start()
    return closed[:at].rstrip(), tuple(m[0] for m in marks[n:])


def _parts(text: str) -> list[Part]:
    """The text as literals and slots; an id that contains the name is one slot."""
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
