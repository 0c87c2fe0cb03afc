"""What the words of a tool and of a request have to do with each other, without a model.

A weak model does not see that "450 meters" is the distance; that the description of an argument has the
same word beside it says so. Words are compared by their stems: their first letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from .pieces import WORD, Span

PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
STOP = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "in",
        "on",
        "at",
        "to",
        "for",
        "from",
        "by",
        "with",
        "and",
        "or",
        "is",
        "are",
        "be",
        "was",
        "were",
        "been",
        "it",
        "its",
        "this",
        "that",
        "these",
        "those",
        "as",
        "if",
        "then",
        "than",
        "you",
        "your",
        "we",
        "our",
        "i",
        "my",
        "me",
        "he",
        "she",
        "they",
        "them",
        "his",
        "her",
        "their",
        "do",
        "does",
        "did",
        "can",
        "could",
        "will",
        "would",
        "should",
        "shall",
        "may",
        "might",
        "must",
        "have",
        "has",
        "had",
        "not",
        "no",
        "any",
        "some",
        "all",
        "each",
        "per",
        "via",
        "into",
        "out",
        "up",
        "down",
        "over",
        "under",
        "about",
        "what",
        "which",
        "who",
        "whom",
        "whose",
        "when",
        "where",
        "how",
        "why",
        "there",
        "here",
        "also",
        "such",
        "like",
        "only",
        "just",
        "more",
        "most",
        "other",
        "another",
        "e.g",
        "eg",
        "i.e",
        "etc",
        "e",
        "g",
        "value",
        "number",
        "given",
        "default",
        "specified",
        "specific",
        "optional",
        "required",
        "provided",
        "example",
        "please",
        "tell",
        "show",
        "give",
        "get",
        "find",
        "want",
        "need",
        "used",
        "use",
        "using",
        "current",
        "currently",
        "now",
        "right",
        "today",
        "look",
        "up",
        "info",
        "information",
        "detail",
        "details",
        "data",
        "much",
        "many",
        "calculate",
        "return",
        "returns",
        "based",
        "whether",
        "set",
        "type",
        "name",
        "list",
        "string",
        "integer",
        "float",
        "boolean",
    ]
)
VERBS = frozenset(["inclu", "enabl", "is", "has", "use", "allow", "show", "add", "apply", "set", "do", "with"])
"""Stems in the names of switches that say nothing of what is switched."""
STEM = 5
"""Letters by which two words are taken for one."""
BEFORE, AFTER = 7, 5
"""Words around a piece that tell what it is."""
BREAK = re.compile(r"[,;:.!?]\s|[()]|\band\b|\bor\b|\n")


def each(listed: str) -> frozenset[str]:
    """The words of a list written with blanks."""
    return frozenset(listed.split())


def stems_of(listed: str) -> frozenset[str]:
    """What the words of a list written with blanks are compared by."""
    return frozenset(map(stem, each(listed)))


def stem(word: str) -> str:
    """What is compared of a word: its first letters, without a plural's s."""
    word = word.casefold()
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    return word[:STEM]


def parts(name: str) -> list[str]:
    """The words in a name: `max_depth`, `maxDepth` and `max.depth` are two."""
    return PART.findall(name)


def stems(text: str) -> set[str]:
    """The stems of the words of a text that say something."""
    return {
        stem(part)
        for word in WORD.findall(text)
        for part in (parts(word) or [word])
        if part.casefold() not in STOP and (len(part) > 1 or not part.isascii()) and not part.isdigit()
    }


def weights(described: Mapping[str, tuple[str, str]]) -> dict[str, dict[str, float]]:
    """What each word says for each argument, from its (name, description): less where several arguments have the word."""
    told = {
        key: dict.fromkeys(stems(description), 0.6)
        | {stem(part): 1.0 for part in parts(name) if part.casefold() not in STOP or len(parts(name)) == 1}
        for key, (name, description) in described.items()
    }
    return {
        key: {word: worth / sum(word in other for other in told.values()) for word, worth in words.items()}
        for key, words in told.items()
    }


def nearness(text: str, span: Span, told: Mapping[str, float]) -> float:
    """How well the words around a piece of a text agree with an argument's: the nearer, the more."""
    after = list(WORD.finditer(text, span[1], min(len(text), span[1] + 120)))[:AFTER]
    before = list(WORD.finditer(text, max(0, span[0] - 160), span[0]))[-BEFORE:][::-1]
    return _near(text, span[1], after, told) + _near(text, span[0], before, told)


def _near(text: str, edge: int, words: Iterable[re.Match[str]], told: Mapping[str, float]) -> float:
    worth, seen = 0.0, set[str]()
    for distance, found in enumerate(words):
        between = text[edge : found.start()] if found.start() >= edge else text[found.end() : edge]
        away = 1 + 0.35 * distance + 0.8 * len(BREAK.findall(between))
        for part in parts(found[0]) or [found[0]]:
            key = stem(part)
            if key in told and key not in seen:
                seen.add(key)
                worth += told[key] / away
    return worth
