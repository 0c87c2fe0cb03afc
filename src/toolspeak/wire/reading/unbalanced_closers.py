"""Watches the text behind calls for the closers of a call without an opener.

A value that is written without escapes may contain all the closers of its call, on lines of their own or in a fence.
Then the call ends there, and the rest of the value becomes text, which ends with the closers once more. So closers without an opener in a
text behind a call show that a call before them ended too early. Which one is not known: none of them is whole.

A text in quotes has the same fate if the model writes its quotes without escapes, and one of them stands before the closers. Then the text
behind the call has the end of an object, behind a value, without its beginning.

The events of those calls are gone by then. The note `unbalanced-closers` says so, before the next call or at the end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ..dialect import Json, JsonCall, Keywords, Part, Tagged, Tree
from .source import literal_words

LONGEST = 700
"""More characters than an opener with its name, or two closers with the whitespace between them, can have."""
Form = tuple[Part, ...]
NAME = r"\s{0,40}[^\s<>{}\[\]()\"'`|,;]{1,128}"
QUOTED = re.compile(r"(?P<closer>(?P<closers>(?:[\"'\]]|\b(?:\d+|true|false|null))\s{0,64}\})|\})|\{")
"""Matches what opens an object, and what closes one. `closers`: a value stands before it."""
KEYWORDS = re.compile(r"(?P<closer>(?P<closers>[\"']\s{0,64}\))|\))|\(")
"""The same for the parentheses of a Python call. In a text, a number may stand before one."""
NAME_END = r"(?:\">|\"(?=[^>])|>|(?=[\s<{]))(?=[^\"'`])"
"""Matches what ends a name in an opener that is not quoted."""


class TextBehind(NamedTuple):
    """The text behind the last call: its `tail`, the number of openers in it without closers, the first closers without an
    opener, and whether anything in it is `visible`."""

    tail: str = ""
    depth: int = 0
    closers: str = ""
    visible: bool = False

    def then(self, text: str, pattern: re.Pattern[str] | None) -> TextBehind:
        """The same with more text. Without a pattern, only `visible` counts."""
        if self.closers:
            return self
        visible = any((self.visible, not text.isspace()))
        if pattern is None:
            return self._replace(visible=True) if visible > self.visible else self
        seen, depth, end = self.tail + text, self.depth, 0
        for token in pattern.finditer(seen):
            end = token.end()
            if token["closers"] and not depth:
                return TextBehind(closers=" ".join(token["closers"].split()), visible=True)
            depth = max(0, depth - 1) if token["closer"] else depth + 1
        return TextBehind(seen[max(end, len(seen) - LONGEST) :], depth, visible=visible)


NOTHING_BEHIND = TextBehind()


def patterns_of(words: Mapping[Form, tuple[str, ...]]) -> dict[Form, re.Pattern[str] | None]:
    """For each form of a call with values without escapes, what matches an opener, and its closers; None for the other
    forms. `words` come before the name in each form: an opener in any of them has its own closers."""
    closers = {form: _closers(form) for form in words}
    openers = dict.fromkeys(r"\s{0,40}".join(map(re.escape, words[form])) for form in words if closers[form])
    return {
        form: re.compile(rf"(?P<closer>{ends})|(?:{'|'.join(openers)}){NAME}{NAME_END}") if ends else _quoted(form)
        for form, ends in closers.items()
    }


def _quoted(form: Form) -> re.Pattern[str] | None:
    """The pattern for a call whose texts have escapes, if the model writes them; None for other forms."""
    for part in form:
        match part:
            case Json() | JsonCall():
                return QUOTED
            case Keywords(escapes=True):
                return KEYWORDS
            case _:
                pass
    return None


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
