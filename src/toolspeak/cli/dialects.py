"""`toolspeak dialects`: the ways to write calls that are known."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from .base import Command

if TYPE_CHECKING:
    from ..wire.syntax import Dialect
    from .screen import Out


@click.command(cls=Command)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; this is the default when piped.")
def dialects(names: tuple[str, ...], as_json: bool) -> None:
    """List the dialects, each with a call as it writes it; with names, only those.

    \b
    toolspeak dialects
    toolspeak dialects hermes glm47
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
            _table(out, found)


def written(d: Dialect) -> str:
    """A small call as the dialect writes it."""
    from ..wire.said import example

    return example(d)


def _table(out: Out, found: list[Dialect]) -> None:
    from rich.table import Table
    from rich.text import Text

    from .screen import console, visible

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("dialect", "models", "a call"):
        table.add_column(title)
    for d in found:
        table.add_row(Text(d.name, "cyan"), Text(", ".join(d.models)), Text(visible(written(d))))
    console(out.stream).print(table)
