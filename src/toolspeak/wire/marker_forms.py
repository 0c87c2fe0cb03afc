"""Patterns of the control markers that can be broken in outside text: a symbol and what follows it (`<|im_start|>`), or a
label (`Observation:`)."""

from __future__ import annotations

import re

FULL_WIDTH = r"\uff1c-\uff1e\uff20\uff3b\uff3d\uff3e\uff5b-\uff5e\uff62\uff63\U0001f000-\U0001faff"
SYMBOL = (
    rf"[#$%&()*+<=@\[\]^{{|}}~§¶†‡※«»‹›\u2190-\u2bff\u2e22-\u2e29\u3008-\u301b\uff03-\uff06\uff08-\uff0b{FULL_WIDTH}]"
)
"""Brackets and symbols: what a marker may begin with. Letters, quotes and the punctuation of sentences are none, since
zero-width spaces separate words beside them in some scripts."""
BREAKABLE = re.compile(rf"{SYMBOL}\S.*", re.DOTALL)
LABEL = re.compile(r"[A-Z][A-Za-z ]{0,40}:")
"""A label: a word and a colon, at the beginning of a line."""
