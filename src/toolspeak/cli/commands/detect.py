"""`toolspeak detect`: find the dialect of a chat template or a model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from ...errors import TemplateError
from ...sources.dialect_writer import source_of
from ..dialect_inputs import Template, is_gguf, template_of, texts_of
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
def detect(file: str | None, model: str | None, as_json: bool, source: bool) -> None:
    """Detect the dialect of a model.

    \b
    toolspeak detect chat_template.jinja
    toolspeak detect tokenizer_config.json --model NAME
    toolspeak detect weights.gguf
    cat chat_template.jinja | toolspeak detect --source > acorn.py

    FILE is a chat template (Jinja), a tokenizer_config.json or a GGUF file. An unknown dialect is drafted from the
    template. The output says how the dialect was found.
    """
    from ..terminal import answers

    if file is None and not model:
        if typed():
            raise click.UsageError("no input: expected the FILE of a chat template, or --model NAME")
        file = "-"
    with answers() as out:
        template = template_of(file, "" if is_gguf(file) else texts_of(file)[0]) if file else Template()
        dialect = _detect(template, model)
        if source:
            out.write(source_of(dialect))
        elif as_json:
            row = {"dialect": dialect.name, "origin": dialect.origin, "call": written(dialect)}
            out.line(json.dumps(row, indent=2, ensure_ascii=False))
        else:
            out.line(f"{dialect.name}  ({dialect.origin})\n{written(dialect)}")


def _detect(template: Template, model: str | None) -> Dialect:
    """Return the dialect. Warns on standard error about a declaration or template that cannot be used."""
    from ...wire.detect import detect as find, unrendered
    from ..terminal import Progress

    if template.replies is not None:
        try:
            return find(response_template=template.replies)
        except TemplateError as error:
            if template.source is None:
                raise
            Progress().note(f"note: {error}")
    dialect = find(template.source, model)
    if template.source and (why := unrendered(template.source, dialect)):
        Progress().note(f"note: {why}")
    return dialect
