"""`toolspeak render`: print the exact prompt for a conversation."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import click

from ...errors import UsageError
from ...schema.nonblocking_json import loads_or
from ..dialect_inputs import Template, file_argument, is_gguf, template_of, texts_of, tools_of_files
from ..options import Command, read_in_option, tools_option

if TYPE_CHECKING:
    from ...wire.dialect import Dialect


@click.command(cls=Command)
@file_argument
@read_in_option
@tools_option
@click.option(
    "--template", metavar="FILE", help="The model's own chat template: Jinja, a tokenizer_config.json or a GGUF file."
)
@click.option(
    "--var",
    "variables",
    metavar="NAME=VALUE",
    multiple=True,
    help="A variable of the template, such as bos_token=TEXT.",
)
@click.option(
    "--thinking/--no-thinking", default=None, help="Turn the model's reasoning on or off, if it supports that."
)
@click.option("--continue-final", is_flag=True, help="Do not close the last message, so that the model continues it.")
@click.option("--json", "as_json", is_flag=True, help="Print prompt, messages, stop strings and notes as JSON.")
def render(
    file: str,
    dialect: Dialect,
    files: tuple[str, ...],
    template: str | None,
    variables: tuple[str, ...],
    thinking: bool | None,
    continue_final: bool,
    as_json: bool,
) -> None:
    """Print the exact prompt for a conversation.

    \b
    echo "Weather in Xiamen?" | toolspeak render -d tool-json --tools weather.py
    toolspeak render messages.json -d functools --template chat_template.jinja

    FILE is a JSON list of messages in OpenAI's format, a request with messages and tools, or a text with the user's
    question. Notes on what a template loses or changes go to standard error.
    """
    from ... import text as core
    from ..terminal import answers, print_notes

    texts, source = texts_of(file, None if template and is_gguf(template) else template)
    own = template_of(template, source) if template else Template()
    if template and own.source is None:
        raise UsageError(f"{template} contains no chat template")
    messages, tools = _request(texts)
    with answers() as out:
        rendered = core.render(
            messages,
            tools_of_files(files) or tools,
            dialect,
            own.source,
            thinking,
            now=datetime.datetime.now().astimezone(),
            continue_final=continue_final or None,
            variables=own.tokens | _variables(variables),
        )
        if as_json:
            out.line(json.dumps(dataclasses.asdict(rendered), indent=2, ensure_ascii=False))
            return
        print_notes(rendered.notes)
        out.write(rendered.prompt)
        if out.terminal:
            out.end_line()


def _request(text: str) -> tuple[list[Any], list[Any] | None]:
    """Return the messages in a file (JSON, or a user's question), and the tools if it is a whole request."""
    if not text.lstrip().startswith(("[", "{")):
        if not text.strip():
            raise UsageError("the input is empty: expected messages as JSON, or a question")
        return [{"role": "user", "content": text.strip()}], None
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the messages are not JSON: {error}") from error
    tools: Any = None
    if isinstance(value, dict):
        request = cast("dict[str, Any]", value)
        value, tools = request.get("messages", [request]), request.get("tools")
    if not _objects(value) or not (tools is None or _objects(tools)):
        raise UsageError('expected a list of messages, such as [{"role": "user", "content": "Hello"}]')
    return value, tools


def _objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(row, dict) for row in cast("list[Any]", value))


def _variables(assignments: Sequence[str]) -> dict[str, Any]:
    """Parse each `NAME=VALUE`. A value that is valid JSON is decoded; any other value is a string."""
    variables: dict[str, Any] = {}
    for pair in assignments:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"--var: expected NAME=VALUE, got {pair!r}")
        variables[name] = loads_or(value, value)
    return variables
