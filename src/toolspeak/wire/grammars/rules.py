"""The nodes of a grammar, independent of its notation.

Only `Text` needs more than literals and sets: any text up to a mark. All other nodes exist in every notation. Use the
functions below to create nodes; they keep literals as long as possible. Some engines run a lexer with longest match
before the rules, so two words with a common prefix must differ before either of them ends.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Lit:
    """This text."""

    text: str


@dataclass(frozen=True, slots=True)
class Chars:
    """One character in these ranges, or with `but` any other."""

    ranges: tuple[tuple[str, str], ...]
    but: bool = False


@dataclass(frozen=True, slots=True)
class Seq:
    """The nodes one after another."""

    parts: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Alt:
    """One of several nodes."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The part repeated; `most` None: without a limit."""

    part: Node
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Ref:
    """A rule, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class Token:
    """A part made of literals, sets, alternatives and repetition only, which a lexer may treat as one word."""

    part: Node


@dataclass(frozen=True, slots=True, eq=False)
class JsonNode:
    """A JSON value that matches the schema, which is self-contained: its references point into it."""

    schema: Mapping[str, Any]


Pattern = tuple[str | tuple[str, ...], ...]
"""A pattern to search for in text. For each position: the possible characters, "" for optional whitespace, or a tuple
of alternative words."""


@dataclass(frozen=True, slots=True)
class Text:
    """Any text without a `barred` pattern that does not begin with one of `not_first`.

    It ends with the first text of `goto` and continues with that node; or, with `end`, it may end anywhere.
    """

    goto: tuple[tuple[str, Node], ...] = ()
    barred: tuple[Pattern, ...] = ()
    not_first: tuple[Pattern, ...] = ()
    end: bool = False


Node = Lit | Chars | Seq | Alt | Repeat | Ref | Token | JsonNode | Text
EMPTY = Seq()


@dataclass(slots=True)
class Rules:
    """The named parts of a grammar, each created once."""

    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    names: dict[Hashable, str] = field(default_factory=dict[Hashable, str])

    def ref(self, key: Hashable, hint: str, make: Callable[[], Node]) -> Ref:
        """The rule for `key`, which may refer to itself while it is being created."""
        name = self.names.get(key)
        if name is None:
            name = self.names[key] = f"{hint}_{len(self.names)}"
            self.nodes[name] = make()
        return Ref(name)

    def resolve(self, node: Node) -> Node:
        """The node that a reference points to."""
        return self.nodes[node.name] if isinstance(node, Ref) else node


@dataclass(frozen=True, slots=True)
class Grammar:
    """The start node, and the rules by name."""

    start: Node
    rules: Rules


def seq(*nodes: Node) -> Node:
    """One node after another."""
    parts: list[Node] = []
    for node in nodes:
        for part in node.parts if isinstance(node, Seq) else (node,):
            if isinstance(part, Lit) and parts and isinstance(last := parts[-1], Lit):
                parts[-1] = Lit(last.text + part.text)
            elif part != Lit(""):
                parts.append(part)
    return parts[0] if len(parts) == 1 else Seq(tuple(parts))


def alt(*nodes: Node) -> Node:
    """One of the nodes."""
    flat = list(_flat(nodes))
    options = tuple(dict.fromkeys(node for node in flat if node != EMPTY))
    choice = Alt(options) if len(options) > 1 else seq(*options)
    return opt(choice) if EMPTY in flat else choice


def _flat(nodes: Iterable[Node]) -> Iterable[Node]:
    for node in nodes:
        yield from _flat(node.options) if isinstance(node, Alt) else (node,)


def _split(node: Node) -> tuple[str, Node]:
    """The literal at the beginning of a node, and the rest."""
    if isinstance(node, Lit):
        return node.text, EMPTY
    if isinstance(node, Seq) and node.parts and isinstance(first := node.parts[0], Lit):
        return first.text, seq(*node.parts[1:])
    return "", node


def heads(node: Node) -> list[tuple[str, Node]]:
    """Each literal that a node may begin with, and what follows it."""
    text, rest = _split(node)
    inner = rest.parts[0] if isinstance(rest, Seq) and rest.parts else rest
    if not isinstance(inner, Alt):
        return [(text, rest)]
    after = rest.parts[1:] if isinstance(rest, Seq) else ()
    return [(text + more, seq(tail, *after)) for option in inner.options for more, tail in heads(option)]


def opt(node: Node) -> Node:
    """The node, or nothing."""
    return EMPTY if node in (EMPTY, Lit("")) else Repeat(node, 0, 1)


def text_until(word: str, barred: tuple[Pattern, ...] = (), not_first: tuple[Pattern, ...] = ()) -> Node:
    """Any text up to and including the first `word`, whose whitespace at the ends is not searched for."""
    core = word.strip() or word
    return seq(Text(((core, EMPTY),), barred, not_first), Lit(word[word.index(core) + len(core) :]))


def chars(*items: str, but: bool = False) -> Chars:
    """One of these characters, or with `but` any other; "a-z" is a range."""
    ranges = {(item[0], item[-1]) for item in items}
    return Chars(tuple(sorted(ranges)), but)


@dataclass(frozen=True, slots=True)
class Letters:
    """The characters of a text: all but `special`, and `escapes`."""

    special: tuple[str, ...]
    escapes: Node | None = None

    def one(self, *apart: str) -> Node:
        """One of them, except those set `apart`."""
        plain = chars(*self.special, *apart, but=True)
        return Token(plain if self.escapes is None else alt(plain, self.escapes))


def none_of(words: Iterable[str], letters: Letters, end: Node) -> Node:
    """Any text except `words`, then `end`."""
    tree: dict[str, Any] = {}
    for word in words:
        here = tree
        for c in word:
            here = here.setdefault(c, {})
        here[""] = {}
    return _apart(tree, letters, end)


def _apart(tree: Mapping[str, Any], letters: Letters, end: Node) -> Node:
    nexts = sorted(c for c in tree if c)
    same = [seq(Lit(c), _apart(tree[c], letters, end)) for c in nexts]
    other = seq(letters.one(*nexts), Repeat(letters.one()), end)
    return alt(*([] if "" in tree else [end]), *same, other)


CALL_NUMBER = Token(Repeat(chars("0-9"), 1, 9))
"""The number of a call."""
