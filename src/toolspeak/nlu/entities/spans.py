"""Finds the spans of a request that an argument may be copied from: words, numbers, quotations, series.

A span is (start, end) in characters of the request.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from ...stems import LETTER, WORD

Span = tuple[int, int]

QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|‘([^’]+)’|(?<!\w)'((?:[^']|(?<=\w)'(?=\w))+)'(?!\w)")
CLAUSE = re.compile(r"[.;:!?]\s|[.;:!?]$|\n")
JOINT = re.compile(r"\s*[,、]\s*(?:(?:and|or)\s+)?|\s+(?:and|or|&)\s+", re.IGNORECASE)
SERIES = re.compile(r"\s*(?:,|,?\s*\b(?:and|or)\b|&)?\s*", re.IGNORECASE)
"""The text between the items of a series of quotations or codes."""
LONGEST_SPAN = 8
"""The most words of a span that may be copied as a string."""
LONGEST_ITEM = 4
"""The most words of an item in a series."""
SIDES = re.compile(r"\b(true|false)\b", re.IGNORECASE)
"""The places where a boolean's description explains its two values."""
DENIES = re.compile(
    r"\b(?:not|no|never|without|don['’]?t|doesn['’]?t|exclud\w*|disabl\w*|ignor\w*|skip\w*|avoid\w*|nor)\b",
    re.IGNORECASE,
)
"""Words that negate what follows."""
DENIED_WITHIN = 30
"""Characters from a negating word to what it negates."""
HARDLY = frozenset(
    [
        "default",
        "otherwise",
        "should",
        "when",
        "this",
        "that",
        "then",
        "will",
        "with",
        "into",
        "true",
        "false",
        "whether",
        "value",
        "result",
    ]
)
"""Words in the description of a boolean that are specific to neither of its values."""
ENDING = 4
"""Letters by which two forms of a word may differ: run and running."""


def overlap(one: Span, other: Span) -> bool:
    """Whether two spans overlap."""
    return one[0] < other[1] and other[0] < one[1]


def find(text: str, piece: str) -> Span | None:
    """The span of `piece` in `text` as whole words, ignoring case."""
    if not piece.strip():
        return None
    before = rf"(?<!{LETTER})" if re.match(LETTER, piece) else ""
    after = rf"(?!{LETTER})" if re.match(LETTER, piece[-1]) else ""
    match = re.search(f"{before}{re.escape(piece)}{after}", text, re.IGNORECASE)
    return match.span() if match else None


def find_form(text: str, piece: str) -> Span | None:
    """Like `find`, or the span of another form of a one-word `piece`: miles for mile, run for running."""
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


def _telling_words(text: str) -> set[str]:
    return {word for word in WORD.findall(text.casefold()) if len(word) > 3 and word not in HARDLY}


def side(text: str, description: str) -> bool | None:
    """The boolean value whose words in the description ("True to lock, false to unlock") occur in `text`; None if both
    or neither do."""
    halves = SIDES.split(description)[1:]
    sides = {head.lower(): _telling_words(body) for head, body in zip(halves[::2], halves[1::2], strict=True)}
    if sides.keys() != {"true", "false"}:
        return None
    yes, no = sides["true"] - sides["false"], sides["false"] - sides["true"]
    if not yes or not no:
        return None
    present = [any(find(text, word) for word in words) for words in (yes, no)]
    return present[0] if present[0] != present[1] else None


def denied(text: str, stems: Set[str]) -> bool | None:
    """Whether a word that starts with one of `stems` is negated in `text`; None if there is no such word."""
    for match in WORD.finditer(text):
        if any(match[0].casefold().startswith(stem) for stem in stems if len(stem) > 2):
            return denied_at(text, match.span())
    return None


def denied_at(text: str, span: Span) -> bool:
    """Whether a negating word precedes the span."""
    return DENIES.search(text, max(0, span[0] - DENIED_WITHIN), span[1]) is not None


