"""Checks that a text is faithful to a tool's result: it omits nothing, and adds no number and no negation.

The check is strict where it can be and ignores style. A text in doubt is replaced by a plain statement of the result,
which reads worse and is never wrong. Pitfalls: a number has several spellings (`136,104`, `1.5` and `1,5`), so all its
readings are compared. A phrase may be reordered, so its words are compared and not the phrase. A text in another
script cannot be compared, except for its numbers and identifiers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Any, cast

SAME_WORD = "[^\\W\u2e80-\u9fff\uac00-\ud7af\u0e00-\u0e7f]"
"""A character that continues a word, in scripts with spaces between words."""
NUMBER = re.compile(
    rf"(?:(?<!{SAME_WORD})(?<![.,)])[-−]|\b(?:minus|negative) |零下)?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?", re.IGNORECASE
)
GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
EMPTY = frozenset(
    "a an the is are was were be been it its this that there of in on at to for with by and as has".split()  # noqa: SIM905 - read as a line
)
"""English words that a sentence may lose without a change of meaning."""
EXACT = Context(prec=1000, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
DENIAL = re.compile(r"\b(?:not|no|never|none|cannot|without)\b|n['’]t\b", re.IGNORECASE)
TRUTH = {
    True: re.compile(r"\b(?:true|yes)\b", re.IGNORECASE),
    False: re.compile(r"\b(?:false|no|not)\b|n['’]t\b", re.IGNORECASE),
}
"""Texts that state a true or a false result."""
Leaf = str | int | float | Decimal
PROSE = 2
"""A string of more words may be reordered: its words must occur, not the string itself."""


def faults(question: str, result: Any, text: str, language: str = "English") -> list[str]:
    """What is wrong with the text: parts of the result that it omits, and things that it adds."""
    parts = list(leaves(result))
    if not parts and isinstance(result, bool):
        sense = [] if TRUTH[result].search(text) else [f"{str(result).lower()} is left out"]
    else:
        sense = _denials(question, parts, text) if language == "English" else []
    missing = (f"{leaf} is left out" for leaf in _left_out(parts, text))
    return list(dict.fromkeys([*missing, *_numbers_added(question, parts, text), *sense]))


def _denials(question: str, leaves: Iterable[Leaf], text: str) -> list[str]:
    source = " ".join([question, *(leaf for leaf in leaves if isinstance(leaf, str))])
    invented = DENIAL.search(text) and not DENIAL.search(source)
    return ["neither question nor answer denies anything"] if invented else []


def _numbers_added(question: str, leaves: Iterable[Leaf], text: str) -> Iterator[str]:
    known = readings(question).union(*(readings(str(leaf)) for leaf in leaves))
    for number in _tokens(text):
        if not _readings(number) & known:
            yield f"{number} is in neither question nor answer"


def _left_out(leaves: Iterable[Leaf], text: str) -> Iterator[str]:
    """The numbers that the text omits, and the strings (in quotes)."""
    written = readings(text)
    for leaf in leaves:
        yield from (number for number in _tokens(str(leaf)) if not _readings(number) & written)
        if isinstance(leaf, str) and not NUMBER.fullmatch(leaf) and not _carried(leaf, text):
            yield repr(leaf)


def leaves(value: Any) -> Iterator[Leaf]:
    """Every string and number in a result, in order. Values without a JSON form count as their text."""
    if isinstance(value, Mapping):
        for part in cast("Mapping[Any, Any]", value).values():
            yield from leaves(part)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in cast("list[Any]", value):
            yield from leaves(part)
    elif value is not None and not isinstance(value, bool):
        yield value if isinstance(value, str | int | float | Decimal) else str(value)


def readings(text: str) -> set[str]:
    """Every number in a text, in each way in which it can be read."""
    return {reading for number in _tokens(text) for reading in _readings(number)}


def _tokens(text: str) -> list[str]:
    return NUMBER.findall(text)


def _readings(token: str) -> set[str]:
    """The readings of one token. `136,104` is 136104; `1,5` is 1.5, or 1 and 5; `35.0` is 35; `1.2.3` is itself."""
    bare = re.sub(r"minus |negative |零下", "-", token.lower()).replace("−", "-")
    sign, digits = ("-", bare[1:]) if bare.startswith("-") else ("", bare)
    if GROUPED.fullmatch(digits):
        return {sign + _plain(digits.replace(",", ""))}
    if "," not in digits:
        return {sign + _plain(digits)}
    parts = {_plain(part) for part in digits.split(",")}
    return parts | ({sign + _plain(digits.replace(",", "."))} if digits.count(",") == 1 else set[str]())


def _plain(digits: str) -> str:
    """The canonical spelling of a number: without redundant zeros, and never longer than the original."""
    return digits if digits.count(".") > 1 else str(EXACT.create_decimal(digits).normalize(EXACT))


def _carried(leaf: str, text: str) -> bool:
    wanted = " ".join(leaf.casefold().split()).strip(" .!?,;:。！？，；：")
    message = " ".join(text.casefold().split())
    if not wanted or _stands_in(wanted, message):
        return True
    words = WORD.findall(wanted)
    if words and _latin(leaf) and not _latin(text) and not _identifier(leaf):
        return True  # in another script, words cannot be compared
    if not words or len(wanted.split()) <= PROSE:
        return False
    return EMPTY.union(WORD.findall(message)).issuperset(words)


def _stands_in(wanted: str, text: str) -> bool:
    """Whether the string occurs as whole words: `sun` is not in `Sunday`."""
    before = f"(?<!{SAME_WORD})" if re.match(SAME_WORD, wanted) else ""
    after = f"(?!{SAME_WORD})" if re.search(SAME_WORD + r"\Z", wanted) else ""
    return re.search(before + re.escape(wanted) + after, text) is not None


def _identifier(leaf: str) -> bool:
    """Whether a string is a name that no language changes: an address, a file, a code."""
    return any(
        re.search(r"[^\W_][@/_.:#-][^\W_]|[^\W\d_]\d|\d[^\W\d_]", word) is not None
        for word in leaf.split()
        if not NUMBER.match(word)
    )


def _latin(text: str) -> bool:
    letters = [c for c in text if c.isalpha()]
    return sum(c < "\u0250" for c in letters) * 2 >= len(letters)
