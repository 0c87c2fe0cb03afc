"""Splits text into the terms of the index: words are split, case-folded and stemmed; scripts without spaces give
bigrams.

`getHTTPStatus` and `get_http_status` give the same terms. Accents are ignored, and so are invisible characters: a word
cannot be hidden by a zero-width space, a control character or a bidi mark inside it.
"""

from __future__ import annotations

import functools
import itertools
import re
import threading
import unicodedata
from typing import Any

MAX_TEXT = 8_000
"""Characters of a text that are read, from its beginning."""
MAX_WORD = 40
"""The most characters of a word: anything longer is data."""

_STOP = frozenset(
    ["a", "an", "the", "this", "that", "these", "those", "it", "its", "itself", "i", "me", "my", "mine", "we", "us", "our", "ours", "you", "your", "yours", "he", "him", "his", "she", "her", "hers", "they", "them", "their", "theirs", "who", "whom", "whose", "which", "what", "when", "where", "why", "how", "is", "am", "are", "was", "were", "be", "been", "being", "do", "does", "did", "doing", "done", "have", "has", "had", "having", "will", "would", "shall", "should", "can", "could", "may", "might", "must", "and", "or", "but", "nor", "if", "then", "than", "so", "because", "while", "of", "in", "on", "at", "to", "from", "by", "with", "for", "into", "onto", "about", "as", "up", "out", "off", "over", "under", "again", "there", "here", "all", "any", "both", "each", "more", "most", "other", "some", "such", "no", "not", "only", "own", "same", "too", "very", "just", "also", "s", "t", "d", "m", "ll", "re", "ve", "don", "doesn", "didn", "isn", "aren", "wasn", "won", "please", "want", "need", "like", "let", "help", "know", "tell"]
)  # fmt: skip

_WORD = re.compile(rf"([A-Za-z0-9]{{1,{MAX_WORD}}})[A-Za-z0-9]*")
# a run of capitals (with a plural's s), a word with or without its capital, a lone capital, digits
_PIECE = re.compile(r"[A-Z]{2,}s?(?![a-z])|[A-Z]?[a-z]+|[A-Z]|[0-9]+")

_NAMED = re.compile(r"[A-Za-z0-9\x80-\U0010ffff]+")

_UNSPACED = (
    "\u0e00-\u0fff\u1000-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, Lao, Tibetan, Burmese, Khmer, Korean, Japanese, Chinese: scripts without spaces between words, or with
suffixes attached to them."""
_SPACED = "\u0900-\u0963\u0966-\u0dff"
"""The scripts of India: with spaces between words, and with vowel signs that Python does not count as letters."""
_ANY = re.compile(rf"([{_UNSPACED}]+)|((?:[^\W_{_UNSPACED}]|[{_SPACED}])+)")

_ACCENTS = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670]+")
"""Accents, and the vowel points that Hebrew and Arabic usually omit."""
_HAN_KANA = re.compile(
    "[\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_THAI_KHMER = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff]")
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]+"
)
"""Control characters, zero-width characters, bidi marks, fillers, variation selectors and tags."""
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f]")
"""The ASCII control characters, which can be searched in a third of the time."""


def terms(text: str, *, joined: bool = False) -> list[str]:
    """The terms of a text in order, with repetitions. Takes time linear in its length, which is bounded.

    `joined` also adds each pair of neighboring words as one term, so that `data base` matches `database`.
    """
    text = visible(text)
    if text.isascii() and not joined:
        return list(itertools.chain.from_iterable(map(_terms, _WORD.findall(text))))
    words = _words(text)
    results = [term for term in map(_term, words) if term]
    if joined:
        telling = [word for word in words if word not in _STOP]
        results += [_term((one + after)[:MAX_WORD]) for one, after in itertools.pairwise(telling) if one.isascii()]
    return results


def visible(text: str) -> str:
    """The beginning of a text without invisible characters."""
    text = text[:MAX_TEXT]
    return text if text.isascii() and not _CONTROL.search(text) else _UNSEEN.sub("", text)


def spoken(name: str) -> str:
    """A name in words: `get weather` for `getWeather` and `get_weather`."""
    words = _NAMED.findall(visible(name))
    return " ".join(piece for word in words for piece in (_PIECE.findall(word) if word.isascii() else [word]))


def length(text: str) -> int:
    """The approximate number of words: two characters count as one in Chinese and Japanese, four in Thai and similar
    scripts."""
    rest, han = _HAN_KANA.subn(" ", text)
    rest, thai = _THAI_KHMER.subn(" ", rest)
    return sum(any(map(str.isalnum, word)) for word in rest.split()) + -(-han // 2) + -(-thai // 4)


def _words(text: str) -> list[str]:
    """The words of a visible text, folded but not stemmed, and the bigrams of scripts without spaces."""
    if text.isascii():
        return _of_ascii(text)
    words: list[str] = []
    folded = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))
    for match in _ANY.finditer(folded):
        if run := match[1]:
            words += run
            words += map("".join, itertools.pairwise(run))
        elif match[2].isascii():
            words += _of_ascii(match[2])
        else:
            words.append(match[2][:MAX_WORD].casefold())
    return words


def _of_ascii(text: str) -> list[str]:
    return list(itertools.chain.from_iterable(map(_pieces, _WORD.findall(text))))


@functools.lru_cache(maxsize=1 << 15)
def _pieces(word: str) -> tuple[str, ...]:
    """The word in lower case; the words in `getWeather`, `EC2`, `H2O`, and also the whole, which others write as one
    word."""
    pieces = [piece.lower() for piece in _PIECE.findall(word)]
    return (*pieces, word.lower()) if len(pieces) > 1 else tuple(pieces)


@functools.lru_cache(maxsize=1 << 15)
def _terms(word: str) -> tuple[str, ...]:
    """The terms of an ASCII word as it is written."""
    return tuple(term for piece in _pieces(word) if (term := _term(piece)))


@functools.lru_cache(maxsize=1 << 15)
def _term(word: str) -> str:
    """The stem of a lower-case word; "" for a stop word."""
    if word in _STOP:
        return ""
    if not word.isascii() or word.isdigit():
        return word
    with _stemming:
        return _stemmer().stemWord(word)


_stemming = threading.Lock()  # the library's object is not thread-safe


@functools.cache
def _stemmer() -> Any:
    import Stemmer  # pyright: ignore[reportMissingTypeStubs]

    return Stemmer.Stemmer("english")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
