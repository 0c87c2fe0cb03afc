"""Renders a chat template that minijinja cannot, with sandboxed Jinja2 (extra `jinja`) and the same limits."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import wraps
from importlib.util import find_spec
from math import prod
from typing import Any, cast

from ...errors import TemplateError
from .jinja_limits import FAILURES

GROWING = ("replace", "join", "center", "indent", "format", "wordwrap", "ljust", "rjust", "zfill", "expandtabs")
"""Filters and methods whose result may be much longer than their inputs."""


def installed() -> bool:
    """Whether the extra is installed."""
    return find_spec("jinja2") is not None


def render_sandboxed(
    template: str,
    context: Mapping[str, Any],
    helpers: Mapping[str, Any],
    filters: Mapping[str, Callable[..., Any]],
    fuel: int,
    output: int,
) -> str:
    """The template as rendered by Jinja2's sandbox.

    It may change the lists and dicts in `context`. Loop iterations and calls use up `fuel`. Raises TemplateError if it
    fails, exceeds `fuel`, or creates a text longer than `output`.
    """
    import jinja2

    env = _environment(RenderBudget(fuel // 50, output))  # a step in Python takes about so much longer
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
    except FAILURES as e:
        why = f"{type(e).__name__}: {e}"
    raise TemplateError(f"the chat template cannot be rendered: {why}")


class RenderBudget:
    """The remaining steps and output of a template."""

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
        """Raises if the values together are longer than the output may be."""
        if sum(len(cast("str", value)) for value in values if isinstance(value, str | list | tuple)) > self.output:
            self.refuse()

    def grow(self, *values: object) -> None:
        """Raises if an operation could make more of these values than the output may have."""
        size = prod(map(_growth, values))
        if size > 50 * self.output:
            self.refuse()


def _generation() -> Any:
    """The tags around an assistant's text, which are ignored here."""
    from jinja2 import nodes
    from jinja2.ext import Extension

    class Generation(Extension):
        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)

    return Generation


def _counting() -> Any:
    """Inserts a counting call into each loop iteration, and one in place of each `~`."""
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


def _guarded(function: Any, bounds: RenderBudget) -> Any:
    @wraps(function)
    def call(*args: Any, **more: Any) -> Any:
        bounds.grow(*args, *more.values())
        return function(*args, **more)

    return call


def _environment(bounds: RenderBudget) -> Any:
    """A sandbox that counts loop iterations, calls and growing texts."""
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import SandboxedEnvironment

    class Sandbox(SandboxedEnvironment):
        intercepted_binops = frozenset(("+", "*", "%", "**"))

        def __init__(self) -> None:
            super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[_generation(), loopcontrols])
            self.bounds = bounds
            self.tick = lambda: ""  # calls are counted, so a loop that calls this is counted too
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
    """The factor by which a value may lengthen the result of an operation."""
    if isinstance(value, str):
        widths = re.findall(r"[0-9]+", value) if "%" in value else ()  # field widths in a format string
        return (1 + len(value)) * max([1, *map(int, widths)])
    if isinstance(value, dict):
        return 1 + len(cast("dict[object, object]", value))
    if isinstance(value, list | tuple):
        items = cast("list[object]", value)
        return 1 + len(items) + sum(len(item) for item in items if isinstance(item, str))
    return max(1, value) if isinstance(value, int) else 1
