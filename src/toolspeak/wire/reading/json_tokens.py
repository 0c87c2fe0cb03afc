"""Building blocks for reading JSON text: token patterns, escapes, and values that have fully arrived. The streaming
reader is `json_reader`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Protocol

Emit = Callable[[str], None]


class Note(Protocol):
    """Tells of a repair: its rule, what it was about, and where it stands, if that is not where the reader is."""

    def __call__(self, rule: str, detail: str, place: int | None = None, /) -> None: ...


SCALAR = 512
"""A number or a bare word is at most this long, in characters."""

TOKEN = re.compile(r"""\s*(?:([{}\[\],:"'“”„‘’«»])|([^\s{}\[\],:"'“”„‘’«»]+))""").match
STRING = re.compile(r'"[^"\\\x00-\x1f]*"').match
IN_STRING = re.compile(r'["\\\x00-\x1f]').search
ENDS = {'"': '"', "'": "'"} | dict.fromkeys("“”„", "“”") | dict.fromkeys("‘’", "‘’") | {"«": "»", "»": "«"}
"""What may end a string, by what begins it."""
IN_QUOTED = {c: re.compile(rf"""["{ends}\\\x00-\x1f]""").search for c, ends in ENDS.items()} | {'"': IN_STRING}
CLEAN = {
    c: re.compile(rf"""(?:[^{ends}"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{{4}})*+""").match
    for c, ends in ENDS.items()
}
"""What of a string's content may stand as it is."""
NUMBER_OR_WORD = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null").fullmatch
KEY_WORD = re.compile(r"[^\W\d]\w*").fullmatch
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]").search
PYTHON = {"True": "true", "False": "false", "None": "null"}


def _refuse(word: str) -> object:
    raise ValueError(word)


def _integer(digits: str) -> int:
    return int(_number(digits))


def _float(digits: str) -> float:
    return float(_number(digits))


def _number(digits: str) -> str:
    """As strict about length as the reader of pieces."""
    if len(digits) > SCALAR:
        raise ValueError(digits[:40])
    return digits


_strict = json.JSONDecoder(parse_constant=_refuse, parse_int=_integer, parse_float=_float).raw_decode
_lenient = json.JSONDecoder(strict=False).raw_decode
_encode = json.encoder.encode_basestring


def escaped(text: str) -> str:
    """Text as it stands inside a JSON string."""
    return _encode(text)[1:-1]


def quoted(text: str) -> str:
    """Text as a JSON string."""
    return _encode(text)


def whole_value(text: str, pos: int, strict: bool = True) -> tuple[object, int] | None:
    """The JSON value at `pos` and where it ends, if all of it is there.

    One with escapes of surrogates, of which a half may be missing, is left to those who look closer.
    Looks at small windows first: a decoder's error costs time in proportion to what lies before it.
    """
    size = 1024
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
        # Then all the rest at once: one window after another would double the work at each of their lengths.
        size = size * 8 if size < 8192 else len(text)
