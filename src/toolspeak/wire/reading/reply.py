"""Reads a whole reply: texts, thoughts and messages, and where calls may begin in them.

Text is passed on to the next mark, and a call is an attempt: if there is none, its text is given back. Pitfalls:
quoted calls stay text, an unclosed thought may hold calls, and false openers must not take quadratic time (FAILURES).
"""

from __future__ import annotations

from functools import lru_cache

from ...events import TextDelta, ThoughtDelta
from .call_repairs import after_call, break_off, ends_inside, note_cut, note_unknown
from .calls import begin, section
from .code_blocks import calls_after
from .copied_markers import INVISIBLE, refuse_copy
from .cut_replies import as_if_open, is_regular, leave_out
from .frames import at_end, drop_closer, drop_frame, ends_message, keep_apart
from .heads import note_rest, pass_unread, read_head, tool_name
from .json_value import json_value
from .lexicon import (
    CALL,
    CODE,
    FENCE,
    FRAME,
    HEAD,
    TEXT,
    THINK,
    UNTHINK,
    Program,
    route,
)
from .lone_closers import note_drafts
from .next_mark import mark
from .other_turns import MAY_END, turn
from .quotations import CodeBlock, pass_element, pass_quoted
from .quoting_signs import ELEMENTS, LINE_COMMENTS, LINES, TICKS
from .source import GAP, SPACE, Malformed, Scan, at, following, skip
from .state import State
from .surroundings import note_example
from .text_after_calls import note_text_after_call
from .thoughts import after_prompt, note_draft, opened, thought

FAILURES = 2_000
"""After so many openers that open no call, the following ones are text, so that the time stays linear."""


def reply(s: State, p: Program, prompt: str | None) -> Scan[None]:
    """Reads the whole reply. Thoughts that are not separated stay in the text. If the prompt is unknown (`prompt` is
    None), a model that always thinks begins inside a thought, unless it opens one itself."""
    now, fresh = yield from _beginning(s, p, prompt or "", prompt is None)
    s.unseen_thought = now != THINK
    block = CodeBlock()
    while True:
        if now == THINK:
            word = yield from thought(s, p, attempt)
        else:
            word = yield from mark(s, p, fresh and not block.open, block)
        if word is None:
            return
        kind, literal, space = word
        fresh = True
        if kind == CALL and s.failed_openers >= FAILURES:
            fresh = False
            s.commit()
            s.note("too-many-openers")
            s.emit_text(space + literal)
        elif kind == CALL:
            fresh = yield from calls_after(s, p, attempt, literal, now == THINK, block)
            now = TEXT if fresh else now
        elif kind == HEAD:
            s.text_before_call = s.text_before_call or now == THINK
            now = yield from message_head(s, p, literal, now)
            now = (yield from headed(s, p, True)) if now == HEAD else now
        elif kind == THINK:
            yield from opened(s, p, literal, space)
            now = THINK
        else:
            named = now == THINK and all((p.named, s.tools))
            fresh = yield from minor_mark(s, p, kind, literal, space, block)
            now = (yield from headed(s, p, False)) if named else TEXT
        s.text_type = ThoughtDelta if now == THINK and all((p.split, not s.foreign_closer)) else TextDelta


def _beginning(s: State, p: Program, prompt: str, unknown: bool) -> Scan[tuple[str, bool]]:
    """The state in which the reply begins, and whether that starts something new."""
    thinking, now = p.d.thinking, p.begins(prompt)
    if unknown and thinking and thinking.always:
        now = "" if (yield from at(s, thinking.open.strip(), eat=False)) else THINK
    if now == THINK and p.unframed and (yield from at(s, *p.unframed, eat=False)):
        now = ""  # the prompt opened a thought, but the model does not think
    now = after_prompt(s, p, prompt, now)
    fresh, begun = p.anew(now, prompt), now == HEAD
    if not now and not prompt and ((p.named and s.tools) or (p.heads and (yield from at(s, *p.heads, eat=False)))):
        now = HEAD
    if now == HEAD:
        now = yield from headed(s, p, begun)
    if not now and (tail := p.opened(prompt)):  # read the end of the prompt as if the reply had written it
        s.prompt_length, s.offset = len(tail), -len(tail)
        s.text = tail + s.text
    return now, fresh


