"""A grammar in GBNF, the notation of llama.cpp, which xgrammar reads too."""

from __future__ import annotations

from .automaton import automaton
from .lark import char_class, plain
from .rules import Grammar, Json, Node, Ref, Text, Token
from .values import JSON, Values

ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


def gbnf(grammar: Grammar) -> str:
    """The grammar as llama.cpp reads it."""
    return _Gbnf(grammar).text()


class _Gbnf:
    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.rules = grammar.rules
        self.lines: list[str] = []
        self.names: dict[str, str] = {}

    def text(self) -> str:
        self.lines.append(f"root ::= {self.node(self.grammar.start)}")
        done: set[str] = set()
        while left := [name for name in self.rules.made if name not in done]:  # writing one may make others
            for name in left:
                done.add(name)
                self.lines.append(f"{_name(name)} ::= {self.node(self.rules.made[name])}")
        return "\n".join(self.lines) + "\n"

    def node(self, node: Node) -> str:
        if isinstance(node, Token):
            return self.rule("word", self.node(node.part))
        if isinstance(node, Json):
            return self.node(Values(self.rules, JSON, node.schema).of(node.schema))
        if isinstance(node, Text):
            return self.free(node)
        if isinstance(node, Ref):
            return _name(node.name)
        return plain(node, self.node, _literal, char_class)

    def rule(self, name: str, body: str) -> str:
        if body not in self.names:
            self.names[body] = f"{name}-{len(self.names)}"
            self.lines.append(f"{self.names[body]} ::= {body}")
        return self.names[body]

    def free(self, text: Text) -> str:
        """A text as rules, one for each state of its automaton."""
        first = len(self.names)
        states = automaton(text)
        names = [f"text-{first}-{i}" for i in range(len(states))]
        self.names.update((name, name) for name in names)
        rest = {then: self.node(then) for _, then in text.goto}
        for name, state in zip(names, states, strict=True):
            options = [f"{char_class(among)} {names[there]}" for among, there in state.on]
            options += [f"{_literal(c)} {rest[then]}" for c, then in state.out]
            options += ['""'] if text.end else []
            self.lines.append(f"{name} ::= {' | '.join(options)}")
        return names[0]


def _name(name: str) -> str:
    return name.replace("_", "-")


def _literal(text: str) -> str:
    return '"' + "".join(ESCAPES.get(c) or (f"\\x{ord(c):02x}" if c < " " or c == "\x7f" else c) for c in text) + '"'
