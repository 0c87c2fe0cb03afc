"""Reads a call that is one JSON object, key by key as they arrive.

Keys may come in any order. So everything before the name is held back until it is certain whether the object is a
call, and of which tool, or has a text. Where any JSON may be an answer (`Call.guard`), an unknown key ends the
reading.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from ...events import ArgumentsDelta, TextDelta, ThoughtDelta
from ..dialect import ARGS, CALL, ID, INDEX, NAME, TEXT, THOUGHT, JsonCall, Kind, Slot
from ..reading.call import Call
from ..reading.json_string import short_string
from ..reading.json_tokens import ENDS, quoted
from ..reading.json_value import json_value
from ..reading.object_names import add_name
from ..reading.source import Malformed, Scan, at, expect, following
from ..reading.state import State
from . import json_args
from .ignored_keys import FUNCTION, QUIET, Quiet, note_ignored, note_quiet
from .misplaced_key import last_keys, misplaced

MOST_PENDING = 4096
"""The most characters of a text before the name that are held back, where any JSON may be an answer."""
IDENTIFIER = re.compile(r"[^\W\d][\w.-]*").fullmatch
"""Matches possible tool names; anything else is text."""
DIGITS = frozenset("-0123456789")

Pending = tuple[type[TextDelta] | type[ThoughtDelta], str]


@dataclass(slots=True)
class _Object:
    """What the keys read so far say."""

    hole: JsonCall
    call: Call
    beyond: tuple[str, ...] = ()
    arguments: list[str] = field(default_factory=list[str])
    pending: list[Pending] = field(default_factory=list[Pending])
    filled: bool = False  # the arguments were read
    answer: bool = False  # this is no call: the object has a text
    texts: bool = False  # the text was read
    foreign: bool = False  # the tool is not offered, but the object has exactly the dialect's keys
    collapsed: bool = False  # the kind is the tool's name: keys without another meaning are arguments
    pieces: set[str] = field(default_factory=set[str])  # the names of such arguments so far
    id: str = ""  # the id that the model wrote
    inner: bool = False  # it is inside another object, which ends the call
    broken: bool = False  # the rest of it is given back as text
    quiet: list[Quiet] = field(default_factory=list[Quiet])


def read(s: State, hole: JsonCall, call: Call, beyond: tuple[str, ...]) -> Scan[None]:
    """Reads the object after its brace. Emits the call, or the text that it has, as soon as it is certain which it is.

    If the object has several calls, the others are emitted as well; `call` is then filled and may be none of them. The
    words `beyond` end the object.
    """
    yield from _members(s, _Object(hole, call, beyond))


def _members(s: State, o: _Object) -> Scan[None]:
    slots: dict[str | Slot, Slot | Kind] = {**dict(o.hole.also), **dict(o.hole.keys)}
    while not (yield from at(s, "}")):
        if o.call.filled and (yield from following(s)) not in ENDS:
            _unclosed(s, o)
            break
        key = yield from short_string(s)
        yield from expect(s, ":")
        slot = slots.get(key)
        if slot is None and NAME in slots and (yield from _is_name(s, o, key)):
            o, slot = _named(s, o, s.resolve_name(key)), slots[NAME]
        yield from _value(s, o, key, slot)
        if o.broken:
            break
        if not (yield from at(s, ",")):
            if (yield from at(s, "}")):
                break
            if not o.call.filled and not (o.answer and o.texts):
                raise Malformed("expected , or }")
            _unclosed(s, o)
            break
    _finish(s, o)


def _unclosed(s: State, o: _Object) -> None:
    s.note("unclosed-object")
    o.call.unclosed = True
    if key := misplaced(o.hole, "".join(o.arguments), s.schema(o.call).get("required") or ()):
        s.note("misplaced-key", key)


def _value(s: State, o: _Object, key: str, slot: Slot | Kind | None) -> Scan[None]:
    if isinstance(slot, Kind):
        yield from _kind(s, o, key, slot)
    elif slot is ARGS and not o.filled and not o.pieces:
        yield from _arguments(s, o, key)
    elif o.collapsed and not o.filled:
        yield from _inline_argument(s, o, key)
    elif slot is NAME:
        yield from _name(s, o, key)
    elif slot in (TEXT, THOUGHT):
        yield from _text(s, o, TextDelta if slot is TEXT else ThoughtDelta)
    elif slot is CALL and not o.filled and not o.pieces:
        yield from _calls(s, o, key)
    elif slot in (ID, INDEX) and _may_be_id((yield from following(s)), slot):
        yield from _id(s, o, key)
    else:
        yield from _other(s, o, key)


def _name(s: State, o: _Object, key: str) -> Scan[None]:
    if (yield from at(s, *json_args.NULL, '""')):
        return _not_a_call(s, o)
    name = s.resolve_name((yield from short_string(s)))
    if o.call.name is None:
        if not name or (o.call.strict and s.tools is None):
            raise Malformed(f"{name!r} is no tool")
        if o.call.guard and not s.offered(name):
            _unoffered(s, o, key, name)
        o.call.name = name
    elif name != o.call.name:
        s.note("other-name", name)
    if all((o.filled >= o.call.guard, not o.answer)):
        _start(s, o)
    return None


def _is_name(s: State, o: _Object, key: str) -> Scan[bool]:
    """Whether the value of a key without another meaning is the tool's name."""
    if (o.call.filled and not s.offered(key)) or (o.call.name is not None and not o.call.filled):
        return False
    return bool(key) and (s.is_tool(key) or (yield from following(s)) == "{")