def minor_mark(s: State, p: Program, kind: str, word: str, space: str, block: CodeBlock) -> Scan[bool]:
    """Handles a mark that opens no call, thought or message, such as the end of a message or the fence of quoted text.
    Returns whether a call or a thought may begin right after it."""
    yield from note_drafts(s, p, word, block)
    if kind in MAY_END and (yield from turn(s, p, kind, space, word, block)):
        return False
    if (yield from ends_message(s, p, kind, word)):
        block.end()
        s.text_before_call = False
        s.emit_text(word if s.ignored_call else "")
        s.ignored_call = False
        yield from skip(s, p.frame_space.get(word, 0))
        yield from keep_apart(s, p, word)
        return True
    if all((kind == UNTHINK, word.strip() in p.unthink)) and (close := _closer_of_thought(p)):
        yield from drop_closer(s, p, word, close)
        return True
    if kind == FRAME and (yield from at_end(s, p, () if block.open else p.beyond)):
        yield from drop_frame(s, p, word)
        return True
    s.emit_text(space + word)
    if kind == CODE:
        yield from _show(s, p, word, block)
    return False


def _closer_of_thought(p: Program) -> str:
    """What closes a thought; "" if thoughts are not separated."""
    return p.d.thinking.close if p.d.thinking and p.split else ""


def _show(s: State, p: Program, word: str, block: CodeBlock) -> Scan[None]:
    """After the mark of quoted text: a code block opens or closes, or the quoted text is passed on."""
    if word == FENCE:
        return (yield from block.fence(s))
    if word in ELEMENTS:
        return (yield from pass_element(s, p, word))
    opener = ""
    if word in TICKS or word.strip() in (*LINE_COMMENTS, *LINES):
        opener = yield from at(s, *p.quotable, eat=False)
        lines = "\n" in SPACE(s.text, s.pos)[0]
        if word.strip() in LINE_COMMENTS and (lines or not opener):
            return None
        opener = "" if lines else opener
    elif s.broken_list and word == p.element:
        return None
    return (yield from pass_quoted(s, p, word, opener))


def headed(s: State, p: Program, begun: bool) -> Scan[str]:
    """Reads the head of a message whose start came earlier; an empty line may precede it. `begun`: there was one."""
    s.start_recording()
    now = yield from message_head(s, p, "", TEXT, begun)
    if now == HEAD:
        s.start_recording()
        now = yield from message_head(s, p, "", TEXT)
        s.emit_text("\n\n" if now == HEAD else "")
    return TEXT if now == HEAD else now


def message_head(s: State, p: Program, word: str, now: str, begun: bool = False) -> Scan[str]:
    """Reads the head of a message after its start `word`, and the call if the head is that of a call. Returns the next
    state: THINK or TEXT, `now` if this is no head, HEAD after an empty head, since another may follow."""
    header = p.d.header
    if header is None:
        return TEXT
    s.no_reread, s.open_call, s.doubtful, s.fenced = False, None, False, False
    try:
        begun |= word != ""
        head, hit = yield from as_if_open(s, read_head(s, p, header, word, begun))
        needle, what = route(header, head)
        if what == "call" and not p.calls:
            return pass_unread(s)
        name = tool_name(s, p, needle, head, hit) if what == "call" else ""
        note_rest(s, p, head.replace(needle.strip("^$") + name, "", 1))
        if what == "call":
            yield from as_if_open(s, begin(s, p, name, begun))
            yield from at(s, *header.ends)
            s.commit()
            yield from note_text_after_call(s, p)
            yield from note_draft(s, p, now)
            s.end_complete_call()
            return TEXT
    except Malformed as e:
        is_call = yield from failed(s, p, e, word)
        return TEXT if is_call or not now else now
    s.commit()
    s.text_before_call = False
    if what != "thought":
        return HEAD if p.named and not head else TEXT
    if not p.split:
        start = word if word in p.bare else header.start.strip()
        s.emit_text(word.removeprefix(start) + head + hit)  # a thought that stays in the text keeps its marks
    return THINK


