"""`toolspeak parse`: what a model's text says: text, thought and calls, or the events as they come."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import click

from ..errors import UsageError
from .base import Command, read_in_option, tools_option
from .inputs import file_argument, texts_of, told_tools

if TYPE_CHECKING:
    from ..events import Event
    from ..toolbox import Toolbox
    from ..types import Reply, Tool, ToolCall
    from ..wire.syntax import Dialect
    from .screen import Out


@click.command(cls=Command)
@file_argument
@read_in_option
@tools_option
@click.option("--no-tools", is_flag=True, help="Nothing is a call: what looks like one is text.")
@click.option("--prompt", metavar="FILE", help="What the text goes on from; it may end inside a thought.")
@click.option("--keep-thoughts", is_flag=True, help="Leave thoughts in the text.")
@click.option("--stream", metavar="N", type=click.IntRange(min=1), help="Show events as pieces of N characters arrive.")
def parse(
    file: str,
    dialect: Dialect,
    files: tuple[str, ...],
    no_tools: bool,
    prompt: str | None,
    keep_thoughts: bool,
    stream: int | None,
) -> None:
    """Read what a model wrote: its text, its thought and its calls.

    \b
    toolspeak parse reply.txt --dialect tool-json
    cat reply.txt | toolspeak parse --dialect functools --tools weather.py
    toolspeak parse reply.txt --dialect functools --stream 4

    Prints one JSON object; with --stream one on each line: the piece, and the events that it brought. Without --tools
    any name is a call; with them each call is checked as before it is run: arguments are converted where nothing is lost,
    and `problems` lists what does not fit. One newline at the very end is that of the shell or the editor, and no part of the text.
    """
    from .. import text as core
    from .screen import answers

    if no_tools and files:
        raise UsageError("--tools offers tools and --no-tools none: give one of them")
    tools = [] if no_tools else told_tools(files)
    text, begun = texts_of(file, prompt)
    seed = None if prompt is None else begun
    said = text.removesuffix("\n").removesuffix("\r")
    thoughts = "keep" if keep_thoughts else "split"
    with answers() as out:
        if stream is None:
            out.line(
                json.dumps(
                    _reply(core.parse(said, dialect, tools, seed, thoughts), tools), indent=2, ensure_ascii=False
                )
            )
            return
        decoder = core.Decoder(dialect, tools, seed, thoughts)
        for start in range(0, len(said), stream):
            piece = said[start : start + stream]
            _show(out, piece, decoder.feed(piece))
        _show(out, None, decoder.close())


def _reply(reply: Reply, tools: list[Tool[..., Any]] | None) -> dict[str, Any]:
    """The reply as JSON data."""
    from ..toolbox import Toolbox

    box = Toolbox.of(tools) if tools else None
    calls = [_call(call, box) for call in reply.calls]
    notes = [dataclasses.asdict(note) for note in reply.notes]
    return {"text": reply.text, "thought": reply.thought, "calls": calls, "finish": reply.finish, "notes": notes}


def _call(call: ToolCall, box: Toolbox | None) -> dict[str, Any]:
    """A call as JSON data, checked where the tools are known."""
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
    """What a piece brought: one line for each event; an empty list says that the piece is held back."""
    told = [{"event": type(event).__name__} | dataclasses.asdict(event) for event in events]
    out.json({"fed": piece, "events": told})
