"""Sandboxed Jinja2, for a chat template that minijinja cannot take: the extra `jinja`, with the same bounds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import wraps
from importlib.util import find_spec
from math import prod
from typing import Any, cast

from ...errors import TemplateError

GROWING = ("replace", "join", "center", "indent", "format", "wordwrap", "ljust", "rjust", "zfill", "expandtabs")
"""Filters and methods whose result may be much longer than what they are given."""


def installed() -> bool:
    """Is the extra there?"""
    return find_spec("jinja2") is not None


def render_sandboxed(
    template: str,
    context: Mapping[str, Any],
    helpers: Mapping[str, Any],
    filters: Mapping[str, Callable[..., Any]],
    fuel: int,
    output: int,
) -> str:
    """The template as Jinja2's sandbox renders it.

    It may change lists and dicts: `context` is its own. `fuel` is spent by rounds of loops and by calls. Raises
    TemplateError where it fails, takes more steps than `fuel`, or makes a text longer than `output`.
    """
    import jinja2

    env = _environment(Bounds(fuel // 50, output))  # a step in Python is slower by about so much
    env.globals.update(helpers)
    env.filters.update(filters)
    try:
        parts: list[str] = []
        for part in env.from_string(template).generate(**context):
            parts.append(part)
            env.bounds.write(len(part))
        return "".join(parts)
    except jinja2.TemplateError as e:
        why = str(e)
    except TemplateError:
        raise
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as e:
        why = f"{type(e).__name__}: {e}"
    raise TemplateError(f"the chat template cannot be rendered: {why}")


class Bounds:
    """What a template may still do."""

    def __init__(self, fuel: int, output: int) -> None:
        self.fuel, self.left, self.output = fuel, output, output

    def spend(self) -> None:
        self.fuel -= 1
        if self.fuel < 0:
            raise TemplateError("the chat template cannot be rendered: it takes too many steps")

    def write(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            self.refuse()

    def refuse(self) -> None:
        raise TemplateError(f"expected the chat template to write at most {self.output} characters, it goes on")

    def add(self, *values: object) -> None:
        """Refuse what is longer than the output may be, put together."""
        if sum(len(cast("str", value)) for value in values if isinstance(value, str | list | tuple)) > self.output:
            self.refuse()

    def grow(self, *values: object) -> None:
        """Refuse what could make more than the output may hold out of these."""
        size = prod(map(_growth, values))
        if size > 50 * self.output:
            self.refuse()


def _generation() -> Any:
    """The tags around what an assistant wrote, which mean nothing here."""
    from jinja2 import nodes
    from jinja2.ext import Extension

    class Generation(Extension):
        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)

    return Generation


def _counting() -> Any:
    """Puts a call into each round of a loop, and one in the place of each `~`."""
    from jinja2 import nodes
    from jinja2.visitor import NodeTransformer

    class Counting(NodeTransformer):
        def visit_For(self, node: Any) -> Any:  # noqa: N802
            self.generic_visit(node)
            tick = nodes.Call(nodes.EnvironmentAttribute("tick"), [], [], None, None)
            node.body.insert(0, nodes.ExprStmt(tick, lineno=node.lineno))
            return node

        def visit_Concat(self, node: Any) -> Any:  # noqa: N802
            self.generic_visit(node)
            return nodes.Call(nodes.EnvironmentAttribute("joined"), node.nodes, [], None, None, lineno=node.lineno)

    return Counting()


def _guarded(function: Any, bounds: Bounds) -> Any:
    @wraps(function)
    def call(*args: Any, **more: Any) -> Any:
        bounds.grow(*args, *more.values())
        return function(*args, **more)

    return call


def _environment(bounds: Bounds) -> Any:
    """A sandbox whose loops, calls and growing texts are counted."""
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import SandboxedEnvironment

    class Sandbox(SandboxedEnvironment):
        intercepted_binops = frozenset(("+", "*", "%", "**"))

        def __init__(self) -> None:
            super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[_generation(), loopcontrols])
            self.bounds = bounds
            self.tick = lambda: ""  # each call is counted: that is what a loop calls it for
            self.filters |= {name: _guarded(self.filters[name], bounds) for name in GROWING if name in self.filters}

        def joined(self, *parts: Any) -> str:
            texts = [str(part) for part in parts]
            bounds.add(*texts)
            return "".join(texts)

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            if operator == "+":
                bounds.add(left, right)
            else:
                bounds.grow(left, right)
            return super().call_binop(context, operator, left, right)

        def call(self, context: Any, called: Any, *args: Any, **more: Any) -> Any:
            bounds.spend()
            owner: Any = getattr(called, "__self__", None)
            if isinstance(owner, str) and called.__name__ in GROWING:
                bounds.grow(owner, *args, *more.values())
            elif isinstance(owner, list) and called.__name__ == "extend":
                bounds.add(cast("object", owner), *args)
            return super().call(context, called, *args, **more)

        def _parse(self, source: str, name: str | None, filename: str | None) -> Any:
            return _counting().visit(super()._parse(source, name, filename)).set_environment(self)

    return Sandbox()


def _growth(value: object) -> int:
    """How many times as long a value may make what is made with it."""
    if isinstance(value, str):
        widths = re.findall(r"[0-9]+", value) if "%" in value else ()  # widths that it may ask for
        return (1 + len(value)) * max([1, *map(int, widths)])
    if isinstance(value, dict):
        return 1 + len(cast("dict[object, object]", value))
    if isinstance(value, list | tuple):
        items = cast("list[object]", value)
        return 1 + len(items) + sum(len(item) for item in items if isinstance(item, str))
    return max(1, value) if isinstance(value, int) else 1
