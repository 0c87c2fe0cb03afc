"""`toolspeak parse`: parse model output into text, thought and calls, as a whole or as events."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import click

from ...errors import UsageError
from ..dialect_inputs import file_argument, texts_of, tools_of_files
from ..options import Command, read_in_option, tools_option

if TYPE_CHECKING:
    from ...events import Event
    from ...toolbox import Toolbox
    from ...types import Reply, Tool, ToolCall
    from ...wire.dialect import Dialect
    from ..terminal import Out


@click.command(cls=Command)
@file_argument
@read_in_option
@tools_option
@click.option("--no-tools", is_flag=True, help="Offer no tools: nothing is read as a call.")
@click.option(
    "--prompt", metavar="FILE", help="The prompt that the text continues. It matters if it ends inside a thought."
)
@click.option("--keep-thoughts", is_flag=True, help="Leave thoughts in the text.")
@click.option(
    "--stream",
    metavar="N",
    type=click.IntRange(min=1),
    help="Feed N characters at a time, and print the events of each piece.",
)
def parse(
    file: str,
    dialect: Dialect,
    files: tuple[str, ...],
    no_tools: bool,
    prompt: str | None,
    keep_thoughts: bool,
    stream: int | None,
) -> None:
    """Parse model output into text, thought and calls.

    \b
    toolspeak parse reply.txt --dialect tool-json
    cat reply.txt | toolspeak parse --dialect functools --tools weather.py
    toolspeak parse reply.txt --dialect functools --stream 4

    Prints one JSON object. With --stream, prints one per piece: the piece and its events. Without --tools, a call
    may have any name. With --tools, each call is checked: arguments are converted if no information is lost, and
    `problems` lists what does not match the schema. One newline at the very end is ignored, because shells and
    editors add it.
    """
    from ... import text as core
    from ..terminal import answers

    if no_tools and files:
        raise UsageError("--tools and --no-tools exclude each other: use one of them")
    tools = [] if no_tools else tools_of_files(files)
    text, begun = texts_of(file, prompt)
    seed = None if prompt is None else begun
    reply_text = text.removesuffix("\n").removesuffix("\r")
    thoughts = "keep" if keep_thoughts else "split"
    with answers() as out:
        if stream is None:
            out.line(
                json.dumps(
                    _reply(core.parse(reply_text, dialect, tools, seed, thoughts), tools), indent=2, ensure_ascii=False
                )
            )
            return
        decoder = core.Decoder(dialect, tools, seed, thoughts)
        for start in range(0, len(reply_text), stream):
            piece = reply_text[start : start + stream]
            _show(out, piece, decoder.feed(piece))
        _show(out, None, decoder.close())


def _reply(reply: Reply, tools: list[Tool[..., Any]] | None) -> dict[str, Any]:
    """Return the reply as JSON data."""
    from ...toolbox import Toolbox

    box = Toolbox.of(tools) if tools else None
    calls = [_call(call, box) for call in reply.calls]
    notes = [dataclasses.asdict(note) for note in reply.notes]
    return {"text": reply.text, "thought": reply.thought, "calls": calls, "finish": reply.finish, "notes": notes}


def _call(call: ToolCall, box: Toolbox | None) -> dict[str, Any]:
    """Return a call as JSON data, checked if the tools are known."""
    row = {
        "id": call.id,
        "name": call.name,
        "arguments": call.arguments if call.whole else call.json,
        "whole": call.whole,
    }
    if box is None:
        return row
    checked = box.validate(call)
    if checked.call is None:
        return row | {"problems": [problem.message for problem in checked.problems]}
    return row | {"arguments": checked.call.arguments}


def _show(out: Out, piece: str | None, events: list[Event]) -> None:
    """Print the events of one piece; an empty list means that the piece is held back."""
    rows = [{"event": type(event).__name__} | dataclasses.asdict(event) for event in events]
    out.json({"fed": piece, "events": rows})
