"""The pieces of a request that an argument may be copied from: words, numbers, quotations, series.

A span is (start, end) in characters of the request.
"""

from __future__ import annotations

import re

Span = tuple[int, int]

UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Letters of scripts that put no blanks between words: each of them counts as a word."""
LETTER = rf"[^\W_{UNSPACED}]"
WORD = re.compile(rf"[{UNSPACED}]|[/~]?{LETTER}+(?:['’.:@/_+-]+{LETTER}+)*")
NUMBER = re.compile(r"(?<![A-Za-z0-9_.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?", re.ASCII)
UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
SPELLED = {word: value for value, word in enumerate(UNITS.split())} | {
    word: 10 * value for value, word in enumerate(TENS.split(), 2)
}
IN_WORDS = re.compile(
    rf"\b(?:({'|'.join(TENS.split())})[- ](?=(?:{'|'.join(UNITS.split()[1:10])})\b))?({'|'.join(SPELLED)})\b",
    re.IGNORECASE,
)
QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|‘([^’]+)’|(?<!\w)'([^']+)'(?!\w)")
CLAUSE = re.compile(r"[.;:!?]\s|[.;:!?]$|\n")
JOINT = re.compile(r"\s*[,、]\s*(?:(?:and|or)\s+)?|\s+(?:and|or|&)\s+", re.IGNORECASE)
LONGEST_SPAN = 8
"""Words in a piece of the request that may be copied as a string."""
LONGEST_ITEM = 4
"""Words in an item of a series."""
SIDES = re.compile(r"\b(true|false)\b", re.IGNORECASE)
"""Where a description of a boolean tells what each value stands for."""
ENDING = 4
"""Letters by which two forms of one word may differ: run and running."""


def find(text: str, piece: str) -> Span | None:
    """Where `piece` stands in `text` as whole words, whatever its case."""
    if not piece.strip():
        return None
    before = rf"(?<!{LETTER})" if re.match(LETTER, piece) else ""
    after = rf"(?!{LETTER})" if re.match(LETTER, piece[-1]) else ""
    found = re.search(f"{before}{re.escape(piece)}{after}", text, re.IGNORECASE)
    return found.span() if found else None


def find_form(text: str, piece: str) -> Span | None:
    """As `find`, or where another form of a one-word `piece` stands: miles for mile, run for running."""
    if exact := find(text, piece):
        return exact
    wanted = piece.casefold()
    if not wanted.isalpha():
        return None
    return next((word.span() for word in WORD.finditer(text) if _same_stem(word[0].casefold(), wanted)), None)


def _same_stem(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    short = short.removesuffix("e") if len(short) > 3 else short
    return len(short) >= 3 and long.startswith(short) and len(long) - len(short) <= ENDING


def side(text: str, description: str) -> bool | None:
    """The value whose words in a description ("True to lock, false to unlock") alone stand in `text`; None if unclear."""
    halves = SIDES.split(description)[1:]
    told = {
        head.lower(): set(WORD.findall(body.casefold())) for head, body in zip(halves[::2], halves[1::2], strict=True)
    }
    if told.keys() != {"true", "false"}:
        return None
    yes, no = told["true"] - told["false"], told["false"] - told["true"]
    said = [any(find(text, word) for word in words) for words in (yes, no)]
    return said[0] if said[0] != said[1] else None


def numbers(text: str) -> list[tuple[Span, int | float]]:
    """The numbers of a text with their places, in its order; written in digits or in English words."""
    digits = [(found.span(), _number(found[0])) for found in NUMBER.finditer(text)]
    words = [
        (found.span(), SPELLED[(found[1] or "zero").lower()] + SPELLED[found[2].lower()])
        for found in IN_WORDS.finditer(text)
    ]
    return sorted(digits + words)


def _number(text: str) -> int | float:
    plain = text.replace(",", "").lstrip("+")
    return float(plain) if "." in plain else int(plain)


def quotations(text: str) -> list[tuple[Span, str]]:
    """What stands in quotation marks, with the places of the whole."""
    return [(found.span(), next(filter(None, found.groups()))) for found in QUOTED.finditer(text)]


def runs(text: str) -> list[Span]:
    """Every run of a few words that no punctuation breaks."""
    words = [found.span() for found in WORD.finditer(text)]
    return [
        (words[i][0], words[j][1])
        for i in range(len(words))
        for j in range(i, min(len(words), i + LONGEST_SPAN))
        if re.search(r"[,.;:!?]\s", text[words[i][0] : words[j][0]]) is None
    ]


def series(text: str) -> list[Span]:
    """The parts of the longest series in a text ("eggs, spinach and feta"), [] where there is none.

    The first and the last part hold more than their item: the words of the clause before and after it.
    """
    best: list[Span] = []
    for start, end in _clauses(text):
        joints = list(JOINT.finditer(text, start, end))
        edges = [start, *(edge for joint in joints for edge in joint.span()), end]
        parts = list(zip(edges[::2], edges[1::2], strict=True))
        anded = [bool(joint[0].strip(" ,、")) for joint in joints]
        for one, joined in _unbroken(text, parts, anded):
            if len(one) >= max(len(best), 2 if joined else 3):
                best = one
    return best


def _clauses(text: str) -> list[Span]:
    breaks = [found.span() for found in CLAUSE.finditer(text)]
    starts = [0, *(end for _, end in breaks)]
    return list(zip(starts, [*(start for start, _ in breaks), len(text)], strict=True))


def _unbroken(text: str, parts: list[Span], anded: list[bool]) -> list[tuple[list[Span], bool]]:
    """The parts as series, each with whether a word joins two of it.

    A part too long for an item ends one and begins another; a comma after "and" parts two.
    """
    found: list[tuple[list[Span], bool]] = [(parts[:1], False)]
    for part, before, joined in zip(parts[1:], parts, anded, strict=False):
        held, anyhow = found[-1]
        if anyhow and not joined:
            found.append(([part], False))
        elif len(held) > 1 and len(WORD.findall(text[slice(*before)])) > LONGEST_ITEM:
            found.append(([before, part], joined))
        else:
            found[-1] = ([*held, part], anyhow or joined)
    return [(one, joined) for one, joined in found if len(one) > 1 and all(text[slice(*part)].strip() for part in one)]


def beginnings(text: str, part: Span) -> list[Span]:
    """The item at the begin of a part: its first words, one to a few."""
    words = [found.span() for found in WORD.finditer(text, *part)][:LONGEST_ITEM]
    return [(words[0][0], end) for _, end in words]


def endings(text: str, part: Span) -> list[Span]:
    """The item at the end of a part: its last words, one to a few."""
    words = [found.span() for found in WORD.finditer(text, *part)][-LONGEST_ITEM:]
    return [(start, words[-1][1]) for start, _ in words]
