"""Recognizes damaged and wrong tags where a value may have ended, such as `<paramter=days>` or `</parameters>`.

A value may have its own closing tag in it, if the tag is opened in the value too, or text follows it. If another tag
follows, or a key that is still missing, then the value probably ended there, and the call is doubtful.

A value whose own closing tag is missing may end with tags that are its own, such as those of HTML. If its last tag closes
what it did not open, or resembles a tag of the dialect, then that tag was probably meant to end it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher

from ..reading.lookahead import ahead, token_ahead
from ..reading.missing_quotes import LONG
from ..reading.source import Scan, Source
from .tag_words import TagWords

WORDS = re.compile(r"[^\s=<>\"'|:]+").findall
LAST_TAG = re.compile(
    r"(?:(?P<marker><\|[^<>|\n]*\|?>?)"
    r"|(?:<\s*(?P<closing>/?)\s*|[/|](?=[^<>/\n]*>\Z))(?P<name>[^\s<>/=]+)[^<>/\n]*>?)\Z"
).search
"""Matches the last tag of a text, or its last control marker, also without its `<` or its `>`."""
NAMES = re.compile(r"</?([^\s<>=\"']+)").findall
PARTS = re.compile(r"[|｜:]").split
TAG_WORDS = ("parameter", "argument", "arg_key", "arg_value", "value", "invoke", "function", "tool_call")
"""Names of the tags of a call in most dialects with tags."""
ALIKE = 0.8
SHORTEST = 3
"""The fewest letters of an abbreviated name."""


def lost_opener(s: Source, words: TagWords, wanted: Callable[[str], bool]) -> Scan[str]:
    """What may be a parameter after the closer that was just read: its key, or the closer if a tag follows. "" if there is
    none. `wanted` tells whether a key may still come. Consumes nothing."""
    if (yield from ahead(s, 0, ("<",))) > 0:
        return words.close
    text = yield from token_ahead(s, 0, (words.mid[-1], words.close, words.opener))
    return next(filter(wanted, WORDS(text[0])), "") if text and text[1] == words.mid[-1] else ""


def lost_closer(end: str, tags: Iterable[str], is_key: Callable[[str], bool]) -> str:
    """The tag at the end of a value without its closer that was probably meant to close it; "" if there is none.

    `end` is the whole value, or its last `LONG` characters. `tags` are the dialect's around a value. Of a long
    value the beginning is not known: only names that a closer may have count."""
    text = end.rstrip()
    tag = LAST_TAG(text)
    if tag is None:
        return ""
    if tag["marker"]:
        return tag[0]
    name, own = tag["name"], {part for word in tags for own in NAMES(word) for part in (own, *PARTS(own))}
    if not tag["closing"]:
        wrong = _resembles(name, own)
    elif _is_opened(text, name):
        wrong = False
    else:
        wrong = any((len(end) < LONG, is_key(name), _resembles(name, own.union(TAG_WORDS))))
    return tag[0] if wrong else ""


def _is_opened(text: str, name: str) -> bool:
    """Whether the text opens a tag as often as it closes it."""
    opened, closed = (len(re.findall(rf"<{slash}\s*{re.escape(name)}(?![\w:.-])", text)) for slash in ("", "/"))
    return opened >= closed


def _resembles(name: str, names: Iterable[str]) -> bool:
    """Whether a name is one of these, begins like one, is an abbreviation of one, or is misspelled."""
    return any(_alike(_letters(name), _letters(other)) for other in names)


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _alike(a: str, b: str) -> bool:
    if min(len(a), len(b)) < SHORTEST:
        return False
    return any((a.startswith(b), b.startswith(a), SequenceMatcher(None, a, b).ratio() > ALIKE))
