"""Input of the commands about dialects: texts and templates from files and pipes, and tool definitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from ..errors import UsageError
from ..schema.nonblocking_json import loads_or
from .options import as_utf8, complete_file, piped_text, typed

if TYPE_CHECKING:
    from ..types import Tool


def _piped(_: click.Context, __: click.Parameter, file: str | None) -> str:
    if file is None and typed():
        raise click.UsageError("no input: expected a FILE, or a text on standard input")
    return file or "-"


file_argument = click.argument("file", metavar="[FILE]", required=False, callback=_piped, shell_complete=complete_file)


def texts_of(*files: str | None) -> list[str]:
    """Return the text of each file, `-` for standard input, "" for None. Raises UsageError if one is not UTF-8."""
    if files.count("-") > 1:
        raise UsageError("standard input can be read only once: put one of the texts into a file")
    return [_text(file) if file else "" for file in files]


def _text(file: str) -> str:
    return piped_text() if file == "-" else as_utf8(_bytes(file), file)


def _bytes(file: str) -> bytes:
    try:
        return Path(file).expanduser().read_bytes()
    except OSError as error:
        is_text = all((isinstance(error, FileNotFoundError), not set(file) & set("./\\")))
        hint = ". A text comes through a pipe, as in: echo TEXT | toolspeak …" if is_text else ""
        raise UsageError(f"{file} cannot be read: {error.strerror or error}{hint}") from None


def tools_of_files(files: Sequence[str]) -> list[Tool[..., Any]] | None:
    """Return the tools of the files; None if no file is given."""
    from .tool_sources import toolbox

    return list(toolbox(files)) if files else None


# ------------------------------------------------------------------ chat templates


@dataclass(frozen=True)
class Template:
    """What a file declares about prompting its model: the chat template, special tokens, a response template."""

    source: str | None = None
    tokens: dict[str, str] = field(default_factory=dict[str, str])
    replies: Mapping[str, Any] | None = None


def template_of(file: str, text: str) -> Template:
    """Return the chat template in a file: Jinja, a tokenizer's configuration, or a GGUF file.

    `text` is the file's text, unless it is a GGUF file. Raises UsageError for any other file.
    """
    if is_gguf(file):
        from ..models.embedded import gguf_header

        known = gguf_header.known(Path(file).expanduser())
        template = Template(known.template, dict(known.variables))
    else:
        template = _from_config(text) or Template(text)
    if template.replies is None and not (template.source and ("{{" in template.source or "{%" in template.source)):
        name = "standard input" if file == "-" else file
        raise UsageError(
            f"{name} contains no chat template: expected Jinja, with {{{{ or {{% in it, a tokenizer_config.json or a GGUF file"
        )
    return template


def is_gguf(file: str) -> bool:
    """Whether the file is a GGUF file, which is binary and cannot be read as text."""
    return file.endswith(".gguf")


def _special_tokens(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, token in config.items():
        written: Any = cast("dict[str, Any]", token).get("content") if isinstance(token, dict) else token
        if name.endswith("_token") and isinstance(written, str):
            yield name, written


def _from_config(text: str) -> Template | None:
    """Read a tokenizer_config.json, or a response template by itself. None for a text that is not a JSON object."""
    from ..sources.dialect_files import chat_template_of

    value = loads_or(text, None) if text.lstrip().startswith("{") else None
    if not isinstance(value, dict):
        return None
    config = cast("dict[str, Any]", value)
    replies = config if "fields" in config else config.get("response_template")
    return Template(
        chat_template_of(config.get("chat_template")),
        dict(_special_tokens(config)),
        cast("dict[str, Any]", replies) if isinstance(replies, dict) else None,
    )