def _named(s: State, o: _Object, name: str) -> _Object:
    """The call whose arguments are the value of its name; it may be one of several."""
    if o.call.guard and (not s.offered(name) or (o.call.strict and s.tools is None)):
        raise Malformed(f"{name!r} is no tool", "" if o.call.strict else name)
    if o.call.filled:
        note_quiet(s, o.quiet, _properties(s, o))
        s.end_call(o.call)
        o = _Object(o.hole, Call(o.call.guard, o.call.strict), o.beyond)
    o.call.name = name
    return o


def _calls(s: State, o: _Object, key: str) -> Scan[None]:
    """The call itself, or a list of calls. A string is its name; null or an empty value means that there is no call."""
    c = yield from following(s)
    if c in ENDS:
        yield from _name(s, o, key)
    elif c == "{" and o.call.name is None:
        yield from expect(s, "{")
        yield from _members(s, _Object(o.hole, o.call, o.beyond, pending=_take_pending(o), inner=True))
    elif c == "[" and o.call.name is None:
        yield from _list(s, o)
    elif (yield from at(s, *json_args.NULL)):
        _not_a_call(s, o)
    else:
        yield from _other(s, o, key)


def _list(s: State, o: _Object) -> Scan[None]:
    yield from expect(s, "[")
    while not (yield from at(s, "]")):
        if o.call.filled:
            s.start_recording()
            s.no_reread = False
            yield from at(s, ",")
            if (yield from at(s, "]", eat=False)):
                s.commit()
                s.note("trailing-comma")
                continue
        try:
            yield from expect(s, "{")
            call = Call(o.call.guard, o.call.strict)
            yield from _members(s, _Object(o.hole, call, o.beyond, pending=_take_pending(o)))
        except Malformed:
            if not o.call.filled or s.irrevocable:
                raise
            s.drop_notes()
            s.give_back()  # earlier calls stay, the rest is text
            o.broken = True
            return
        o.call.filled = True
    if not o.call.filled:
        _not_a_call(s, o)


def _take_pending(o: _Object) -> list[Pending]:
    """What was held back, for the object that has the call."""
    pending, o.pending = o.pending, []
    return pending


def _not_a_call(s: State, o: _Object) -> None:
    """There is no call: the object has a text, if it may."""
    o.answer = o.answer or (o.call.name is None and any(slot is TEXT for _, slot in (*o.hole.keys, *o.hole.also)))
    _emit_text(s, o)


def _unoffered(s: State, o: _Object, key: str, name: str) -> None:
    """Handles a name that is not offered. It counts directly after another call or, with exactly the dialect's keys, at the
    beginning of a reply: the model meant a call. Anywhere else the text may just be about calls."""
    later = s.complete_call is not None
    formal = bool(IDENTIFIER(name)) and (later or dict(o.hole.keys).get(key) is NAME)
    elsewhere = not later and any((o.call.strict, s.has_text))
    if not formal or o.filled or elsewhere:
        raise Malformed(f"{name!r} is no tool", name if formal and not o.call.strict else "")
    o.foreign = True


def _start(s: State, o: _Object) -> None:
    """The call is certain: emits it and what was held back before its name."""
    if o.call.started:
        return
    _emit_pending(s, o)
    s.start_call(o.call)
    if o.filled:
        s.emit_arguments("".join(o.arguments))
        o.call.filled = True


def _arguments(s: State, o: _Object, key: str) -> Scan[None]:
    if o.foreign:
        own = s.complete_call is not None or dict(o.hole.keys).get(key) is ARGS
        if not own or (yield from following(s)) != "{":
            raise Malformed(f"{o.call.name!r} is no tool")
        o.call.guard = False
    if o.answer:
        parts: list[str] = []
        yield from json_value(s, parts.append, s.note, beyond=o.beyond)
        note_ignored(s, key, "".join(parts))
    elif o.call.name is not None:
        _start(s, o)
        o.filled = True

        def emit(text: str) -> None:
            s.emit_arguments(text)
            o.arguments.append(text)

        known = emit if last_keys(o.hole) else s.emit_arguments
        yield from json_args.read(s, known, s.note, beyond=o.beyond)
        o.call.filled = True
    else:
        o.filled = s.no_reread = True
        yield from json_args.read(s, o.arguments.append, s.note, None, o.beyond)


