"""Watches the text behind calls for the closers of a call without an opener.

A value that is written without escapes may contain all the closers of its call, on lines of their own or in a fence.
Then the call ends there, and the rest of the value becomes text, which ends with the closers once more. So closers without an opener in a
text behind a call show that a call before them ended too early. Which one is not known: none of them is whole.

A text in quotes has the same fate if the model writes its quotes without escapes, and one of them stands before the closers. Then the text
behind the call has the end of an object, behind a value, without its beginning, and directly behind it what ends the call in its form: the
end of the outer object, and then a closer, a further key, or nothing. Code and prose may have the first, but hardly all of it.

The events of those calls are gone by then. The note `unbalanced-closers` says so, before the next call or at the end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..dialect import ARGS, Json, JsonCall, Keywords, Part, Slot, Tagged, Tree
from .source import literal_words

LONGEST = 700
"""More characters than an opener with its name, or two closers with the whitespace between them, can have."""
Form = tuple[Part, ...]
NAME = r"\s{0,40}[^\s<>{}\[\]()\"'`|,;]{1,128}"
VALUE_END = r"(?:[\"'\]]|\b(?:\d+|true|false|null))\s{0,64}\}"
"""Matches the end of a value and that of its object."""
KEYWORDS = re.compile(r"(?P<closer>(?P<closers>[\"']\s{0,64}\))|\))|\(")
"""Matches what opens the parentheses of a Python call, and what closes them. `closers`: a text stands before the end."""
BLANK = re.compile(r"\s{0,64}").fullmatch
"""Matches what may be between the ends of objects. It is far shorter than LONGEST, so that no cut decides."""
TAG = r"(?:/[^<>\s]{0,128}|[^<>\s/][^<>\s]{0,127})"
"""Matches what is in a tag, each in one way: with an optional slash before any characters, a row of tags has two ways for each."""
CLOSING = re.compile(rf"[\s\])}},;`]*(?:(?:<{TAG}>|\[[^\s\[\]]{{1,64}}\])[\s`]*)*").fullmatch
"""Matches what may close a call behind its objects: brackets, and markers."""
NAME_END = r"(?:\">|\"(?=[^>])|>|(?=[\s<{]))(?=[^\"'`])"
"""Matches what ends a name in an opener that is not quoted."""


class TextBehind(NamedTuple):
    """The text behind the last call: its `tail`, the number of openers in it without closers, the first closers without an
    opener, and whether anything in it is `visible`. `inner` and `ended` are ends without a beginning that are the last thing
    before the `tail`: of an inner object, and of all objects of a call."""

    tail: str = ""
    depth: int = 0
    closers: str = ""
    visible: bool = False
    inner: str = ""
    ended: str = ""

    @property
    def lone_closers(self) -> str:
        """The closers without an opener, if the text is over."""
        over = not self.closers if CLOSING(self.tail) else False
        return self.ended if over else self.closers

    def then(self, text: str, pattern: re.Pattern[str] | None) -> TextBehind:
        """The same with more text. Without a pattern, only `visible` counts."""
        if self.closers:
            return self
        visible = any((self.visible, not text.isspace()))
        if pattern is None:
            return self._replace(visible=True) if visible > self.visible else self
        return self._read(self.tail + text, pattern, visible=visible)

    def _read(self, seen: str, pattern: re.Pattern[str], *, visible: bool) -> TextBehind:
        depth, end, inner, ended = self.depth, 0, self.inner, self.ended
        for token in pattern.finditer(seen):
            between, end = seen[end : token.start()], token.end()
            groups = token.groupdict("")
            inner, ended = (inner, ended) if BLANK(between) else ("", "")
            closers = ended + groups["outer"] if all((ended, groups.get("outer"))) else groups.get("closers", "")
            if all((closers, not depth)):
                return TextBehind(closers=" ".join(closers.split()), visible=True)
            inner, ended = ("", "") if depth else (groups.get("inner", ""), _ended(groups, inner or ended))
            depth = max(0, depth - 1) if groups["closer"] else depth + (not groups.get("outer"))
        if len(seen) - end > LONGEST:
            inner = ended = ""
        return TextBehind(seen[max(end, len(seen) - LONGEST) :], depth, "", visible, inner, ended)


NOTHING_BEHIND = TextBehind()


def _ended(groups: Mapping[str, str], inner: str) -> str:
    """The ends of all objects of a call, if this token, behind the `inner` end, is the last of them."""
    if "last" not in groups:
        return groups.get("inner", "")
    return f"{inner}{groups['last']}" if all((inner, groups["last"])) else ""


def patterns_of(words: Mapping[Form, tuple[str, ...]], stops: tuple[str, ...]) -> dict[Form, re.Pattern[str] | None]:
    """For each form of a call with values without escapes, what matches an opener, and its closers; None for the other
    forms. `words` come before the name in each form: an opener in any of them has its own closers. The `stops` at the end of a
    reply are no text."""
    closers = {form: _closers(form) for form in words}
    openers = dict.fromkeys(r"\s{0,40}".join(map(re.escape, words[form])) for form in words if closers[form])
    return {
        form: re.compile(rf"(?P<closer>{ends})|(?:{'|'.join(openers)}){NAME}{NAME_END}")
        if ends
        else _quoted(form, stops)
        for form, ends in closers.items()
    }


def _quoted(form: Form, stops: tuple[str, ...]) -> re.Pattern[str] | None:
    """The pattern for a call whose texts have escapes, if the model writes them; None for other forms."""
    for i, part in enumerate(form):
        match part:
            case JsonCall(keys=keys):
                key = _next_key(keys)
                return _quoted_to(key or _literal(form[i + 1 :], stops), nested=not key)
            case Json():
                return _quoted_to(_literal(form[i + 1 :], stops), nested=False)
            case Keywords(escapes=True):
                return KEYWORDS
            case _:
                pass
    return None


def _literal(form: Form, stops: tuple[str, ...]) -> str:
    """A pattern for the literal with which this rest of a form begins, if the text of a reply may have it; else ""."""
    literals = [part for part in form[:1] if isinstance(part, str) and part not in stops]
    return r"\s{0,64}".join(re.escape(word) for literal in literals for word in literal_words(literal))


def _next_key(keys: Sequence[tuple[str | Slot, object]]) -> str:
    """A pattern for the keys behind the arguments in an object with these keys; "" if there are none."""
    slots = [slot for _, slot in keys]
    behind = keys[slots.index(ARGS) + 1 :] if ARGS in slots else ()
    names = "|".join(re.escape(key) for key, _ in behind if isinstance(key, str))
    return rf",\s{{0,64}}\"(?:{names})\"" if names else ""


def _quoted_to(outer: str, *, nested: bool) -> re.Pattern[str]:
    """The pattern for quoted texts in an object, where `outer` may follow the end of that object, or of the one in which it
    is `nested`."""
    last = r"(?P<last>\})" if nested else r"\}"
    return re.compile(rf"(?P<closer>(?P<inner>{VALUE_END})|{last})|\{{{f'|(?P<outer>{outer})' if outer else ''}")


def _closers(call: Form) -> str:
    """A pattern for the closers of a call, with the group `closers` if that of a value stands before them."""
    closes = [*map(_close, call)]
    close = next(filter(None, closes), "")
    if not close:
        return ""
    rest = (part for part in call[closes.index(close) + 1 :] if isinstance(part, str))
    closer = "".join(re.escape(literal_words(part)[0]) for part in (*rest,)[:1])
    if closer and close.startswith("</"):  # a parameter may be in tags of another spelling
        close = rf"(?!{closer})(?:{close}|</[^<>\s]{{1,128}}>)"
    return rf"(?P<closers>{close}\s{{0,256}}{closer})|{closer or close}"


def _close(part: Part) -> str:
    """A pattern for what closes the last value of such a call, or all of them; "" if this part has none."""
    match part:
        case Tagged(close=close):
            return re.escape(close.strip())
        case Tree(mark=mark):
            return rf"{re.escape(mark)}</[^<>\s]{{1,128}}>"
        case Keywords(close=close, escapes=False):
            return re.escape(close)
        case _:
            return ""
