"""What the commands about dialects share: a dialect by its name, a text from a file or a pipe, tools that are only told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from ..errors import UsageError
from .base import complete_file, piped_text

if TYPE_CHECKING:
    from ..types import Tool


def _complete_dialect(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from ..dialects import names

    return [CompletionItem(name) for name in names() if name.startswith(incomplete)]


dialect_option = click.option(
    "-d",
    "--dialect",
    metavar="NAME",
    required=True,
    shell_complete=_complete_dialect,
    help="The dialect; `toolspeak dialects` lists them.",
)
file_argument = click.argument("file", metavar="[FILE]", default="-", shell_complete=complete_file)


def text_of(file: str) -> str:
    """The text of a file, `-` for standard input; every byte of it counts. UsageError where it is not UTF-8 text."""
    if file == "-":
        return piped_text()
    path = Path(file).expanduser()
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: byte 0x{error.object[error.start]:02x} at {error.start}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None


def told_tools(files: Sequence[str]) -> list[Tool[..., Any]] | None:
    """The tools of the files; None where no file was given."""
    from .files import toolbox

    return list(toolbox(files)) if files else None
