"""Writes a grammar in GBNF, the notation of llama.cpp, which xgrammar reads as well."""

from __future__ import annotations

from .automaton import automaton
from .notation import Notation, char_class
from .rules import Grammar, JsonNode, Node, Text
from .value_grammar import JSON, Values

ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


def gbnf(grammar: Grammar) -> str:
    """The grammar in GBNF."""
    return _Gbnf(grammar).write()


class _Gbnf(Notation):
    assigns = " ::= "
    start = "root"

    def name(self, name: str) -> str:
        return name.replace("_", "-")

    def literal(self, text: str) -> str:
        letters = (ESCAPES.get(c) or (f"\\x{ord(c):02x}" if c < " " or c == "\x7f" else c) for c in text)
        return f'"{"".join(letters)}"'

    def token(self, part: Node) -> str:
        return self.rule("word", self.node(part))

    def json(self, node: JsonNode) -> str:
        return self.node(Values(self.grammar.rules, JSON, node.schema).of(node.schema))

    def text(self, text: Text) -> str:
        """A text as rules, one for each state of its automaton."""
        states = automaton(text)
        name = f"text-{len(self.names)}"
        self.names[name] = name
        nodes = [then for _, then in text.goto]
        rest = {then: self.node(then) for then in nodes}
        for i, state in enumerate(states):
            options = [f"{char_class(among)} {name}-{there}" for among, there in state.on]
            options += [f"{self.literal(c)} {rest[nodes[place]]}" for c, place in state.out]
            options += ['""'] if text.end else []
            self.lines.append(f"{name}-{i} ::= {' | '.join(options)}")
        return f"{name}-0"
