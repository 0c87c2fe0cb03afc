"""A draft of the dialect that an unknown chat template writes, read off what its renderings differ in.

The template is asked for one call, two calls, two arguments, an argument of each type. What stands between the
names, keys and values that went in are the dialect's literals; where they stand (in one JSON object, behind
the name, one by one) is its hole. The draft is a value like any other: data, never code.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from ..types import ToolCall
from . import probe as asked
from .decode import parse
from .margins import MARK, margins
from .probe import ID, KEY, KEYS, NAME, SAMPLES, TOOLS, VALUE, VALUES, Probe, call, common_end, common_start
from .syntax import (
    ARGS,
    INDEX,
    Arguments,
    Dialect,
    Json,
    JsonCall,
    Keywords,
    Kind,
    NumberedName,
    Part,
    Slot,
    Tagged,
    Tree,
    Typed,
)
from .syntax import ID as ID_SLOT
from .syntax import NAME as NAME_SLOT

NUMBER = "\ue004"
"""What stands for the number of a call."""
QUOTES = ("'", '"')
PAIRS = {"(": ")", "{": "}", "[": "]"}
DECODER = json.JSONDecoder()
BOTH = ToolCall(asked.IDS[0], asked.NAMES[0], dict(zip(KEYS, VALUES, strict=True)))


@dataclass(frozen=True, slots=True)
class Shown:
    """What the template writes for one call and for two (or "" if it takes one only)."""

    one: str
    two: str
    before: str = ""


@dataclass(frozen=True, slots=True)
class Body:
    """The hole of the arguments, and what stands around it: in front of the first, behind the last, in between.

    `middle` is None where the template takes one call only.
    """

    hole: Arguments | JsonCall
    front: str
    behind: str
    middle: str | None
    items: tuple[str, str, str] | None = None
    base: int = 0


@lru_cache(64)
def draft(template: str) -> Dialect | None:
    """The dialect that the template writes, as far as its renderings tell; None where they do not tell one, or where
    the draft does not read what the template wrote."""
    p = asked.probe(template)
    shown = _shown(p) if p else None
    if p is None or shown is None:
        return None
    body = _json(shown) or _tree(p, shown) or _keywords(p, shown) or _tagged(p, shown)
    if body is None:
        return None
    d = margins(p, _dialect(body, shown.before))
    return d if reads(p, d) else None


def reads(p: Probe, d: Dialect, *calls: ToolCall) -> bool:
    """Does the dialect read the calls, or else one with two arguments, as the template writes them?"""
    calls = calls or (BOTH,)
    prompt, written = p.reply(*calls)
    found = parse(written, d, TOOLS, prompt).calls
    return [(c.name, c.arguments) for c in found] == [(c.name, c.arguments) for c in calls]


def _shown(p: Probe) -> Shown | None:
    """The calls as they stand alone or behind a text, whichever shows all that is theirs and nothing else."""
    alone, behind = p.calls(call(), alone=True), p.calls(call())
    core = alone.strip()
    turn = MARK.search(p.head())
    extra, found, _ = behind.partition(core) if core else ("", "", "")
    if found and turn and turn[0] in extra:
        extra = ""  # the template puts the text and the calls into turns of their own
    rotated = len(alone) == len(behind) and behind in alone + alone
    is_alone = bool(core) and (rotated or not behind or (bool(found) and not extra.strip()))
    if not (core if is_alone else behind):
        return None
    one, two = p.calls(call(), alone=is_alone), p.calls(call(), call(1), alone=is_alone)
    blank = " " if alone[:1] == " " == behind[:1] else ""
    before = extra.removesuffix(blank) if is_alone and found else ""
    return Shown(blank + one.strip(), two and blank + two.strip(), before)


def _dialect(body: Body, before: str) -> Dialect:
    """The draft: what comes back for the second call belongs to the call, the rest to the section."""
    first, last, opened, closed, between = body.front, body.behind, "", "", ""
    items = body.items
    if items:
        opened, closed, first, last = first, last, "", ""
    elif body.middle is not None:
        opened, first, between, last, closed = _sections(body.front, body.middle, body.behind)
        if opened.endswith("[") and closed.startswith("]"):
            items, opened, closed, between = ("[", between or ", ", "]"), opened[:-1], closed[1:], ""
    closed, ends = _excess(opened, closed)
    return Dialect(
        "drafted",
        (*_parts(first), body.hole, *_parts(last)),
        open=opened,
        close=closed,
        between=between,
        items=items,
        before=before,
        thinking=None,
        frame=ends,
        guard=not (opened.strip() or first.replace(NAME, "").strip()),
        index_base=body.base,
        origin="drafted from its chat template",
    )


def _sections(front: str, middle: str, behind: str) -> tuple[str, str, str, str, str]:
    """The section's opener, the call's, what is between two calls, the call's closer, the section's.

    Blanks at the ends of a call are between the calls: so people write them, and reading does not mind.
    """
    first, last = _shared(front, middle, behind)
    opened, closed = front[: len(front) - len(first)], behind[len(last) :]
    between = middle[len(last) : len(middle) - len(first)]
    bare = last.rstrip()
    if closed or not bare:
        between, closed, last = last[len(bare) :] + between, last[len(bare) :] + closed, bare
    bare = first.lstrip()
    if opened or not bare:
        blank = first[: len(first) - len(bare)]
        between, opened, first = between + blank, opened + blank, bare
    return opened, first, between, last, closed


def _shared(front: str, middle: str, behind: str) -> tuple[str, str]:
    """How a call begins and how it ends: what comes back between two calls.

    A mark may belong to either; then the section has as many marks in front as behind.
    """
    last = common_start(behind, middle)
    first = common_end(front, middle[len(last) :])
    other = common_end(front, middle)
    rest = common_start(behind, middle[: len(middle) - len(other)])
    odd = [
        abs(len(MARK.findall(front[: len(front) - len(a)])) - len(MARK.findall(behind[len(b) :])))
        for a, b in ((first, last), (other, rest))
    ]
    return (first, last) if odd[0] <= odd[1] else (other, rest)


def _excess(opened: str, closed: str) -> tuple[str, tuple[str, ...]]:
    """The closer without marks that nothing opened, and those: they end the turn."""
    marks = list(MARK.finditer(closed))
    n = len(MARK.findall(opened))
    if len(marks) <= n:
        return closed, ()
    at = marks[n].start()
    return closed[:at].rstrip(), tuple(m[0] for m in marks[n:])


def _parts(text: str) -> list[Part]:
    """The text as literals and slots; an id that holds the name is one slot."""
    slots: dict[str, Part] = {NAME: NAME_SLOT, ID: ID_SLOT, NUMBER: INDEX}
    parts: list[Part] = [slots.get(t, t) for t in re.split(f"([{NAME}{ID}{NUMBER}])", text) if t]
    for i in range(1, len(parts) - 2):
        before, name, mid, number = parts[i - 1 : i + 3]
        holds = isinstance(before, str) and re.search(r"[\w.]*\Z", before)
        if name is NAME_SLOT and number is INDEX and isinstance(mid, str) and len(mid) == 1 and holds:
            whole = NumberedName(holds[0], mid)
            lead = cast("str", before)[: holds.start()]
            return [*parts[: i - 1], *([lead] if lead else []), whole, *parts[i + 3 :]]
    return parts


def _body(hole: Arguments | JsonCall, front: str, behind: str, middle: str | None) -> Body:
    """The body, what counts the calls between the name and the arguments told as such."""
    one, two = front.rpartition(NAME), (middle or "").rpartition(NAME)
    first, second = (re.sub(r"\d+", NUMBER, text) for text in (one[2], two[2]))
    if not two[1] or one[2] == two[2] or first != second:
        return Body(hole, front, behind, middle)
    base = int(re.findall(r"\d+", one[2])[0])
    return Body(hole, one[0] + NAME + first, behind, two[0] + NAME + second, base=base)


# ---------------------------------------------------------------------------- JSON


def _values(text: str) -> list[tuple[int, int, Any]]:
    """The JSON objects and lists in the text that hold a value of the probe, each with where it starts and ends."""
    found: list[tuple[int, int, Any]] = []
    at = 0
    for m in re.finditer(r"[\[{]", text):
        if m.start() < at:
            continue
        try:
            value, end = DECODER.raw_decode(text, m.start())
        except (ValueError, RecursionError):
            continue
        if VALUE in text[m.start() : end]:
            found.append((m.start(), end, value))
            at = end
    return found


def _json(shown: Shown) -> Body | None:
    """Arguments as one JSON object, or the whole call as one, or all calls as one list of them."""
    one, two = _values(shown.one), _values(shown.two)
    if not one:
        return None
    start, end, value = one[0]
    front, behind = shown.one[:start], shown.one[end:]
    if isinstance(value, list):
        return _json_list(shown, cast("list[Any]", value), (start, end))
    other = two[1] if len(two) > 1 else None
    middle = shown.two[two[0][1] : other[0]] if other else None
    if NAME in front:
        return _body(Json(), front, behind, middle)
    hole = _object(value, other[2] if other else value, shown.one[start:end])
    return Body(hole, front, behind, middle) if hole else None


def _json_list(shown: Shown, value: list[Any], span: tuple[int, int]) -> Body | None:
    """Calls as the elements of one list: its brackets and separators as they are written."""
    text = shown.one[slice(*span)]
    inner = [DECODER.raw_decode(text, text.index("{"))[1]] if "{" in text else []
    if len(value) != 1 or not inner:
        return None
    first = text[text.index("{") : inner[0]]
    opener, closer = text[: text.index("{")], text[inner[0] :]
    separator, second = ", ", value[0]
    if (two := _values(shown.two)) and isinstance(two[0][2], list) and len(two[0][2]) == 2:
        rest = shown.two[two[0][0] + len(opener) + len(first) : two[0][1]]
        separator, second = rest[: rest.index("{")], two[0][2][1]
    hole = _object(value[0], second, first)
    items = (opener, separator, closer)
    return Body(hole, shown.one[: span[0]], shown.one[span[1] :], None, items) if hole else None


def _object(value: object, second: object, text: str) -> JsonCall | None:
    """The keys of a call that is one JSON object, by what went into it."""
    if not isinstance(value, dict):
        return None
    row, other = cast("dict[str, Any]", value), cast("dict[str, Any]", second)
    indent = next((n for n in (2, 4) if json.dumps(row, indent=n, ensure_ascii=False) == text), None)
    if set(row) == {NAME}:
        return JsonCall(((NAME_SLOT, ARGS),), indent=indent)
    keys: list[tuple[str | Slot, Slot | Kind]] = []
    encoded = False
    for key, held in row.items():
        if held == NAME:
            keys.append((key, NAME_SLOT))
        elif VALUE in json.dumps(held, ensure_ascii=False):
            encoded = isinstance(held, str)
            keys.append((key, ARGS))
        elif held == ID or held != other.get(key):
            keys.append((key, ID_SLOT))
        elif isinstance(held, str):
            keys.append((key, Kind(held)))
    told = {slot for _, slot in keys}
    return JsonCall(tuple(keys), encoded="always" if encoded else "", indent=indent) if {NAME_SLOT, ARGS} <= told else None


# ------------------------------------------------------- one argument after the other


def _split(text: str) -> list[str]:
    """The texts around the keys and values."""
    return re.split(f"[{KEY}{VALUE}]", text)


def _middle(shown: Shown, before: str, after: str) -> str | None:
    """What stands between the last argument of one call and the first of the next, without what is the arguments' own."""
    if not shown.two:
        return None
    inner = shown.two[shown.two.index(VALUE) + 1 : shown.two.rindex(NAME)]
    rest = shown.two[shown.two.rindex(NAME) :]
    inner += rest[: rest.index(KEY)]
    if not (inner.startswith(after) and inner.endswith(before)):
        return None
    return inner[len(after) : len(inner) - len(before)]


