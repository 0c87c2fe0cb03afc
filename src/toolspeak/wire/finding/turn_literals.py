"""Finds the literals that a chat template writes around a thought and a text, and at the end of a turn."""

from __future__ import annotations

import re
from dataclasses import replace

from ..dialect import Dialect, Thinking
from ..marker_forms import BREAKABLE
from ..reading.lexicon import MARK
from .probe import TEXT, THOUGHT, Probe, between, call, common_start

LAST = re.compile(rf"(?:(?:{MARK.pattern})\w+)?(?:{MARK.pattern})\s*\Z|(?:{MARK.pattern})\w+\s*\Z")
FIRST = re.compile(rf"\s*(?:{MARK.pattern})(?:\w+(?:{MARK.pattern}))?\s*")
"""A marker, or two with a word between them, at the end and at the beginning of a text."""
PAIR = re.compile(r"<([^<>\s/]*think[^<>\s/]*)>|\[(THINK\w*)\]", re.IGNORECASE)


def margins(p: Probe, d: Dialect) -> Dialect:
    """The draft with the literals around thoughts and texts, and those that end a turn."""
    plain = p.show(text=TEXT)
    before, _, tail = plain.rpartition(TEXT)
    turn = between(p.show(call()), plain)
    left, _, right = turn.partition(TEXT) if TEXT in turn else ("", "", "")
    thinking = _thinking(p, plain)
    own: tuple[str, ...] = ()
    if thinking:
        own = (thinking.open.strip(), thinking.close.strip())
        left = _without(thinking, left)
        literals = [_without(thinking, part) if isinstance(part, str) else part for part in d.call]
        d = replace(d, open=_without(thinking, d.open), call=tuple(part for part in literals if part))
    opener, closer = (
        LAST.search(before) if MARK.search(left) else None,
        FIRST.match(tail) if MARK.search(right) else None,
    )
    marks = [m[0].strip().removeprefix(p.head().strip()) for m in (opener, closer) if m]
    frame = dict.fromkeys((*d.frame, *(mark for mark in marks if mark and mark not in own)))
    end = _end_of_turn(tail, (*own, *frame))
    return replace(d, thinking=thinking, frame=tuple(frame), stop=tuple(dict.fromkeys((*d.frame, *end))))


def _end_of_turn(tail: str, others: tuple[str, ...]) -> list[str]:
    """What ends a turn, if anything does: a mark after its text that is none of the others, else a word of symbols."""
    ends = [m[0].strip() for m in FIRST.finditer(tail)]
    if not ends:
        return list(filter(BREAKABLE.fullmatch, tail.split()[:1]))
    return [*(mark for mark in ends if mark not in others), ends[-1]][:1]


def _without(thinking: Thinking, text: str) -> str:
    """The text without an empty or only closed thought before it."""
    opened = text.partition(thinking.open.strip())
    rest = opened[2] if opened[1] and not opened[0].strip() else text
    before, match, after = rest.partition(thinking.close.strip())
    return after.lstrip() if match and not before.strip() else text


def _thinking(p: Probe, plain: str) -> Thinking | None:
    """The literals around a thought: as the template writes one, or else begins a reply with one, or else searches for
    one."""
    for calls, text in (((), TEXT), ((call(),), TEXT), ((call(),), "")):
        for more in ({}, {"enable_thinking": True, "thinking": True}):
            prompt = p.show(*calls, text=text, thought=THOUGHT, **more)
            if prompt.count(THOUGHT) == 1 and (thinking := _around(p, prompt, plain, text or call().name)):
                return thinking
    return _named(p.template)


def _around(p: Probe, prompt: str, plain: str, after: str) -> Thinking | None:
    """The text before and after the thought in this rendering."""
    left, _, right = prompt.partition(THOUGHT)
    close = right.partition(after)[0]
    first = FIRST.match(close)
    close = first[0] if first else close
    last, own = LAST.search(left), left[len(common_start(left, plain)) :]
    empty = last and re.search(re.escape(last[0].strip()) + r"\s*" + re.escape(close.strip()), plain)
    if last and (empty or MARK.search(own)):
        opener = last[0].removeprefix(p.head().strip())
    elif own.strip():  # it is there only with a thought
        opener = own
    else:  # there is only the head of the turn: a reply begins after its markers
        head = p.head()
        opener = head[max((m.end() for m in MARK.finditer(head)), default=0) :].lstrip()
    return Thinking(opener, close) if opener.strip() and close.strip() else None


def _named(template: str) -> Thinking | None:
    """A pair of thought markers that the template mentions."""
    for m in PAIR.finditer(template):
        closer = f"</{m[1]}>" if m[1] else f"[/{m[2]}]"
        if closer in template:
            return Thinking(m[0], closer)
    return None
