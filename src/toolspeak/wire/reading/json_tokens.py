"""Building blocks for reading JSON text: token patterns, escapes, and values that have fully arrived. The streaming
reader is `json_reader`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Protocol, cast

from ...schema.nonblocking_json import unique_names

Emit = Callable[[str], None]


class AddNote(Protocol):
    """Reports a repair: its rule, what it applied to, and its position if that is not the reader's."""

    def __call__(self, rule: str, detail: str, place: int | None = None, /) -> None: ...


SCALAR = 512
"""The most characters of a number or an unquoted word."""

TOKEN = re.compile(r"""\s*(?:([{}\[\],:"'“”„‘’«»])|([^\s{}\[\],:"'“”„‘’«»]+))""").match
_WORD = r"(?:-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,30})?|true|false|null)(?=[\s,\]}])"
_TEXT = r'"[^"\\\x00-\x1f]*+"'
_NAMING = r'"([^"\\\x00-\x1f]*+)"\s*+:'
"""Matches a key and its colon; the group is the name."""
SURE = {
    close: re.compile(
        rf"\s*+(?:([\[{{])|({re.escape(close)})|(,)(?=\s*+{after})|({_TEXT})(?=\s*+(?:[\]}}]|,\s*+{follows}))|({_WORD})|{key}"
        rf'|("[^"\\\x00-\x1f]*+)(?:"\s*+,?\s*+)?\Z|([\w.+-]{{1,30}})\Z|(,)\s*+\Z)'
    ).match
    for close, after, follows, key in (
        ("]", rf'(?:["\[{{]|{_WORD})', rf'(?:["\[{{\]]|{_WORD})', "((?!))"),
        ("}", '"', '["}]', _NAMING),
    )
}
"""By the closer of the enclosing bracket: tokens that are legal and need no repair; or an incomplete one."""
STRING = re.compile(r'"[^"\\\x00-\x1f]*"').match
IN_STRING = re.compile(r'["\\\x00-\x1f]').search
ENDS = {'"': '"', "'": "'"} | dict.fromkeys("“”„", "“”") | dict.fromkeys("‘’", "‘’") | {"«": "»", "»": "«"}
"""The quotes that may end a string, by the one that begins it."""
IN_QUOTED = {c: re.compile(rf"""["{ends}\\\x00-\x1f]""").search for c, ends in ENDS.items()} | {
    '"': re.compile(r'["\\\x00-\x1f](?:(?<=\\)(?!["/bfnrt])|(?<!\\)(?<!\\"))').search
}
"""By quote: what needs a look in the content of a string. Simple escapes need none; two backslashes do."""
CLEAN = {
    c: cast(
        "Callable[[str, int], re.Match[str]]",
        re.compile(rf"""(?:[^{ends}"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{{4}})*+""").match,
    )
    for c, ends in ENDS.items()
}
"""By quote: string content that needs no change."""
NUMBER_OR_WORD = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null").fullmatch
KEY_WORD = re.compile(r"[^\W\d]\w*").fullmatch
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]").search
PYTHON = {"True": "true", "False": "false", "None": "null"}


def _refuse(word: str) -> object:
    raise ValueError(word)


def _integer(digits: str) -> int:
    """A number, with the same limit of length as in the streaming reader."""
    if len(digits) > SCALAR:
        raise ValueError(digits[:40])
    return int(digits)


def _float(digits: str) -> float:
    if len(digits) > SCALAR:
        raise ValueError(digits[:40])
    return float(digits)


_strict = json.JSONDecoder(
    parse_constant=_refuse, parse_int=_integer, parse_float=_float, object_pairs_hook=unique_names
).raw_decode
_lenient = json.JSONDecoder(strict=False).raw_decode
quoted: Callable[[str], str] = json.encoder.encode_basestring
"""Writes text as a JSON string."""


def escaped(text: str) -> str:
    """Text as it is written inside a JSON string."""
    return quoted(text)[1:-1]


LONG = 16_384
"""A longer text is not decoded at once."""


def whole_value(text: str, pos: int, strict: bool = True) -> tuple[object, int] | None:
    """The JSON value at `pos` and its end, if it has arrived completely.

    One with escapes of surrogates is left to the streaming reader, since one of a pair may be missing. So is one with a
    name that comes twice in an object, which is noted there. Small windows
    are tried first in a long text, because the time of a decoder's error is proportional to the text before it.
    """
    size = 1024 if len(text) - pos > LONG else len(text)
    while True:
        window = text[pos : pos + size]
        try:
            value, end = (_strict if strict else _lenient)(window)
        except json.JSONDecodeError as e:
            cut = e.pos > len(window) - 16 or e.msg.startswith("Unterminated")
            if not cut or pos + size >= len(text):
                return None
        except (ValueError, RecursionError):
            return None
        else:
            return None if SURROGATE(window, 0, end) else (value, pos + end)
        # Then the rest at once: growing windows would repeat the work for each length.
        size = size * 8 if size < 8192 else len(text)
