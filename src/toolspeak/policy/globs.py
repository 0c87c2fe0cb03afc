"""Patterns of a policy held against the texts of a call: narrowly where they allow, widely where they forbid.

Two texts that differ may be one thing to a tool (`build/../x`, `build\\..\\x`, `build/%2e%2e/x`), and two that look alike
may be different ones. So a text that could be read in another way is never what an allowing pattern means, while a
forbidding pattern is tried on every reading of it. Where neither can be said, the answer is None, and somebody is asked.

`*` stands for anything but `/`, a backslash and the end of a line (in a pattern of addresses, with `://`, also `?`, `#`
and `@`, so that it stays within the name of a host); `**` for anything; `**/` for any folders, none too. Other characters
stand for themselves. Time is linear in a text's length.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from urllib.parse import unquote

LONGEST = 10_000
"""Characters of a text; what is longer is not looked at."""
EVERYTHING = "**"
PLAIN_BREAKS = frozenset("/\\\n\r")
ADDRESS_BREAKS = PLAIN_BREAKS | frozenset("?#@")
UNKNOWN_ROOTS = ("~", "$", "%")
"""How a path begins that a shell or a program puts something in the place of."""
_LINE_BREAKS = frozenset("\n\r\t")
"""Control characters that texts have, and paths do not."""
HIDDEN = frozenset(["Cc", "Cf", "Cs", "Co", "Cn"])
"""Categories of characters that nobody sees, or that do something to those that are seen."""
_ENCODED = re.compile(r"\\|%(?:2e|2f|5c|00|25)", re.IGNORECASE)
_PIECES = re.compile(r"/\*\*\Z|\*\*/|\*{2,}|\*|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a pattern: it takes the `character`, or where that is None any but those in `without`, as often as
    there are such if it `repeats`. `jumps` lead to later steps without a character."""

    character: str | None = None
    without: frozenset[str] = frozenset()
    repeats: bool = False
    jumps: tuple[int, ...] = ()

    def takes(self, character: str) -> bool:
        """Whether it takes a character."""
        return character not in self.without if self.character is None else character == self.character


ANY = Step(repeats=True, jumps=(1,))
ONE = Step()
SLASH = Step("/")
END = Step("")
SKIP_TWO = Step("", jumps=(1, 3))
"""The next two steps may be left out."""


def name_fits(pattern: str, name: str, *, wide: bool) -> bool:
    """Whether a tool's name fits a pattern (`read_*`), by `fnmatch`. A wide one disregards capitals and the width and
    style of letters; a narrow one of ASCII fits no name with other letters, which may only look like those it means."""
    if wide:  # a letter may be two in small ones, so the pattern is tried as it is, too
        return any((fnmatchcase(_skeleton(name), _skeleton(pattern)), fnmatchcase(name, pattern)))
    if pattern.isascii() > name.isascii():
        return False
    return fnmatchcase(name, pattern)


def _skeleton(text: str) -> str:
    """A text without capitals, without the width and style of letters, and without what nobody sees."""
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(c for c in plain if unicodedata.category(c) not in HIDDEN)


def text_fits(pattern: str, text: str) -> bool:
    """Whether a text is what an allowing pattern means, however it may be read."""
    if pattern == EVERYTHING:
        return True
    if not _is_clear(pattern, text) or ("/" in pattern and not _LINE_BREAKS.isdisjoint(text)):
        return False
    return _matches(_steps(pattern, False), _joined(text) if "/" in pattern else text)


def text_may_fit(pattern: str, text: str) -> bool | None:
    """Whether a text is what a forbidding pattern means, in any of its readings; None where that cannot be said."""
    if pattern == EVERYTHING:
        return True
    if len(text) > LONGEST:
        return None
    steps, readings = _steps(_skeleton(pattern), True), list(_readings(text))
    if any(_matches(steps, reading) for reading in readings):
        return True
    if _leads_there(_skeleton(pattern), readings):
        return None
    return False if _is_clear(pattern, text) else None


