"""Jinja2 set up as the field's reference renders chat templates: what our own rendering is held against."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Generation(Extension):
    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Any) -> Any:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller: Any) -> str:
        return caller()


def tojson(
    x: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def refuse(message: str) -> None:
    raise jinja2.TemplateError(message)


@cache
def compiled(template: str) -> jinja2.Template:
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = refuse
    env.globals["strftime_now"] = NOW.strftime
    return env.from_string(template)


def by_jinja2(template: str, messages: Any, tools: Any, **variables: Any) -> str | None:
    """What the reference makes of it; None where it fails."""
    try:
        return compiled(template).render(messages=messages, tools=tools or None, documents=None, **variables)
    except (jinja2.TemplateError, AttributeError, LookupError, TypeError, ValueError):
        return None
