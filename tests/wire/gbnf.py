"""A small matcher of GBNF, as llama.cpp reads it: the stacks of what may still come, one character at a time."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

TOKEN = re.compile(
    r"""\s*(?:(?P<name>[a-zA-Z0-9-]+)(?P<is>\s*::=)?|"(?P<text>(?:[^"\\\n]|\\.)*)"|\[(?P<set>\^?(?:[^\]\\\n]|\\.)*)\]"""
    r"""|(?P<times>[*+?]|\{\d+(?:,\d*)?\})|(?P<mark>[()|]))"""
)
CHAR = re.compile(r"\\x([0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})|\\([nrt\"\\\[\]])|([^\\])", re.DOTALL)
PLAIN = {"n": "\n", "r": "\r", "t": "\t"}
Element = tuple[str, Any]
Stack = tuple[Any, ...] | None


def letters(text: str) -> list[str]:
    out, at = [], 0
    while at < len(text):
        m = CHAR.match(text, at)
        assert m, f"unknown escape in {text!r} at {at}"
        code = m[1] or m[2]
        out.append(chr(int(code, 16)) if code else PLAIN.get(m[3], m[3]) if m[3] else m[4])
        at = m.end()
    return out


class Gbnf:
    """`Gbnf(text).accepts(wire)`. Raises AssertionError for a text that is no grammar."""

    def __init__(self, text: str) -> None:
        self.rules: dict[str, list[list[Element]]] = {}
        self.tokens: list[Any] = []
        at = 0
        while text[at:].strip():
            m = TOKEN.match(text, at)
            assert m, f"no grammar: {text[at : at + 60]!r}"
            self.tokens.append(m)
            at = m.end()
        self.at = 0
        while self.at < len(self.tokens):
            m = self.tokens[self.at]
            assert m["is"], f"expected a rule, got {m[0]!r}"
            self.at += 1
            assert m["name"] not in self.rules, f"twice: {m['name']}"
            self.rules[m["name"]] = []  # it may be named in itself
            self.rules[m["name"]] = self.options()
        used = {e[1] for options in self.rules.values() for option in options for e in option if e[0] == "rule"}
        assert used <= set(self.rules), f"undefined: {used - set(self.rules)}"
        self.fresh = lru_cache(100_000)(self._fresh)

    def options(self) -> list[list[Element]]:
        options: list[list[Element]] = [[]]
        while self.at < len(self.tokens):
            m = self.tokens[self.at]
            if m["is"] or m["mark"] == ")":
                break
            self.at += 1
            if m["mark"] == "|":
                options.append([])
            elif m["times"]:
                assert self.tokens[self.at - 2][0].strip() != '""', "nothing to repeat"
                options[-1][-1:] = [self.repeated(options[-1][-1], m["times"])]
            elif m["mark"] == "(":
                options[-1].append(self.named(self.options()))
                assert self.tokens[self.at]["mark"] == ")"
                self.at += 1
            elif m["name"]:
                options[-1].append(("rule", m["name"]))
            elif m["set"] is not None:
                options[-1].append(("set", self.set(m["set"])))
            else:
                word: list[Element] = [("set", (False, ((c, c),))) for c in letters(m["text"])]
                # what is repeated is the whole literal
                options[-1] += word if len(word) == 1 else [self.named([word])]
        return options

    def named(self, options: list[list[Element]]) -> Element:
        name = f"({len(self.rules)})"
        self.rules[name] = options
        return "rule", name

    def set(self, text: str) -> tuple[bool, tuple[tuple[str, str], ...]]:
        but = text.startswith("^")
        body = text[but:]
        parts = re.findall(r"\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]", body)
        ranges, i = [], 0
        while i < len(parts):
            if i + 2 < len(parts) and parts[i + 1] == "-":
                ranges.append((letters(parts[i])[0], letters(parts[i + 2])[0]))
                i += 3
            else:
                ranges.append((letters(parts[i])[0],) * 2)
                i += 1
        return but, tuple(ranges)

    def repeated(self, element: Element, times: str) -> Element:
        least, most = {"?": (0, 1), "*": (0, None), "+": (1, None)}.get(times) or (0, 0)
        if times[0] == "{":
            first, comma, last = times[1:-1].partition(",")
            least, most = int(first), (int(last) if last else None) if comma else int(first)
        if most is None:
            tail = self.named([])
            self.rules[tail[1]] = [[element, tail], []]
        else:
            tail = self.named([[]])
            for _ in range(most - least):
                tail = self.named([[element, tail], []])
        return self.named([[*[element] * least, tail]])

    def _fresh(self, name: str) -> frozenset[tuple[tuple[Element, ...], ...]]:
        """The beginnings of a rule: what must follow, innermost last, each with a set at its end; or nothing."""
        found: set[Any] = set()
        seen: set[Any] = set()
        todo: list[tuple[Element, ...]] = [tuple(reversed(option)) for option in self.rules[name]]
        while todo:
            stack = todo.pop()
            if stack in seen:
                continue
            seen.add(stack)
            assert len(seen) < 20_000, "left recursion"
            if not stack or stack[-1][0] == "set":
                found.add(stack)
            else:
                todo += [(*stack[:-1], *reversed(option)) for option in self.rules[stack[-1][1]]]
        return frozenset(found)

    def grow(self, stacks: set[Any]) -> set[Any]:
        """The stacks whose top is a set, or nothing: a stack is (element, the stack below it)."""
        found: set[Any] = set()
        todo, seen = list(stacks), set(stacks)
        while todo:
            stack = todo.pop()
            if stack is None or stack[0][0] == "set":
                found.add(stack)
                continue
            for more in self.fresh(stack[0][1]):
                here = stack[1]
                for element in more:
                    here = (element, here)
                if here not in seen:
                    seen.add(here)
                    todo.append(here)
        return found

    def accepts(self, text: str) -> bool:
        stacks = self.grow({(("rule", "root"), None)})
        for c in text:
            left = {s[1] for s in stacks if s is not None and self.fits(s[0][1], c)}
            stacks = self.grow(left)
            if not stacks:
                return False
        return None in stacks

    @staticmethod
    def fits(chars: tuple[bool, tuple[tuple[str, str], ...]], c: str) -> bool:
        return chars[0] != any(a <= c <= b for a, b in chars[1])
