"""Writes a grammar as structural tags for xgrammar: where a call begins, its content, and where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...types import Tool
from ..dialect import Dialect
from .call_openers import as_words, openers, trigger
from .calls import answer, calls
from .engine_schemas import readable
from .gbnf import gbnf
from .reply import Thought, reply
from .rules import Grammar, JsonNode, Lit, Node, Pattern, Rules, Seq, seq
from .value_grammar import has_form

Format = dict[str, Any]


def structural_tag(
    d: Dialect, tools: Sequence[Tool[..., Any]], choice: str, parallel: bool, thought: Thought = "may"
) -> Format:
    """The structural tag of a reply.

    Arguments that are no JSON, and calls that are no tags, are embedded as a grammar. Free text excludes the words
    that open a call, in the dialect's spelling.
    """
    rules = Rules()
    each = [node for _, node in calls(d, tools, rules)] if choice != "none" else []
    if d.header or answer(d) or not all(_split(call)[0] for call in each):
        return _whole({"type": "grammar", "grammar": gbnf(reply(d, tools, choice, parallel, thought))})
    barred = openers(d, tools)
    tags = [_tag(call, rules) for call in each]
    return _whole(_thinking(d, _body(d, tags, choice, parallel, barred), thought))


def _body(d: Dialect, tags: list[Format], choice: str, parallel: bool, barred: Sequence[Pattern]) -> Format:
    """A reply after its thought: text, calls, or text with calls in it."""
    if not tags and choice in ("auto", "none"):
        return {"type": "any_text", "excludes": as_words(barred)}
    if tags and (d.open or d.items):
        section = _section(d, tags, parallel)
        return _free([section], barred, False) if choice == "auto" else section
    return _free(tags, barred, parallel) if choice == "auto" else _listed(tags, d.between, parallel)


def _section(d: Dialect, tags: list[Format], parallel: bool) -> Format:
    """The calls between the marks around all of them."""
    opener, glue, closer = d.items or ("", d.between, "")
    return _begun(d.open + opener, _listed(tags, glue, parallel), closer + d.close)


def _whole(body: Format) -> Format:
    return {"type": "structural_tag", "format": body}


def _thinking(d: Dialect, body: Format, state: Thought) -> Format:
    if d.thinking is None or state == "never":
        return body
    word, close = (mark.strip() or mark for mark in (d.thinking.open, d.thinking.close))
    thought = _begun("" if state == "open" else word, {"type": "any_text"}, close)
    space = {"type": "regex", "pattern": "[ \\n]{0,4}"}
    first = {"type": "sequence", "elements": [thought, space]}
    return {
        "type": "sequence",
        "elements": [first if state == "open" else {"type": "optional", "content": first}, body],
    }


def _begun(begin: str, content: Format, end: str) -> Format:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def _listed(tags: list[Format], glue: str, parallel: bool) -> Format:
    return {
        "type": "tags_with_separator",
        "tags": tags,
        "separator": glue,
        "at_least_one": True,
        "stop_after_first": not parallel,
    }


def _free(tags: list[Format], barred: Sequence[Pattern], several: bool) -> Format:
    """Any text, with calls in it."""
    for tag in tags:
        tag["begin"] = tag["begin"].lstrip()
    triggers = list(dict.fromkeys(trigger(tag["begin"], barred)[0] for tag in tags))
    return {
        "type": "triggered_tags",
        "triggers": triggers,
        "tags": tags,
        "stop_after_first": not several,
        "excludes": [word for word in as_words(barred) if not any(word in t or t in word for t in triggers)],
    }


def _split(call: Node) -> tuple[str, Node, str]:
    """A call as the literal at its beginning, its content, and the literal at its end."""
    parts = call.parts if isinstance(call, Seq) else (call,)
    begin = first.text if isinstance(first := parts[0], Lit) else ""
    end = last.text if len(parts) > 1 and isinstance(last := parts[-1], Lit) else ""
    return begin, seq(*parts[bool(begin) : len(parts) - bool(end)]), end


def _tag(call: Node, rules: Rules) -> Format:
    begin, inside, end = _split(call)
    return _begun(begin, _content(inside, rules), end)


def _content(node: Node, rules: Rules) -> Format:
    match rules.resolve(node):
        case JsonNode(schema) if not has_form(schema):
            return {"type": "json_schema", "json_schema": readable(schema)}
        case _:
            pass
    return {"type": "grammar", "grammar": gbnf(Grammar(node, rules))}
