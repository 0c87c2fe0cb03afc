"""A whole reply: texts, thoughts and messages, and where calls may begin in them."""

from __future__ import annotations

from collections.abc import Callable

from ..events import TextDelta, ThoughtDelta
from .calls import begin, section
from .jsonreader import json_value
from .program import CALL, CODE, END, FENCE, FRAME, HEAD, TEXT, THINK, THOUGHT, UNTHINK, Program, head_words, route
from .salvage import after_call
from .scan import SPACE, Malformed, Scan, at, marks, skip, token, until
from .state import State

HEAD_SIZE = 512
"""The head of a message is at most this long, in characters."""


def reply(s: State, p: Program, prompt: str) -> Scan[None]:
    """The whole reply: text, and what its marks open. Thoughts that are not split off stay in the text."""
    now = p.begins(prompt)
    if now == THINK and p.unframed and (yield from at(s, *p.unframed, eat=False)):
        now = ""  # the prompt opened a thought, and the model did not want to think
    fresh = now != TEXT
    if not now and not prompt and ((p.named and s.tools) or (p.heads and (yield from at(s, *p.heads, eat=False)))):
        now = HEAD
    if now == HEAD:
        now = yield from headed(s, p)
    if not now and (seed := p.opened(prompt)):
        s.seed, s.base = len(seed), -len(seed)
        s.text = seed + s.text
    block = False
    while True:
        if now == THINK:
            word = yield from thought(s, p)
        else:
            word = yield from mark(s, p, fresh and not block, block)
        if word is None:
            return
        kind, literal, space = word
        fresh = True
        if kind == CALL:
            done = yield from attempt(s, p, literal, now == THINK)
            block = block or (literal.strip() in p.fences and not done and now != THINK)
            fresh, now = done, TEXT if done else now
        elif kind == HEAD:
            now = yield from message(s, p, literal, now)
            now = (yield from headed(s, p)) if now == HEAD else now
        elif kind == THINK:
            yield from opened(s, p, literal, space)
            now = THINK
        else:
            named = p.named and now == THINK and s.tools
            now = TEXT
            block = block and kind != CODE
            fresh = yield from small(s, p, kind, literal, space)
            now = (yield from headed(s, p)) if named else now
        s.voice = ThoughtDelta if now == THINK and p.split else TextDelta


Found = tuple[str, str, str]


def mark(s: State, p: Program, fresh: bool, block: bool) -> Scan[Found | None]:
    """Pass text on to the next mark and eat it: its kind, its word, the white space before it if there may be some.

    From before the mark of a call or a message on, text can be given back. In a block of code fewer marks count.
    """
    if fresh and p.fresh:
        s.keep()
        word = yield from at(s, *p.fresh)
        if word:
            kind, space = p.fresh[word], s.kept()[: -len(word)]
            if kind not in (CALL, HEAD):
                s.commit()
            return END if kind == FRAME else kind, word, space
        s.back()
    if p.marks is None:
        yield from _all(s)
        return None
    word = yield from until(s, p.block if block else p.marks, s.say, TextDelta)
    if word is None:
        return None
    kind = CODE if block and word == FENCE else p.inside[word]
    if kind in (CALL, HEAD):
        _keep_from(s, word)
    return kind, word, ""


def _keep_from(s: State, word: str) -> None:
    """From before the word that was just eaten on, text can be given back."""
    s.pos -= len(word)
    s.keep()
    s.pos += len(word)


def _all(s: State) -> Scan[None]:
    """Nothing is looked for: all of it is text."""
    while True:
        s.say(s.text[s.pos :])
        s.pos = len(s.text)
        if s.closed:
            return
        yield


def small(s: State, p: Program, kind: str, word: str, space: str) -> Scan[bool]:
    """A mark that opens nothing. Does what comes next begin anew?"""
    if kind == END:
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
    if kind == FRAME and (yield from _ends(s, p)):
        if word in p.unthink and word not in p.frames:
            s.note("stray-closer", word)
        return True
    s.say(space + word)
    if kind == CODE and word != FENCE:
        yield from quoted_code(s, word)
    return False


def quoted_code(s: State, word: str) -> Scan[None]:
    """Pass the code in a line on, which only talks of calls: to the next backtick, or the end of the line. Where it
    begins with what opens a call, which may have lines: of the paragraph."""
    end = yield from until(s, marks(("`", "\n" if word == "`" else "\n\n")), s.say, TextDelta)
    s.say(end or "")


def _ends(s: State, p: Program) -> Scan[bool]:
    """Does nothing come after this, or something that begins anew?"""
    if (yield from at(s, *p.beyond, eat=False)):
        return True
    return s.closed and SPACE(s.text, s.pos).end() == len(s.text)


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


def thought(s: State, p: Program) -> Scan[Found | None]:
    """Pass a thought on to what ends it."""
    s.voice = ThoughtDelta if p.split else TextDelta
    if p.closers is None:
        yield from _all(s)
        return None
    thinking = p.d.thinking
    word = yield from until(s, p.closers, s.say, s.voice)
    if word is None:
        return s.note("unclosed-thought") if p.split and thinking else None
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
        _keep_from(s, word)
    elif kind == END and not p.split:
        s.say(word)
    return END if kind == FRAME else kind, word, ""


