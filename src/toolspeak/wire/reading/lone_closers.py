"""Recognizes the closer of a thought that nothing in the reply opened: its opener was in the prompt.

The reader did not see that prompt. So the reply began in a thought, and the calls before the closer were drafts. Their
events have passed, so the note `drafted-call` says that none of them is whole. As in any thought, calls at its very end
count if nothing follows it.

A prompt opens one thought, so only the first such closer counts. In quoted text, and within a sentence, it is text.
"""

from __future__ import annotations

from ...events import Noted
from ...types import Note
from ..turn_ends import TURN_ENDS
from .call_repairs import only
from .emphasized_tags import EMPHASIS
from .lexicon import Program
from .next_mark import goes_on
from .other_turns import GLUE
from .quotations import CodeBlock
from .source import SPACE, Scan, following
from .state import State


def note_drafts(s: State, p: Program, word: str, block: CodeBlock) -> Scan[None]:
    """After a mark in a text: if it closes a thought that the prompt opened, the calls before it were drafts."""
    closer = word.strip().strip(EMPHASIS)
    if not all((closer in p.lone_closers, s.unseen_thought, not block.open)):
        return
    if not (yield from _closes(s, p.lone_closers[closer], word)):
        return
    s.unseen_thought = False
    over = yield from only(s, (*p.frames, *p.lone_closers, *TURN_ENDS))
    if all((s.call_count, not all((over, not s.text_behind.visible)))):
        s.end_complete_call()
        s.emit(Noted(Note("drafted-call", closer, s.offset + s.pos)))


def _closes(s: State, opener: str, word: str) -> Scan[bool]:
    """Whether the mark closes something: it begins or ends a line, or directly follows a text. Behind an opener on its line, or
    a recent line that begins with one, it does not."""
    if any((opener in s.line, "\n" + opener in s.recent)):
        return False
    if any((word[0] == "\n", not s.line)):
        return True
    last = s.recent[-1:]
    if any((last in GLUE, goes_on(last))):
        return True
    return not (yield from following(s)) or "\n" in SPACE(s.text, s.pos)[0]
