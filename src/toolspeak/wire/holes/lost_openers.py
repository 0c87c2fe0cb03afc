"""Recognizes parameters whose opening tag is damaged, such as `<paramter=days>`, and which a value may have taken in.

A value may have its own closing tag in it, if the tag is opened in the value too, or text follows it. If another tag
follows, or a key that is still missing, then the value probably ended there, and the call is doubtful.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ..reading.lookahead import ahead, token_ahead
from ..reading.source import Scan, Source
from .tag_words import TagWords

WORDS = re.compile(r"[^\s=<>\"'|:]+").findall


def lost_opener(s: Source, words: TagWords, wanted: Callable[[str], bool]) -> Scan[str]:
    """What may be a parameter after the closer that was just read: its key, or the closer if a tag follows. "" if there is
    none. `wanted` tells whether a key may still come. Consumes nothing."""
    if (yield from ahead(s, 0, ("<",))) > 0:
        return words.close
    text = yield from token_ahead(s, 0, (words.mid[-1], words.close, words.opener))
    return next(filter(wanted, WORDS(text[0])), "") if text and text[1] == words.mid[-1] else ""
