"""`toolspeak models`: manage the embedded model's file, and list the names of models."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from ...display import visible
from ...errors import UsageError, WeightsError
from ..options import Command, WholeSummaries, switches, typed

if TYPE_CHECKING:
    from ..terminal import Out


class ModelsGroup(WholeSummaries):
    """The group of subcommands, which take the switches of all commands."""

    command_class = Command


@click.group(cls=ModelsGroup, params=switches())
def models() -> None:
    """Manage the embedded model's file, and list the model names.

    \b
    toolspeak models list
    toolspeak models pull
    """


@models.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; this is the default when piped.")
def list_(as_json: bool) -> None:
    """List the names that `toolspeak ask --model` takes, and whether each can be used.

    \b
    toolspeak models list
    toolspeak models list --json | jq -r '.[] | select(.ready).name'
    """
    from ..terminal import answers

    with answers() as out:
        rows = _rows()
        if as_json or not out.terminal:
            out.json(rows)
        else:
            _table(out, rows)


@models.command()
def pull() -> None:
    """Download the embedded model's file and check its checksum.

    \b
    toolspeak models pull
    TOOLSPEAK_CACHE=/data/models toolspeak models pull
    """
    from ...models.embedded.weights import ensure

    click.echo(ensure())


@models.command()
@click.option("-y", "--yes", is_flag=True, help="Remove it without asking.")
def rm(yes: bool) -> None:
    """Remove the embedded model's file and cached prompt states.

    \b
    toolspeak models rm --yes
    """
    from ...models.embedded.states import folder
    from ...models.embedded.weights import path_of

    path = path_of()
    if not path.exists():
        click.echo(f"{path} is not there", err=True)
        return
    if not yes and not typed():
        raise UsageError(f"removing {path} needs a confirmation, and there is no terminal to ask on: add --yes")
    if not yes and not click.confirm(f"Remove {path}?", err=True):
        click.echo("kept", err=True)
        return
    try:
        path.unlink()
    except OSError as error:
        raise WeightsError(f"cannot remove {path}: {error.strerror}") from error
    for state in folder().glob("*"):
        state.unlink(missing_ok=True)
    click.echo(f"removed {path}", err=True)


@models.command()
def path() -> None:
    """Print the path of the embedded model's file.

    \b
    ls -l "$(toolspeak models path)"
    """
    from ...models.embedded.weights import path_of

    click.echo(path_of())


def _rows() -> list[dict[str, Any]]:
    """Return what each name stands for, whether it can be used now, and what is missing."""
    from ...models.embedded.weights import path_of, present
    from ...models.http.providers import PROVIDERS

    here = present()
    size = (
        f"{path_of().stat().st_size / 1e6:.0f} MB" if here else "downloaded on first use, or by `toolspeak models pull`"
    )
    rows: list[dict[str, Any]] = [
        {"name": "local", "where": str(path_of()), "ready": here, "detail": size},
        {"name": "local:/path/to.gguf", "where": "", "ready": None, "detail": "any GGUF file"},
    ]
    for one in PROVIDERS.values():
        remote = one.url.startswith("https:")
        ready = bool(os.environ.get(one.key_variable)) if remote else None
        detail = f"${one.key_variable} {'is set' if ready else 'is not set'}" if remote else one.start
        rows.append({"name": f"{one.name}:MODEL", "where": one.url, "ready": ready, "detail": detail})
    rows.append(
        {"name": "http://host:8000/v1#MODEL", "where": "", "ready": None, "detail": "any OpenAI-compatible server"}
    )
    rows.append({"name": "scripted:TEXT", "where": "", "ready": True, "detail": "replies from a file, for tests"})
    return rows


def _table(out: Out, rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    from ..terminal import console

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("", "name", "where", ""):
        table.add_column(title)
    for row in rows:
        mark = {True: "[green]✓[/]", False: "[red]✗[/]", None: "[dim]·[/]"}[row["ready"]]
        table.add_row(mark, *(visible(str(row[key])) for key in ("name", "where", "detail")))
    console(out.stream).print(table)
