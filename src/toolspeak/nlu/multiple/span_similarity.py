"""Compares two spans of a request by kind, neighboring words and unit. Similar spans are probably the same argument of
several calls."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from ... import stems
from ...stems import WORD
from ..entities import spans
from ..entities.numbers import Number
from ..entities.spans import Span, overlap

AROUND = 48
"""Characters on either side of a span that are compared."""
ABOUT = re.compile(r"\b(?:how|what) about (?:(?:in|for|at|with|the) ){0,2}$", re.IGNORECASE)
"""Text that asks the same about something else."""
HEAD = re.compile(r"\s+([a-z]+)\b")
CURRENCY = "$€£¥"
JOINED = re.compile(
    r"['\"”’]?\s*(?:[,;]|\band\b|&|\bor\b|\bthen\b|\bas well as\b|/|\bversus\b|\bvs\.?|\b(?:with|to|than)(?= that of\b))(?:\s*(?:and|or|then|also|finally|lastly)\b)?,?\s+"
    r"(?:(?:the|a|an|in|at|for|of|on|from|with|to|by|into|another|that of|also|between)\s+)*['\"“‘]?",
    re.IGNORECASE,
)
"""All the text between two spans that are side by side."""
COMPOUND = re.compile(r"\s(?:and|&)\s")
"""A conjunction that joins two words into one name."""
REGION = re.compile(r"[A-Z]{2}\b")
"""A two-letter code of a state or country after its city."""
REGIONAL = re.compile(r", [A-Z]{2}$")
BROKEN = re.compile(r"[.?!;:]\s|\n")
ARTICLES = frozenset(["the", "a", "an"])
COPULAS = frozenset(["is", "are", "was", "were", "be"])
"""Words that say nothing about what follows."""
FOLLOWS = frozenset(["and", "or", "as", "if", "using"])
STOP_STEMS = frozenset(stems.stem(word) for word in stems.STOP)
PREPOSITIONS = frozenset(
    [
        "in",
        "at",
        "for",
        "of",
        "on",
        "from",
        "with",
        "to",
        "by",
        "into",
        "between",
        "during",
        "over",
        "under",
        "after",
        "before",
        "within",
    ]
)
TOGETHER = re.compile(r"\s*[\w°/³²^%]*\s*(?:,|and|or|,\s*and)\s*((?:\w+\s+){0,2})[$€£]?")
"""The text between two numbers that are side by side."""
UNIT = re.compile(r"[\s-]*([^\W\d_]+|%|°)")


def free_of(span: Span, used: Sequence[Span]) -> bool:
    """Whether a span overlaps none of those taken."""
    return not any(overlap(span, one) for one in used)


def kind(text: str, span: Span) -> str:
    """The kind of a span: quoted, a name, digits, a code, or plain words."""
    if span[0] > 0 and text[span[0] - 1] in "\"'“‘":
        return "quoted"
    piece = text[slice(*span)]
    if spans.PLAIN_NUMBER.fullmatch(piece):
        return "digits"
    if spans.CODED.search(piece) and not piece.replace(" ", "").isalpha():
        return "code"
    return "name" if spans.NAMED.match(piece) else "words"


def alike(text: str, one: Span, other: Span, keywords: Collection[str] = ()) -> float:
    """The similarity of two spans' surroundings: they are side by side, or the same words are around them. `keywords` are
    the words of the argument."""
    first, second = text[slice(*one)], text[slice(*other)]
    shapes, late = (_shape(first), _shape(second)), max(one[0], other[0])
    shaped = shapes[0] == shapes[1] and spans.CODED.search(first) is not None and not re.search(r"[ @]", shapes[0])
    compound = COMPOUND.search(first) is not None, COMPOUND.search(second) is not None
    regions = all(REGIONAL.search(text[slice(*span)]) or _regional(text, span[1]) for span in (one, other))
    about = ABOUT.search(text, max(0, late - AROUND), late) is not None and kind(text, (late, late + 1)) != "words"
    around = 0.8 * (shaped or regions or about) + surroundings(text, one, other)
    return 1.2 * _joined(text, one, other, keywords) + around - 0.7 * (compound[0] is not compound[1])


def surroundings(text: str, one: Span, other: Span) -> float:
    """The similarity of the words before and after two spans."""
    rights = right_words(text, one[1]), right_words(text, other[1])
    says = bool(rights[0]) and rights[0][0] not in STOP_STEMS
    return _shared(left_words(text, one[0]), left_words(text, other[0]), 0.8) + _shared(*rights, 0.8 if says else 0.6)


def _regional(text: str, end: int) -> bool:
    return text.startswith(", ", end) and REGION.match(text, end + 2) is not None


def _joined(text: str, one: Span, other: Span, keywords: Collection[str]) -> bool:
    """Whether two spans are items of one list. A list has no item twice, and does not go from one place to another."""
    early, late = sorted((one, other))
    if text[slice(*one)].casefold() == text[slice(*other)].casefold():
        return False
    if _share_next_word(text, early, late):
        return True
    if not JOINED.fullmatch(text, early[1], late[0]):
        return False
    between = text[early[1] : late[0]]
    lead = [word.casefold() for word in WORD.findall(between) if word.casefold() in PREPOSITIONS]
    before = left_words(text, early[0])[:1]
    plain = kind(text, late) == "words"
    if lead and before != [stems.stem(lead[-1])] and (plain or lead[-1] in ("from", "to", "between")):
        return False
    return not plain or _plain_list(text, early, late, keywords)


def _plain_list(text: str, early: Span, late: Span, keywords: Collection[str]) -> bool:
    """Whether two spans of plain words side by side are a list, and not the end of one clause and the start of
    another: they have equally many words, followed only by punctuation, a preposition or a word of the argument."""
    sizes = {len(WORD.findall(text[slice(*span)])) for span in (early, late)}
    bare = text[early[1] : late[0]].strip(" ") == "," and not re.match(r"\s*(?:,|and\b|or\b)", text[late[1] :])
    return len(sizes) == 1 and not bare and _closed(text, late[1], keywords)


def _closed(text: str, end: int, keywords: Collection[str]) -> bool:
    """Whether only punctuation, a preposition or one word in `keywords` follows a span."""
    match = WORD.match(text, end + 1) if end < len(text) and text[end] == " " else None
    word = match[0].casefold() if match else ""
    return not word or word in PREPOSITIONS or word in FOLLOWS or stems.stem(word) in keywords


def _shape(piece: str) -> str:
    """The format of a code: AZ208 and KL1017 have the same."""
    return re.sub(r"\d+", "0", re.sub(r"[a-z]+", "a", re.sub(r"[A-Z]+", "A", piece)))


def side_by_side(text: str, one: Span, other: Span) -> bool:
    """Whether only a conjunction or a comma separates two spans."""
    early, late = sorted((one, other))
    return JOINED.fullmatch(text, early[1], late[0]) is not None or _share_next_word(text, early, late)


def _share_next_word(text: str, early: Span, late: Span) -> bool:
    """Whether two spans side by side precede a word that they share: a neuron cell and a muscle cell."""
    head, other = HEAD.match(text, early[1]), HEAD.match(text, late[1])
    if not head or not other or head[1] != other[1]:
        return False
    return JOINED.fullmatch(text, head.end(), late[0]) is not None


def _shared(one: Sequence[str], other: Sequence[str], worth: float) -> float:
    if not one or not other or one[0] != other[0]:
        return 0.0
    return worth + (0.5 if len(one) > 1 and len(other) > 1 and one[1] == other[1] else 0.0)


def left_words(text: str, start: int) -> list[str]:
    """The two words before a position in its sentence, the closer first, without articles."""
    before = BROKEN.split(text[max(0, start - AROUND) : start])[-1]
    skipped = ARTICLES | COPULAS
    stemmed = [stems.stem(word) for word in WORD.findall(before) if word.casefold() not in skipped]
    return stemmed[::-1][:2]


def right_words(text: str, end: int) -> list[str]:
    """The two words after a position, up to punctuation."""
    after = re.split(r"[.?!;:,]\s|\n", text[end : end + AROUND])[0]
    stemmed = [stems.stem(word) for word in WORD.findall(after) if word.casefold() not in ARTICLES]
    return ["0" if word.isdigit() else word for word in stemmed[:2]]  # the value of a number makes no difference


def alike_numbers(text: str, one: Number, other: Number) -> float:
    """The similarity of two numbers' surroundings: the same unit, the same words around them, or side by side.
    Different units mean different things."""
    if two_units(text, one, other):
        return 0.0
    units = unit_of(text, one), unit_of(text, other)
    ahead = _content_words_before(text, one.span[0]), _content_words_before(text, other.span[0])
    lefts = left_words(text, one.span[0]), left_words(text, other.span[0])
    rights = right_words(text, one.span[1]), right_words(text, other.span[1])
    worth = 1.2 * (units[0] == units[1] != "") + _shared(*ahead, 0.8)
    worth += 1.2 * (len(lefts[0]) > 1 and lefts[0] == lefts[1]) + 1.8 * (len(rights[0]) > 1 and rights[0] == rights[1])
    return worth + 1.6 * together(text, one.span, other.span)


def two_units(text: str, one: Number, other: Number) -> bool:
    """Whether two numbers have different units."""
    units = unit_of(text, one), unit_of(text, other)
    differ = all(units) and units[0] != units[1]
    return differ or one.percent is not other.percent or (one.percent and _two_shares(text, one, other))


def _two_shares(text: str, one: Number, other: Number) -> bool:
    """Whether two percentages are of different things: a 15% tip and 8% tax."""
    of = [stems.stem(match[1]) for number in (one, other) if (match := HEAD.match(text, number.span[1]))]
    words = [word for word in of if word not in STOP_STEMS]
    return len(words) > 1 and words[0] != words[1]


def together(text: str, one: Span, other: Span) -> bool:
    """Whether two numbers are side by side; the ends of a range are not."""
    early, late = sorted((one, other))
    match = TOGETHER.fullmatch(text, early[1], late[0])
    connected = match is not None and all(word.casefold() in stems.STOP for word in WORD.findall(match[1]))
    return connected and left_words(text, early[0])[:1] != ["betwe"]


def unit_of(text: str, one: Number) -> str:
    """What a number counts: the content word after it, or a symbol."""
    if one.percent:
        return "%"
    if one.span[0] > 0 and text[one.span[0] - 1] in CURRENCY:
        return text[one.span[0] - 1]
    match = UNIT.match(text, one.span[1])
    return stems.stem(match[1]) if match and match[1].casefold() not in stems.STOP else ""


def _content_words_before(text: str, start: int) -> list[str]:
    """The last two content words before a position, the closer first."""
    before = WORD.findall(text[max(0, start - AROUND) : start])
    return [stems.stem(word) for word in reversed(before) if word.casefold() not in stems.STOP and not word.isdigit()][
        :2
    ]
