"""Matches a policy's patterns against the texts of a call: narrowly for allowing rules, widely for forbidding ones.

Two texts that differ may be the same thing to a tool (`build/../x`, `build\\..\\x`, `build/%2e%2e/x`), and two that
look alike may be different things. So a text that can be read in several ways never matches an allowing pattern, while
a forbidding pattern is tried on every reading of it. If neither can be decided, the answer is None, and a person is
asked.

`*` matches anything except `/`, a backslash and the end of a line (in a pattern with `://` also except `?`, `#` and
`@`, so that it stays within a host name). `**` matches anything, `**/` any folders or none. Other characters match
themselves. The time is linear in the length of the text.
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
"""The most characters of a text; a longer one is not examined."""
EVERYTHING = "**"
PLAIN_BREAKS = frozenset("/\\\n\r")
ADDRESS_BREAKS = PLAIN_BREAKS | frozenset("?#@")
UNKNOWN_ROOTS = ("~", "$", "%")
"""The start of a path that a shell or a program expands."""
_LINE_BREAKS = frozenset("\n\r\t")
"""Control characters that occur in texts, but not in paths."""
HIDDEN = frozenset(["Cc", "Cf", "Cs", "Co", "Cn"])
"""Unicode categories of characters that are invisible or affect visible ones."""
_ENCODED = re.compile(r"\\|%(?:2e|2f|5c|00|25)", re.IGNORECASE)
_FILE = re.compile(r"\Afile:(?://[^/]*)?(?=/)", re.IGNORECASE)
"""What a file's address has before its path."""
_PIECES = re.compile(r"/\*\*\Z|\*\*/|\*{2,}|\*|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class GlobStep:
    """One step of a pattern. It matches `character`, or if that is None any character except those in `without`; if it
    `repeats`, any number of them. `jumps` lead to later steps without a character."""

    character: str | None = None
    without: frozenset[str] = frozenset()
    repeats: bool = False
    jumps: tuple[int, ...] = ()

    def takes(self, character: str) -> bool:
        """Whether it matches a character."""
        return character not in self.without if self.character is None else character == self.character


ANY = GlobStep(repeats=True, jumps=(1,))
ONE = GlobStep()
SLASH = GlobStep("/")
END = GlobStep("")
SKIP_TWO = GlobStep("", jumps=(1, 3))
"""The next two steps are optional."""


def name_fits(pattern: str, name: str, *, wide: bool) -> bool:
    """Whether a tool's name matches a pattern (`read_*`), by `fnmatch`.

    A `wide` match is for forbidding rules: it ignores case and the width and style of letters, so that no look-alike
    gets past. A narrow match is for allowing rules: letters must be the same, and a pattern in ASCII matches no name
    with other letters.
    """
    if wide:  # lower case may turn one letter into two, so the original pattern is tried too
        return any((fnmatchcase(_skeleton(name), _skeleton(pattern)), fnmatchcase(name, pattern)))
    if pattern.isascii() > name.isascii():
        return False
    return fnmatchcase(name, pattern)


def _skeleton(text: str) -> str:
    """Return a text without case, without the width and style of letters, and without invisible characters."""
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(c for c in plain if unicodedata.category(c) not in HIDDEN)


def text_fits(pattern: str, text: str) -> bool:
    """Whether a text certainly matches a pattern (narrow, for allowing rules): it has one reading, which matches."""
    if pattern == EVERYTHING:
        return True
    if not _is_clear(pattern, text) or ("/" in pattern and not _LINE_BREAKS.isdisjoint(text)):
        return False
    return _matches(_steps(pattern, False), _joined(text) if "/" in pattern else text)


def text_may_fit(pattern: str, text: str) -> bool | None:
    """Whether a text may match a pattern (wide, for forbidding rules): True if any reading of it matches, None if that
    cannot be decided."""
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
    """Whether a text may mean what a pattern means although it looks different: the same host in another notation of an
    address, or the same folders below a root that only the machine knows, such as the working folder or `~`."""
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
    """Whether a text has only one reading: all of it is visible, and a path leads where it seems to lead."""
    if len(text) > LONGEST:
        return False
    if not all(c in _LINE_BREAKS or unicodedata.category(c) not in HIDDEN for c in text):
        return False
    return "/" not in pattern or not _has_other_readings(text)


def _has_other_readings(path: str) -> bool:
    """Whether a path leads upward, or elsewhere after a program decodes it."""
    normal = unicodedata.normalize("NFKC", path)
    nothing = [part.strip() in ("", ".") for part in normal.split("/")]  # a space alone may count as nothing
    seeming = [part in ("", ".") for part in path.split("/")]
    return any((_ENCODED.search(normal), ".." in normal.split("/"), nothing != seeming))


def _parts(path: str) -> tuple[str, list[str]]:
    """Return the start of a path (a scheme, the root), and its parts."""
    scheme, separator, rest = path.rpartition("://")
    root = "/" if rest.startswith("/") else ""
    return scheme + separator + root, [part for part in rest.split("/") if part not in ("", ".")]


def _joined(path: str) -> str:
    """Return a path without redundant parts: `./build//x` becomes `build/x`."""
    head, parts = _parts(path)
    return head + "/".join(parts) + ("/" if path.endswith("/") else "") if parts else head


def _resolved(path: str) -> str:
    """Return a path with its `..` resolved."""
    head, parts = _parts(path)
    left: list[str] = []
    for part in parts:
        if part != "..":
            left.append(part)
        elif left:
            left.pop()
    return head + "/".join(left)


def _readings(text: str) -> Iterator[str]:
    """Yield the possible readings of a text."""
    plain, decoded = _skeleton(text), _skeleton(unquote(unquote(text)))
    for reading in dict.fromkeys((text, plain, decoded, plain.replace("\\", "/"), decoded.replace("\\", "/"))):
        for one in dict.fromkeys((reading, reading.strip(), _FILE.sub("", reading.strip()))):
            yield one
            yield _joined(one)
            yield _resolved(one)


@lru_cache(1024)
def _steps(pattern: str, wide: bool) -> tuple[GlobStep, ...]:
    """Return the steps of a pattern. `build/**` matches the folder's content; a wide match includes the folder itself."""
    star = GlobStep(without=ADDRESS_BREAKS if "://" in pattern else PLAIN_BREAKS, repeats=True, jumps=(1,))
    special: dict[str, tuple[GlobStep, ...]] = {
        "/**": (SKIP_TWO, SLASH, ANY) if wide else (SLASH, ONE, ANY),
        "**/": (SKIP_TWO, ANY, SLASH),
        "*": (star,),
    }
    steps: list[GlobStep] = []
    for piece in _PIECES.findall(pattern):
        steps += special.get(piece, (ANY,) if piece.startswith("**") else (GlobStep(piece),))
    return (*steps, END)


def _matches(steps: tuple[GlobStep, ...], text: str) -> bool:
    places = _reached(steps, {0})
    for character in text:
        taking = [at for at in places if steps[at].takes(character)]
        if not taking:
            return False
        places = _reached(steps, {at if steps[at].repeats else at + 1 for at in taking})
    return len(steps) - 1 in places


def _reached(steps: tuple[GlobStep, ...], places: set[int]) -> set[int]:
    """Return the positions, including those reached from them without a character."""
    reached, left = set(places), list(places)
    while left:
        at = left.pop()
        more = {at + jump for jump in steps[at].jumps} - reached
        left += more
        reached |= more
    return reached
