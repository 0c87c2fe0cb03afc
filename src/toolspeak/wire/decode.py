"""Text to events: the one decoder. Parsing a whole text is feeding it in one piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..events import Event, Finished, TextDelta, ThoughtDelta
from ..types import Reply, Tool
from .codecs import json_call
from .collect import collect
from .jsonscan import json_value
from .program import CALL, CODE, THINK, Program, first_words, program
from .salvage import after_call, closing, missing
from .scan import SPACE, Malformed, Scan, at, expect, skip, until
from .state import Call, State
from .syntax import Dialect, JsonCall, Part


def reply(s: State, p: Program, prompt: str, split: bool) -> Scan[None]:
    """The whole reply: text, and what its marks open. Thoughts that are not `split` off stay in the text."""
    if p.starts_in_thought(prompt):
        yield from thought(s, p, split)
    fresh = True
    while True:
        found = yield from mark(s, p, fresh)
        if found is None:
            return
        word, kind, space = found
        fresh = kind in (CALL, THINK)
        if kind == CALL:
            fresh = yield from attempt(s, p, word)
        elif kind == THINK:
            line = "\n" if word[0] == "\n" else ""
            s.say(line if split else space + word)
            yield from thought(s, p, split)
        elif kind == CODE:
            s.say(word)


def mark(s: State, p: Program, fresh: bool) -> Scan[tuple[str, str, str] | None]:
    """Pass text on to the next mark and eat it: its word, its kind, the white space before it if there may be some.

    From before a call's mark on, text can be given back.
    """
    if fresh and p.fresh:
        s.keep()
        word = yield from at(s, *p.fresh)
        if word:
            kind, space = p.fresh[word], s.kept()[: -len(word)]
            if kind != CALL:
                s.commit()
            return word, kind, space
        s.back()
    if p.marks is None:
        yield from _all(s)
        return None
    word = yield from until(s, p.marks, s.say, TextDelta)
    if word is None:
        return None
    if p.inside[word] == CALL:
        s.pos -= len(word)
        s.keep()
        s.pos += len(word)
    return word, p.inside[word], ""


def _all(s: State) -> Scan[None]:
    """Nothing is looked for: all of it is text."""
    while True:
        s.say(s.text[s.pos :])
        s.pos = len(s.text)
        if s.closed:
            return
        yield


def thought(s: State, p: Program, split: bool) -> Scan[None]:
    """From behind a thought's opener to behind its closer."""
    thinking = p.d.thinking
    if thinking is None:
        return
    if not split:
        hit = yield from until(s, p.closers, s.say, TextDelta)
        return s.say(hit or "")
    yield from skip(s, len(thinking.open) - len(thinking.open.rstrip()))
    hit = yield from until(s, p.closers, lambda t: s.push(ThoughtDelta(t)), ThoughtDelta)
    if hit is None:
        return s.note("unclosed-thought")
    yield from skip(s, len(thinking.close) - len(thinking.close.rstrip()))
    close = thinking.close.strip()
    while (yield from at(s, close)):
        s.note("stray-closer", close)


def attempt(s: State, p: Program, word: str) -> Scan[bool]:
    """Read what may be calls, its first word being eaten; what is none comes back as text. Was it one?"""
    s.spent, s.live = False, None
    try:
        yield from section(s, p, word.strip())
    except Malformed as e:
        return (yield from failed(s, p, str(e), word.strip()))
    s.commit()
    yield from after_call(s, p.strays)
    return True


def failed(s: State, p: Program, why: str, word: str) -> Scan[bool]:
    """The text left the dialect. What was told stays, not whole; what was not goes back to text."""
    s.place = None
    if s.log is None:
        s.cut = s.cut or s.closed
        s.note("cut" if s.closed else "malformed", why)
        if s.live:
            s.end(s.live, whole=s.live.filled)
        return True
    s.forget()
    if s.spent:
        s.say(s.kept())
        s.log = None
        return False
    s.back()
    start = SPACE(s.text, s.pos).end()
    if word not in ("{", "["):
        start += len(word)
    s.say(s.text[s.pos : start])
    s.pos = start
    if word in ("{", "["):
        yield from data(s)
    return False


def data(s: State) -> Scan[None]:
    """Pass a JSON value of the reply on as the text that it is: nothing in it is a call."""
    start = s.base + s.pos
    try:
        yield from json_value(s, s.say, None, TextDelta)
    except Malformed:
        if s.base + s.pos == start:
            s.say(s.text[s.pos : s.pos + 1])
            s.pos += 1


