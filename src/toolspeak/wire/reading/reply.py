"""A whole reply: texts, thoughts and messages, and where calls may begin in them."""

from __future__ import annotations

from collections.abc import Callable

from ...events import Noted, TextDelta, ThoughtDelta
from ...types import Note
from .call_repairs import after_call
from .calls import begin, section
from .heads import pass_unread, read_head, tell_rest, tool_name
from .json_reader import json_value
from .lexicon import (
    CALL,
    CODE,
    COMMENTS,
    ELEMENTS,
    END,
    FENCE,
    FRAME,
    HEAD,
    TEXT,
    THINK,
    THOUGHT,
    TICKS,
    UNTHINK,
    Program,
    route,
)
from .passage import CodeBlock, Match, all_of_it, keep_from, mark, marked_to_its_end, pass_quoted
from .source import SPACE, Malformed, Marks, Scan, at, following, marks, skip, until
from .state import State

FAILURES = 2_000
"""So many openers may open no call; those behind them are text. What a model writes then costs what text does."""
DRAFT = 65_536
"""So many characters of a thought are held back behind what opens a call."""


def reply(s: State, p: Program, told: str | None) -> Scan[None]:
    """The whole reply: text, and what its marks open. Thoughts that are not split off stay in the text. Where nobody
    `told` the prompt, the reply of a model that always thinks begins inside a thought, unless it opens one itself."""
    now, fresh = yield from _beginning(s, p, told or "", told is None)
    block = CodeBlock()
    while True:
        if now == THINK:
            word = yield from thought(s, p)
        else:
            word = yield from mark(s, p, fresh and not block.open, block.open)
        if word is None:
            return
        kind, literal, space = word
        fresh = True
        if kind == CALL and s.failures >= FAILURES:
            fresh = False
            s.commit()
            s.note("too-many-openers")
            s.say(space + literal)
        elif kind == CALL:
            done = yield from attempt(s, p, literal, now == THINK)
            if literal.strip() in p.fences and not done and now != THINK:
                yield from block.fence(s)
            fresh, now = done, TEXT if done else now
        elif kind == HEAD:
            s.within = s.within or now == THINK
            now = yield from message(s, p, literal, now)
            now = (yield from headed(s, p)) if now == HEAD else now
        elif kind == THINK:
            yield from opened(s, p, literal, space)
            now = THINK
        else:
            named = p.named and now == THINK and s.tools
            fresh = yield from small(s, p, kind, literal, space, block)
            now = (yield from headed(s, p)) if named else TEXT
        s.voice = ThoughtDelta if now == THINK and p.split else TextDelta


def _beginning(s: State, p: Program, prompt: str, unknown: bool) -> Scan[tuple[str, bool]]:
    """What the reply begins in, and whether that begins anew."""
    thinking, now = p.d.thinking, p.begins(prompt)
    if unknown and thinking and thinking.always:
        now = "" if (yield from at(s, thinking.open.strip(), eat=False)) else THINK
    if now == THINK and p.unframed and (yield from at(s, *p.unframed, eat=False)):
        now = ""  # the prompt opened a thought, and the model did not want to think
    fresh = p.anew(now, prompt)
    if not now and not prompt and ((p.named and s.tools) or (p.heads and (yield from at(s, *p.heads, eat=False)))):
        now = HEAD
    if now == HEAD:
        now = yield from headed(s, p)
    if not now and (seed := p.opened(prompt)):
        s.seed, s.base = len(seed), -len(seed)
        s.text = seed + s.text
    return now, fresh


def small(s: State, p: Program, kind: str, word: str, space: str, block: CodeBlock) -> Scan[bool]:
    """A mark that opens nothing, in a block of code or not. Does what comes next begin anew?"""
    if kind == END:
        block.open = False  # a message ends it, too
        s.say(word if s.unread else "")
        s.unread = False
        return True
    close = p.d.thinking.close if p.d.thinking and p.split else ""
    if kind == UNTHINK and close:
        s.note("stray-closer", word.strip())
        s.say("\n" if word[0] == "\n" else "")
        yield from skip(s, len(close) - len(close.rstrip()))
        return True
    if kind == THOUGHT and (yield from at(s, close.strip() or word)):
        return True  # a thought without a word
    if kind == FRAME and (yield from _ends(s, () if block.open else p.beyond)):
        if word in p.unthink and word not in p.frames:
            s.note("stray-closer", word)
        return True
    s.say(space + word)
    if kind == CODE:
        yield from _show(s, p, word, block)
    return False


def _show(s: State, p: Program, word: str, block: CodeBlock) -> Scan[None]:
    """A mark of what a text shows was told: a block of code opens or closes, or all that is shown is passed on."""
    if word == FENCE:
        return (yield from block.fence(s))
    opener = ""
    if word in (*TICKS, *ELEMENTS) or word.strip() in COMMENTS:
        opener = yield from at(s, *p.openers, *p.starts, eat=False)
        lines = word not in ELEMENTS and "\n" in SPACE(s.text, s.pos)[0]
        if word not in TICKS and (lines or not opener):
            return None
        opener = "" if lines else opener
    elif s.broken and word == p.element:
        return None
    return (yield from pass_quoted(s, p, word, opener))


