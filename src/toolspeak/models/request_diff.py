"""Compares two requests for people: each as lines of text, and their differences.

In lines that differ, invisible characters are shown as escapes. Of a long line, both ends and the text around the
change are shown.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import takewhile, zip_longest
from typing import Any, cast

from .exchange import Form

CONTEXT = 2
"""Lines shown around each difference."""
MOST = 4_000
"""The most lines of a request that are compared, from shortly before the first difference on."""
WIDTH = 240
"""The longest line, in characters, that is shown whole."""
END = 40
"""Characters of a longer line that are shown at both ends and around a difference."""


def lines_of(request: Form) -> list[str]:
    """Return a request as lines: its messages, its tools, then its settings."""
    return list(_lines(request))


def _lines(request: Form) -> Iterator[str]:
    for message in request.get("messages", ()):
        yield from _message(message)
    for tool in request.get("tools", ()):
        yield from _labeled(f"tool {tool.get('name')}", tool.get("description", ""))
        yield from _parameters(tool.get("parameters", {}))
        yield from _others(tool, "  ", ("name", "description", "parameters"))
    yield from _others(request, "", ("messages", "tools"))


def _message(message: Mapping[str, Any]) -> Iterator[str]:
    role = message.get("role", "?")
    content: Any = message.get("content")
    parts = cast("list[Any]", content) if isinstance(content, list) else [] if content is None else [content]
    for part in parts:
        yield from _labeled(role, part)
    for call in message.get("tool_calls", ()):
        function: dict[str, Any] = call.get("function", {})
        yield from _labeled(f"{role} calls {function.get('name')} ({call.get('id')})", function.get("arguments"))
    yield from _others(message, f"{role} ", ("role", "content", "tool_calls"))


def _parameters(schema: Mapping[str, Any]) -> Iterator[str]:
    properties: Any = schema.get("properties")
    if isinstance(properties, dict):
        yield from _others(cast("dict[str, Any]", properties), "  ", ())
        schema = {name: value for name, value in schema.items() if name != "properties"}
    yield f"  {_text(schema)}"


def _others(values: Mapping[str, Any], before: str, names: Sequence[str]) -> Iterator[str]:
    for name, value in values.items():
        if name not in names:
            yield from _labeled(f"{before}{name}", value)


def _labeled(label: str, value: Any) -> Iterator[str]:
    """The lines of a value. They end at `\\n` alone, so that nothing of the text is lost."""
    yield from (f"{label}: {line}" if line else f"{label}:" for line in _text(value).split("\n"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def nearest(request: Form, others: Sequence[Form]) -> int:
    """Return the index of the request with the most lines in common; the first one of several."""
    lines = Counter(lines_of(request))

    def difference(other: Form) -> int:
        theirs = Counter(lines_of(other))
        return ((lines - theirs) | (theirs - lines)).total()

    return min(range(len(others)), key=lambda place: difference(others[place]))


def diff(before: Form, after: Form) -> str:
    """Return the lines that only one of two requests has (`-` before, `+` after), with some context."""
    rows = _rows(lines_of(before), lines_of(after)) or _rows(_data(before), _data(after))
    return "\n".join(rows[1:])


def _data(request: Form) -> list[str]:
    """Return a request as JSON lines, which also show a difference in the type of a value."""
    return json.dumps(request, indent=1, sort_keys=True).split("\n")


def _rows(before: list[str], after: list[str]) -> list[str]:
    begin = max(0, _alike(before, after) - CONTEXT)
    before, after = before[begin:][:MOST], after[begin:][:MOST]
    rows: list[str] = []
    for group in SequenceMatcher(None, before, after).get_grouped_opcodes(CONTEXT):
        rows.append("…")
        for kind, start, end, other_start, other_end in group:
            if kind == "equal":
                rows += [f" {_around(line, line)}" for line in before[start:end]]
            else:
                rows += _changed(before[start:end], after[other_start:other_end])
    return rows


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many lines, or characters, are equal from the start."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _changed(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return rows of the lines before, then of those after; each is shortened around its difference from the other one."""
    pairs = list(zip_longest(map(_visible, before), map(_visible, after)))
    minus = [f"-{_around(old, new)}" for old, new in pairs if old is not None]
    return minus + [f"+{_around(new, old)}" for old, new in pairs if new is not None]


def _visible(line: str) -> str:
    """Return a line with escapes for characters that are invisible or look like others."""
    line = "".join(c if c.isprintable() and not unicodedata.combining(c) else ascii(c)[1:-1] for c in line)
    return re.sub(r" +$", lambda spaces: r"\x20" * len(spaces[0]), line)


def _around(line: str, other: str | None) -> str:
    """Return a line; of a long one its ends, and the part that differs from the other line, with context."""
    if len(line) <= WIDTH:
        return line
    start, end = 0, len(line)
    if other is not None:
        start = _alike(line, other)
        end -= _alike(line[start:][::-1], other[start:][::-1])
    parts = [(0, END), (start - END, start + END), (end - END, end + END), (len(line) - END, len(line))]
    excerpt, reached = "", 0
    for left, right in parts:
        if right > reached:
            excerpt += (" … " if left > reached else "") + line[max(left, reached) : right]
            reached = right
    return excerpt
