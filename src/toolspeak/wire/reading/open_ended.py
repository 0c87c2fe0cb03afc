"""Decides whether what follows a section of calls may belong to its last call, above all if nothing closes that call.

Then words may follow on the next line, since models go on with a comment. What they may not be is a part of the call:

- A further object, key or value belongs to it, and so does anything behind an object without its brace.
- Where arguments may be a text, such as in `Action Input: …`, the rest of the line may be one, and a text may go on in the
  next paragraph.
"""

from __future__ import annotations

from ..dialect import Json
from .call import Call
from .call_repairs import drop_strays, follows
from .continued_sentences import sentence_goes_on
from .lexicon import Program
from .next_mark import marked_to_its_end
from .source import SPACE, Scan, at, beginning, following, peek
from .state import State

BELONGS = "{,:+\"'"
"""Characters that begin a further part of a call that nothing closes: another object, key or value."""
QUOTES = ("'", '"', "`")
TEXT_OR_OBJECT = Json(plain=True)
ENDS = ".;)]}"
"""What may end a line behind a call: a period, or a bracket too many."""


def ended_by(s: State, p: Program, closed: bool) -> Scan[None]:
    """The section is over. Its last call ends here, unless what follows decides whether it is one. If the closer of a
    value follows, the value may have gone on to it."""
    if p.value_closers and (goes_on := (yield from _value_goes_on(s, p))):
        s.note("trailing-text", goes_on)
    call = s.complete_call
    if call is None:
        return
    if not s.text_before_call:
        yield from _note_sentence(s, p)
    if not call.open_ended:
        if not any((s.text_before_call, s.surroundings)):
            s.end_complete_call()
    elif not closed:
        yield from _unclosed(s, p, call)


def _note_sentence(s: State, p: Program) -> Scan[None]:
    """Notes a sentence that begins with the call and goes on: it only talks about the call."""
    if (yield from sentence_goes_on(s, p)):
        s.note("trailing-text", (yield from beginning(s)))


def _value_goes_on(s: State, p: Program) -> Scan[str]:
    """What shows that a value between tags contains the closers of its call: the closer of a value comes once more, or
    directly behind them the end of a quotation, such as in `END = '</parameter></function></tool_call>'`."""
    closer = yield from at(s, *p.value_closers, eat=False)
    if closer:
        return closer
    quote = yield from peek(s, 1)
    return quote if quote in QUOTES else ""


def _unclosed(s: State, p: Program, call: Call) -> Scan[None]:
    """The call has no closer. Takes note of what follows, or follows a bracket too many, if that may belong to it."""
    yield from drop_strays(s, p.strays, p.openers)
    c = yield from following(s)
    if c and not (yield from _is_other(s, p, call, c)):
        s.note("trailing-text", (yield from beginning(s)))


def _is_other(s: State, p: Program, call: Call, c: str) -> Scan[bool]:
    """Whether what follows, beginning with `c`, is no part of the call: another call, a text, or what may follow a call."""
    belongs = any((call.unclosed, c in BELONGS))
    if not belongs:
        belongs = (yield from _same_line(s)) if p.d.call[-1] == TEXT_OR_OBJECT else False
    if any((not belongs, c == "{" in p.legal)):
        return True
    return (yield from follows(s, p.legal))


def _same_line(s: State) -> Scan[bool]:
    """Whether the line goes on with more than control markers, a period or brackets."""
    if "\n" in SPACE(s.text, s.pos)[0]:
        return False
    if (yield from marked_to_its_end(s)):
        return False
    return (yield from beginning(s)).strip(ENDS) != ""
