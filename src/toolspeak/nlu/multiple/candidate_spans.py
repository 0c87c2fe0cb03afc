"""Finds all spans of one kind in a request: names, codes, quotations or plain words."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from ... import stems
from ...stems import WORD
from ..entities import spans
from ..entities.numbers import written_lists
from ..entities.spans import Span
from .span_similarity import BROKEN, COMPOUND, REGION, free_of, kind, left_words, right_words

LONGEST = 4
"""The most words of a span of plain words."""
LONGEST_ALIKE = 8
"""The most words of a span that others may resemble; a longer one occurs once."""
FAR = 2000
"""The distance in characters between a span of plain words and those that may resemble it."""
ENDS = 4
"""The most places whose surroundings show where a span of plain words begins and ends."""
MOST = 60
"""The most spans of one kind that are compared."""


def candidates(text: str, of: str, places: Sequence[Span], keywords: Collection[str] = ()) -> list[Span]:
    """The spans of the kind `of`."""
    match of:
        case "quoted":
            listed = [span for span, _ in written_lists(text)]
            return [(a + 1, b - 1) for (a, b), _ in spans.quotations(text) if free_of((a, b), listed)][:MOST]
        case "digits":
            size = len(text[slice(*places[0])])
            matches = [one.span() for one in WORD.finditer(text) if spans.PLAIN_NUMBER.fullmatch(one[0])]
            return [span for span in matches if span[1] - span[0] == size][:MOST]
        case "code":
            quoted = [span for span, _ in spans.quotations(text)]
            matches = [one.span() for one in WORD.finditer(text) if spans.CODED.search(one[0])]
            return [span for span in matches if free_of(span, quoted) and kind(text, span) == "code"][:MOST]
        case "name":
            return _names(text, places)
        case _:
            return _plain(text, places, keywords)


def _names(text: str, places: Sequence[Span]) -> list[Span]:
    """The names in a text, with their regions if the first one has a region."""
    quoted = [span for span, _ in spans.quotations(text)]
    region = "," in text[slice(*places[0])]
    named = [_in_sentence(text, one.span()) for one in spans.NAMED.finditer(text)]
    named = [span for span in named if not text[max(0, span[0] - 1) : span[0]].isalnum()]
    named = [_unpointed(text, span) for span in named if free_of(span, quoted)]
    named = [
        span
        for span in named
        if not (REGION.fullmatch(text[slice(*span)]) and text[max(0, span[0] - 2) : span[0]] == ", ")
    ]
    if COMPOUND.search(text[slice(*places[0])]):
        pairs = [(a[0], b[1]) for a, b in pairwise(named) if COMPOUND.fullmatch(text[a[1] : b[0]])]
        named += pairs
    wide = [spans.with_region(text, span) or span for span in named] if region else named
    return [span for span in dict.fromkeys(wide) if not _opening(text, span)][:MOST]


def _opening(text: str, span: Span) -> bool:
    """Whether a word is capitalized only because it begins a sentence."""
    return text[slice(*span)].casefold() in stems.STOP and not left_words(text, span[0])


def _in_sentence(text: str, span: Span) -> Span:
    """A name, cut at the end of its sentence."""
    match = re.search(r"[a-z]{3}\.\s", text[slice(*span)])
    return (span[0], span[0] + match.end() - 2) if match else span


def _unpointed(text: str, span: Span) -> Span:
    return (span[0], span[0] + len(text[slice(*span)].rstrip(".,;!?-")))


def _plain(text: str, places: Sequence[Span], keywords: Collection[str]) -> list[Span]:
    """The runs of plain words that end where those of the first call would."""
    size = len(WORD.findall(text[slice(*places[0])]))
    if size > LONGEST_ALIKE:
        return []
    places = places[:ENDS]
    every = [one.span() for one in WORD.finditer(text, max(0, places[0][0] - FAR), places[0][1] + FAR)]
    results: list[Span] = []
    for i, (start, _) in enumerate(every):
        if not _says(text, every[i]) or (i and not _begins(text, every[i - 1], start, places)):
            continue
        for j in range(i, min(len(every), i + max(size, LONGEST))):
            end = every[j][1]
            if BROKEN.search(text, start, end) or "," in text[start:end]:
                break
            if j - i + 1 != size and not all(_says(text, one) for one in every[i : j + 1]):
                continue
            if _says(text, every[j]) and _ends(
                text, end, every[j + 1] if j + 1 < len(every) else None, places, keywords
            ):
                results.append((start, end))
    return results


def _says(text: str, span: Span) -> bool:
    """Whether a word is a plain content word."""
    word = text[slice(*span)]
    return word[:1].islower() and word not in stems.STOP and not spans.CODED.search(word)


def _begins(text: str, before: Span, start: int, places: Sequence[Span]) -> bool:
    """Whether a span may begin there: after punctuation, after a function word, or after the same words as in the
    first call."""
    if text[before[1] : start].strip() or not _says(text, before):
        return True
    return any(left_words(text, one[0])[:1] == [stems.stem(text[slice(*before)])] for one in places)


def _ends(text: str, end: int, following: Span | None, places: Sequence[Span], keywords: Collection[str]) -> bool:
    """Whether a span may end there: before punctuation, before a function word, or before the same words as in the
    first call."""
    if following is None or text[end : following[0]].strip():
        return True
    word = text[slice(*following)].casefold()
    return (
        word in stems.STOP
        or stems.stem(word) in keywords
        or any(right_words(text, one[1])[:1] == [stems.stem(word)] for one in places)
    )
