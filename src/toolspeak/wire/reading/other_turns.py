"""Recognizes where the reply is over, because the model goes on with the turn of another role.

A model whose engine does not stop at the end of its turn writes the user's next request, or the result of its own call,
and then a call that rests on that. Nothing there is its reply, so no call in it counts.

- Behind a call or the dialect's own mark of an end, a head is the next turn: the reply ends there, with a note.
- At the beginning of a line, or directly behind a sentence or another family's mark of an end, it may be an example in a
  text. The text goes on, but no call behind it counts; the first of them ends the reply, with the note. A note
  `call-in-turn` says that a call may have been lost, so that the model can be asked again.
- In quoted text, and within a line, it is text.
"""

from __future__ import annotations

from functools import lru_cache

from ...types import Note
from ..turn_ends import TURN_ENDS
from ..turn_heads import MODEL_LABEL, USER_LABELS, is_result
from .lexicon import END, FRAME, OTHER, TEXT, TURN, Program
from .lookahead import ahead
from .quotations import CodeBlock
from .source import Scan, at, following
from .state import State

GLUE = frozenset(".!?:;)>]}。！？")
"""What a head may directly follow on its line: the end of a sentence or of a mark."""
MAY_END = frozenset((TURN, OTHER, FRAME, END))
"""The kinds of marks that may end the model's turn."""


def turn(s: State, p: Program, kind: str, space: str, word: str, block: CodeBlock) -> Scan[bool]:
    """After a mark that was consumed: whether it begins the turn of another role, or ends the model's before one."""
    if block.open:
        return False
    if kind in (TURN, OTHER):
        _leave(s, p, kind, space + word)
        return True
    return (yield from _behind_end(s, p, word))


def _behind_end(s: State, p: Program, word: str) -> Scan[bool]:
    """After a frame or an end that was consumed: whether it ends the model's turn, and another role's follows. Consumes its
    head."""
    ends = all((word in (*p.d.stop, *p.ends, *TURN_ENDS), p.turns, s.other_turn is None))
    head = (yield from at(s, *p.turns, eat=False)) if ends else ""
    size = (yield from ahead(s, 0, (head,))) if head else 0
    if not (yield from _has_role(s, p, head, size)):
        return False
    s.pos += size
    _leave(s, p, TURN if word in (*p.d.stop, *p.ends) else OTHER, head)
    return True


def _has_role(s: State, p: Program, word: str, size: int) -> Scan[bool]:
    """Whether this mark, which ends so many characters ahead, is a head, and a turn follows it. Before a call a mark
    without a role may be one around it, or the end of a turn."""
    if word not in p.turns:
        return False
    if p.turns[word]:
        size = yield from ahead(s, size, p.turns[word])
        if size <= 0:
            return False
    called = 0 if p.turns[word] else (yield from ahead(s, size, (*p.marked, *p.frames)))
    return called <= 0 and (yield from following(s, size)) != ""


def turn_begun(s: State, p: Program, word: str, kind: str) -> Scan[str]:
    """The kind of a mark that was consumed where a call may begin: TURN behind a call, if it is a head."""
    if (yield from _has_role(s, p, word, 0)):
        certain = TURN if s.call_count else OTHER
        return certain if any((s.call_count, s.has_text, word not in USER_LABELS)) else TEXT
    return TEXT if kind == TURN else kind


def turn_in_text(s: State, p: Program, word: str, kind: str) -> Scan[str]:
    """The kind of a mark that was consumed in a text: TURN behind the mark of an end, OTHER where a turn may begin."""
    if p.inside.get(word) == OTHER and word not in p.turns:
        return _labeled(s, word.strip())
    if (yield from _has_role(s, p, word, 0)):
        before = s.recent.rstrip()
        if before.endswith(p.d.stop):
            return TURN
        if any((word[0] == "\n", not s.line, s.recent[-1:] in GLUE, before.endswith(TURN_ENDS))):
            return OTHER
    return TEXT if kind == OTHER else kind


def _labeled(s: State, label: str) -> str:
    """The kind of a label at the beginning of a line: a turn behind an empty line, or the model's behind the user's."""
    if label == MODEL_LABEL:
        return OTHER if s.user_label else TEXT
    s.user_label = True
    return OTHER if s.recent.endswith("\n") else TEXT


@lru_cache(512)
def result_marks(p: Program) -> tuple[str, ...]:
    """The marks that begin the result of a tool, without labels, which a text may also have."""
    return tuple(word for word, roles in p.turns.items() if is_result(word) and not roles and word[-1:] not in ":*")


def _leave(s: State, p: Program, kind: str, head: str) -> None:
    """After the head of another role's turn: the reply is over, or no more calls count. It becomes text."""
    s.commit()
    behind = s.text[s.pos :].lstrip()
    roles = [role for role in p.turns.get(head.strip(), ()) if behind.startswith(role)]
    detail = head.strip() + max(roles, key=len, default="")
    if s.other_turn is None:
        s.other_turn = note = Note("invented-result" if is_result(head) else "invented-turn", detail, s.offset + s.pos)
        s.reply_over = kind == TURN
        if s.reply_over:
            s.end_complete_call()  # nothing but the call is before the head
            s.note(note.rule, note.detail, note.at)
    s.emit_text(head)
