"""Writes docs/reference/cli.md from the `--help` of every command: `python -m toolspeak.cli.reference`.

Everything after the mark is replaced. A test checks that the page is up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from .command_group import root

PAGE = "docs/reference/cli.md"
MARK = "<!-- from here on made by: python -m toolspeak.cli.reference -->\n"


def reference() -> str:
    """Return the `--help` of every command as Markdown."""
    parts = [f"## `{path}`\n\n```text\n{text}\n```\n" for path, text in _helps(root, "toolspeak", None)]
    return "\n".join(parts)


def with_reference(page: str) -> str:
    """Return the page with an up-to-date reference. Raises ValueError if the page has no mark."""
    before, mark, _ = page.partition(MARK)
    if not mark:
        raise ValueError(f"the page has no line {MARK.strip()}")
    return f"{before}{mark}\n{reference()}"


def _helps(command: click.Command, path: str, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    name = path.rpartition(" ")[2]
    ctx = click.Context(
        command, parent, name, terminal_width=88, max_content_width=88, help_option_names=["-h", "--help"]
    )
    yield path, command.get_help(ctx)
    if isinstance(command, click.Group):
        for inner in command.list_commands(ctx):
            subcommand = command.get_command(ctx, inner)
            if subcommand is not None:
                yield from _helps(subcommand, f"{path} {inner}", ctx)


if __name__ == "__main__":
    for file in map(Path, sys.argv[1:] or [PAGE]):
        file.write_text(with_reference(file.read_text("utf-8")), "utf-8")
