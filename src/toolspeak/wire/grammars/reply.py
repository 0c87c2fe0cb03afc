"""The grammar of a whole reply: a thought, text and calls, as the choice allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ...types import Tool
from ..dialect import Dialect
from .call_openers import first_words, openers, trigger
from .calls import answer, calls, section
from .headed_messages import messages
from .rules import EMPTY, Grammar, Lit, Node, Repeat, Rules, Text, Token, alt, chars, heads, opt, seq

Thought = Literal["may", "open", "never"]
"""Whether a thought may come first, is already open, or must not come."""
BLANK = Repeat(chars(" ", "\n"), 0, 4)
SPACE = opt(Token(Repeat(chars(" ", "\n"), 1, 4)))
"""Whitespace between a thought and a call."""


def reply(
    d: Dialect, tools: Sequence[Tool[..., Any]], choice: str, parallel: bool, thought: Thought = "may"
) -> Grammar:
    """Every reply that the choice allows: "auto", "required" or "none"."""
    rules = Rules()
    each = [node for _, node in calls(d, tools, rules)] if choice != "none" else []
    if d.header:
        body = messages(d, d.header, each, choice, parallel, thought != "never")
        return Grammar(thinking(d, body, choice, thought), rules)
    wire = section(d, each, parallel, rules) if each else None
    body = wire if wire and choice == "required" else free(d, tools, wire)
    return Grammar(thinking(d, body, choice, thought), rules)


def thinking(d: Dialect, body: Node, choice: str, state: Thought) -> Node:
    """The body, after an optional thought."""
    if d.thinking is None or state == "never":
        return body
    word, close = (mark.strip() or mark for mark in (d.thinking.open, d.thinking.close))
    thought = seq(Text(((close, EMPTY),)), SPACE if choice == "required" or d.header else EMPTY)
    return seq(thought if state == "open" else opt(seq(Lit(word), thought)), body)


def free(d: Dialect, tools: Sequence[Tool[..., Any]], wire: Node | None) -> Node:
    """Text without a call opener, or text up to a call opener that continues as a valid call."""
    barred = openers(d, tools)
    goto: dict[str, list[Node]] = {}
    for text, rest in heads(wire) if wire else ():
        word, more = trigger(text.lstrip(), barred)
        goto.setdefault(word, []).append(seq(Lit(more), rest))
    exits = tuple((word, alt(*rests)) for word, rests in goto.items())
    text = Text(exits, tuple(barred), tuple(first_words(d)), end=True)
    if not d.guard:
        return text
    # An object that may begin the reply must not begin a text.
    first = [(word, rest) for shape in (wire, answer(d)) if shape for word, rest in heads(shape)]
    return alt(*(seq(Token(seq(BLANK, Lit(word))), rest) for word, rest in first), text)