def headed(s: State, p: Program) -> Scan[str]:
    """Read the head of a message whose start stood before; an empty line may come before it."""
    s.keep()
    now = yield from message(s, p, "", TEXT)
    if now == HEAD:
        s.keep()
        now = yield from message(s, p, "", TEXT)
        s.say("\n" if now == HEAD else "")
    return TEXT if now == HEAD else now


def message(s: State, p: Program, word: str, now: str) -> Scan[str]:
    """Read the head of a message, its start being eaten, and the call where it is one: what its body is.

    Where it is no head, all goes on as it is `now`; an empty one may stand before a head (HEAD).
    """
    header = p.d.header
    if header is None:
        return TEXT
    s.spent, s.live = False, None
    try:
        head, hit = yield from token(s, marks((header.stop.strip() or header.stop,)), HEAD_SIZE, _heads(s, p))
        needle, what = route(header, head)
        if not hit:
            raise Malformed("no head of a message")
        s.pos += len(hit)
        if what == "call" and not p.calls:
            return _unread(s)
        name = _name(f"^{head}$".split(needle, 1)[1]) if what == "call" else ""
        if rest := [w for w in head_words(head.replace(needle.strip("^$") + name, "", 1)) if w not in p.vocabulary]:
            s.note("head", " ".join(rest))  # it says more than is understood
        if what == "call":
            yield from begin(s, p, name)
            yield from at(s, *header.ends)
            s.commit()
            return TEXT
    except Malformed as e:
        told = yield from failed(s, p, e, word)
        return TEXT if told or not now else now
    s.commit()
    if what == "thought" and not p.split:
        s.say(word.removeprefix(header.start.strip()) + head + hit)  # left in the text, a thought keeps its marks
    return THINK if what == "thought" else HEAD if p.named and not head else TEXT


def _unread(s: State) -> str:
    """The message is a call, and nobody wants calls: all of it is text."""
    s.unread, said = True, s.kept()
    s.commit()
    s.say(said)
    return TEXT


def _name(text: str) -> str:
    """The name that a head tells: up to white space or a mark."""
    words = text.removesuffix("$").split()
    return words[0].partition("<")[0] if words else ""


def _heads(s: State, p: Program) -> Callable[[str], bool] | None:
    """Tells of the beginning of a head whether there may be such a one, where only the names of offered tools count."""
    if not p.d.guard or s.tools is None or p.d.header is None:
        return None
    needles = [needle.strip("^$") for needle, _ in p.d.header.routes]
    return lambda head: s.begins(head) or any(needle.startswith(head.strip()) for needle in needles if needle)


def attempt(s: State, p: Program, word: str, thinking: bool) -> Scan[bool]:
    """Read what may be calls, its first word being eaten; what is none comes back as text. Was it one?"""
    s.spent, s.live = False, None
    try:
        yield from section(s, p, word.strip(), thinking)
    except Malformed as e:
        return (yield from failed(s, p, e, word))
    s.commit()
    s.seed, s.voice = 0, TextDelta
    yield from after_call(s, p.strays, p.openers)
    return True


def failed(s: State, p: Program, why: Malformed, word: str) -> Scan[bool]:
    """The text left the dialect. What was told stays, not whole; what was not goes back to text."""
    s.place = None
    if s.log is None:
        s.seed = 0
        s.cut = s.cut or s.closed
        s.note("cut" if s.closed else "malformed", str(why))
        if s.live:
            s.end(s.live, whole=s.live.filled)
        return True
    word = word.strip()
    entry = p.entries.get(word)
    cut = s.closed and not p.d.guard and (entry.formal if entry else word not in ("", *p.fences))
    s.forget()
    if s.spent:
        s.cut = s.cut or cut
        said, s.seed = s.kept()[s.seed :], 0
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
    start = SPACE(s.text, s.pos).end()
    value = word in ("{", "[") and word in p.entries
    if not value:
        start += len(word)
        if entry and entry.formal and entry.section and p.d.items:  # an element of the list may be a call still
            end = SPACE(s.text, start).end() + len(p.d.items[0].strip())
            start = end if s.text.startswith(p.d.items[0].strip(), end - len(p.d.items[0].strip())) else start
    before, s.pos = s.text[s.pos : start], start
    if word in p.frames and (yield from _ends(s, p)):
        return True  # a mark that may open a call is a frame here
    s.cut = s.cut or cut
    s.say(before)
    if value:
        yield from data(s)
    return False


def data(s: State) -> Scan[None]:
    """Pass a JSON value of the reply on as the text that it is: nothing in it is a call."""
    start = s.base + s.pos
    try:
        yield from json_value(s, s.say, None, s.voice)
    except Malformed:
        if s.base + s.pos == start:
            s.say(s.text[s.pos : s.pos + 1])
            s.pos += 1
