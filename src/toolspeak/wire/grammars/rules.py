"""The nodes of a grammar, independent of its notation.

A `Text` is the one part that no literal or set describes: anything at all, up to a mark. All others are those of
any notation. Nodes are made by the functions below, which keep literals as long as they can be: some engines read
words before they read rules, and take the longest; so two words that begin alike must differ before either ends.
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
    """One node after another."""

    parts: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Alt:
    """One of several nodes."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`most` None: without end."""

    part: Node
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Ref:
    """A rule by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Token:
    """A part made of literals, sets, choices and repetition alone, which a lexer may take as one word."""

    part: Node


@dataclass(frozen=True, slots=True, eq=False)
class Json:
    """One JSON value that fits the schema, which stands for itself: its references point into it."""

    schema: Mapping[str, Any]


Pattern = tuple[str | tuple[str, ...], ...]
"""What is looked for in a text: for each place the characters that may stand there, "" for white space or none, or a
tuple of words, one of which stands there."""


@dataclass(frozen=True, slots=True)
class Text:
    """Any text in which no `barred` pattern is, and which does not begin with one of `not_first`.

    It ends where the text of the first of `goto` ends, and goes on with its node; or, with `end`, anywhere.
    """

    goto: tuple[tuple[str, Node], ...] = ()
    barred: tuple[Pattern, ...] = ()
    not_first: tuple[Pattern, ...] = ()
    end: bool = False


Node = Lit | Chars | Seq | Alt | Repeat | Ref | Token | Json | Text
EMPTY = Seq()


@dataclass(slots=True)
class Rules:
    """The named parts of a grammar, each made once."""

    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    names: dict[Hashable, str] = field(default_factory=dict[Hashable, str])

    def ref(self, key: Hashable, hint: str, make: Callable[[], Node]) -> Ref:
        """The rule of `key`; while it is made it may refer to itself."""
        name = self.names.get(key)
        if name is None:
            name = self.names[key] = f"{hint}_{len(self.names)}"
            self.nodes[name] = make()
        return Ref(name)

    def resolve(self, node: Node) -> Node:
        """What a reference stands for."""
        return self.nodes[node.name] if isinstance(node, Ref) else node


@dataclass(frozen=True, slots=True)
class Grammar:
    """Where it starts, and the rules by name."""

    start: Node
    rules: Rules


def seq(*nodes: Node) -> Node:
    """One after another."""
    parts: list[Node] = []
    for node in nodes:
        for part in node.parts if isinstance(node, Seq) else (node,):
            if isinstance(part, Lit) and parts and isinstance(last := parts[-1], Lit):
                parts[-1] = Lit(last.text + part.text)
            elif part != Lit(""):
                parts.append(part)
    return parts[0] if len(parts) == 1 else Seq(tuple(parts))


def alt(*nodes: Node) -> Node:
    """One of these."""
    flat = list(_flat(nodes))
    options = tuple(dict.fromkeys(node for node in flat if node != EMPTY))
    found = Alt(options) if len(options) > 1 else seq(*options)
    return opt(found) if EMPTY in flat else found


def _flat(nodes: Iterable[Node]) -> Iterable[Node]:
    for node in nodes:
        yield from _flat(node.options) if isinstance(node, Alt) else (node,)


def _split(node: Node) -> tuple[str, Node]:
    """The text that a node begins with, and the rest."""
    if isinstance(node, Lit):
        return node.text, EMPTY
    if isinstance(node, Seq) and node.parts and isinstance(first := node.parts[0], Lit):
        return first.text, seq(*node.parts[1:])
    return "", node


def heads(node: Node) -> list[tuple[str, Node]]:
    """Each text that a node may begin with, and what follows it then."""
    text, rest = _split(node)
    inner = rest.parts[0] if isinstance(rest, Seq) and rest.parts else rest
    if not isinstance(inner, Alt):
        return [(text, rest)]
    after = rest.parts[1:] if isinstance(rest, Seq) else ()
    return [(text + more, seq(tail, *after)) for option in inner.options for more, tail in heads(option)]


def opt(node: Node) -> Node:
    """This or nothing."""
    return EMPTY if node in (EMPTY, Lit("")) else Repeat(node, 0, 1)


def text_until(word: str, barred: tuple[Pattern, ...] = (), not_first: tuple[Pattern, ...] = ()) -> Node:
    """Any text up to the first `word`, and it; the white space at the ends of `word` is not looked for."""
    core = word.strip() or word
    return seq(Text(((core, EMPTY),), barred, not_first), Lit(word[word.index(core) + len(core) :]))


def chars(*items: str, but: bool = False) -> Chars:
    """One of these characters, or with `but` any other; "a-z" is a range of them."""
    ranges = {(item[0], item[-1]) for item in items}
    return Chars(tuple(sorted(ranges)), but)


@dataclass(frozen=True, slots=True)
class Letters:
    """What a text may be made of: all characters but `special`, and `escapes`."""

    special: tuple[str, ...]
    escapes: Node | None = None

    def one(self, *apart: str) -> Node:
        """One of them, but none that is set `apart`."""
        plain = chars(*self.special, *apart, but=True)
        return Token(plain if self.escapes is None else alt(plain, self.escapes))


def none_of(words: Iterable[str], letters: Letters, end: Node) -> Node:
    """Any text but `words`, then `end`."""
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
"""A number that counts calls."""