def _tree(p: Probe, shown: Shown) -> Body | None:
    """Arguments as nested elements: each key opens one and closes it again."""
    if shown.one.count(KEY) != 2:
        return None
    front, mid, close, behind = _split(shown.one)
    mark = close.removesuffix("</")
    if mark == close or mid != ">" or not front.endswith(mark + "<") or behind[:1] != ">":
        return None
    before, after = mark + "<", f"{close}{KEY}>"
    return _body(Tree(mark), front.removesuffix(before), behind[1:], _middle(shown, before, after))


def _keywords(p: Probe, shown: Shown) -> Body | None:
    """Arguments in a syntax like a programming language's: strings have quotes, all else has none."""
    if shown.one.count(KEY) != 1 or shown.one.count(VALUE) != 1:
        return None
    front, mid, behind = _split(shown.one)
    assign = _before(p, SAMPLES["number"])
    if assign is None or not mid.startswith(assign) or mid == assign:
        return None
    quote, open = mid[len(assign) :], front[-1:]
    close = PAIRS.get(open, "")
    rest = behind.removeprefix(quote)
    if not close or rest == behind or not rest.startswith(close):
        return None
    nested = _written(p, SAMPLES["object"]) or ""
    hole = Keywords(
        open,
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
    return _body(hole, front[:-1], rest[1:], _middle(shown, open, quote + close))


def _tagged(p: Probe, shown: Shown) -> Body | None:
    """Arguments one by one between literals of their own, which may tell each one's type."""
    pair = p.calls(BOTH, alone=not p.calls(call()))
    if shown.one.count(KEY) != 1 or shown.one.count(VALUE) != 1 or pair.count(KEY) != 2:
        return None
    front, mid, behind = _split(shown.one)
    glue = _split(pair)[2]
    close = common_start(glue, behind)
    open = glue[len(close) :]
    if not open.strip() or not front.endswith(open):
        open = common_end(glue, front)
        close = glue[: len(glue) - len(open)]
        if not open.strip() or not behind.startswith(close):
            return None
    typed, mid = _typed(p, mid)
    hole = Tagged(open, mid, close, typed, _quote(p, mid))
    return _body(hole, front.removesuffix(open), behind.removeprefix(close), _middle(shown, open, close))


def _written(p: Probe, value: object) -> str | None:
    """What stands behind the key for one argument of this value, or None if it is not written."""
    arguments = {KEYS[0]: value}
    text = p.calls(call(0, **arguments)) or p.calls(call(0, **arguments), alone=True)
    return text.partition(KEY)[2] or None


def _before(p: Probe, value: object) -> str | None:
    """What stands between a key and this value."""
    text, word = _written(p, value), value if isinstance(value, str) else json.dumps(value)
    return text.partition(word)[0] if text and word in text else None


def _constant(p: Probe, value: object, assign: str, usual: str) -> str:
    text = (_written(p, value) or "").removeprefix(assign)
    word = re.match(r"\w+", text)
    return word[0] if word else usual


def _typed(p: Probe, mid: str) -> tuple[Typed | None, str]:
    """How a parameter tells its type, and what stands between that and the value: by what differs for a number."""
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
    """The quotes that a string with marks in it stands in, if any."""
    text = _written(p, "a<b>&c") or ""
    before, found, after = text.partition("a<b>&c")
    opener = before.removeprefix(mid)
    return (opener, "]]>") if found and opener == "<![CDATA[" and after.startswith("]]>") else None
