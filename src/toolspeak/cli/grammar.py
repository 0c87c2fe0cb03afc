"""`toolspeak grammar`: what holds a model's sampling to calls that can be read and run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from ..errors import UsageError
from .base import Command, read_in_option, tools_option
from .inputs import told_tools

if TYPE_CHECKING:
    from ..wire.grammar import Form
    from ..wire.syntax import Dialect


@click.command(cls=Command)
@read_in_option
@tools_option
@click.option(
    "--choice", metavar="CHOICE", default="auto", help="auto, required, none, or a tool's name.  [default: auto]"
)
@click.option(
    "--form",
    type=click.Choice(["lark", "gbnf", "json_schema", "structural_tag"]),
    default="lark",
    help="For llguidance, llama.cpp, servers that take a JSON Schema, xgrammar.  [default: lark]",
)
@click.option("--single", is_flag=True, help="One call at most.")
def grammar(dialect: Dialect, files: tuple[str, ...], choice: str, form: Form, single: bool) -> None:
    """Print the grammar of a dialect's calls to these tools.

    \b
    toolspeak grammar --dialect tool-json --tools weather.py --choice required
    toolspeak grammar --dialect functools --tools weather.py --form gbnf > calls.gbnf

    `auto` allows a text, calls, or a text and then calls; `required` calls only, a tool's name only calls of that;
    `none` a text that is no call.
    """
    from .. import text as core
    from .screen import answers

    tools = told_tools(files)
    if tools is None:
        raise UsageError("a grammar is made for certain tools: give --tools FILE")
    with answers() as out:
        made = core.grammar(dialect, tools, choice, form, parallel=not single)
        out.line(made if isinstance(made, str) else json.dumps(made, indent=2, ensure_ascii=False))