def _leads_there(pattern: str, readings: Sequence[str]) -> bool:
    """Whether a text may mean what a pattern means though it does not look so: the same host in an address of another
    form; the same folders below a root that only the machine knows, such as the folder it works in or `~`."""
    if "://" in pattern:
        host = pattern.partition("://")[2].partition("/")[0].rpartition("*")[2].strip(".")
        return bool(host) and any(host in reading for reading in readings)
    if "/" not in pattern:
        return False
    if pattern.startswith("/"):
        return any(reading.lstrip().startswith(UNKNOWN_ROOTS) for reading in readings)
    below = _steps("**/" + pattern.removeprefix("~").lstrip("/"), True)
    return any(_matches(below, reading) for reading in readings)


def _is_clear(pattern: str, text: str) -> bool:
    """Whether a text can be read in one way only: all of it can be seen, and a path leads where it seems to."""
    if len(text) > LONGEST:
        return False
    if not all(c in _LINE_BREAKS or unicodedata.category(c) not in HIDDEN for c in text):
        return False
    return "/" not in pattern or not _has_other_readings(text)


def _has_other_readings(path: str) -> bool:
    """Whether a path leads upward, or elsewhere where a program decodes it."""
    normal = unicodedata.normalize("NFKC", path)
    return any((_ENCODED.search(normal), ".." in normal.split("/"), normal.count("/") != path.count("/")))


def _parts(path: str) -> tuple[str, list[str]]:
    """What a path begins with (a scheme, the root), and the parts behind that."""
    scheme, separator, rest = path.rpartition("://")
    root = "/" if rest.startswith("/") else ""
    return scheme + separator + root, [part for part in rest.split("/") if part not in ("", ".")]


def _joined(path: str) -> str:
    """A path without the parts that mean nothing: `./build//x` is `build/x`."""
    head, parts = _parts(path)
    return head + "/".join(parts) + ("/" if path.endswith("/") else "") if parts else head


def _resolved(path: str) -> str:
    """A path with its `..` carried out."""
    head, parts = _parts(path)
    left: list[str] = []
    for part in parts:
        if part != "..":
            left.append(part)
        elif left:
            left.pop()
    return head + "/".join(left)


def _readings(text: str) -> Iterator[str]:
    """What a text may be read as."""
    plain, decoded = _skeleton(text), _skeleton(unquote(unquote(text)))
    for reading in dict.fromkeys((text, plain, decoded, plain.replace("\\", "/"), decoded.replace("\\", "/"))):
        for one in dict.fromkeys((reading, reading.strip())):
            yield one
            yield _joined(one)
            yield _resolved(one)


@lru_cache(1024)
def _steps(pattern: str, wide: bool) -> tuple[Step, ...]:
    """The steps of a pattern. `build/**` means what is in the folder; a wide one the folder, too."""
    star = Step(without=ADDRESS_BREAKS if "://" in pattern else PLAIN_BREAKS, repeats=True, jumps=(1,))
    special: dict[str, tuple[Step, ...]] = {
        "/**": (SKIP_TWO, SLASH, ANY) if wide else (SLASH, ONE, ANY),
        "**/": (SKIP_TWO, ANY, SLASH),
        "*": (star,),
    }
    steps: list[Step] = []
    for piece in _PIECES.findall(pattern):
        steps += special.get(piece, (ANY,) if piece.startswith("**") else (Step(piece),))
    return (*steps, END)


def _matches(steps: tuple[Step, ...], text: str) -> bool:
    places = _reached(steps, {0})
    for character in text:
        taking = [at for at in places if steps[at].takes(character)]
        if not taking:
            return False
        places = _reached(steps, {at if steps[at].repeats else at + 1 for at in taking})
    return len(steps) - 1 in places


def _reached(steps: tuple[Step, ...], places: set[int]) -> set[int]:
    """The places with those that are reached from them without a character."""
    found, left = set(places), list(places)
    while left:
        at = left.pop()
        more = {at + jump for jump in steps[at].jumps} - found
        left += more
        found |= more
    return found
