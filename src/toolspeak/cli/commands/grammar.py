"""`toolspeak grammar`: print a grammar that limits a model's output to valid calls."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from ...errors import UsageError
from ..dialect_inputs import tools_of_files
from ..options import Command, read_in_option, tools_option

if TYPE_CHECKING:
    from ...wire.dialect import Dialect
    from ...wire.grammar import Form


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
@click.option("--single", is_flag=True, help="Allow at most one call.")
def grammar(dialect: Dialect, files: tuple[str, ...], choice: str, form: Form, single: bool) -> None:
    """Print the grammar of a dialect's calls for these tools.

    \b
    toolspeak grammar --dialect tool-json --tools weather.py --choice required
    toolspeak grammar -d functools --tools weather.py --form gbnf > calls.gbnf

    `auto` allows text, calls, or text and then calls; `required` only calls; a tool's name only calls of that tool;
    `none` only text.

    Keywords of the tools' schemas that the grammar does not enforce are listed on standard error.
    """
    from ... import text as core
    from ...schema.suggestions import listed
    from ...wire.grammars.not_enforced import not_enforced
    from ..terminal import answers, to_stderr

    tools = tools_of_files(files)
    if tools is None:
        raise UsageError("a grammar needs tools: expected --tools FILE")
    with answers() as out:
        text = core.grammar(dialect, tools, choice, form, parallel=not single)
        callable_tools = [tool for tool in tools if choice in ("auto", "required", tool.name)]
        if places := not_enforced(text, form, callable_tools):
            to_stderr(
                f"note: the grammar does not enforce {listed(places)}. Check each call, as `toolspeak parse` does"
            )
        out.line(text if isinstance(text, str) else json.dumps(text, indent=2, ensure_ascii=False))
