"""`toolspeak extract`: extract a value of a type from each line of a text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from ...errors import CallError, GenerationError, UsageError
from ..dialect_inputs import file_argument
from ..options import (
    Command,
    model_by_name,
    model_option,
    prompt_dialect_option,
    sampling_of,
    sampling_options,
    schema_option,
    system_option,
)

if TYPE_CHECKING:
    from ..terminal import Out


@click.command(cls=Command)
@file_argument
@schema_option
@model_option
@prompt_dialect_option
@system_option
@click.option("--whole", is_flag=True, help="Read the whole input as one text.")
@click.option("--tries", type=click.IntRange(1), metavar="N", help="The most attempts to get a valid value.")
@sampling_options
@click.pass_context
def extract(ctx: click.Context, file: str, schema: str | None, whole: bool, **options: Any) -> None:
    """Extract a value from each line of a text, as JSON.

    \b
    toolspeak extract --schema ticket.py:Ticket < tickets.txt
    toolspeak extract --schema ticket.json mail.txt --whole
    git log --oneline | toolspeak extract --schema commit.json --model ollama:NAME

    Each non-empty line of the input gives one line of output: the value, or `null` if there is no valid one. In that
    case the error goes to standard error, and the exit code is 1. For large files, and to continue after an
    interruption, use `toolspeak batch`.
    """
    if schema is None:
        raise click.UsageError("no schema: expected --schema FILE.json, MODULE:TYPE or FILE.py:TYPE")
    from ..dialect_inputs import texts_of
    from ..terminal import answers
    from ..tool_sources import kind_of

    with answers() as out:
        kind = kind_of(schema)
        (text,) = texts_of(file)
        lines = [(1, text.strip())] if whole else list(_lines(text))
        if not any(line for _, line in lines):
            raise UsageError("the input is empty: expected a text to extract from")
        if _failures(out, kind, lines, options):
            ctx.exit(1)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line.strip()


def _failures(out: Out, kind: Any, lines: list[tuple[int, str]], options: dict[str, Any]) -> int:
    """Write the value of each line. Return the number of lines without one."""
    from pydantic_core import to_jsonable_python

    from ...extracting import extract as extract_value
    from ..terminal import Progress, to_stderr

    model, progress, failures = model_by_name(options["model"], options["dialect"]), Progress(), 0
    for number, line in lines:
        progress.waiting()
        try:
            value = extract_value(
                line, kind, model=model, system=options["system"], tries=options["tries"], **sampling_of(options)
            )
        except (GenerationError, CallError) as error:
            value, failures = None, failures + 1
            progress.ready()
            to_stderr(f"error: line {number}: {error}")
        finally:
            progress.ready()
        out.json(to_jsonable_python(value))
    return failures