def attempt(s: State, p: Program, word: str, thinking: bool) -> Scan[bool]:
    """Tries to read calls after their first word. Returns False, and gives the text back, if there are none."""
    s.no_reread, s.open_call, s.doubtful = False, None, False
    word = word.strip()
    s.fenced = word in p.fences
    s.text_before_call = (s.has_text if s.fenced else s.text_before_call) and not thinking
    try:
        if INVISIBLE in s.recent:
            refuse_copy(s, p, word)
        reading = section(s, p, word, thinking)
        yield from as_if_open(s, reading) if s.cut else reading
    except Malformed as e:
        return (yield from failed(s, p, e, word))
    s.commit()
    s.prompt_length, s.text_type = 0, TextDelta
    yield from after_call(s, p.strays, p.openers)
    yield from note_text_after_call(s, p)
    yield from note_example(s, p)
    c = yield from following(s)
    if s.doubtful or c not in p.entries.keys() & {"{", "["}:
        s.end_complete_call()  # otherwise what follows decides whether the last call counts
    return True


def failed(s: State, p: Program, why: Malformed, word: str) -> Scan[bool]:
    """The text left the dialect. What was emitted stays, with whole=False; the rest is given back as text."""
    word = word.strip()
    s.broken_list |= _opens_list(p, word)
    if s.recording is None:
        yield from break_off(s, p.closers_of_calls, p.openers, why)
        return True
    s.drop_notes()
    s.failed_openers += 1
    if s.closed and leave_out(s, p, word):
        return True
    cut = s.closed and _ends_in_call(s, p, word)
    if s.no_reread:
        if cut:
            note_cut(s)
        s.emit_text(s.recorded()[s.prompt_length :])
        s.prompt_length = 0
        s.recording = None
        return False
    s.give_back()
    prompt_length, s.prompt_length = s.prompt_length, 0
    s.pos += prompt_length
    note_unknown(s, why)
    if prompt_length:
        return True  # the word was in the prompt: the reply begins only here
    value = all((word in ("{", "["), word in p.entries))
    start = yield from _resume_position(s, p, word, value)
    before, s.pos = s.text[s.pos : start], start
    if word in p.frames and (yield from at_end(s, p, p.beyond)):
        return True  # a mark that may open a call or be a frame is a frame here
    if cut:
        note_cut(s)
    s.emit_text(before)
    if value:
        yield from data(s)
    return False


def _ends_in_call(s: State, p: Program, word: str) -> bool:
    """Whether the text ended with the beginning of a call, of which `word` is a regular opener."""
    return all((ends_inside(s, p.closers_of_calls), is_regular(p, word), not p.d.guard, not s.other_turn))


@lru_cache(1024)
def _opens_list(p: Program, word: str) -> bool:
    """Whether this word is the regular opener of a list of calls."""
    return bool((entry := p.entries.get(word)) and entry.formal and entry.section and p.d.items)


def _resume_position(s: State, p: Program, word: str, value: bool) -> Scan[int]:
    """Where the text continues after a word that opened nothing: after the word, but before a JSON value."""
    if not word:
        return s.pos
    start = SPACE(s.text, s.pos).end()
    if value:
        return start
    start += len(word)
    if p.d.items and _opens_list(p, word):  # an element of the list may still be a call
        end = SPACE(s.text, start).end() + len(p.d.items[0].strip())
        if s.text.startswith(p.d.items[0].strip(), end - len(p.d.items[0].strip())):
            end -= s.pos  # a distance: positions move while more text arrives
            yield from following(s, end)  # on its own line, where indentation does not mean a quotation
            start = min(SPACE(s.text, s.pos + end).end(), s.pos + end + GAP)
    return start


def data(s: State) -> Scan[None]:
    """Passes on a JSON value of the reply as text: nothing in it is a call."""
    start = s.offset + s.pos
    try:
        yield from json_value(s, s.emit_text, None, s.text_type)
    except Malformed:
        if s.offset + s.pos == start:
            s.emit_text(s.text[s.pos : s.pos + 1])
            s.pos += 1
