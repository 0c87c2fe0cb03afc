"""Searches a text for a set of literals: the marks of a dialect.

Words with the same beginning share a branch of one pattern, which may also match an incomplete word at the end of the text.
Such a pattern of hundreds of words takes as long to compile as a few hundred thousand characters take to search. A text of
which no dialect is known is read in about a hundred dialects, and most of them are done with it after a few characters. So a
pattern is compiled only when enough was searched. Until then the text is searched for the first letters of the words, and
compared with the words there. Both ways find the same.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from functools import cache, cached_property, lru_cache
from itertools import groupby
from operator import itemgetter

Search = Callable[..., "re.Match[str] | None"]
WORTH = 16
"""Characters that are searched for each character of the words before their pattern is compiled."""
EACH = 16
"""Characters that a search, and a look at the words, count as."""


class Marks:
    """A set of literals to search for: the leftmost one, the longest of several, or an incomplete one at the end of
    the text.

    `special` is a character class (without brackets) for which a piece may not be emitted directly.
    """

    def __init__(self, words: tuple[str, ...], special: str = "") -> None:
        self._words = sorted({w for w in words if w})
        self._special = special
        self._length = sum(map(len, self._words))
        self._searched = 0
        """Characters that were searched without the patterns."""

    def search(self, text: str, pos: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        """Searches a text that may go on."""
        if self._worth_compiling:
            self.__dict__["search"] = re.compile(self._pattern()).search  # takes the place of this method
            return self.search(text, pos, end)
        return self._compared(text, pos, end, whole=False)

    def full(self, text: str, pos: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        """Searches a text that ends, for whole words."""
        if self._worth_compiling:
            self.__dict__["full"] = re.compile(f"({_alternatives(self._words, '')})").search
            return self.full(text, pos, end)
        return self._compared(text, pos, end, whole=True)

    @property
    def fast_search(self) -> Search:
        """Searches a piece for anything that may belong to a word. If words begin with rare characters, these alone
        decide. Otherwise most text would have one of them."""
        if self._rare:
            return self._rare
        return self._fast_pattern if self._worth_compiling else self._special_or_word

    @cached_property
    def _rare(self) -> Search | None:
        """Searches for the first letters of the words, if they are rare."""
        first = dict.fromkeys(w[0] for w in self._words)
        if any(c.isalnum() | (c == " ") for c in first):
            return None
        return re.compile(f"[{''.join(map(re.escape, first))}{self._special}]").search

    @cached_property
    def _fast_pattern(self) -> Search:
        return re.compile(self._pattern() + (f"|[{self._special}]" if self._special else "")).search

    def _special_or_word(self, text: str) -> re.Match[str] | None:
        return _letters(self._special)(text) or self.search(text)

    def _pattern(self) -> str:
        return _alternatives(self._words, r"\Z")

    # ------------------------------------------------------------------ without a pattern

    @property
    def _worth_compiling(self) -> bool:
        return self._searched >= WORTH * self._length

    @cached_property
    def _first(self) -> Search:
        return _letters("".join(re.escape(letter) for letter in dict.fromkeys(word[0] for word in self._words)))

    @cached_property
    def _by_start(self) -> dict[str, list[str]]:
        """The words by their first two letters, and those of one letter, the longest first."""
        by_start: dict[str, list[str]] = {}
        for word in sorted(self._words, key=len, reverse=True):
            by_start.setdefault(word[:2], []).append(word)
        return by_start

    @cached_property
    def _begins(self) -> frozenset[str]:
        """The first letters of longer words."""
        return frozenset(word[0] for word in self._words if len(word) > 1)

    def _compared(self, text: str, pos: int, end: int, *, whole: bool) -> re.Match[str] | None:
        """Finds the first place of a word, or of an incomplete one at the end if it need not be whole."""
        end = min(end, len(text))
        first, at, hit = self._first, pos, None
        while letter := first(text, at, end):
            place = letter.start()
            self._searched += EACH + place - at
            hit = (None if whole else self._half_word(text, place, end)) or self._whole_word(text, place, end)
            if hit:
                break
            at = place + 1
        self._searched += EACH if hit else EACH + end - at
        return hit

    def _half_word(self, text: str, at: int, end: int) -> re.Match[str] | None:
        """The incomplete word that the text ends with."""
        if end - at == 1:
            return _span(1, complete=False)(text, at, end) if text[at] in self._begins else None
        words = self._by_start.get(text[at : at + 2])
        if words is None:
            return None
        left = end - at
        if left >= len(words[0]):
            return None
        rest = text[at:end]
        for word in words:  # a generator would be woken for each
            if word.startswith(rest, 0, len(word) - 1):
                return _span(left, complete=False)(text, at, end)
        return None

    def _whole_word(self, text: str, at: int, end: int) -> re.Match[str] | None:
        """The longest word that is here."""
        for word in self._by_start.get(text[at : at + 2], ()):
            if text.startswith(word, at, end):
                return _span(len(word), complete=True)(text, at, end)
        return _span(1, complete=True)(text, at, end) if text[at] in self._by_start else None


@cache
def _span(length: int, *, complete: bool) -> Search:
    """Matches so many characters; with a group if they are a whole word."""
    return re.compile(f"((?s:.{{{length}}}))" if complete else f"(?s:.{{{length}}})").match


@lru_cache(1024)
def _letters(letters: str) -> Search:
    """Searches for one of these letters, which are escaped."""
    return re.compile(f"[{letters}]" if letters else r"(?!)").search


def _alternatives(words: Sequence[str], cut: str, at: int = 0) -> str:
    """A pattern for the longest of these words, which are sorted and the same up to `at`. It has an empty group where a
    word is complete. An incomplete word may be there before `cut`, the pattern of an end; "" if it may not.

    Words with the same beginning share a branch, and every branch begins with a literal letter, so that the regex engine
    can skip ahead: five times faster.
    """
    branches = list[str]()
    for letter, group in groupby((word for word in words if len(word) > at), key=itemgetter(at)):
        same = list(group)
        if len(same) == 1:
            branches += _one(same[0][at:], cut)
            continue
        complete = "|()" if len(same[0]) == at + 1 else ""
        branches.append(f"{re.escape(letter)}(?:{_alternatives(same, cut, at + 1)}{cut and '|' + cut}{complete})")
    return "|".join(branches)


def _one(word: str, cut: str) -> Sequence[str]:
    """Patterns for the word, and for its beginnings."""
    begun = "|".join(re.escape(word[1:length]) for length in range(len(word) - 1, 0, -1)) if cut else ""
    half = [f"{re.escape(word[0])}(?:{begun}){cut}"] if len(word) > 1 and cut else []
    return [re.escape(word) + "()", *half]


@lru_cache(1024)
def marks(words: tuple[str, ...], special: str = "") -> Marks:
    """The Marks for `words`, created once."""
    return Marks(words, special)
