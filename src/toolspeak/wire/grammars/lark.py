"""Writes a grammar in the notation of llguidance: Lark's, extended by JSON Schemas, lazy words and complements."""

from __future__ import annotations

import json

from .engine_schemas import readable
from .notation import Notation, char_class
from .rules import Chars, Grammar, JsonNode, Node, Pattern, Text
from .value_grammar import JSON, WHITE_SPACE, Values, has_form

OPTIONS = {"lenient": True, "whitespace_pattern": WHITE_SPACE}
"""How JSON is written. Schema keywords that llguidance does not know are ignored."""
ANY = "/(?s:.*)/"
PLAIN = frozenset(" _,:;<>='\"@%~")
"""Punctuation without a meaning in regular expressions."""


def lark(grammar: Grammar) -> str:
    """The grammar in llguidance's notation."""
    return "%llguidance {}\n" + _Lark(grammar).write()


class _Lark(Notation):
    assigns = ": "
    start = "start"

    def literal(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

    def char(self, chars: Chars) -> str:
        return f"/{char_class(chars)}/"

    def token(self, part: Node) -> str:
        return self.rule("WORD", self.node(part))

    def json(self, node: JsonNode) -> str:
        if has_form(node.schema):
            return self.node(Values(self.grammar.rules, JSON, node.schema).of(node.schema))
        schema = {"x-guidance": OPTIONS, **readable(node.schema)}
        return self.rule("json", "%json " + json.dumps(schema, ensure_ascii=False))

    def text(self, text: Text) -> str:
        """A text as words: one that reaches the end of the reply, and for each mark one that ends with its first
        occurrence."""
        barred = [f"(?s:.*)({'|'.join(map(_regex, text.barred))})(?s:.*)"] if text.barred else []
        start = [f"({'|'.join(map(_regex, text.not_first))})(?s:.*)"] if text.not_first else []
        options = [self._excluding(ANY, barred + start)] if text.end else []
        for word, then in text.goto:
            lead = f"{self._excluding(ANY, barred)} {self.literal(word)}" if barred else f"/(?s:.*){_regex(word)}/"
            lazy = self.rule("until", self.rule("UNTIL", self._excluding(lead, start)), "[lazy]")
            rest = self.node(then)
            options.append(lazy if rest == '""' else f"{lazy} {rest}")
        return options[0] if len(options) == 1 else f"({' | '.join(options)})"

    def _excluding(self, word: str, never: list[str]) -> str:
        """A word that matches none of these patterns."""
        if not never:
            return word
        return self.rule("TEXT", " & ".join([f"({word})" if " " in word else word, *(f"~/{no}/" for no in never)]))


def _regex(pattern: Pattern | str) -> str:
    """A pattern, or a text, as a regular expression."""
    return "".join(_place(place) for place in pattern)


def _place(place: str | tuple[str, ...]) -> str:
    if isinstance(place, tuple):
        return f"({'|'.join(map(_regex, place))})"
    if len(place) > 1:
        return char_class(Chars(tuple((c, c) for c in place)))
    if not place:
        return "[ \\t\\n\\r]*"
    return place if place.isalnum() or place in PLAIN or place > "\x7f" else f"\\x{ord(place):02x}"
