"""`toolspeak detect`: find the dialect of a chat template or a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...errors import TemplateError
from ...sources.dialect_writer import source_of
from ..dialect_inputs import Template, is_gguf, template_of, texts_of
from ..exit_codes import FAILED
from ..options import Command, complete_file, typed
from .dialects import written

if TYPE_CHECKING:
    from ...wire.dialect import Dialect


@click.command(cls=Command)
@click.argument("file", metavar="[FILE]", required=False, shell_complete=complete_file)
@click.option("-m", "--model", metavar="NAME", help="The model's name, as its server or publisher spells it.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the dialect, how it was found and what it writes, as JSON."
)
@click.option("--source", is_flag=True, help="Print the dialect as Python source.")
@click.pass_context
def detect(ctx: click.Context, file: str | None, model: str | None, as_json: bool, source: bool) -> None:
    """Detect the dialect of a model.

    \b
    toolspeak detect chat_template.jinja
    toolspeak detect tokenizer_config.json --model NAME
    toolspeak detect weights.gguf
    cat chat_template.jinja | toolspeak detect --source > acorn.py

    FILE is a chat template (Jinja), a tokenizer_config.json or a GGUF file. An unknown dialect is drafted from the
    template. The output says how the dialect was found and which markers thoughts have. The exit code is 1 if the
    template cannot be rendered and nothing else identifies the dialect.
    """
    from ...wire.detect import unrendered
    from ..terminal import Progress, answers

    with answers() as out:
        template = _template(file, model)
        dialect = _detect(template, model)
        problem = unrendered(template.source or "", dialect)
        if problem:
            Progress().note(f"note: {problem}")
        if source:
            out.write(source_of(dialect))
        elif as_json:
            row = {
                "dialect": dialect.name,
                "origin": dialect.origin,
                "call": written(dialect),
                "thinking": _thinking(dialect),
            }
            out.line(json.dumps(row, indent=2, ensure_ascii=False))
        else:
            out.line(f"{dialect.name}  ({dialect.origin})\n{written(dialect)}")
            if thinking := _thinking(dialect):
                out.line(f"thoughts: {thinking['open']} … {thinking['close']}" + ", always" * bool(thinking["always"]))
    if problem and dialect.origin.startswith("by default"):
        ctx.exit(FAILED)


def _thinking(dialect: Dialect) -> dict[str, str | bool] | None:
    """Return the markers of a thought, and whether every reply has one."""
    thinking = dialect.thinking
    if thinking is None:
        return None
    return {"open": thinking.open.strip(), "close": thinking.close.strip(), "always": thinking.always}


def _template(file: str | None, model: str | None) -> Template:
    """Return what a file declares, by default standard input, or nothing if there is a name. Raises UsageError."""
    if file is None:
        if model:
            return Template()
        if typed():
            raise click.UsageError("no input: expected the FILE of a chat template, or --model NAME")
        file = "-"
    if file != "-" and not Path(file).expanduser().exists():
        raise click.UsageError(f"there is no file {file}. If this is the name of a model: --model {file}")
    return template_of(file, "" if is_gguf(file) else texts_of(file)[0])


def _detect(template: Template, model: str | None) -> Dialect:
    """Return the dialect. Warns on standard error about a declaration that cannot be used."""
    from ...wire.detect import detect as find
    from ..terminal import Progress

    if template.replies is not None:
        try:
            return find(response_template=template.replies)
        except TemplateError as error:
            if template.source is None:
                raise
            Progress().note(f"note: {error}")
    return find(template.source, model)
