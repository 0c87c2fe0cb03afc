"""`toolspeak dialects`: the ways to write calls that are known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from .base import Command

if TYPE_CHECKING:
    from ..wire.syntax import Dialect
    from .screen import Out

TITLES = ("dialect", "models", "a call")


@click.command(cls=Command)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; this is the default when piped.")
def dialects(names: tuple[str, ...], as_json: bool) -> None:
    """List the dialects, each with a call.

    \b
    toolspeak dialects
    toolspeak dialects tool-json functools
    toolspeak dialects --json | jq -r '.[].name'

    With names, only those. The models are those that speak it; in the table ⏎ stands for the end of a line.
    """
    from ..dialects import get
    from ..dialects import names as known
    from .screen import answers

    with answers() as out:
        found = [get(name) for name in names or known()]
        if as_json or not out.terminal:
            rows = [{"name": d.name, "call": written(d), "stop": d.stop, "models": d.models} for d in found]
            out.line(json.dumps(rows, indent=2, ensure_ascii=False))
        else:
            _table(out, [row(d) for d in found])


def written(d: Dialect) -> str:
    """A call of a tool `weather` as the dialect writes it."""
    from ..types import ToolCall
    from ..wire.write import write_calls

    return write_calls((ToolCall("call_1", "weather", {"city": "Rome", "days": 2}),), d)


def row(d: Dialect) -> tuple[str, str, str]:
    """The dialect's row in the table, here and in the documentation: name, models, a call on one line."""
    return d.name, ", ".join(_models(d)), written(d).strip().replace("\n", "⏎")


def _models(d: Dialect) -> list[str]:
    """The models' names for people: without their separators, nor those that only say more than another."""
    names = list(dict.fromkeys(name.replace(":", "-").strip("/-") for name in d.models if name[-1] != "?"))
    return [name for name in names if not any(name != other and name.startswith(other) for other in names)]


def _table(out: Out, rows: Sequence[tuple[str, str, str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    from .screen import console, visible

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in TITLES:
        table.add_column(title, overflow="fold", no_wrap=title == TITLES[0])
    for name, models, call in rows:
        table.add_row(Text(name, "cyan"), Text(models), Text(visible(call)))
    console(out.stream).print(table)
