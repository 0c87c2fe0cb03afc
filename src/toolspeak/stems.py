"""Reduces words to stems, to compare the words of a tool with those of a request.

Names are split into words, stop words are removed, and each word is cut to its first letters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Letters of scripts without spaces between words: each counts as a word."""
LETTER = rf"[^\W_{UNSPACED}]"
WORD = re.compile(rf"[{UNSPACED}]|[/~]?{LETTER}+(?:['’.:@/_+-]+{LETTER}+)*")
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
"""Stems in the names of boolean options that say nothing about what is switched."""
STEM = 5
"""Two words with this many equal first letters are considered the same."""


def each(listed: str) -> frozenset[str]:
    """The set of words in a space-separated list."""
    return frozenset(listed.split())


def stems_of(listed: str) -> frozenset[str]:
    """The stems of the words in a space-separated list."""
    return frozenset(map(stem, each(listed)))


def stem(word: str) -> str:
    """The stem of a word: its first letters, without a plural s."""
    word = word.casefold()
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    return word[:STEM]


def parts(name: str) -> list[str]:
    """The words in a name. `max_depth`, `maxDepth` and `max.depth` have two."""
    return PART.findall(name)


def stems(text: str) -> set[str]:
    """The stems of the words in a text, without stop words."""
    return {
        stem(part)
        for word in WORD.findall(text)
        for part in (parts(word) or [word])
        if part.casefold() not in STOP and (len(part) > 1 or not part.isascii()) and not part.isdigit()
    }


def weights(described: Mapping[str, tuple[str, str]]) -> dict[str, dict[str, float]]:
    """For each argument the weight of each word in its (name, description). A word that several arguments share weighs
    less."""
    result = {
        key: dict.fromkeys(stems(description), 0.6)
        | {stem(part): 1.0 for part in parts(name) if part.casefold() not in STOP or len(parts(name)) == 1}
        for key, (name, description) in described.items()
    }
    return {
        key: {word: worth / sum(word in other for other in result.values()) for word, worth in words.items()}
        for key, words in result.items()
    }
