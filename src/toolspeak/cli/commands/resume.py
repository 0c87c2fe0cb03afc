"""`toolspeak resume`: answer the pending calls of a run, and finish it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...errors import UsageError
from ...files import read_text
from ...schema.nonblocking_json import loads_or
from ..options import (
    Command,
    limits_of,
    limits_options,
    model_of_saved,
    model_option,
    piped_text,
    policy_option,
    prompt_dialect_option,
    tools_option,
)

if TYPE_CHECKING:
    from ...types import Reply


@click.command(cls=Command)
@click.argument("file", metavar="FILE")
@tools_option
@model_option
@prompt_dialect_option
@policy_option
@limits_options
@click.option("--approve", multiple=True, metavar="ID", help="Run this call.")
@click.option("--refuse", multiple=True, metavar="ID[=REASON]", help="Do not run this call; the model gets the reason.")
@click.option("--edit", multiple=True, metavar="ID=JSON", help="Run this call with other arguments.")
@click.option("--answer", multiple=True, metavar="ID=TEXT", help="Do not run this call; use this text as its result.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole outcome as one JSON object.")
@click.pass_context
def resume(ctx: click.Context, file: str, files: tuple[str, ...], policy_file: str | None, **options: Any) -> None:
    """Continue a run that waits for approval.

    \b
    toolspeak ask "Tidy up" --tools files.py --policy p.toml --json > run.json
    toolspeak resume run.json --tools files.py --policy p.toml --approve call_1
    toolspeak resume run.json --tools files.py --refuse call_2="not today"

    FILE is the output of `ask --json`, or the text of `reply.to_json()`; - is standard input. Without an answer, the
    pending calls are listed. Calls and their results go to standard error. The model of FILE goes on, unless --model
    names another one.

    An approval is valid once, for exactly the call that was shown, and is used up before the call runs. The exit code
    is 1 if a call failed, if a call with --approve or --edit could not run, or if calls are still pending. It is 3 if
    a limit ended the run or cut the answer.
    """
    from ...resume import play
    from ..policy_file import policy_for
    from ..run_view import Show, as_json, exit_code, show_open, watch
    from ..terminal import answers
    from ..tool_sources import runnable, toolbox

    with answers() as out:
        data = _read(file)
        box = runnable(toolbox(files))
        policy = policy_for(policy_file, box)
        answered = list(_answers(options))
        if len(dict(answered)) < len(answered):
            raise click.UsageError("a call has two answers: give one answer per call")
        if not answered:
            _list(data)
            ctx.exit(1)
        model = model_of_saved(data, options["model"], options["dialect"])
        show = Show(None if options["as_json"] else out, live=out.terminal)
        try:
            limits = limits_of(options)
            reply = watch(play(data, dict(answered), tools=box, model=model, policy=policy, limits=limits), show)
        finally:
            out.end_line()
        if options["as_json"]:
            out.json(as_json(reply, model.name))
        show_open(reply)
        if code := exit_code(reply) or int(_could_not_run(reply, dict(answered))):
            ctx.exit(code)


def _could_not_run(reply: Reply, answers: Mapping[str, Any]) -> bool:
    """Whether a call that was approved did not run: the policy denies it, or its approval was used before."""
    from ...approvals import Edit
    from ...errors import NotApproved

    wanted = {key for key, answer in answers.items() if isinstance(answer, bool | Edit) if answer}
    return any(isinstance(result.error, NotApproved) for result in reply.steps[0].results if result.id in wanted)


def _read(file: str) -> Mapping[str, Any]:
    text = piped_text() if file == "-" else read_text(Path(file).expanduser())
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{'standard input' if file == '-' else file} is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise UsageError(f"{file}: expected the JSON of a reply, with messages and pending")
    return data  # pyright: ignore[reportUnknownVariableType]


def _list(data: Mapping[str, Any]) -> None:
    """Print the pending calls to standard error. Raises UsageError if there are none."""
    from ...resume import read_paused
    from ...types import Reply
    from ..run_view import show_open

    _, pending = read_paused(data)
    if not pending:
        raise UsageError("there is nothing to resume: no call is pending")
    show_open(Reply(pending=pending))
    click.echo("answer with --approve, --refuse, --edit or --answer", err=True)


def _answers(raw: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    from ...approvals import Answer, Edit

    yield from ((key, True) for key in raw["approve"])
    for text in raw["refuse"]:
        key, _, reason = text.partition("=")
        yield key, reason or False
    for text in raw["edit"]:
        key, _, value = text.partition("=")
        yield key, Edit(_arguments(value, text))
    for text in raw["answer"]:
        key, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"--answer: expected ID=TEXT, got {text[:100]!r}")
        yield key, Answer(value)


def _arguments(value: str, text: str) -> Mapping[str, Any]:
    arguments = loads_or(value, None)
    if not isinstance(arguments, dict):
        raise click.UsageError(f"--edit: expected ID={{…}} with the arguments as a JSON object, got {text[:100]!r}")
    return arguments  # pyright: ignore[reportUnknownVariableType]
