"""Decodes JSON strings to Python text: a short one in one step, a long one escape by escape."""

from __future__ import annotations

import json
import re

from .json_tokens import ENDS, escaped
from .literals import escape
from .source import CAP, Malformed, Scan, Source, blank, following

IN_SHORT = {c: re.compile(rf"(?:[^{ends}\\]+|\\.)*", re.DOTALL).match for c, ends in ENDS.items()}
LONE = re.compile("[\ud800-\udfff]").sub
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/", "'": "'"}

_lenient_text = json.JSONDecoder(strict=False).decode


def short_string(s: Source, most: int = CAP) -> Scan[str]:
    """A string of at most `most` characters in any quotes, as Python text. Consumes nothing until it is complete."""
    if (yield from following(s)) not in ENDS:
        raise Malformed("expected a string")
    yield from blank(s)
    quote, size = s.text[s.pos], 1
    while True:
        m = IN_SHORT[quote](s.text, s.pos + size, s.pos + most + 2)
        size = m.end() - s.pos if m else size
        if size > most:
            raise Malformed("a long string")
        if s.text.startswith(tuple(ENDS[quote]), s.pos + size):
            break
        if s.closed:
            raise Malformed("an unclosed string")
        yield
    body = s.text[s.pos + 1 : s.pos + size]
    s.pos += size + 1
    if quote != '"':
        body = body.replace("\\'", "'").replace('"', '\\"')
    try:
        return LONE("\ufffd", _lenient_text(f'"{body}"'))
    except ValueError:
        return body


def unescaped(text: str, i: int, closed: bool) -> tuple[str, int] | None:
    """The text of the escape at `i`, and its length; None if more text is needed.

    An unknown escape stays as written. A lone surrogate, which no text may contain, becomes U+FFFD.
    """
    pair = text[i : i + 2]
    if len(pair) < 2 and not closed:
        return None
    if pair[1:] != "u":
        return ESCAPES.get(pair[1:], pair), len(pair)
    parsed = escape(text, i, closed)
    return parsed and ((parsed[0], parsed[1]) if parsed[1] > 1 else (pair, 2))


def unescape(s: Source) -> Scan[str]:
    """The text of the next escape, which is consumed."""
    while (parsed := unescaped(s.text, s.pos, s.closed)) is None:
        yield
    s.pos += parsed[1]
    return parsed[0]


def repaired_escape(text: str, i: int, closed: bool) -> tuple[str, int, str] | None:
    """What the escape at `i`, which may be no legal one, is in a JSON string; its length, and the rule of the repair.
    None if more text is needed."""
    pair = text[i : i + 2]
    parsed = escape(text, i, closed) if pair[1:] == "u" else ("", 1, False)
    if parsed is None:
        return None
    _, size, lone = parsed
    if size > 1:
        return ("\\ufffd", size, "lone-surrogate") if lone else (text[i : i + size], size, "")
    if pair == "\\'":
        return "'", 2, ""
    return "\\\\" + escaped(pair[1:]), len(pair), "bad-escape"
