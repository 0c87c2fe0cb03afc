"""Reads calls after their first word: sections, lists, and the parts of one call.

A call may depart from its dialect in many ways, and text may look like a call. The rule is: nothing is emitted before
it is certain that this is a call. Until then a failure raises Malformed, and `reply.attempt` gives the text back.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape

from ..dialect import DEFAULT_SERVER, ID, INDEX, NAME, SERVER, Arguments, Json, JsonCall, Maybe, NumberedName, Raw, Slot
from ..holes import ARGUMENTS, json_call, numbered_name
from ..holes.hole import Tail
from ..holes.parameter_tag_variants import unquoted
from .call import Call
from .call_form_words import Form, first_words, name_ends, words_of
from .call_repairs import (
    IDENTIFIER,
    behind,
    closing,
    drop_strays,
    follows,
    missing,
    note_half_name,
    skip_comments,
    skip_scalars,
    trailing,
)
from .copied_markers import note_copy_before
from .fences import frame_in_fence, language
from .lexicon import Program
from .lookahead import ahead
from .marks import Marks, marks
from .open_ended import ended_by
from .openers import Entry
from .other_turns import result_marks
from .repeated_tags import skip_repeated
from .run_on_calls import to_the_next
from .run_on_strings import RunsOn
from .shapes import fitting
from .source import CAP, Malformed, Scan, at, blank, expect, following, literal_words, token
from .state import NAMED, State, may_name

CONTROL = ("<|", "<｜")
"""Beginnings of marks that nobody quotes: without a call between them they are dropped, not kept as text."""
MARKDOWN = "`*"
"""Characters with which Markdown emphasizes a name."""
QUOTES = f"\"'{MARKDOWN}"
"""Characters that may surround a name."""
HALF_ENTITY = re.compile(r"&#?\w*\Z").sub


def section(s: State, p: Program, word: str, thinking: bool) -> Scan[None]:
    """Reads one or more calls, from after the first word to after the last closer."""
    fence = p.fences.get(word, "")
    if fence:
        s.note("fence", word)
        yield from language(s)
        word = yield from at(s, *p.openers)
    if not word:
        raise Malformed("no call in the fence")
    entry = p.entries[word]
    if not entry.formal:
        s.note("missing-opener")
        s.text_before_call |= s.has_text  # the opener may be in a quotation above
    for w in entry.rest:
        yield from expect(s, w)
    if entry.formal and entry.section and word[:2] in CONTROL and (yield from at(s, entry.close.strip())):
        return s.note("no-calls")
    entry, closers = yield from _opened_list(s, p, entry)
    strict = entry.strict or thinking or (bool(fence) and s.tools is not None)
    bare = isinstance(entry.forms[0][0], JsonCall)
    several = any((closers, fence, bare, entry.section, p.d.between.strip()))
    yield from calls(s, p, entry, Call(p.d.guard or strict, strict), bool(closers), several)
    ends = [*closers, entry.close if entry.formal else "", fence]
    yield from frame_in_fence(s, p.frames, fence)
    yield from closing(s, ends, p.legal, p.marked)
    if not entry.formal:
        for w in literal_words(entry.close):
            yield from at(s, w)
    yield from note_copy_before(s, p, word)
    yield from ended_by(s, p, any(ends))


def _opened_list(s: State, p: Program, entry: Entry) -> Scan[tuple[Entry, list[str]]]:
    """Consumes the opener of the list around the calls, if there is one. Returns also what closes the list."""
    items = p.d.items
    if entry.listed:
        return entry, [items[2] if items else "]"]
    if entry.section and not entry.eaten and items and (yield from at(s, items[0].strip())):
        return entry, [items[2]]
    if (marked := _marked(p, entry)) and (yield from at(s, "[")):
        s.note("list")  # several calls between the marks of a single one
        yield from skip_scalars(s)
        return replace(entry, forms=(marked[1:2],), eaten=0), ["]", *words_of(marked[2:])]
    return entry, []


def _marked(p: Program, entry: Entry) -> Form | None:
    """The form of a call that is a JSON object between marks and may come without them, or after one mark. In a section
    of objects, the mark is the section's."""
    if all((entry.section, not p.d.items, isinstance(p.d.call[0], JsonCall))):
        return ("", *p.d.call)
    for form in entry.forms if entry.formal else ():
        if isinstance(form[0], str) and len(form) > 1 and isinstance(form[1], JsonCall):
            return form if len(form) == 2 or (len(form) == 3 and form[1:2] in p.d.forms) else None
    return None


