"""Strings of JSON as Python text: a short one at once, and the escapes of a long one."""

from __future__ import annotations

import json
import re

from .jsonscan import ENDS
from .scan import CAP, Malformed, Scan, Source, blank, following, peek

IN_SHORT = {c: re.compile(rf"(?:[^{ends}\\]+|\\.)*", re.DOTALL).match for c, ends in ENDS.items()}
LONE = re.compile("[\ud800-\udfff]").sub
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/", "'": "'"}

_lenient_text = json.JSONDecoder(strict=False).decode


def short_string(s: Source, most: int = CAP) -> Scan[str]:
    """A string of at most `most` characters in any quotes, as Python text. Eats nothing until it is whole."""
    if (yield from following(s)) not in ENDS:
        raise Malformed("expected a string")
    yield from blank(s)
    quote, size = s.text[s.pos], 1
    while True:
        m = IN_SHORT[quote](s.text, s.pos + size, s.pos + most + 2)
        size = m.end() - s.pos if m else size
        if s.text.startswith(tuple(ENDS[quote]), s.pos + size):
            break
        if s.closed or size > most:
            raise Malformed("an unclosed or long string")
        yield
    body = s.text[s.pos + 1 : s.pos + size]
    s.pos += size + 1
    if quote != '"':
        body = body.replace("\\'", "'").replace('"', '\\"')
    try:
        return LONE("\ufffd", _lenient_text(f'"{body}"'))
    except ValueError:
        return body


def unescape(s: Source) -> Scan[str]:
    """What a backslash and the characters after it stand for, as text; an unknown escape stays as written.

    Half of a surrogate pair, which no text can hold, becomes U+FFFD.
    """
    pair = yield from peek(s, 2)
    s.pos += len(pair)
    if pair[1:] != "u":
        return ESCAPES.get(pair[1:], pair)
    code = yield from _hex(s, 0)
    if code < 0:
        return pair
    s.pos += 4
    if 0xD800 <= code < 0xDC00 and (yield from peek(s, 2)) == "\\u":
        low = yield from _hex(s, 2)
        if 0xDC00 <= low < 0xE000:
            s.pos += 6
            code = 0x10000 + ((code - 0xD800) << 10) + low - 0xDC00
    return chr(code) if not 0xD800 <= code < 0xE000 else "\ufffd"


def _hex(s: Source, offset: int) -> Scan[int]:
    """Four hexadecimal digits at `offset` from here as a number, -1 if there are none. Eats nothing."""
    digits = (yield from peek(s, offset + 4))[offset:]
    return int(digits, 16) if re.fullmatch("[0-9a-fA-F]{4}", digits) else -1
