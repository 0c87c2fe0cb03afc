"""`toolspeak dialects`: list the known dialects, each with an example call."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ...display import visible
from ..options import Command

if TYPE_CHECKING:
    from ...wire.dialect import Dialect
    from ..terminal import Out

TITLES = ("dialect", "models", "a call")


@click.command(cls=Command)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; this is the default when piped.")
def dialects(names: tuple[str, ...], as_json: bool) -> None:
    """List the dialects, each with an example call.

    \b
    toolspeak dialects
    toolspeak dialects tool-json functools
    toolspeak dialects json
    toolspeak dialects --json | jq -r '.[].name'

    Names select dialects. Any other word selects the dialects that have it in their own name or in a model's name.
    The column `models` lists parts of the names of models that use the dialect. In the table, ⏎ marks the end of a
    line. A table that is longer than the terminal is shown in $PAGER.
    """
    from ...dialects import get, names as known
    from ..terminal import answers

    table = ""
    with answers() as out:
        selected = _selected(names) if names else [get(name) for name in known()]
        if as_json or not out.terminal:
            rows = [{"name": d.name, "call": written(d), "stop": d.stop, "models": d.models} for d in selected]
            out.line(json.dumps(rows, indent=2, ensure_ascii=False))
        else:
            table = _table(out, [row(d) for d in selected])
    if table:
        show(table)


def _selected(words: Sequence[str]) -> list[Dialect]:
    """Return the dialects with these names, and those that other words match. Raises UnknownDialect for no match."""
    from ...dialects import get, names as known

    every = known()
    selected: dict[str, Dialect] = {}
    for word in words:
        like = [word] if word in every else [name for name in every if _has(get(name), word.lower())]
        selected |= {name: get(name) for name in like or [word]}
    return list(selected.values())


def _has(d: Dialect, word: str) -> bool:
    """Whether the word is part of the dialect's name or of the name of one of its models."""
    return any(word in name.lower() for name in (d.name, *d.models))


def show(text: str) -> None:
    """Print a text to the terminal, in the pager if it is longer than the terminal."""
    if text.count("\n") > shutil.get_terminal_size().lines:
        click.echo_via_pager(text)
    else:
        click.echo(text, nl=False)


def written(d: Dialect) -> str:
    """Return a call of a tool `weather` as the dialect writes it."""
    from ...types import ToolCall
    from ...wire.prompt.calls import write_calls

    return write_calls((ToolCall("call_1", "weather", {"city": "Rome", "days": 2}),), d)


def row(d: Dialect) -> tuple[str, str, str]:
    """Return the dialect's row of the table, here and in the docs: name, models, a call on one line."""
    return d.name, ", ".join(_models(d)), written(d).strip().replace("\n", "⏎")


def _models(d: Dialect) -> list[str]:
    """Return the model names for people: no separators, and no name that only extends another one."""
    names = list(dict.fromkeys(name.replace(":", "-").strip("/-") for name in d.models if name[-1] != "?"))
    return [name for name in names if not any(name != other and name.startswith(other) for other in names)]


def _table(out: Out, rows: Sequence[tuple[str, str, str]]) -> str:
    """Print the table for a terminal."""
    from rich.table import Table
    from rich.text import Text

    from ..terminal import console

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in TITLES:
        table.add_column(title, overflow="fold", no_wrap=title == TITLES[0])
    for name, models, call in rows:
        table.add_row(Text(name, "cyan"), Text(models), Text(visible(call)))
    screen = console(out.stream)
    with screen.capture() as capture:
        screen.print(table)
    return capture.get()