CODED = re.compile(r"[@/_\\:]|[a-z][A-Z]|[A-Za-z]-?\d|\d-?[A-Za-z]|\w\.\w")
"""Matches in a word that is no plain word: a path, an address, an identifier."""
PLAIN_NUMBER = re.compile(r"[\d.,:/-]+(?:[a-zA-Z]{1,3})?", re.ASCII)
"""A number, a date or a time, with its unit."""
SERIAL = re.compile(r"[A-Z]{2,}\d*$")
DIGITS_ON = re.compile(r"(?: \d+)+(?![\w.])")
"""The digits after a code of capital letters: ICE 774."""
HOUSE = re.compile(r"(?<![\w.])\d+[a-zA-Z]? $")
STREET = re.compile(
    r"\b(?:street|st|road|rd|avenue|ave|lane|ln|drive|dr|boulevard|blvd|square|place|way|court)\.?$", re.IGNORECASE
)
"""The end of a street's name; a number before it is the house number."""
NAMED = re.compile(r"[A-Z][\w'’&.-]*(?: (?:of |de |la |the )?[A-Z][\w'’&-]*)*")
"""A name: consecutive capitalized words."""


def marked(text: str) -> list[tuple[Span, str]]:
    """The verbatim texts: quotations, and words that are no plain words, such as paths."""
    quoted = quotations(text)
    coded = [
        (match.span(), match[0])
        for match in WORD.finditer(text)
        if CODED.search(match[0])
        and not PLAIN_NUMBER.fullmatch(match[0])
        and not any(start <= match.start() < end for (start, end), _ in quoted)
    ]
    return sorted([*quoted, *coded])


def grown(text: str, span: Span) -> Span:
    """The span extended to the whole word, name or quotation that it is a part of, without an article."""
    for (start, end), piece in quotations(text):
        if start <= span[0] and span[1] <= end and len(piece) > span[1] - span[0] and span[0] - start <= 2:
            return (start + 1, end - 1)
    names = () if _serial(text[slice(*span)]) else NAMED.finditer(text)
    for match in (*WORD.finditer(text, max(0, span[0] - 80), min(len(text), span[1] + 80)), *names):
        overlaps = match.start() < span[1] and span[0] < match.end()
        if overlaps and match.start() >= span[0] and match.end() > span[1]:
            span = (span[0], match.end())
        if overlaps and match.start() < span[0] and CODED.search(match[0]):
            span = (match.start(), span[1])
    if letters := SERIAL.match(text[slice(*span)]):
        further = DIGITS_ON.match(text, span[0] + letters.end())
        span = (span[0], max(span[1], further.end())) if further else span
    if street := HOUSE.search(text, max(0, span[0] - 8), span[0]):
        span = (street.start(), span[1]) if STREET.search(text[slice(*span)]) else span
    article = re.match(r"(?:the|a|an) (?=[A-Z])", text[slice(*span)])
    return (span[0] + article.end(), span[1]) if article else span


def _serial(piece: str) -> bool:
    """Whether the text is a code of letters and digits, after which no name continues."""
    return re.search(r"\d", piece) is not None and re.search(r"[A-Za-z]", piece) is not None and " " not in piece


def with_region(text: str, span: Span) -> Span | None:
    """The span of a place together with the region after it: Paris, France. `span` may also be the region."""
    place = r"[A-Z][\w'’.-]*(?: [A-Z][\w'’.-]*)*"
    for match in re.finditer(rf"{place}, ?{place}", text):
        if match.start() <= span[0] and span[1] <= match.end():
            return match.span()
    return None


def abbreviation(text: str, description: str) -> str | None:
    """The abbreviation that a description defines for the text: 'CA' by "'CA' for California"."""
    for match in re.finditer(
        r"['\"“‘]([^'\"”’]{1,20})['\"”’] (?:for|as|means|is) (?:the )?([A-Z]\w*(?: [A-Z]\w*)*)", description
    ):
        if find(text, match[2]):
            return match[1]
    return None


def shaped(text: str, written: str, description: str) -> bool:
    """Whether `written` has the format of an example in the description ('San Francisco, CA') which nothing in the
    text has, and starts with a word of the text."""
    examples = {form(piece) for _, piece in quotations(description) if form(piece) not in ("a", "A", "Aa", "0")}
    first = WORD.match(written)
    return bool(first and find(text, first[0]) and form(written) in examples)


def form(text: str) -> str:
    """The format of a text: `Aa, A` for Berlin, DE. Further words do not change it."""
    cased = "".join("a" if one.islower() else "A" if one.isupper() else "0" if one.isdigit() else one for one in text)
    shape = re.sub(r"a+|A+|0+", lambda match: match[0][0], cased)
    return re.sub(r"(Aa)(?: Aa)+", r"\1", shape)


