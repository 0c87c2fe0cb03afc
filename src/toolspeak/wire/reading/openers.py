"""Finds the words of a dialect that may begin calls: its own opener, and what models write in its place."""

from __future__ import annotations

from dataclasses import dataclass

from ..dialect import NAME, Dialect, JsonCall
from .call_form_words import Form, first_words
from .name_tag_variants import other_tags
from .source import literal_words

WRAPPERS = ("tool_calls", "function_calls")
"""Elements in which models put calls of dialects that have another section, or none."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A word that may begin calls, and what comes after it.

    `rest` are the words that complete the section's opener, `close` what closes it. `eaten` is the number of words of
    the first call that are consumed with it. `forms` are the possible shapes of a call, in order. A `strict` entry
    counts only for an offered tool. It is `formal` if it is the dialect's regular opener.
    """

    forms: tuple[Form, ...]
    rest: tuple[str, ...] = ()
    close: str = ""
    eaten: int = 0
    formal: bool = True
    strict: bool = False
    section: bool = False
    listed: bool = False


def call_openers(d: Dialect) -> dict[str, Entry]:
    """The words that may begin calls. If a word has several meanings, the first counts."""
    if d.header:
        return _entries_in_messages(d)
    entries = _section_openers(d) | _opened_without_section(d)
    for more in (_form_openers(d), _object_openers(d), _inner(d), _wrappers(d)):
        entries |= {word: entry for word, entry in more.items() if word not in entries}
    return entries


def _section_openers(d: Dialect) -> dict[str, Entry]:
    """The words that open a section of calls."""
    entries: dict[str, Entry] = {}
    for opener, closer in ((d.open, d.close), *d.also):
        if opener.strip():
            head, *rest = literal_words(opener)
            entries.setdefault(head, Entry(_forms(d), tuple(rest), closer, section=True))
    return entries


def _opened_without_section(d: Dialect) -> dict[str, Entry]:
    """The word that opens the first call, or the list of calls, if there is no section."""
    if d.open:
        return {}
    forms = _forms(d)
    if words := _first_literal(d.call):
        return {words[0]: Entry(tuple(form for form in forms if first_words(form) == words[:1]), eaten=1)}
    return {d.items[0].strip(): Entry(forms, listed=True)} if d.items else {}


def _forms(d: Dialect) -> tuple[Form, ...]:
    """The possible shapes of a call, in order."""
    return (d.call, *d.forms, *spelled(d))


def spelled(d: Dialect) -> tuple[Form, ...]:
    """The shapes with the name in a tag of another spelling."""
    return tuple(other for form in (d.call, *d.forms) for other in other_tags(form))


def _first_literal(form: Form) -> tuple[str, ...]:
    """The words of the literal at the beginning of a call; () if it begins with something else."""
    return literal_words(form[0]) if isinstance(form[0], str) else ()


def _form_openers(d: Dialect) -> dict[str, Entry]:
    """The words that open calls in other forms. Such a word may also open a call without its section."""
    entries: dict[str, Entry] = {}
    for form in _openers(d):
        for word in _first_literal(form)[:1]:
            own = _first_literal(d.call)[:1] == (word,)
            entry = Entry((d.call, form), (), d.close, 1, False, True, True) if own else Entry((form,), eaten=1)
            entries.setdefault(word, entry)
    return entries


def _object_openers(d: Dialect) -> dict[str, Entry]:
    """The brackets of a call that is a JSON object without any mark, and of a list of such objects."""
    shapes = (d.call, *d.forms) if d.guard else d.forms
    shape = next((shape for shape in shapes if isinstance(shape[0], JsonCall)), None)
    if shape is None:
        return {}
    formal, strict = any((d.guard, shape is d.call)), not d.guard
    named = (d.call,) if d.items and d.call[0] is NAME else ()  # calls in a list that may be written without its marks
    return {
        "{": Entry((shape,), eaten=1, formal=formal, strict=strict),
        "[": Entry((*named, shape), formal=formal, strict=strict, listed=True),
    }


def _entries_in_messages(d: Dialect) -> dict[str, Entry]:
    """The words that may begin a call inside a message: one without its marks, and one without a recipient."""
    forms = (form for form in d.forms if isinstance(form[0], str))
    entries = {literal_words(str(form[0]))[0]: Entry((form,), eaten=1, formal=False, strict=True) for form in forms}
    head, *rest = literal_words(d.open) or [""]
    if head and NAME in d.call:
        entries[head] = Entry(_forms(d), tuple(rest), d.close, section=True, strict=True)
    return entries


def _openers(d: Dialect) -> tuple[Form, ...]:
    """The forms whose first words open a call at any place. None if calls begin with names, since the words before a
    name are no mark outside the section."""
    return () if d.open and d.call[0] is NAME else d.forms


def _inner(d: Dialect) -> dict[str, Entry]:
    """Entries for a model that omits the first words of the opener; they only count for an offered tool."""
    opener = literal_words(d.open)
    out = {
        w: Entry(_forms(d), tuple(opener[i + 1 :]), d.close, 0, False, True, True) for i, w in enumerate(opener) if i
    }
    out = _own_words(d) | out
    fences = [mark for pair in d.fences for mark in pair]
    return {w: e for w, e in out.items() if all((len(w) > 1, not w[0].isalnum(), w not in fences))}


def _wrappers(d: Dialect) -> dict[str, Entry]:
    """Entries for elements that other dialects have around their calls; they only count for an offered tool."""
    forms = tuple(form for form in _forms(d) if all(isinstance(part, str) for part in (form[0], form[-1])))
    return {
        f"<{w}>": Entry(forms, (), f"</{w}>", 0, False, True, True)
        for w in WRAPPERS
        if d.call in forms and str(d.call[0])[:1] == "<"
    }


def _own_words(d: Dialect) -> dict[str, Entry]:
    """Entries at each word that begins a call, except the one that opens it."""
    out: dict[str, Entry] = {}
    forms, section = (d.call, *other_tags(d.call)), bool(d.open)
    for words in (line[:n] for line in map(_first_literal, forms) for n in range(1, len(line) + 1)):
        same = tuple(form for form in forms if _first_literal(form)[: len(words)] == words)
        out.setdefault(words[-1], Entry(same, (), d.close, len(words), False, True, section))
    return out if d.open else {word: entry for word, entry in out.items() if word != _first_literal(d.call)[0]}
