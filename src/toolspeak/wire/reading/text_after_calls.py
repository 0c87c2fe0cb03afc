"""Notes a text that continues after a call inside it: then the text only talks about the call.

The text may go on behind markers around the call that are not its own: those of another family, or a frame. What counts as
its line then begins before the marker that opened the call, and goes on behind the one that closes it.
"""

from __future__ import annotations

from .call_repairs import only
from .continued_sentences import beyond_markers, sentence_goes_on
from .lexicon import Program
from .lookahead import ahead
from .next_mark import goes_on, marked_to_its_end
from .source import SPACE, Scan, beginning, following
from .state import State


def note_text_after_call(s: State, p: Program) -> Scan[None]:
    """Notes a text that continues after a call inside it: on its line or, after a fence or an unfinished sentence,
    anywhere. Markers of another dialect around its calls are no text."""
    if not all((s.complete_call, s.text_before_call)):
        return
    offset = yield from beyond_markers(s, p, 0)
    continues = yield from _continues(s, p, offset)
    if offset and not continues:
        marked = (yield from _continues(s, p, 0)) and (yield from marked_to_its_end(s))
    else:
        marked = continues and (yield from marked_to_its_end(s)) > bool(offset)
    if any((continues, marked)):
        s.note("other-markers" if marked else "trailing-text", (yield from beginning(s)))
    if offset and not continues:
        s.end_complete_call()  # whatever the text of a marker begins with


def _continues(s: State, p: Program, offset: int) -> Scan[bool]:
    """Whether the text before the call continues so many characters ahead."""
    c = yield from following(s, offset)
    same = any((s.fenced, goes_on(s.line), "\n" not in SPACE(s.text, s.pos + offset)[0]))
    if not all((c, same)):
        return False
    if offset and not any((s.line, s.fenced)):  # the text is above the markers
        return (yield from sentence_goes_on(s, p))
    legal = p.fences if s.fenced else [word for word in p.legal if not offset or word != "["]
    return (yield from ahead(s, offset, tuple(legal))) <= 0 and not (yield from only(s, p.beyond_fence))