def _text(s: State, o: _Object, delta: type[TextDelta] | type[ThoughtDelta]) -> Scan[None]:
    """A text. It is emitted as it arrives once it is certain that it is one, and held back until then."""
    o.texts = o.texts or delta is TextDelta
    if (yield from at(s, *json_args.NULL)):
        return
    if o.answer or o.call.filled:
        s.end_call(o.call)
        s.commit()
        if s.complete_call:  # what follows the text may still show that the call is not whole
            yield from json_args.read_string(s, lambda t: s.events_after_call.append(delta(t)), None)
        else:
            yield from json_args.read_string(s, lambda t: _emit(s, delta, t), delta)
    elif o.call.guard:
        o.pending.append((delta, (yield from short_string(s, MOST_PENDING))))
    else:
        s.no_reread = True
        parts: list[str] = []
        yield from json_args.read_string(s, parts.append, None)
        o.pending.append((delta, "".join(parts)))


def _emit_text(s: State, o: _Object) -> None:
    """The object has a text: emits the part that was held back."""
    if o.answer and o.pending:
        s.commit()
        _emit_pending(s, o)


def _emit_pending(s: State, o: _Object) -> None:
    """Emits what was held back."""
    for delta, text in o.pending:
        _emit(s, delta, text)
    o.pending = []


def _emit(s: State, delta: type[TextDelta] | type[ThoughtDelta], text: str) -> None:
    """Emits a text of the object, which is no part of a call before it. The rest of the reply is read as behind any text."""
    if text:
        s.end_complete_call()
        before, s.text_type = s.text_type, delta
        s.emit_text(text)
        s.text_type = before


def _may_be_id(c: str, slot: Slot | Kind | None) -> bool:
    """Whether an id may begin with this character. It is a number only if calls are numbered."""
    return c in ENDS or (slot is INDEX and c in DIGITS)


def _id(s: State, o: _Object, key: str) -> Scan[None]:
    """The call's id, a string or a number; the last one counts."""
    digits: list[str] = []
    if (yield from following(s)) in ENDS:
        value = yield from short_string(s)
    else:
        yield from json_value(s, digits.append, s.note, beyond=o.beyond)
        value = "".join(digits).strip()
    if o.id != value:
        note_ignored(s, key, o.id)
    o.id = value
    if o.call.started:
        o.call.late_id = value
    else:
        o.call.id = value


def _kind(s: State, o: _Object, key: str, kind: Kind) -> Scan[None]:
    word = yield from short_string(s)
    if word == kind.call:
        return None
    if kind.text and word == kind.text:
        o.answer = True
        return _emit_text(s, o)
    if s.is_tool(word) and o.call.name is None:
        o.call.name, o.collapsed = word, True
        return s.note("collapsed-call", word)
    if o.call.guard:
        raise Malformed(f"{word!r} is no kind of object")
    return note_ignored(s, key, word)


def _inline_argument(s: State, o: _Object, key: str) -> Scan[None]:
    """An argument written among the keys of the call itself."""
    _start(s, o)
    s.emit_arguments(f"{', ' if o.pieces else '{'}{quoted(key)}: ")
    add_name(o.pieces, key, s.note, s.offset + s.pos)
    yield from json_value(s, s.emit_arguments, s.note, ArgumentsDelta, o.beyond)


def _other(s: State, o: _Object, key: str) -> Scan[None]:
    """An unknown key: skipped within a dialect's own markers, elsewhere a sign that this is no call."""
    if o.call.guard and not (o.call.started or o.call.filled or o.answer):
        raise Malformed(f"key {key!r}")
    if s.recording is not None:
        s.no_reread = True
    parts: list[str] = []
    place = s.offset + s.pos
    yield from json_value(s, parts.append, s.note, beyond=o.beyond)
    value = "".join(parts)
    if key in QUIET:
        if key != "type" or value not in FUNCTION:
            o.quiet.append((key, value, place))
    elif value != "null" or key in _properties(s, o):
        s.note("unknown-key", key, place)


def _properties(s: State, o: _Object) -> Collection[str]:
    return s.schema(o.call).get("properties") or ()


def _finish(s: State, o: _Object) -> None:
    call = o.call
    if all((call.filled, not call.started, call.name is None)):
        return _end_without_call(s, o)
    if call.name is None and o.texts and not o.filled and CALL in dict(o.hole.also).values():
        o.answer = True  # the object may have calls or a text, and this one has a text
        _emit_text(s, o)
    if o.answer and not call.started:
        if not o.texts:
            raise Malformed("neither a call nor a text")
        return _end_without_call(s, o)
    doubtful = o.foreign or (s.tools is None and call.guard)
    if call.name is None or (doubtful and not call.started):
        raise Malformed("not a call")
    _start(s, o)
    note_quiet(s, o.quiet, _properties(s, o))
    if not call.filled:
        s.emit_arguments("}" if o.pieces else "{}")
        call.filled = True
        if not o.pieces:
            s.note("no-arguments")
    if not o.inner:
        s.end_call(call)
    return None


def _end_without_call(s: State, o: _Object) -> None:
    """The object has a text or other calls, but is none: notes the parts of a call that it has."""
    for key, value in (("name", o.call.name or ""), ("id", o.id), ("arguments", "".join(o.arguments))):
        note_ignored(s, key, value)
    note_quiet(s, o.quiet, _properties(s, o))
    s.commit()
