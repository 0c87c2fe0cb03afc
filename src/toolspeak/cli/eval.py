"""`toolspeak eval`: how well models call functions, measured."""

from __future__ import annotations

from pathlib import Path

import click

from .base import Command, switches, tools_option


class Eval(click.Group):
    """Its commands, and `run` where none is named."""

    command_class = Command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = (*self.commands, "-h", "--help")
        return super().parse_args(ctx, args if not args or args[0] in known else ["run", *args])


@click.group(cls=Eval, params=switches())
def eval() -> None:  # noqa: A001 - the command's name
    """Measure how well models call functions."""


@eval.command("run")
@click.argument("cases", nargs=-1, required=True)
@click.option("-m", "--model", "models", multiple=True)
@click.option("-d", "--dialect", "dialects", multiple=True)
@tools_option
@click.option("-o", "--out", type=click.Path(path_type=Path), default=Path("evaluation"))
def run_(
    cases: tuple[str, ...], models: tuple[str, ...], dialects: tuple[str, ...], files: tuple[str, ...], out: Path
) -> None:
    """Put cases to models."""
    from ..evals.contender import contenders
    from ..evals.running import run
    from ..evals.sources import load
    from ..evals.summary import markdown, summarise
    from .files import toolbox

    found = load(*cases, tools=list(toolbox(files)) if files else None)
    records = run(found, contenders(models or ["local"], dialects or [None]), out, sources=cases)
    click.echo(markdown(summarise(records)))