def section(s: State, p: Program, word: str) -> Scan[None]:
    """One or more calls, from behind the first word to behind the last closer."""
    d = p.d
    fence = p.fences.get(word, "")
    if fence:
        s.note("fence", word)
        word = yield from at(s, *p.openers)
    if not word:
        raise Malformed("no call in the fence")
    formal = word in p.formal
    form = d.call if formal or d.guard else d.forms[0]
    closers: list[str] = []
    if not formal and not d.guard:
        s.note("missing-opener")
    if word == "[":
        closers, word = ["]"], ""
    elif formal and d.open:
        yield from expect(s, d.open.strip()[len(word) :])
        opener, _, closer = d.items or ("", "", "")
        closers, word = [closer] if opener and (yield from at(s, opener.strip())) else [], ""
    elif formal and d.forms and isinstance(d.call[-1], str) and (yield from at(s, "[")):
        s.note("list")  # several calls between the marks of one
        form, closers, word = d.forms[0], ["]", d.call[-1]], ""
    strict = not formal and not d.guard
    yield from calls(s, form, Call(d.guard or strict, strict), bool(closers or (formal and d.open)), word)
    yield from closing(s, [*closers, d.close if formal else "", fence])


def calls(s: State, form: tuple[Part, ...], kind: Call, many: bool, word: str) -> Scan[None]:
    """The calls of a section, all of one `kind`. `word` is the first of them where that was eaten."""
    yield from one_call(s, form, replace(kind), word)
    while many:
        s.keep()
        s.spent = False
        yield from at(s, ",")
        if not (yield from at(s, *first_words(form[0]), eat=False)):
            return s.back()
        try:
            yield from one_call(s, form, replace(kind), "")
        except Malformed:
            if s.live or s.log is None or s.spent:
                raise
            s.forget()
            return s.back()  # the calls before stay; what follows is text


def one_call(s: State, form: tuple[Part, ...], call: Call, word: str) -> Scan[None]:
    """The parts of one call. `word` is the first of it where that was eaten."""
    filled = False
    for part in form:
        if isinstance(part, JsonCall):
            yield from expect(s, "" if word else "{")
            yield from json_call.read(s, part, call)
            filled = True
        else:
            for w in part.split()[bool(word) :]:
                if not (yield from at(s, w)):
                    if not filled:
                        raise Malformed(f"expected {w!r}")
                    yield from missing(s, w)
        word = ""


class Decoder:
    """Text in, events out. `feed` takes any piece of the reply, `close` ends it; nothing here ever raises on its text.

    `tools`: None takes any name for a call, () none. `prompt` is what the reply goes on from. `thoughts`
    split tells thoughts apart, keep leaves them in the text. `ids` mints an id for each call.
    """

    def __init__(
        self,
        d: Dialect,
        tools: Sequence[Tool[..., Any]] | None = None,
        prompt: str = "",
        thoughts: str = "split",
        ids: Callable[[], str] | None = None,
    ) -> None:
        by_name = None if tools is None else {tool.name: tool for tool in tools}
        self.state = State(by_name, ids)
        self.run = reply(self.state, program(d, by_name != {}), prompt, thoughts != "keep")
        self.done = False
        next(self.run, None)

    def feed(self, chunk: str) -> list[Event]:
        s = self.state
        lane, delta = s.lane, s.delta
        if lane is not None and delta is not None and chunk and lane(chunk) is None:
            s.base += len(chunk)
            s.spoken = s.spoken or (delta is TextDelta and not chunk.isspace())
            return [delta(chunk)]
        s.add(chunk)
        out: list[Event] = []
        s.out = out
        next(self.run, None)
        if s.parts:
            s.flush()
        return out

    def close(self) -> list[Event]:
        if self.done:
            return []
        s = self.state
        self.done = s.closed = True
        s.lane = None
        out: list[Event] = []
        s.out = out
        for _ in self.run:
            pass
        s.flush()
        s.push(Finished("length" if s.cut else "tool_calls" if s.calls else "stop"))
        return out


def parse(
    text: str, d: Dialect, tools: Sequence[Tool[..., Any]] | None = None, prompt: str = "", thoughts: str = "split"
) -> Reply:
    """The reply that a whole text is. Never raises on the text of a model."""
    decoder = Decoder(d, tools, prompt, thoughts)
    return collect([*decoder.feed(text), *decoder.close()])