def begin(s: State, p: Program, name: str, begun: bool) -> Scan[None]:
    """Reads the calls of a message whose head has the name of the first. `begun`: the message certainly begins here, so
    that it is a call whatever tool it names."""
    call = Call(p.d.guard)
    call.name = s.resolve_name(name)
    if not NAMED(name):
        raise Malformed("no name")
    if call.guard:
        brace = (yield from following(s)) == "{"
        if p.d.call == (Json(),) and not brace:
            raise Malformed("no arguments")  # a line with only a tool's name
        call.guard = not all((begun, brace, IDENTIFIER(name)))
    if NAME not in p.d.call or s.offered(call.name):
        s.start_call(call)  # otherwise the call contains its name
    opener = literal_words(p.d.open)
    if opener and (yield from at(s, opener[0], eat=False)):
        yield from expect(s, p.d.open)
    yield from one_call(s, p, (yield from _spelling(s, p)), call, 0)
    entry = Entry((p.d.call, *p.spelled), close=p.d.close, section=bool(opener))
    if opener:
        yield from more(s, p, entry, Call(p.d.guard), False)
    for w in literal_words(p.d.close):
        yield from at(s, w)
    yield from drop_strays(s, p.strays)
    results = result_marks(p)
    if not (yield from at(s, *results, eat=False)):
        yield from trailing(s, (*p.legal, *results))


def _spelling(s: State, p: Program) -> Scan[Form]:
    """The form of the next call: the dialect's own, or one with the name in another tag."""
    for form in (p.d.call, *p.spelled) if p.spelled else ():
        place, words = 0, literal_words(str(form[0]))
        for i, word in enumerate(words):
            place = (yield from ahead(s, place, (word,))) if place > 0 or not i else place
        if place > 0:
            if form is not p.d.call:
                s.note("other-tags", str(form[0]).strip())
            return form
    return p.d.call


def calls(s: State, p: Program, entry: Entry, kind: Call, listed: bool, several: bool) -> Scan[None]:
    """Reads the calls of a section, all of one `kind`: there may be `several`."""
    if not s.text[s.pos : s.pos + 1].strip("# \n"):  # there are many openers without calls, and few comments
        yield from skip_comments(s, p.comment_ends)
    yield from shaped(s, p, entry, kind, s.recorded_length())
    while place := (yield from _another_ahead(s, p)):
        yield from another(s, p, kind, place)
    if several:
        yield from more(s, p, replace(entry, eaten=0), kind, listed)


def _another_ahead(s: State, p: Program) -> Scan[int]:
    """The distance to the end of the word that begins another call between the same marks; 0 if there is none."""
    if not p.again or s.no_reread:
        return 0
    comma = yield from ahead(s, 0, (",", ";"))
    return max((yield from ahead(s, max(comma, 0), (p.again,))), 0)


def another(s: State, p: Program, kind: Call, place: int) -> Scan[None]:
    """Reads one more call between the same marks, before its first word. If there is none, the rest is text."""
    s.start_recording()
    s.no_reread = False
    s.pos += place
    try:
        yield from one_call(s, p, p.d.call[p.d.call.index(NAME) :], Call(kind.guard, kind.strict), 0)
    except Malformed:
        if s.irrevocable:
            raise
        s.drop_notes()
        s.give_back()
        s.no_reread = True
    else:
        s.note("list")


def more(s: State, p: Program, entry: Entry, kind: Call, listed: bool) -> Scan[None]:
    """Reads the calls after the first."""
    firsts = tuple(w for form in entry.forms for w in first_words(form))
    named = any(form[0] is NAME for form in entry.forms)
    kind = _later(kind, entry, listed)
    while True:
        yield from skip_comments(s, p.comment_ends)
        s.start_recording()
        s.no_reread = False
        separated = yield from _separator(s, p)
        if separated and listed and (yield from at(s, "]", eat=False)):
            return s.note("trailing-comma")
        bare = named and bool(separated or (entry.close and not listed))
        if not (yield from _begins(s, firsts, bare)):
            s.pending_notes.clear()
            return s.give_back()
        try:
            yield from shaped(s, p, entry, kind, s.recorded_length())
        except Malformed:
            if s.irrevocable:
                raise
            s.truncated = s.truncated or (s.closed and not kind.guard)
            s.drop_notes()
            return s.give_back()  # earlier calls stay, the rest is text


