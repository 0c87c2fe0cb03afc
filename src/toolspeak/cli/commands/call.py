"""`toolspeak call`: check one call and run it, without a model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from ...errors import CallError, UsageError
from ...schema.phrases import number_of
from ..options import Command, complete_file, dialect_option, piped_text

if TYPE_CHECKING:
    from ...toolbox import Toolbox
    from ...types import ToolCall
    from ...wire.dialect import Dialect


@click.command(cls=Command)
@click.argument("target", metavar="FILE:NAME", shell_complete=complete_file)
@click.argument("arguments", metavar="[ARGUMENTS]", default="{}")
@dialect_option("Read the call from model output in this dialect; ARGUMENTS is that text.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, even if it is a string.")
@click.pass_context
def call(ctx: click.Context, target: str, arguments: str, dialect: Dialect | None, as_json: bool) -> None:
    """Check one call of a function, run it and print its result.

    \b
    toolspeak call weather.py:forecast '{"city": "Xiamen", "days": 3}'
    echo '{"city": "Xiamen"}' | toolspeak call weather.py:forecast -
    toolspeak call weather.py:forecast - --dialect tool-json < reply.txt

    The target is a function of a file, or a tool of a toolbox in it (FILE:TOOLBOX#NAME), of an OpenAPI document
    (openapi:DOCUMENT:NAME) or of an MCP server (mcp:SERVER#NAME).

    ARGUMENTS is a JSON object; `-` reads it from standard input. If the arguments do not match the function's
    parameters, every problem is listed and nothing is run.
    """
    from ...drive import run_sync
    from ...schema.suggestions import did_you_mean
    from ...tool_results import jsonable, result_text
    from ..terminal import answers, print_notes
    from ..tool_sources import named_targets, names_in

    if not names_in(target):
        hint = did_you_mean(named_targets(target))
        raise click.UsageError(
            f"expected FILE:NAME, such as weather.py:forecast, FILE:TOOLBOX#NAME, openapi:DOCUMENT:NAME or "
            f"mcp:SERVER#NAME; got {target}.{hint}"
        )
    text = piped_text() if arguments == "-" else arguments
    values = _parsed(text) if dialect is None else {}
    with answers() as out:
        box = _one_tool(target)
        wanted = {"name": next(iter(box)).name, "arguments": values} if dialect is None else _read(text, dialect, box)
        checked = box.validate(wanted)
        if checked.call is None or checked.error is not None:
            _refuse(ctx, checked.error)
            return
        print_notes(checked.call.notes)
        value = run_sync(box.acall(checked.call))
        if as_json:
            out.json(jsonable(value))
        elif value is not None:
            out.line(result_text(value, None))


def _read(text: str, dialect: Dialect, box: Toolbox) -> ToolCall:
    """Return the one call in a model's output. Raises UsageError for no call or several."""
    from ...text import parse

    (tool,) = box
    reply = parse(text, dialect, list(box))
    named = [one.name for one in reply.calls]
    if named != [tool.name]:
        received = f"found {len(named)}: {', '.join(named)}" if named else "found none"
        raise UsageError(f"expected one call of {tool.name} in the dialect {dialect.name}, {received}")
    return reply.calls[0]


def _parsed(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"the arguments are not JSON: {error.msg} at line {error.lineno}, column {error.colno}. "
            """Expected an object such as '{"city": "Xiamen"}'"""
        ) from error
    except ValueError as error:  # Python refuses to convert a number of thousands of digits
        raise UsageError(f"the arguments cannot be read: {error}") from error
    except RecursionError as error:
        raise UsageError("the arguments are nested too deeply") from error
    if not isinstance(value, dict):
        raise UsageError(f'the arguments must be a JSON object, such as {{"city": "Xiamen"}}; got {text[:80]}')
    return value  # pyright: ignore[reportUnknownVariableType]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object. Raises UsageError if a name occurs twice, because either value could be meant."""
    record = dict(pairs)
    if len(record) < len(pairs):
        twice = next(name for name in record if sum(name == other for other, _ in pairs) > 1)
        raise UsageError(f"the arguments have {twice!r} twice")
    return record


def _refuse(ctx: click.Context, error: CallError | None) -> None:
    from ..terminal import to_stderr

    problems = error.problems if error else ()
    to_stderr(f"error: the call cannot be run, {number_of(len(problems), 'problem')}:")
    for problem in problems:
        to_stderr(f"  {problem.path or '/'}: {problem.message}")
    ctx.exit(2)


def _one_tool(target: str) -> Toolbox:
    from ...schema.suggestions import listed
    from ..tool_sources import narrowed, runnable, toolbox

    box = toolbox([target])
    if len(box) != 1:
        names = [one.name for one in box]
        raise click.UsageError(
            f"expected one tool; {target} names {len(names)}: {listed(names, 20)}. Name one of them: "
            f"{narrowed(target, names[0] if names else 'NAME')}"
        )
    return runnable(box)
