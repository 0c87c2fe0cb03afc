"""The base class of grammar notations."""

from __future__ import annotations

from abc import ABC, abstractmethod

from .rules import Alt, Chars, Grammar, JsonNode, Lit, Node, Ref, Repeat, Seq, Text, Token

TIMES: dict[tuple[int, int | None], str] = {(0, 1): "?", (0, None): "*", (1, None): "+"}
PLAIN = frozenset(" _,:;<>={}()!'@#%&~\"+*?|.$")
NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Notation(ABC):
    """Writes the rules of one grammar that are used, each once."""

    assigns: str
    start: str

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.names: dict[str, str] = {}
        self.lines: list[str] = []
        self.todo: list[str] = []

    def write(self) -> str:
        """The grammar as text, beginning with the start rule."""
        lines = [f"{self.start}{self.assigns}{self.node(self.grammar.start)}"]
        for name in self.todo:  # it grows while rules refer to further rules
            lines += [f"{self.name(name)}{self.assigns}{self.node(self.grammar.rules.nodes[name])}"]
        return "\n".join([*lines, *self.lines]) + "\n"

    def rule(self, hint: str, body: str, options: str = "") -> str:
        """The name of a rule with this body; equal bodies share a rule."""
        key = options + self.assigns + body
        if key not in self.names:
            name = self.names[key] = self.name(f"{hint}_{len(self.names)}")
            self.lines.append(name + key)
        return self.names[key]

    def node(self, node: Node) -> str:
        """A node as an expression."""
        match node:
            case Lit(text):
                return self.literal(text)
            case Chars():
                return self.char(node)
            case Seq(parts):
                return " ".join(map(self.node, parts)) or '""'
            case Alt(options):
                return f"({' | '.join(map(self.node, options))})"
            case Repeat(part, least, most):
                inner = self.node(part)
                return (f"({inner})" if isinstance(part, (Seq, Repeat)) else inner) + times(least, most)
            case Ref(name):
                if name not in self.todo:
                    self.todo.append(name)
                return self.name(name)
            case Token(part):
                return self.token(part)
            case JsonNode():
                return self.json(node)
            case Text():
                return self.text(node)

    def name(self, name: str) -> str:
        """The rule's name in the characters that the notation allows."""
        return name

    def char(self, chars: Chars) -> str:
        return char_class(chars)

    @abstractmethod
    def literal(self, text: str) -> str: ...

    @abstractmethod
    def token(self, part: Node) -> str: ...

    @abstractmethod
    def json(self, node: JsonNode) -> str: ...

    @abstractmethod
    def text(self, text: Text) -> str: ...


def times(least: int, most: int | None) -> str:
    """A repetition count."""
    if least == most:
        return f"{{{least}}}"
    return TIMES.get((least, most)) or f"{{{least},{'' if most is None else most}}}"


def char_class(chars: Chars) -> str:
    """A set of characters, in the notation that regular expressions and grammars share."""
    body = "".join(_char(a) if a == b else f"{_char(a)}-{_char(b)}" for a, b in chars.ranges)
    return f"[{'^' if chars.but else ''}{body}]" if body else "[^\\x00]"


def _char(c: str) -> str:
    """A character of a set, escaped unless it has no special meaning."""
    if (c.isascii() and c.isalnum()) or c in PLAIN or c > "\x7f":
        return c
    return NAMED.get(c) or f"\\x{ord(c):02x}"
