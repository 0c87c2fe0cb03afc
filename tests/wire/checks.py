"""What must hold whatever text a dialect is fed: `problems` says what does not. The fuzzer and the properties share it."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from spoken import words
from wire_cases import cuts, merged, stream

from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, TextDelta, ThoughtDelta
from toolspeak.types import Reply, Tool
from toolspeak.wire.dialect import INDEX, TEXT, Dialect, JsonCall, Kind, Part, Raw
from toolspeak.wire.reading.collect import collect

Tools = Sequence[Tool[..., Any]] | None
WORD = re.compile(r"\w+")
ESCAPE = re.compile(r"\\+(?:U[0-9a-fA-F]{8}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[0-7]{1,3}|N\{[^}]*\}|.)", re.DOTALL)
NULLED = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\w+)\s*:\s*null""", re.DOTALL)
"""A key that is null says nothing: it may go without a note."""
JOINED = re.compile(r"""(?:\s*['"]{1,3}\s*[rbfu]{0,2}['"]{1,3})""")
"""Strings that are one in Python stand so beside each other."""
OF_JSON = "true false null none name arguments parameters args id type function string number boolean array object json"
OF_HEADS = "index assistant user system commentary analysis final constrain to functions code xml self"
COMMON = frozenset(f"{OF_JSON} {OF_HEADS}".split())
"""Words that belong to the way calls are written, in any dialect."""


def problems(
    d: Dialect, text: str, tools: Tools, prompt: str = "", thoughts: str = "split", seed: int = 0
) -> Iterator[str]:
    """What is wrong with how the dialect reads the text: nothing raised, the same at every cut, none invented or lost."""
    whole = stream(d, [text], tools, prompt, thoughts)
    broken_off = stream(d, [text], tools, prompt, thoughts, cut=True)
    told, told_cut = merged(whole), merged(broken_off)
    for chunks in cuts(text, random.Random(seed)):
        if merged(stream(d, chunks, tools, prompt, thoughts)) != told:
            yield f"cut {[len(c) for c in chunks][:20]} tells otherwise"
            break
        if merged(stream(d, chunks, tools, prompt, thoughts, cut=True)) != told_cut:
            yield f"a reply that its server cut tells otherwise, cut {[len(c) for c in chunks][:20]}"
            break
    reply = collect(whole)
    yield from disorder(whole)
    yield from disorder(broken_off)
    yield from otherwise(reply, collect(broken_off))
    yield from invented(d, reply, text, tools)
    yield from lost(d, reply, text, tools, thoughts)


def otherwise(reply: Reply, broken_off: Reply) -> Iterator[str]:
    """What is wrong with the calls of a reply that its server cut, against those of the same text that its model ended. Half a
    closer makes the last one whole, and what stands behind an opener of which nothing came of its own is left out, with a note."""
    calls, kept = ([(call.name, call.json) for call in one.calls if call.whole] for one in (reply, broken_off))
    if any(one != other for one, other in zip(calls, kept, strict=False)):
        yield "other calls if its server cut it"
    if len(kept) < len(calls) and not any(note.rule == "cut-call" for note in broken_off.notes):
        yield "a call lost, without a note, if its server cut it"


def disorder(events: Sequence[Event]) -> Iterator[str]:
    """One call open at a time, its pieces inside it, no empty pieces, one `Finished` and it is last."""
    live = False
    for event in events:
        match event:
            case CallStart() if live:
                yield "a call starts in a call"
            case CallEnd() | ArgumentsDelta() if not live:
                yield f"{event} outside a call"
            case ArgumentsDelta("") | TextDelta("") | ThoughtDelta(""):
                yield "an empty piece"
            case _:
                pass
        live = isinstance(event, CallStart) or (live and not isinstance(event, CallEnd))
    if live or [type(e) for e in events].index(Finished) != len(events) - 1:
        yield "no proper end"


def invented(d: Dialect, reply: Reply, text: str, tools: Tools) -> Iterator[str]:
    """Calls whose name, or a word of whose arguments, nobody wrote; arguments that are no JSON though whole."""
    low = text.lower() + JOINED.sub("", text.lower())
    codes = [part for form in (d.call, *d.forms) for part in form if isinstance(part, Raw)]
    for call in reply.calls:
        keys = {key for tool in tools or () if tool.name == call.name for key in tool.parameters.get("properties", ())}
        keys |= {code.key for code in codes}
        if call.name not in text and "\\" not in text and call.name not in {code.tool for code in codes}:
            yield f"invented name {call.name!r}"
        for word in WORD.findall(ESCAPE.sub(" ", call.json)):
            by_place = bool(call.notes) and re.fullmatch(r"arg\d+|input", word)
            if word == "0" and re.search(r"(?<!\d)\.\d|\d\.(?!\d)", text):
                continue  # `.5` and `2.` are no numbers in JSON, 0.5 and 2.0 are
            if word not in keys and not by_place and word.lower() not in low and word != "null" and "\\" not in text:
                yield f"invented argument {word!r}"
        if call.whole and json.loads(call.json) != call.arguments:
            yield "arguments that are not their text"


def lost(d: Dialect, reply: Reply, text: str, tools: Tools, thoughts: str) -> Iterator[str]:
    """Text that is neither in the reply nor a mark of the dialect, where no note tells of it."""
    nobody = tools is not None and not tools
    wrapped = d.frame or d.header or (any(map(says, d.call)) and not nobody)
    ends = f"(?:{'|'.join(map(re.escape, d.stop)) or '(?!)'})*"
    unended = re.sub(rf"\A{ends}|{ends}\Z", "", text)  # what ends a turn goes, also that of the turn before
    if not reply.calls and thoughts == "keep" and not wrapped and reply.text not in (text, unended):
        yield "changed though nothing was called"
    if reply.notes:
        return
    parts = [reply.text, reply.thought, *(f" {c.name} {c.id} {c.json} {json.dumps(c.arguments)}" for c in reply.calls)]
    raw = " ".join(parts)
    kept = f"{ESCAPE.sub(' ', raw)} {raw}".lower()
    for word in WORD.findall(ESCAPE.sub(" ", own_marks(d).sub(" ", NULLED.sub(" ", text)))):
        if word.isdigit() and INDEX in d.call:
            continue  # the number of a call is its place, which is told by the order
        low = word.lower()
        if low not in kept and any(rest not in kept for rest in own_words(d).sub(" ", low).split()):
            yield f"lost {word!r}"


def says(part: Part) -> bool:
    """Can the part carry a text, so that a reply without a call is unwrapped?"""
    return isinstance(part, JsonCall) and any(
        value is TEXT or isinstance(value, Kind) for _, value in (*part.keys, *part.also)
    )


@cache
def own_words(d: Dialect) -> re.Pattern[str]:
    """Finds the words of which the dialect's own marks and keys are made; models may write them without space."""
    fields = (d.call, d.open, d.close, d.between, d.items, d.also, d.before, d.fences, d.forms, d.thinking, d.header)
    own = COMMON | {word.lower() for word in WORD.findall(repr((fields, d.frame, d.stop)).replace("\\n", " "))}
    return re.compile("|".join(sorted(own, key=len, reverse=True)))


@cache
def own_marks(d: Dialect) -> re.Pattern[str]:
    """Finds the dialect's own marks: one that stands behind half an escape is no part of it (`\\u00` and `Action:`)."""
    return re.compile("|".join(re.escape(word) for word in words(d) if word[0].isalpha()) or "(?!)")