def _separator(s: State, p: Program) -> Scan[str]:
    """Consumes what separates calls, a comment behind it, and a bracket too many before it."""
    if stray := (yield from at(s, "}", ")")):
        s.note("stray-closer", stray)
    separator = yield from at(s, *p.separators)
    if separator:
        yield from skip_comments(s, p.comment_ends)
    return separator


def _later(kind: Call, entry: Entry, listed: bool) -> Call:
    """The kind of the calls after the first: in a list that has a call, an unknown name is a call too. Where calls are
    objects without marks, their reader decides that."""
    bare = isinstance(entry.forms[0][0], JsonCall)
    return replace(kind, guard=False) if not bare and any((listed, entry.close)) else kind


def _begins(s: State, firsts: tuple[str, ...], bare: bool) -> Scan[bool]:
    """Whether a call comes next: one of its first words or, if `bare`, a possible name."""
    if firsts and (yield from at(s, *firsts, eat=False)):
        return True
    c = (yield from following(s)) if bare else ""
    return c.isalpha() or c == "_"


def shaped(s: State, p: Program, entry: Entry, kind: Call, place: int) -> Scan[None]:
    """Reads one call in the first shape that matches."""
    first: Malformed | None = None
    forms = entry.forms
    if len(forms) > 1 and not entry.eaten:
        forms = yield from fitting(s, forms)
    for form in forms:
        if first:
            s.drop_notes()
            s.rewind(place)
        try:
            guard = kind.guard or form is not p.d.call
            if form in p.spelled:
                s.note("other-tags", str(form[0]).strip())
            elif first:
                note_half_name(s, form)
            return (yield from one_call(s, p, form, Call(guard, kind.strict), entry.eaten))
        except Malformed as e:
            if s.irrevocable:
                raise
            first = first or e
    raise first or Malformed("a call has no shape")


def one_call(s: State, p: Program, form: Form, call: Call, eaten: int) -> Scan[None]:
    """Reads the parts of one call. So many words of its first part are consumed already."""
    for i, part in enumerate(form):
        rest = form[i + 1 :]
        if i and form[i - 1] is NAME and (yield from _self_closing(s, form[i:], call)):
            break
        try:
            match part:
                case str():
                    yield from _words(s, p, part, call, eaten)
                case JsonCall():
                    yield from expect(s, "" if eaten else "{")
                    yield from json_call.read(s, part, call, behind(words_of(rest), p.after))
                case Slot():
                    yield from _slot(s, p, part, call, rest)
                case NumberedName():
                    yield from numbered_name.read(s, part, call, _ends(p, rest), bool(rest))
                case Maybe():
                    yield from _maybe(s, p, part, call, rest)
                case _:
                    yield from skip_repeated(s, form[:i], call)
                    yield from _arguments(s, p, part, call, rest, p.call_words.get(form, p.call_words[p.d.call]))
        except RunsOn:
            yield from to_the_next(s, p.d, part, call)
        eaten = 0
    call.open_ended = call.open_ended or not isinstance(form[-1], str)
    s.unbalanced = s.unbalanced if s.ran_on else p.unbalanced.get(form, p.unbalanced[p.d.call])
    s.end_call(call)


def _self_closing(s: State, form: Form, call: Call) -> Scan[bool]:
    """Whether the tag with the name is self-closing. It is consumed then, and the call has no arguments."""
    part, call_ends = form[0], words_of(form[1:])
    end = literal_words(part)[:1] if isinstance(part, str) and call.name is not None else ()
    if not end or end[0][-1] != ">" or not (yield from at(s, end[0][:-1] + "/>", end[0][:-1] + " />")):
        return False
    s.start_call(call)
    s.emit_arguments("{}")
    s.note("no-arguments")
    call.filled = True
    for tag in filter(None, "\n".join(call_ends).replace("><", ">\n<").split("\n")):
        yield from at(s, tag)
    return True


