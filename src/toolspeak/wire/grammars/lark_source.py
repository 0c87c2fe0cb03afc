"""Parses grammars in Lark notation to nodes, for engines that use another notation.

Supported are rules, terminals, strings, regular expressions, groups, repetition and the common terminals. Not
supported are `%ignore`, templates, llguidance's own keywords, and left-recursive rules, on which llama.cpp fails.
Terminals become plain rules, without a lexer's longest match, so the result allows more. Samples are therefore
validated against the original grammar afterwards.

The text may be inside something with its own escapes, such as a JSON string: `spell` says how its characters are
written.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from .regexes import MANY, Ranges, chars_of, ranges_of, regex
from .rules import EMPTY, Alt, Chars, Lit, Node, Ref, Repeat, Rules, Seq, alt, opt, seq

Spell = Callable[[Ranges], Node]
"""The node for one character out of a set, as it is written."""

COMMON = {
    "LF": r"\n", "CR": r"\r", "NEWLINE": r"(\r?\n)+", "WS": r"[ \t\f\r\n]+", "WS_INLINE": r"[ \t]+", "DIGIT": "[0-9]",
    "HEXDIGIT": "[0-9a-fA-F]", "INT": "[0-9]+", "SIGNED_INT": "[+-]?[0-9]+", "DECIMAL": r"[0-9]+\.[0-9]*|\.[0-9]+",
    "LETTER": "[a-zA-Z]", "LCASE_LETTER": "[a-z]", "UCASE_LETTER": "[A-Z]", "WORD": "[a-zA-Z]+",
    "CNAME": "[_a-zA-Z][_a-zA-Z0-9]*", "ESCAPED_STRING": r'"([^"\\]|\\.)*"',
}  # fmt: skip
"""The terminals of Lark's `common`, as regular expressions."""
BEGINS = re.compile(r"^[ \t]*(?:[?!]*(?P<name>_?[a-zA-Z]\w*)(?:\.-?\d+)?[ \t]*:|(?P<order>%\w+))", re.MULTILINE)
COMMENT = re.compile(
    r"""("(?:\\.|[^"\\\n])*+"|/(?!/)(?:\\.|\[(?:\\.|[^\]\\\n])*+(?:\]|\\?$)|[^/\\\n\[])++(?:/|\\?$))|//[^\n]*""",
    re.MULTILINE,
)
"""Matches a comment, or with a group what only contains one: a text or a regular expression, which ends with its line at the
latest. So each character is read once, in whatever a client sends."""
TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:\\.|[^"\\\n])*")(?P<i>i?)|/(?P<regex>(?:\\.|[^/\\\n])+)/(?P<flags>[a-z]*)"""
    r"""|(?P<alias>->\s*\w+)|(?P<name>_?[a-zA-Z]\w*)|~\s*(?P<least>\d+)(?:\.\.(?P<most>\d+))?|(?P<mark>\.\.|[|()\[\]?*+]))"""
)
IMPORT = re.compile(r"%import\s+common\s*(?:\.(\w+)(?:\s*->\s*(\w+))?|\(([\w\s,]+)\))\s*$")


def text_node(definition: str, spell: Spell, rules: Rules, key: str) -> Node | None:
    """The texts of a grammar, spelled by `spell`; None if the grammar cannot be parsed. `key` identifies the spelling."""
    nodes = _definitions(definition)
    return None if nodes is None else _Building(nodes, spell, rules, (key, definition)).node(Ref("start"))


def regex_node(pattern: str, spell: Spell, rules: Rules) -> Node | None:
    """The texts that a regular expression matches in full, spelled by `spell`; None if it cannot be parsed."""
    try:
        node = regex(pattern)
    except (ValueError, RecursionError):
        return None
    return None if _repeats_empty(node, {}) else _Building({}, spell, rules, ("regex", pattern)).node(node)


@lru_cache(64)
def _definitions(definition: str) -> Mapping[str, Node] | None:
    try:
        rules = _read(COMMENT.sub(r"\1", definition))
        _check(rules)
    except (ValueError, SyntaxError, RecursionError, OverflowError):
        return None
    return rules


def _check(rules: Mapping[str, Node]) -> None:
    """Raises ValueError for rules on which an engine would fail."""
    if missing := {"start", *(ref for node in rules.values() for ref in _refs(node))} - rules.keys():
        raise ValueError(f"no rule {missing}")
    if _left_recursive(rules):
        raise ValueError("a rule begins with itself")
    if any(_repeats_empty(node, rules) for node in rules.values()):
        raise ValueError("nothing is repeated without end")


def _read(text: str) -> dict[str, Node]:
    """The rules by name. Raises ValueError for anything unsupported."""
    rules: dict[str, Node] = {}
    starts = list(BEGINS.finditer(text))
    if text[: starts[0].start() if starts else None].strip():
        raise ValueError("a text before the first rule")
    ends = [*(match.start() for match in starts[1:]), len(text)]
    for match, end in zip(starts, ends, strict=True):
        if match["order"]:
            rules |= _imported(text[match.start() : end].strip())
        else:
            reading = _Rule(text[match.end() : end])
            rules[match["name"]] = reading.options()
            reading.end()
    return rules


def _imported(order: str) -> dict[str, Node]:
    match = IMPORT.match(order)
    if not match:
        raise ValueError(order)
    names = [name.strip() for name in (match[1] or match[3]).split(",")]
    return {match[2] or name: regex(COMMON[name]) if name in COMMON else _unknown(name) for name in names}


def _unknown(name: str) -> Node:
    raise ValueError(f"common.{name}")


class _Rule:
    """Parses the right side of one rule."""

    def __init__(self, text: str) -> None:
        self.text = text.rstrip()
        self.at = 0

    def end(self) -> None:
        if self.at < len(self.text):
            raise ValueError(self.text[self.at :])

    def peek(self) -> re.Match[str] | None:
        return TOKEN.match(self.text, self.at)

    def mark(self, *marks: str) -> str:
        """The next token, if it is one of these."""
        match = self.peek()
        if match is None or match["mark"] not in marks:
            return ""
        self.at = match.end()
        return match["mark"]

    def options(self) -> Node:
        nodes = [self.sequence()]
        while self.mark("|"):
            nodes.append(self.sequence())
        return alt(*nodes)

    def sequence(self) -> Node:
        parts: list[Node] = []
        while match := self.peek():
            if match["alias"]:
                self.at = match.end()
            elif match["mark"] in ("|", ")", "]"):
                break
            else:
                parts.append(self.repeated(self.one()))
        return seq(*parts)

    def one(self) -> Node:
        match = self.peek()
        if match is None:
            raise ValueError(self.text[self.at :])
        self.at = match.end()
        if match["text"]:
            return self.string(match)
        if match["regex"]:
            return regex(match["regex"], match["flags"])
        if match["name"]:
            return Ref(match["name"])
        closer = {"(": ")", "[": "]"}.get(match["mark"])
        node = self.options() if closer else EMPTY
        if not closer or not self.mark(closer):
            raise ValueError(match[0])
        return opt(node) if closer == "]" else node

    def string(self, match: re.Match[str]) -> Node:
        text = str(ast.literal_eval(match["text"]))
        if self.mark(".."):
            last = self.one()
            ends = text, last.text if isinstance(last, Lit) else ""
            if [*map(len, ends)] != [1, 1]:
                raise ValueError("a range of texts")
            return chars_of(((ord(ends[0]), ord(ends[1])),))
        if not match["i"]:
            return Lit(text)
        return seq(*(alt(Lit(c.lower()), Lit(c.upper())) if c.lower() != c.upper() else Lit(c) for c in text))

    def repeated(self, node: Node) -> Node:
        if mark := self.mark("?", "*", "+"):
            least, most = {"?": (0, 1), "*": (0, None), "+": (1, None)}[mark]
            return Repeat(node, least, most)
        match = self.peek()
        if match is None or not match["least"]:
            return node
        self.at = match.end()
        least, most = int(match["least"]), int(match["most"] or match["least"])
        return Repeat(node, min(least, MANY), most if most <= MANY else None)


def _parts(node: Node) -> tuple[Node, ...]:
    match node:
        case Seq(parts):
            return parts
        case Alt(options):
            return options
        case Repeat(part):
            return (part,)
        case _:
            return ()


def _refs(node: Node) -> set[str]:
    if isinstance(node, Ref):
        return {node.name}
    return {name for part in _parts(node) for name in _refs(part)}


def _may_be_empty(node: Node, rules: Mapping[str, Node], inside: tuple[str, ...] = ()) -> bool:
    """Whether a node may match the empty text."""
    match node:
        case Lit(text):
            return not text
        case Seq(parts):
            return all(_may_be_empty(part, rules, inside) for part in parts)
        case Alt(options):
            return any(_may_be_empty(option, rules, inside) for option in options)
        case Repeat(part, least):
            return least == 0 or _may_be_empty(part, rules, inside)
        case Ref(name):
            return name not in inside and _may_be_empty(rules[name], rules, (*inside, name))
        case _:
            return False


def _repeats_empty(node: Node, rules: Mapping[str, Node]) -> bool:
    """Whether a node repeats something that may be empty without a limit."""
    match node:
        case Repeat(part, _, None) if _may_be_empty(part, rules):
            return True
        case _:
            return any(_repeats_empty(part, rules) for part in _parts(node))


def _left_recursive(rules: Mapping[str, Node]) -> bool:
    """Whether a rule is left-recursive, directly or through others."""
    first = {name: _first(node, rules) for name, node in rules.items()}
    for name in rules:
        reached: set[str] = set()
        todo = [name]
        while todo:
            new = first[todo.pop()] - reached
            reached |= new
            todo += new
        if name in reached:
            return True
    return False


def _first(node: Node, rules: Mapping[str, Node]) -> set[str]:
    """The rules that a node may begin with."""
    if isinstance(node, Ref):
        return {node.name}
    names: set[str] = set()
    for part in _parts(node):
        names |= _first(part, rules)
        if isinstance(node, Seq) and not _may_be_empty(part, rules):
            break
    return names


class _Building:
    """Builds nodes with their characters spelled."""

    def __init__(self, nodes: Mapping[str, Node], spell: Spell, rules: Rules, key: tuple[str, str]) -> None:
        self.nodes = nodes
        self.spell = spell
        self.rules = rules
        self.key = key

    def node(self, node: Node) -> Node:
        match node:
            case Lit(text):
                return seq(*(self.spell(((ord(c), ord(c)),)) for c in text))
            case Chars():
                return self.spell(ranges_of(node))
            case Seq(parts):
                return seq(*map(self.node, parts))
            case Alt(options):
                return alt(*map(self.node, options))
            case Repeat(part, least, most):
                return Repeat(self.node(part), least, most)
            case Ref(name):
                return self.rules.ref((*self.key, name), "text", lambda: self.node(self.nodes[name]))
            case _:
                return node
