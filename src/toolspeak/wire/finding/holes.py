"""Derives how a dialect writes arguments (its hole, such as `Json` or `Tagged`) from what a template writes around them.

Each kind of hole is tried in turn: first JSON (the text contains a value of the probe as JSON), then elements,
keywords and tags, by the text before, between and after two arguments. A candidate is only a proposal: `drafting`
keeps it if the resulting dialect reads what the template wrote.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, cast

from ..dialect import (
    ARGS,
    ID as ID_SLOT,
    INDEX,
    NAME as NAME_SLOT,
    Arguments,
    Json,
    JsonCall,
    Keywords,
    Kind,
    Slot,
    Tagged,
    Tree,
    Typed,
)
from .probe import BOTH, ID, KEY, KEYS, NAME, SAMPLES, VALUE, Probe, call, common_end, common_start

NUMBER = "\ue004"
"""The character that stands for a call's number."""
QUOTES = ("'", '"')
PAIRS = {"(": ")", "{": "}", "[": "]"}
DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Samples:
    """What the template writes for one call and for two ("" if it accepts only one)."""

    one: str
    two: str
    before: str = ""


@dataclass(frozen=True, slots=True)
class Body:
    """The hole of the arguments, and the text around it: before the first one, after the last, and between two calls.

    `middle` is None if the template accepts only one call.
    """

    hole: Arguments | JsonCall
    front: str
    behind: str
    middle: str | None
    items: tuple[str, str, str] | None = None
    base: int = 0


def body_of(p: Probe, samples: Samples) -> Body | None:
    """The hole with the text around it; None if no kind of hole matches."""
    return _json(samples) or _tree(samples) or _keywords(p, samples) or _tagged(p, samples)


def _body(hole: Arguments | JsonCall, front: str, behind: str, middle: str | None) -> Body:
    """The body, with a counter between the name and the arguments replaced by a slot."""
    one, two = front.rpartition(NAME), (middle or "").rpartition(NAME)
    first, second = (re.sub(r"\d+", NUMBER, text) for text in (one[2], two[2]))
    if not two[1] or one[2] == two[2] or first != second:
        return Body(hole, front, behind, middle)
    base = int(re.findall(r"\d+", one[2])[0])
    return Body(hole, one[0] + NAME + first, behind, two[0] + NAME + second, base=base)


# ---------------------------------------------------------------------------- JSON


def _values(text: str) -> list[tuple[int, int, Any]]:
    """The JSON objects and lists in the text with a value of the probe, each with its start and end."""
    spans: list[tuple[int, int, Any]] = []
    at = 0
    for m in re.finditer(r"[\[{]", text):
        if m.start() < at:
            continue
        try:
            value, end = DECODER.raw_decode(text, m.start())
        except (ValueError, RecursionError):
            continue
        rows = cast("list[Any]", value) if isinstance(value, list) else [value]
        if VALUE in text[m.start() : end] and all(isinstance(row, dict) for row in rows):
            spans.append((m.start(), end, cast("Any", value)))
            at = end
    return spans


def _json(samples: Samples) -> Body | None:
    """Arguments as one JSON object, or a whole call as one, or all calls as one list."""
    one, two = _values(samples.one), _values(samples.two)
    if not one:
        return None
    start, end, value = one[0]
    front, behind = samples.one[:start], samples.one[end:]
    if isinstance(value, list):
        return _json_list(samples, cast("list[Any]", value), (start, end))
    other = two[1] if len(two) > 1 else None
    middle = samples.two[two[0][1] : other[0]] if other else None
    if NAME in front:
        return _body(Json(), front, behind, middle)
    hole = _object(value, other[2] if other else value, samples.one[start:end])
    return Body(hole, front, behind, middle, base=_base(hole, value)) if hole else None


def _json_list(samples: Samples, value: list[Any], span: tuple[int, int]) -> Body | None:
    """Calls as elements of one list, with its brackets and separators as written."""
    text = samples.one[slice(*span)]
    if len(value) != 1 or "{" not in text:
        return None
    begin = text.index("{")
    end = DECODER.raw_decode(text, begin)[1]
    opener, first, closer = text[:begin], text[begin:end], text[end:]
    separator, second = ", ", value[0]
    for start, stop, both in _values(samples.two)[:1]:
        if isinstance(both, list) and len(cast("list[Any]", both)) == 2:
            rest = samples.two[start + len(opener) + len(first) : stop]
            separator, second = rest[: rest.index("{")], cast("list[Any]", both)[1]
    hole = _object(value[0], second, first)
    items = (opener, separator, closer)
    return (
        Body(hole, samples.one[: span[0]], samples.one[span[1] :], None, items, _base(hole, value[0])) if hole else None
    )


def _base(hole: JsonCall | None, row: object) -> int:
    """The number of the first call, if calls are numbered."""
    key = next((key for key, slot in hole.keys if slot is INDEX), None) if hole else None
    return int(cast("dict[Any, Any]", row)[key]) if key else 0


def _object(value: object, second: object, text: str) -> JsonCall | None:
    """The keys of a call that is one JSON object, identified by the values that were put in."""
    if not isinstance(value, dict):
        return None
    row, other = cast("dict[str, Any]", value), cast("dict[str, Any]", second)
    indent = next((n for n in (2, 4) if json.dumps(row, indent=n, ensure_ascii=False) == text), None)
    if set(row) == {NAME}:
        return JsonCall(((NAME_SLOT, ARGS),), indent=indent)
    keys: list[tuple[str | Slot, Slot | Kind]] = []
    encoded = False
    for key, item in row.items():
        if item == NAME:
            keys.append((key, NAME_SLOT))
        elif VALUE in json.dumps(item, ensure_ascii=False):
            encoded = isinstance(item, str)
            keys.append((key, ARGS))
        elif item == ID or item != other.get(key):
            keys.append((key, INDEX if str(item).isdigit() else ID_SLOT))
        elif isinstance(item, str):
            keys.append((key, Kind(item)))
    used = {slot for _, slot in keys}
    return (
        JsonCall(tuple(keys), encoded="always" if encoded else "", indent=indent) if {NAME_SLOT, ARGS} <= used else None
    )