def opened(s: State, p: Program, word: str, space: str) -> Scan[None]:
    """The opener of a thought was eaten."""
    if not p.split:
        return s.say(space + word)
    s.say("\n" if word[0] == "\n" else "")
    if p.d.thinking:
        if p.d.thinking.also:  # a half opener, and then a whole one
            yield from at(s, p.d.thinking.open.strip())
        yield from skip(s, len(p.d.thinking.open) - len(p.d.thinking.open.rstrip()))
    return None


def thought(s: State, p: Program) -> Scan[Match | None]:
    """Pass a thought on to what ends it."""
    s.voice = ThoughtDelta if p.split else TextDelta
    if p.closers is None:
        yield from all_of_it(s)
        return None
    thinking = p.d.thinking
    word = yield from until(s, p.opening or p.closers, s.say, s.voice)
    while word in p.drafts:
        word = yield from draft(s, p, word or "")
    if not word:
        return s.note("unclosed-thought") if p.split and thinking and word is None else None
    if thinking and word in p.unthink:
        if not p.split:
            s.say(word)
            return END, "", ""
        yield from skip(s, len(thinking.close) - len(thinking.close.rstrip()))
        close = thinking.close.strip()
        while close and (yield from at(s, close)):
            s.note("stray-closer", close)
        return END, "", ""
    kind = p.inside[word]
    if kind in (CALL, HEAD):
        keep_from(s, word)
    elif kind == END and not p.split:
        s.say(word)
    return END if kind == FRAME else kind, word, ""


def draft(s: State, p: Program, word: str) -> Scan[str | None]:
    """What begins like a call in a thought, that word being eaten, to the word that ends the thought, or the next such.

    It is a part of the thought, unless the thought never closes and nothing but closers comes behind the calls: then
    the model forgot to close it. So all of it waits, up to a bound, until the thought closes or the reply ends.
    """
    if p.closers is None or p.opening is None:
        return None
    keep_from(s, word)
    size = [0]

    def wait(text: str) -> None:
        size[0] += len(text)

    end = yield from _until_long(s, p.closers, wait, size)
    over = end is None or (end in p.frames and not (yield from following(s)))
    if over and s.closed and size[0] <= DRAFT:
        s.back()
        return (yield from last_calls(s, p))
    if size[0] <= DRAFT:
        said = s.recorded()
        s.commit()
        s.say(said[: len(said) - len(end or "")])
        return end
    s.back()
    s.note("long-draft", word)
    s.say(s.text[s.pos : s.pos + DRAFT])
    s.pos += DRAFT
    return (yield from until(s, p.opening, s.say, s.voice))


def _until_long(s: State, wanted: Marks, emit: Callable[[str], None], size: list[int]) -> Scan[str | None]:
    """As `until`, but stops where more than a draft may hold was passed on."""
    scan = until(s, wanted, emit)
    while True:
        try:
            next(scan)
        except StopIteration as found:
            return found.value
        if size[0] > DRAFT:
            scan.close()
            return None
        yield


def last_calls(s: State, p: Program) -> Scan[str | None]:
    """The rest of a reply that ends within a thought, all of it there: calls count where nothing comes behind them, and
    "" comes back. What does not count is a part of the thought."""
    wanted, voice = marks(p.drafts), s.voice
    while (word := (yield from until(s, wanted, s.say, voice))) is not None:
        start, before, done = s.pos - len(word), s.mark(), True
        while word and done:
            keep_from(s, word)
            done = yield from attempt(s, p, word, True)
            word = yield from at(s, *p.openers)
        while done and p.frames and (yield from at(s, *p.frames)):
            pass  # the end of the turn
        if done and not (yield from following(s)):
            s.out.insert(before[0], Noted(Note("unclosed-thought", "", s.base + start)))
            s.settle()
            return ""
        said = s.text[start : s.pos]
        s.undo(before)
        s.say(said)
    return None


def headed(s: State, p: Program) -> Scan[str]:
    """Read the head of a message whose start stood before; an empty line may come before it."""
    s.keep()
    now = yield from message(s, p, "", TEXT)
    if now == HEAD:
        s.keep()
        now = yield from message(s, p, "", TEXT)
        s.say("\n\n" if now == HEAD else "")
    return TEXT if now == HEAD else now


