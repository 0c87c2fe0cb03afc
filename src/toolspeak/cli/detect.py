"""`toolspeak detect`: which dialect a chat template or a model speaks."""

from __future__ import annotations

import json

import click

from .base import Command
from .inputs import complete_file, text_of


@click.command(cls=Command)
@click.argument("template", metavar="[TEMPLATE]", required=False, shell_complete=complete_file)
@click.option("-m", "--model", metavar="NAME", help="The model's name, such as Qwen/Qwen2.5-7B-Instruct.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the dialect, how it was found and what it writes, as JSON."
)
def detect(template: str | None, model: str | None, as_json: bool) -> None:
    """Say which dialect a chat template, or a model of that name, speaks, and how that was found.

    \b
    toolspeak detect chat_template.jinja
    toolspeak detect --model Qwen/Qwen2.5-7B-Instruct
    cat chat_template.jinja | toolspeak detect -
    """
    from ..wire.detect import detect as find
    from .dialects import written
    from .screen import answers

    if template is None and model is None:
        raise click.UsageError("what is to be detected? Expected the file of a chat template, or --model NAME")
    with answers() as out:
        found = find(template=text_of(template) if template else None, model=model)
        if as_json:
            out.line(json.dumps({"dialect": found.name, "origin": found.origin, "call": written(found)}, indent=2))
        else:
            out.line(f"{found.name}  ({found.origin})")
            out.line(written(found))