def _words(s: State, p: Program, part: str, call: Call, eaten: int) -> Scan[None]:
    """Reads a literal. Before the arguments every word is required; after them one may be missing, or another call comes."""
    if call.filled and (yield from _another_ahead(s, p)):
        return
    words = literal_words(part)
    for i, w in enumerate(words):
        if i >= eaten and not (yield from at(s, w)):
            if not call.filled:
                raise Malformed(f"expected {w!r}")
            call.open_ended = not (yield from missing(s, w, (*words, *p.legal), p.marked))


def _ends(p: Program, rest: Form) -> Marks:
    """What ends a short text."""
    return marks(name_ends(rest, p.after) or ("\n",))


def _slot(s: State, p: Program, slot: Slot, call: Call, rest: Form) -> Scan[None]:
    """Reads a name or an id."""
    guarded = call.guard and slot is NAME and s.tools is not None
    yield from blank(s)
    text, hit = yield from token(s, _ends(p, rest), CAP, _name_check(s.begins_tool if guarded else may_name, slot))
    text = text.strip()
    if slot is NAME:
        _take_name(s, call, text, hit, rest)
    elif slot is ID:
        call.id = text
    elif slot is SERVER:
        s.note("server", text) if text != DEFAULT_SERVER else None
    elif not text.isdecimal():
        s.note("odd-index", text)


def _take_name(s: State, call: Call, text: str, hit: str, rest: Form) -> None:
    """Sets the call's name, and starts the call unless its id may follow."""
    if (bare := unquoted(text.strip(MARKDOWN)).removesuffix(">").rstrip()) != text and s.tool_of(bare):
        s.note("other-tags", text)
        text = bare
    if call.name is None or not call.started:
        call.name = _name(s, text, hit, call.name, rest)
    elif text and not call.name.endswith("." + text) and s.resolve_name(text) != call.name:
        s.note("other-name", text)
    if not any(part in (ID, INDEX) or isinstance(part, Maybe) for part in rest if not isinstance(part, str)):
        s.start_call(call)


def _name(s: State, text: str, hit: str, to: str | None, rest: Form) -> str:
    """The name as written; `hit` ends it."""
    if hit == ">" and text[-1:] == "/" and not s.offered(text):
        s.pos -= 1  # the slash of a self-closing tag
        text = text[:-1].rstrip()
    text = s.resolve_name(text)
    unknown = hit in ("<", "{", "[") and hit not in first_words(rest) and text not in (s.tools or ())
    if not NAMED(text) or (rest and not hit) or unknown:
        raise Malformed("no name")
    return text if to is None else s.name_in_message(to, text)


def _name_check(begins: Callable[[str], bool], slot: Slot) -> Callable[[str], bool] | None:
    """A check whether the beginning of a text may be a name. The tag around it may be self-closing, and it may have
    entities. The name of a server has one line."""
    if slot is SERVER:
        return lambda seen: "\n" not in seen.strip()
    return (
        (lambda seen: begins(unescape(HALF_ENTITY("", seen)).rstrip("/> \n").strip(QUOTES))) if slot is NAME else None
    )


def _maybe(s: State, p: Program, part: Maybe, call: Call, rest: Form) -> Scan[None]:
    """Reads optional parts."""
    if not (yield from at(s, *first_words(part.parts), eat=False)):
        return
    for i, inner in enumerate(part.parts):
        later = (*part.parts[i + 1 :], *rest)
        yield from expect(s, inner) if isinstance(inner, str) else _slot(s, p, inner, call, later)


def _arguments(s: State, p: Program, part: Arguments, call: Call, rest: Form, words: tuple[str, ...]) -> Scan[None]:
    """Reads the arguments with the reader of their hole. `words` come before the name of such a call."""
    if isinstance(part, Raw) and call.name is None:
        call.name = part.tool
        if (yield from follows(s, ())):
            raise Malformed("no code")
    s.start_call(call)
    schema = s.schema(call)
    yield from ARGUMENTS[type(part)].read(s, part, schema, Tail(words_of(rest), p.after, p.again, words))
    call.filled = True