def quoted_series(text: str) -> list[str]:
    """The longest series of quotations ('Age', 'Income' and 'Education'); [] if there is none."""
    several = [run for run in in_series(text, quotations(text)) if len(run) > 1]
    return [piece for _, piece in max(several, key=len)] if several else []


def in_series(text: str, strings: Sequence[tuple[Span, str]]) -> list[list[tuple[Span, str]]]:
    """The texts with their spans, in order, grouped into series: only a comma, "and" or "or" is between items of a
    group."""
    runs: list[list[tuple[Span, str]]] = []
    for span, piece in strings:
        if runs and SERIES.fullmatch(text[runs[-1][-1][0][1] : span[0]]):
            runs[-1].append((span, piece))
        else:
            runs.append([(span, piece)])
    return runs


def quotations(text: str) -> list[tuple[Span, str]]:
    """The texts in quotation marks, with the spans including the marks."""
    return [
        (match.span(), next(filter(None, match.groups())))
        for match in QUOTED.finditer(text)
        if len(match[0]) < 0.8 * len(text)  # quotation marks around the whole request are no quotation
    ]


def quoted(text: str) -> list[str]:
    """The texts in quotation marks, also if it is the whole text."""
    return [next(filter(None, match.groups())) for match in QUOTED.finditer(text)]


def runs(text: str) -> list[Span]:
    """Every span of a few words without punctuation."""
    words = [match.span() for match in WORD.finditer(text)]
    return [
        (words[i][0], words[j][1])
        for i in range(len(words))
        for j in range(i, min(len(words), i + LONGEST_SPAN))
        if re.search(r"[,.;:!?]\s", text[words[i][0] : words[j][0]]) is None
    ]


def series(text: str) -> list[Span]:
    """The items of the longest series in a text ("eggs, spinach and feta"); [] if there is none.

    The first and the last item also have the words of the sentence before and after the series.
    """
    best: list[Span] = []
    for start, end in _clauses(text):
        joints = list(JOINT.finditer(text, start, end))
        edges = [start, *(edge for joint in joints for edge in joint.span()), end]
        parts = list(zip(edges[::2], edges[1::2], strict=True))
        anded = [bool(joint[0].strip(" ,、")) for joint in joints]
        for one, joined in _unbroken(text, parts, anded):
            textual = not any(
                text[slice(*part)].strip().isdigit() for part in one[1:]
            )  # a series of numbers is not one of texts
            if textual and len(one) >= max(len(best), 2 if joined else 3):
                best = one
    return best


def _clauses(text: str) -> list[Span]:
    breaks = [match.span() for match in CLAUSE.finditer(text)]
    starts = [0, *(end for _, end in breaks)]
    return list(zip(starts, [*(start for start, _ in breaks), len(text)], strict=True))


def _unbroken(text: str, parts: list[Span], anded: list[bool]) -> list[tuple[list[Span], bool]]:
    """The parts grouped into series, each with whether a conjunction joins two of its items.

    A part that is too long for an item ends a series and begins another; so does a comma after "and".
    """
    match: list[tuple[list[Span], bool]] = [(parts[:1], False)]
    for part, before, joined in zip(parts[1:], parts, anded, strict=False):
        series, anyhow = match[-1]
        if anyhow and not joined:
            match.append(([part], False))
        elif len(series) > 1 and len(WORD.findall(text[slice(*before)])) > LONGEST_ITEM:
            match.append(([before, part], joined))
        else:
            match[-1] = ([*series, part], anyhow or joined)
    return [(one, joined) for one, joined in match if len(one) > 1 and all(text[slice(*part)].strip() for part in one)]


def beginnings(text: str, part: Span) -> list[Span]:
    """Candidates for the item at the beginning of a part: its first word, first two words, and so on."""
    words = [match.span() for match in WORD.finditer(text, *part)][:LONGEST_ITEM]
    return [(words[0][0], end) for _, end in words]


def endings(text: str, part: Span) -> list[Span]:
    """Candidates for the item at the end of a part: its last word, last two words, and so on."""
    words = [match.span() for match in WORD.finditer(text, *part)][-LONGEST_ITEM:]
    return [(start, words[-1][1]) for start, _ in words]
