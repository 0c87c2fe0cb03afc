"""Recognizes what a model copies from a text with control markers that were broken in its prompt.

Nobody but toolspeak writes a zero-width space into a marker (see `prompt.control_markers`). So a call behind such an opener,
in the same paragraph, is the copy of a text from outside, and no call of the model.
"""

from __future__ import annotations

import re

from ..marker_forms import SYMBOL
from ..prompt.control_markers import INVISIBLE
from .source import Malformed

WINDOW = 300
"""The most characters before a call in which the opener is looked for."""
_OPENER = re.compile(rf"{SYMBOL}{INVISIBLE}(?!/)(?:(?!\n\s*\n|{SYMBOL}{INVISIBLE}).)*\Z", re.DOTALL).search


def refuse_copy(text: str, word: str, marked: tuple[str, ...]) -> None:
    """Raises Malformed if the last broken marker at the end of `text` is no closer, and nothing ends its paragraph. A call
    whose opening `word` is one of the `marked` ones has a marker of its own, which is not broken."""
    if word not in marked and _OPENER(text[-WINDOW:]):
        raise Malformed("a copy of a broken marker")