def message(s: State, p: Program, word: str, now: str) -> Scan[str]:
    """Read the head of a message, its start being eaten, and the call where it is one: what its body is.

    Where it is no head, all goes on as it is `now`; an empty one may stand before a head (HEAD).
    """
    header = p.d.header
    if header is None:
        return TEXT
    s.spent, s.live, s.doubtful, s.fenced = False, None, False, False
    try:
        head, hit = yield from read_head(s, p, header, word)
        needle, what = route(header, head)
        if what == "call" and not p.calls:
            return pass_unread(s)
        name = tool_name(s, p, needle, head, hit) if what == "call" else ""
        tell_rest(s, p, head.replace(needle.strip("^$") + name, "", 1))
        if what == "call":
            yield from begin(s, p, name)
            yield from at(s, *header.ends)
            s.commit()
            yield from _goes_on(s, p)
            s.settle()
            return TEXT
    except Malformed as e:
        told = yield from failed(s, p, e, word)
        return TEXT if told or not now else now
    s.commit()
    if what != "thought":
        return HEAD if p.named and not head else TEXT
    if not p.split:
        start = word if word in p.bare else header.start.strip()
        s.say(word.removeprefix(start) + head + hit)  # left in the text, a thought keeps its marks
    return THINK


def _goes_on(s: State, p: Program) -> Scan[None]:
    """Does the text go on behind the call that stands in it: in its line, or anywhere if the sentence before it is not
    finished? It only talks of the call then. The markers that another dialect has around its calls are no text."""
    c = yield from following(s)
    same = s.fenced or s.unfinished or "\n" not in SPACE(s.text, s.pos)[0]
    if not (c and s.ending and s.within and same) or (yield from at(s, *p.legal, eat=False)):
        return
    marked = yield from marked_to_its_end(s)
    s.note("other-markers" if marked else "trailing-text", c)


def attempt(s: State, p: Program, word: str, thinking: bool) -> Scan[bool]:
    """Read what may be calls, its first word being eaten; what is none comes back as text. Was it one?"""
    s.spent, s.live, s.doubtful = False, None, False
    s.fenced = word.strip() in p.fences
    s.within = (s.spoken if s.fenced else s.within) and not thinking
    try:
        yield from section(s, p, word.strip(), thinking)
    except Malformed as e:
        return (yield from failed(s, p, e, word))
    s.commit()
    s.seed, s.voice = 0, TextDelta
    yield from after_call(s, p.strays, p.openers)
    yield from _goes_on(s, p)
    c = yield from following(s)
    if not c or c not in "{[" or c not in p.entries:
        s.settle()  # else the next call, or what is none, tells
    return True


def _break_off(s: State, why: Malformed) -> None:
    """Ends a call that was told in part: it stays, not whole."""
    s.seed = 0
    s.cut |= s.closed
    s.note("cut" if s.closed else "malformed", str(why))
    if s.live:
        s.end(s.live, whole=False)
    s.settle()


def failed(s: State, p: Program, why: Malformed, word: str) -> Scan[bool]:
    """The text left the dialect. What was told stays, not whole; what was not goes back to text."""
    word = word.strip()
    entry = p.entries.get(word)
    s.broken = s.broken or bool(entry and entry.formal and entry.section and p.d.items)
    if s.log is None:
        _break_off(s, why)
        return True
    cut = s.closed and not p.d.guard and (entry.formal if entry else word not in ("", *p.fences))
    s.forget()
    s.failures += 1
    if s.spent:
        s.cut |= cut
        said, s.seed = s.recorded()[s.seed :], 0
        s.say(said)
        s.log = None
        return False
    s.back()
    seed, s.seed = s.seed, 0
    s.pos += seed
    if why.unknown:
        s.note("unknown-tool", why.unknown)
    if seed:
        return True  # the prompt wrote that word: the reply begins only here
    value = word in ("{", "[") and word in p.entries
    start = _behind(s, p, word, value)
    before, s.pos = s.text[s.pos : start], start
    if word in p.frames and (yield from _ends(s, p.beyond)):
        return True  # a mark that may open a call is a frame here
    s.cut |= cut
    s.say(before)
    if value:
        yield from data(s)
    return False


def _behind(s: State, p: Program, word: str, value: bool) -> int:
    """Where the text goes on, of which the first word opened nothing: behind it, but before a value."""
    if not word:
        return s.pos
    start = SPACE(s.text, s.pos).end()
    if value:
        return start
    start += len(word)
    entry = p.entries.get(word)
    if entry and entry.formal and entry.section and p.d.items:  # an element of the list may be a call still
        end = SPACE(s.text, start).end() + len(p.d.items[0].strip())
        if s.text.startswith(p.d.items[0].strip(), end - len(p.d.items[0].strip())):
            start = SPACE(s.text, end).end()  # it stands on a line of its own, which is not indented to be shown
    return start


def data(s: State) -> Scan[None]:
    """Pass a JSON value of the reply on as the text that it is: nothing in it is a call."""
    start = s.base + s.pos
    try:
        yield from json_value(s, s.say, None, s.voice)
    except Malformed:
        if s.base + s.pos == start:
            s.say(s.text[s.pos : s.pos + 1])
            s.pos += 1


def _ends(s: State, beyond: tuple[str, ...]) -> Scan[bool]:
    """Does nothing come after this, or something that begins anew, one of the words `beyond`?"""
    if beyond and (yield from at(s, *beyond, eat=False)):
        return True
    return s.closed and SPACE(s.text, s.pos).end() == len(s.text)
