"""`toolspeak render`: the exact prompt that a conversation becomes."""

from __future__ import annotations

import dataclasses
import datetime
import json
from typing import Any

import click

from ..errors import UsageError
from .base import Command, tools_option
from .inputs import dialect_option, file_argument, text_of, told_tools


@click.command(cls=Command)
@file_argument
@dialect_option
@tools_option
@click.option("--template", metavar="FILE", help="The model's own chat template (Jinja).")
@click.option("--thinking/--no-thinking", default=None, help="Switch the model's reasoning, where it can be.")
@click.option("--continue-final", is_flag=True, help="Leave the last message, the assistant's, open.")
@click.option("--json", "as_json", is_flag=True, help="Print prompt, messages, stop strings and notes as JSON.")
def render(
    file: str,
    dialect: str,
    files: tuple[str, ...],
    template: str | None,
    thinking: bool | None,
    continue_final: bool,
    as_json: bool,
) -> None:
    """Print the prompt that a conversation becomes, to the byte.

    \b
    echo "Weather in Xiamen?" | toolspeak render --dialect hermes --tools weather.py
    toolspeak render messages.json --dialect glm47 --tools weather.py --template chat_template.jinja

    FILE holds messages as OpenAI writes them (JSON), or a text, which is the user's question. What a template
    would lose or change is told on standard error.
    """
    from .. import text as core
    from .screen import Progress, answers

    given = text_of(file)
    source = text_of(template) if template else None
    tools = told_tools(files)
    with answers() as out:
        told = core.render(
            _messages(given),
            tools,
            dialect,
            source,
            thinking,
            now=datetime.datetime.now().astimezone(),
            continue_final=continue_final or None,
        )
        if as_json:
            row = {"prompt": told.prompt, "messages": told.messages, "stop": told.stop}
            out.line(
                json.dumps(row | {"notes": [dataclasses.asdict(n) for n in told.notes]}, indent=2, ensure_ascii=False)
            )
            return
        for note in told.notes:
            Progress().note(f"note: {note.rule} {note.detail}".rstrip())
        out.write(told.prompt)


def _messages(text: str) -> Any:
    """The messages that a file holds: JSON, or else the user's question."""
    if not text.lstrip().startswith(("[", "{")):
        if not text.strip():
            raise UsageError("there is nothing to render: expected messages as JSON, or a question")
        return [{"role": "user", "content": text.strip()}]
    try:
        value: Any = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise UsageError(f"the messages are no JSON: {error}") from error
    if isinstance(value, dict):
        value = value.get("messages", [value])  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):  # pyright: ignore[reportUnknownVariableType]
        raise UsageError('expected a list of messages, such as [{"role": "user", "content": "Hello"}]')
    return value  # pyright: ignore[reportUnknownVariableType]
