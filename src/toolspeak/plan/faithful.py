"""Checks that a text is faithful to a result: it leaves nothing out, and adds no number and no denial.

Strict where it can be and deaf to style: what is doubted is stated plainly instead, which costs beauty and
no truth. Prose that is told in another script cannot be compared; its numbers and names still are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Any, cast

SAME_WORD = "[^\\W\u2e80-\u9fff\uac00-\ud7af\u0e00-\u0e7f]"
"""A character that goes on a word, in a script that puts blanks between words."""
NUMBER = re.compile(
    rf"(?:(?<!{SAME_WORD})(?<![.,)])[-−]|\b(?:minus|negative) |零下)?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?", re.IGNORECASE
)
GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
EMPTY = frozenset(
    "a an the is are was were be been it its this that there of in on at to for with by and as has".split()  # noqa: SIM905 - read as a line
)
"""Words of English that a sentence may lose without saying something else."""
EXACT = Context(prec=1000, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
DENIAL = re.compile(r"\b(?:not|no|never|none|cannot|without)\b|n['’]t\b", re.IGNORECASE)
TRUTH = {
    True: re.compile(r"\b(?:true|yes)\b", re.IGNORECASE),
    False: re.compile(r"\b(?:false|no|not)\b|n['’]t\b", re.IGNORECASE),
}
"""How a result that is true or false is said."""
Leaf = str | int | float | Decimal
PROSE = 2
"""A string of more words than this may be said in another order: its words must be there, not its bytes."""


def faults(question: str, result: Any, said: str, language: str = "English") -> list[str]:
    """What is wrong with the words: what of the result is left out, what is made up."""
    found = list(leaves(result))
    if not found and isinstance(result, bool):
        sense = [] if TRUTH[result].search(said) else [f"{str(result).lower()} is left out"]
    else:
        sense = _denials(question, found, said) if language == "English" else []
    missing = (f"{leaf} is left out" for leaf in _left_out(found, said))
    return list(dict.fromkeys([*missing, *_numbers_added(question, found, said), *sense]))


def _denials(question: str, found: Iterable[Leaf], said: str) -> list[str]:
    told = " ".join([question, *(leaf for leaf in found if isinstance(leaf, str))])
    made_up = DENIAL.search(said) and not DENIAL.search(told)
    return ["neither question nor answer denies anything"] if made_up else []


def _numbers_added(question: str, found: Iterable[Leaf], said: str) -> Iterator[str]:
    known = readings(question).union(*(readings(str(leaf)) for leaf in found))
    for number in _tokens(said):
        if not _readings(number) & known:
            yield f"{number} is in neither question nor answer"


def _left_out(found: Iterable[Leaf], said: str) -> Iterator[str]:
    """The numbers that a text does not say, and the strings that it does not carry, these quoted."""
    heard = readings(said)
    for leaf in found:
        yield from (number for number in _tokens(str(leaf)) if not _readings(number) & heard)
        if isinstance(leaf, str) and not NUMBER.fullmatch(leaf) and not _carried(leaf, said):
            yield repr(leaf)


def leaves(value: Any) -> Iterator[Leaf]:
    """Every string and number in a result, in order; what JSON does not know as its text."""
    if isinstance(value, Mapping):
        for part in cast("Mapping[Any, Any]", value).values():
            yield from leaves(part)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in cast("list[Any]", value):
            yield from leaves(part)
    elif value is not None and not isinstance(value, bool):
        yield value if isinstance(value, str | int | float | Decimal) else str(value)


def readings(text: str) -> set[str]:
    """Every number in a text, in each of the ways in which it can be read."""
    return {reading for number in _tokens(text) for reading in _readings(number)}


def _tokens(text: str) -> list[str]:
    return NUMBER.findall(text)


def _readings(token: str) -> set[str]:
    """`136,104` is 136104; `1,5` is 1.5, or 1 and 5; `35.0` is 35; `1.2.3` is itself."""
    bare = re.sub(r"minus |negative |零下", "-", token.lower()).replace("−", "-")
    sign, digits = ("-", bare[1:]) if bare.startswith("-") else ("", bare)
    if GROUPED.fullmatch(digits):
        return {sign + _plain(digits.replace(",", ""))}
    if "," not in digits:
        return {sign + _plain(digits)}
    parts = {_plain(part) for part in digits.split(",")}
    return parts | ({sign + _plain(digits.replace(",", "."))} if digits.count(",") == 1 else set[str]())


def _plain(digits: str) -> str:
    """The one way of writing this number: without the zeros that mean nothing, and never longer than it came."""
    return digits if digits.count(".") > 1 else str(EXACT.create_decimal(digits).normalize(EXACT))


def _carried(leaf: str, said: str) -> bool:
    wanted = " ".join(leaf.casefold().split()).strip(" .!?,;:。！？，；：")
    heard = " ".join(said.casefold().split())
    if not wanted or _stands_in(wanted, heard):
        return True
    words = WORD.findall(wanted)
    if words and _latin(leaf) and not _latin(said) and not _identifier(leaf):
        return True  # said in another script: its words cannot be compared
    if not words or len(wanted.split()) <= PROSE:
        return False
    return EMPTY.union(WORD.findall(heard)).issuperset(words)


def _stands_in(wanted: str, heard: str) -> bool:
    """Whether it stands there as a whole: `sun` is not in `Sunday`."""
    before = f"(?<!{SAME_WORD})" if re.match(SAME_WORD, wanted) else ""
    after = f"(?!{SAME_WORD})" if re.search(SAME_WORD + r"\Z", wanted) else ""
    return re.search(before + re.escape(wanted) + after, heard) is not None


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
