"""Finds how many calls a request needs, and how each further call differs from the first.

A weak model cannot tell when to stop, but the request can. Things that are named side by side ("water and iron", "at 0
and at 1000 meters"), or one after another ("the first … the second …"), need one call each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...plan.effects import Plan
from ...stems import WORD
from ...types import Note, Tool
from ..partial_call import schemas_of
from ..slots import fill
from .rows import MOST, rows
from .value_mentions import mentions

MOST_CLAUSES = 6
"""The most parts of a request for several calls; one with more is ordinary text."""
SENTENCE = re.compile(r"(?<=[.?!;])[\"'”]?\s+(?=[\"'“A-Z(])|\n+")
COUNTED = re.compile(
    r"\b(?:first|second|third|fourth|fifth|sixth|lastly|last one|other one|another one)\b", re.IGNORECASE
)
FURTHER = re.compile(
    r"[,;.?!]?\s+(?:and\s+)?(?:then|finally|lastly|also|after that|afterwards|in addition|additionally)\b,?\s+|"
    r"[,;]?\s+and\s+(?=(?:how|what|who|when|where|which|can|could|please|for|the same)\b)|"
    r"[,;]?\s+and\s+(?=the [A-Za-z]+(?: [A-Za-z]+)? ['\"“])|(?<=[.?!;])[\"'”]?\s+(?=(?:what|how|can|could|who|when|where|which|repeat|do the same)\b)",
    re.IGNORECASE,
)
"""Where a request moves on to something else."""
COUNTS = re.compile(r"(?=\bthe (?:first|second|third|fourth|fifth|sixth|last) )", re.IGNORECASE)
"""Where a request counts things within a sentence."""
MOST_WORDS_OF_NOTHING = 2
"""A part with at most so many words needs no call of its own."""


def calls_for(
    tool: Tool[..., Any], text: str, *, several: bool = True
) -> Plan[tuple[list[dict[str, Any]], tuple[Note, ...]]]:
    """The arguments of each call to `tool` that `text` needs (one, or `several`), and notes on doubtful ones."""
    first, notes = yield from fill(tool, text)
    if not several:
        return [first], notes
    calls, end = alternatives(tool, text, first)
    parts = clauses(text)
    end = end or (text.find(parts[1]) if 1 < len(parts) <= MOST_CLAUSES else 0)
    if not end:
        return calls, notes
    # Given several things at once, the model mixes them up. So the first call is read from the text before the second.
    opening, _ = yield from fill(tool, text[:end].rstrip(), part=True)
    again, _ = alternatives(tool, text, {**first, **_bettered(tool, first, opening)})
    return again if len(again) > 1 else calls, notes


def _bettered(tool: Tool[..., Any], first: Mapping[str, Any], opening: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of the first call: those that its own part of the request has, and the required ones. No value is
    used twice."""
    required = tool.parameters.get("required", ())
    known = {name: value for name, value in opening.items() if name in first or name in required}
    values = [value for value in opening.values() if isinstance(value, str)]
    return {name: value for name, value in known.items() if name in required or values.count(value) < 2}


def clauses(text: str) -> list[str]:
    """The parts of a request that may each need a call: sentences that count ("the second …"), or what follows "and
    then" or "how does it compare to". [] if the request is a single part."""
    sentences = [part.strip() for part in SENTENCE.split(text) if part and part.strip()]
    numbered = [part for part in sentences if COUNTED.search(part)]
    if len(numbered) > 1:
        return numbered
    counted = [part for part in COUNTS.split(text)[1:] if len(WORD.findall(part)) > MOST_WORDS_OF_NOTHING]
    if len(counted) > 1:
        return counted
    parts = [part.strip() for part in FURTHER.split(text) if part and len(WORD.findall(part)) > MOST_WORDS_OF_NOTHING]
    return parts if len(parts) > 1 else []


def alternatives(tool: Tool[..., Any], text: str, first: Mapping[str, Any]) -> tuple[list[dict[str, Any]], int]:
    """The arguments of every call, derived from the `first` one, and the position of the request's second clause (0 if
    there is only one)."""
    schemas = schemas_of(tool.parameters)
    needed = set[str](tool.parameters.get("required", ()))
    every = mentions(text, schemas, first)
    calls, end = rows(text, every, schemas, needed, first)
    return (calls, end) if len(calls) <= MOST else ([dict(first)], 0)
