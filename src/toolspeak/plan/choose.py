"""Which tool a request wants, if any: by how likely each tool makes the request.

The score of a tool is log P(request | worked examples, the tool), the "noisy channel": a weak model
cannot say which tool a request wants, but it finds the request less surprising after the right one. A
pseudo-tool that replies in words stands for no tool at all. Measured: `docs/weak-models.md`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..types import Tool
from .effects import Plan, score
from .signature import REPLY, framed

REPLY_WORTH = 1.2
"""Nats in favour of words: a wrong answer costs less than a wrong call. Set on requests of our own."""
DIGITS = re.compile(r"(\d)\d+", re.ASCII)


def choose(tools: Sequence[Tool[..., Any]], text: str, *, may_reply: bool) -> Plan[Tool[..., Any] | None]:
    """The tool that `text` asks for; None when an answer in words is likelier (only where it `may_reply`)."""
    candidates = [*tools, REPLY] if may_reply else list(tools)
    if len(candidates) == 1:
        return candidates[0]
    # Which number it is says nothing about the tool, but a long one outweighs all the words: one digit stands for it.
    asked = DIGITS.sub(r"\1", text)
    scores = yield from score([(f"{framed(tool)}\n# Request: ", f"{asked}\n") for tool in candidates])
    if may_reply:
        scores[-1] += REPLY_WORTH
    best = candidates[scores.index(max(scores))]
    return None if best is REPLY else best