# ------------------------------------------------------- one argument after the other


def _split(text: str) -> list[str]:
    """The texts around the keys and values."""
    return re.split(f"[{KEY}{VALUE}]", text)


def _middle(samples: Samples, before: str, after: str) -> str | None:
    """The text between the last argument of one call and the first of the next, without what belongs to the arguments."""
    if not samples.two:
        return None
    inner = samples.two[samples.two.index(VALUE) + 1 : samples.two.rindex(NAME)]
    rest = samples.two[samples.two.rindex(NAME) :]
    inner += rest[: rest.index(KEY)]
    if not (inner.startswith(after) and inner.endswith(before)):
        return None
    return inner[len(after) : len(inner) - len(before)]


def _tree(samples: Samples) -> Body | None:
    """Arguments as nested elements: each key opens and closes one."""
    if samples.one.count(KEY) != 2:
        return None
    front, mid, close, behind = _split(samples.one)
    mark = close.removesuffix("</")
    if mark == close or mid != ">" or not front.endswith(mark + "<") or behind[:1] != ">":
        return None
    before, after = mark + "<", f"{close}{KEY}>"
    return _body(Tree(mark), front.removesuffix(before), behind[1:], _middle(samples, before, after))


def _keywords(p: Probe, samples: Samples) -> Body | None:
    """Arguments in the syntax of a programming language: strings have quotes, other values none."""
    if samples.one.count(KEY) != 1 or samples.one.count(VALUE) != 1:
        return None
    front, mid, behind = _split(samples.one)
    assign = _before(p, SAMPLES["number"])
    if assign is None or not mid.startswith(assign) or mid == assign:
        return None
    quote, opener = mid[len(assign) :], front[-1:]
    close = PAIRS.get(opener, "")
    rest = behind.removeprefix(quote)
    if not close or rest == behind or not rest.startswith(close):
        return None
    nested = _written(p, SAMPLES["object"]) or ""
    hole = Keywords(
        opener,
        close,
        assign,
        tuple(dict.fromkeys((quote, *(QUOTES if quote in QUOTES else ())))),
        escapes=quote in QUOTES,
        bare="in_key" in nested and nested[nested.index("in_key") - 1 : nested.index("in_key")] in ("{", " "),
        constants=(
            _constant(p, True, assign, "True"),
            _constant(p, False, assign, "False"),
            _constant(p, None, assign, "None"),
        ),
    )
    return _body(hole, front[:-1], rest[1:], _middle(samples, opener, quote + close))


def _tagged(p: Probe, samples: Samples) -> Body | None:
    """Arguments one by one between literals, possibly with their types."""
    pair = p.calls(BOTH, alone=not p.calls(call()))
    if samples.one.count(KEY) != 1 or samples.one.count(VALUE) != 1 or pair.count(KEY) != 2:
        return None
    front, mid, behind = _split(samples.one)
    glue = _split(pair)[2]
    close = common_start(glue, behind)
    opener = glue[len(close) :]
    if not opener.strip() or not front.endswith(opener):
        opener = common_end(glue, front)
        close = glue[: len(glue) - len(opener)]
        if not opener.strip() or not behind.startswith(close):
            return None
    typed, mid = _typed(p, mid)
    hole = Tagged(opener, mid, close, typed, _quote(p, mid))
    return _body(hole, front.removesuffix(opener), behind.removeprefix(close), _middle(samples, opener, close))


def _written(p: Probe, value: object) -> str | None:
    """The text after the key for one argument with this value; None if it is not written."""
    arguments = {KEYS[0]: value}
    text = p.calls(call(0, **arguments)) or p.calls(call(0, **arguments), alone=True)
    return text.partition(KEY)[2] or None


def _before(p: Probe, value: object) -> str | None:
    """The text between a key and this value."""
    text, word = _written(p, value), value if isinstance(value, str) else json.dumps(value)
    return text.partition(word)[0] if text and word in text else None


def _constant(p: Probe, value: object, assign: str, usual: str) -> str:
    text = (_written(p, value) or "").removeprefix(assign)
    word = re.match(r"\w+", text)
    return word[0] if word else usual


def _typed(p: Probe, mid: str) -> tuple[Typed | None, str]:
    """How the type of a parameter is written, and the text between it and the value. It is found from the difference
    for a number."""
    number = _before(p, SAMPLES["number"])
    if number is None or number == mid:
        return None, mid
    word, other = (re.findall(r"\w+", text) for text in (mid, number))
    odd = [i for i, (a, b) in enumerate(zip(word, other, strict=False)) if a != b]
    if len(word) != len(other) or len(odd) != 1:
        return None, mid
    before, _, after = mid.partition(word[odd[0]])
    if number != before + other[odd[0]] + after:
        return None, mid
    return Typed(before, word[odd[0]], "" if other[odd[0]] == "number" else other[odd[0]]), after


def _quote(p: Probe, mid: str) -> tuple[str, str] | None:
    """The quotes around a string that contains markup, if any."""
    text = _written(p, "a<b>&c") or ""
    before, match, after = text.partition("a<b>&c")
    opener = before.removeprefix(mid)
    return (opener, "]]>") if match and opener == "<![CDATA[" and after.startswith("]]>") else None
