"""Finds which of a dialect's shapes of a call may begin at a position."""

from __future__ import annotations

from collections.abc import Sequence

from ..dialect import NAME, JsonCall
from .call_form_words import Form, first_words
from .source import Scan, at, following
from .state import State


def fitting(s: State, forms: tuple[Form, ...]) -> Scan[Sequence[Form]]:
    """The shapes that may begin with what comes next. One with a literal at its beginning comes first if that literal
    is present, and is dropped otherwise."""
    may_be = _by_letter(forms, (yield from following(s)))
    plain = [form for form in may_be if not isinstance(form[0], str)]
    if len(plain) in (0, len(may_be)):
        return may_be
    marked = [form for form in may_be if form not in plain]
    word = yield from at(s, *(w for form in marked for w in first_words(form)), eat=False)
    return [form for form in marked if word in first_words(form)] + plain


def _by_letter(forms: tuple[Form, ...], c: str) -> Sequence[Form]:
    """The shapes that may begin with this character: a name never begins with a brace, an object always does."""
    other = (NAME if c == "{" else JsonCall) if c else None
    return [form for form in forms if form[0] is not other and type(form[0]) is not other] or forms[:1]
