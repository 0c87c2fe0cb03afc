"""Scores how well the words around a span of a request match an argument's words.

A weak model does not see that "450 meters" is the distance. The argument's description does, if it has one of the
words beside the span.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ...stems import WORD, parts, stem
from .spans import Span

BEFORE, AFTER = 7, 5
"""Words before and after a span that are compared."""
BREAK = re.compile(r"[,;:.!?]\s|[()]|\band\b|\bor\b|\n")


def nearness(text: str, span: Span, weights: Mapping[str, float]) -> float:
    """How well the words around a span match an argument's. Closer words count more."""
    after = list(WORD.finditer(text, span[1], min(len(text), span[1] + 120)))[:AFTER]
    before = list(WORD.finditer(text, max(0, span[0] - 160), span[0]))[-BEFORE:][::-1]
    return _near(text, span[1], after, weights) + _near(text, span[0], before, weights)


def _near(text: str, edge: int, words: Iterable[re.Match[str]], weights: Mapping[str, float]) -> float:
    worth, seen = 0.0, set[str]()
    for distance, match in enumerate(words):
        between = text[edge : match.start()] if match.start() >= edge else text[match.end() : edge]
        away = 1 + 0.35 * distance + 0.8 * len(BREAK.findall(between))
        for part in parts(match[0]) or [match[0]]:
            key = stem(part)
            if key in weights and key not in seen:
                seen.add(key)
                worth += weights[key] / away
    return worth
