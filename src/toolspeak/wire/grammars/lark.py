"""A grammar in the notation of llguidance, which is Lark's with JSON Schemas, lazy words and complements."""

from __future__ import annotations

import json
from collections.abc import Callable

from .rules import Alt, Chars, Grammar, Json, Lit, Node, Pattern, Ref, Repeat, Seq, Text, Token
from .schemas import readable

OPTIONS = {"lenient": True, "whitespace_pattern": r"[ \n\t\r]{1,80}"}
"""How JSON is written: what llguidance does not know in a schema is let be, and white space has an end."""
ANY = "/(?s:.*)/"
PLAIN = frozenset(" _,:;<>={}()!'@#%&~\"+*?|.$")
NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def lark(grammar: Grammar) -> str:
    """The grammar as llguidance reads it."""
    return _Lark(grammar).text()


class _Lark:
    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.lines: list[str] = []
        self.names: dict[str, str] = {}

    def text(self) -> str:
        start = self.node(self.grammar.start)
        named = [f"{name}: {self.node(node)}" for name, node in self.grammar.rules.made.items()]
        return "\n".join(["%llguidance {}", f"start: {start}", *named, *self.lines]) + "\n"

    def rule(self, name: str, body: str, options: str = "") -> str:
        """The name of a rule with this body, the same for the same."""
        key = f"{options}: {body}"
        if key not in self.names:
            self.names[key] = f"{name}_{len(self.names)}"
            self.lines.append(f"{self.names[key]}{key}")
        return self.names[key]

    def node(self, node: Node) -> str:
        if isinstance(node, Token):
            return self.rule("WORD", self.node(node.part))
        if isinstance(node, Json):
            schema = {"x-guidance": OPTIONS, **readable(node.schema)}
            return self.rule("json", "%json " + json.dumps(schema, ensure_ascii=False))
        if isinstance(node, Text):
            return self.free(node)
        return plain(node, self.node, literal, lambda c: f"/{char_class(c)}/")

    def free(self, text: Text) -> str:
        """A text as words: one that ends nowhere, and for each mark one that ends with the first of it."""
        limits = [f"(?s:.*)({'|'.join(map(_regex, text.barred))})(?s:.*)"] if text.barred else []
        start = [f"({'|'.join(map(_regex, text.not_first))})(?s:.*)"] if text.not_first else []
        body = " & ".join([ANY, *(f"~/{limit}/" for limit in limits + start)])
        free = self.rule("TEXT", body) if limits or start else ANY
        options = [free] if text.end else []
        for word, then in text.goto:
            if limits:
                lead = self.rule("LEAD", " & ".join([ANY, *(f"~/{limit}/" for limit in limits)]))
                lead = f"{lead} {literal(word)}"
            else:
                lead = f"/(?s:.*){_regex(word)}/"
            if start:
                lead = self.rule("LEAD", " & ".join([f"({lead})", *(f"~/{limit}/" for limit in start)]))
            lazy = self.rule("until", self.rule("UNTIL", lead), "[lazy]")
            rest = self.node(then)
            options.append(lazy if rest == '""' else f"{lazy} {rest}")
        return options[0] if len(options) == 1 else f"({' | '.join(options)})"


def plain(
    node: Node, inner: Callable[[Node], str], literal: Callable[[str], str], char: Callable[[Chars], str]
) -> str:
    """What all notations of grammars write alike."""
    if isinstance(node, Lit):
        return literal(node.text)
    if isinstance(node, Chars):
        return char(node)
    if isinstance(node, Ref):
        return node.name
    if isinstance(node, Seq):
        return " ".join(map(inner, node.parts)) or '""'
    if isinstance(node, Alt):
        return f"({' | '.join(map(inner, node.options))})"
    if isinstance(node, Repeat):
        return f"({inner(node.part)}){times(node)}"
    raise AssertionError(f"no notation for {node!r}")


def times(node: Repeat) -> str:
    bounds = (node.least, node.most)
    if bounds in (known := {(0, 1): "?", (0, None): "*", (1, None): "+"}):
        return known[bounds]
    if node.least == node.most:
        return f"{{{node.least}}}"
    return f"{{{node.least},{'' if node.most is None else node.most}}}"


def literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def char_class(c: Chars) -> str:
    """A set of characters, as regular expressions and grammars alike write it."""
    body = "".join(_char(a) if a == b else f"{_char(a)}-{_char(b)}" for a, b in c.ranges)
    if not body:
        return "[^\\x00]"
    return f"[{'^' if c.but else ''}{body}]"


def _char(c: str) -> str:
    """A character of a set: itself where it can mean nothing else."""
    if (c.isascii() and c.isalnum()) or c in PLAIN or c > "\x7f":
        return c
    return NAMED.get(c) or f"\\x{ord(c):02x}"


def _regex(pattern: Pattern | str) -> str:
    """A pattern, or a text, as a regular expression."""
    return "".join(_place(place) for place in pattern)


def _place(place: str) -> str:
    if len(place) == 1 and (place.isalnum() or place in " _,:;<>='\"@%~" or place > "\x7f"):
        return place
    if len(place) == 1:
        return f"\\x{ord(place):02x}"
    return f"[{''.join(map(_char, place))}]" if place else "[ \\t\\n\\r]*"
