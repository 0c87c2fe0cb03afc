"""`toolspeak ask`: one question, the tools for it, the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .base import (
    Command,
    approve_option,
    asked_model,
    asker,
    model_option,
    prompt_dialect_option,
    question,
    sampling_of,
    sampling_options,
    system_option,
    tools_option,
)

if TYPE_CHECKING:
    from .screen import Out


@click.command(cls=Command)
@click.argument("words", metavar="QUESTION", nargs=-1)
@tools_option
@model_option
@prompt_dialect_option
@system_option
@sampling_options
@click.option("--explain", is_flag=True, help="Print exactly what the model would be sent, and send nothing.")
@click.option("--dry-run", is_flag=True, help="Print the calls that the model wants, and run none.")
@approve_option
@click.option("--json", "as_json", is_flag=True, help="Print the whole outcome as one JSON object.")
@click.pass_context
def ask(ctx: click.Context, words: tuple[str, ...], files: tuple[str, ...], **given: Any) -> None:
    """Ask a model a question; it may call your functions.

    \b
    toolspeak ask "What is the weather in Xiamen?" --tools weather.py
    toolspeak ask "Tidy up" --tools files.py:list_files,move --approve
    git diff | toolspeak ask "Write a commit message for this:" -

    `-` stands for standard input. The answer goes to standard output; calls, results and errors go to
    standard error, and so does whatever a tool prints.
    """
    if given["explain"] and given["dry_run"]:
        raise click.UsageError("--explain sends nothing and --dry-run runs nothing: give one of them")
    from .screen import answers

    prompt = question(words)
    with answers() as out:
        from .files import toolbox

        box = toolbox(files)
        if given["explain"]:
            _explain(out, prompt, box, given)
        elif given["dry_run"]:
            _decide(out, prompt, box, given)
        elif not _run(out, prompt, box, given):
            ctx.exit(1)


def _explain(out: Out, prompt: str, box: Any, given: dict[str, Any]) -> None:
    from ..explain import explain
    from ..models.names import model
    from ..schema.result import jsonable

    made = model(given["model"], dialect=given["dialect"])
    told = explain(prompt, tools=box, model=made, system=given["system"], **sampling_of(given))
    if given["as_json"]:
        out.json(jsonable(told) | {"body": told.body.decode()})
    else:
        out.line(str(told))


def _decide(out: Out, prompt: str, box: Any, given: dict[str, Any]) -> None:
    from ..verbs import decide
    from .screen import Progress, shown_json
    from .turn import as_json

    model = asked_model(given["model"], given["dialect"])
    progress = Progress()
    progress.waiting()
    try:
        reply = decide(prompt, tools=box, model=model, system=given["system"], **sampling_of(given))
    finally:
        progress.ready()
    if given["as_json"]:
        out.json(as_json(reply, model.name))
    elif reply.calls:
        for call in reply.calls:
            out.line(f"{call.name} {shown_json(call.arguments)}")
    else:
        out.line(reply.text)


def _run(out: Out, prompt: str, box: Any, given: dict[str, Any]) -> bool:
    from .files import runnable
    from .turn import Show, answer, as_json, failed

    approve = asker() if given["approve"] else None
    model = asked_model(given["model"], given["dialect"])
    # Words before a call are no answer, and only the end of a turn tells: piped, they are held back until then.
    live = out.terminal or not len(box)
    show = Show(None if given["as_json"] else out, live=live, asks=approve is not None)
    try:
        reply = answer(
            prompt, runnable(box), show, model=model, system=given["system"], approve=approve, **sampling_of(given)
        )
    finally:
        out.end_line()
    if given["as_json"]:
        out.json(as_json(reply, model.name))
    if not reply.text.strip():
        click.echo("error: the model gave no answer", err=True)
    return not failed(reply)
