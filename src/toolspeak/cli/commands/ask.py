"""`toolspeak ask`: answer one question, with tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..options import (
    Command,
    approve_option,
    image_option,
    limits_of,
    limits_options,
    model_by_name,
    model_option,
    policy_option,
    prompt_dialect_option,
    question,
    sampling_of,
    sampling_options,
    system_option,
    tools_option,
)

if TYPE_CHECKING:
    from ...types import Message
    from ..terminal import Out

UNRUN = {"deny": "the policy refuses this call", "ask": "this call needs approval"}
"""What --dry-run says of a call that would not run, by the policy's verdict."""


@click.command(cls=Command)
@click.argument("words", metavar="QUESTION", nargs=-1)
@tools_option
@model_option
@prompt_dialect_option
@system_option
@image_option
@sampling_options
@limits_options
@click.option("--explain", is_flag=True, help="Print the exact request, and send nothing.")
@click.option("--dry-run", is_flag=True, help="Print the calls, and what a policy says of them. Run none.")
@approve_option
@policy_option
@click.option("--json", "as_json", is_flag=True, help="Print the whole outcome as one JSON object.")
@click.pass_context
def ask(ctx: click.Context, words: tuple[str, ...], files: tuple[str, ...], **options: Any) -> None:
    """Ask a model a question; it may call your functions.

    \b
    toolspeak ask "What is the weather in Xiamen?" --tools weather.py
    toolspeak ask "Tidy up" --tools files.py:list_files,move --approve
    toolspeak ask "Tidy up" --tools files.py --policy p.toml --json > run.json
    git diff | toolspeak ask "Write a commit message for this:" -

    `-` stands for standard input. The answer goes to standard output; calls, results, errors and the output of
    tools go to standard error.

    With --policy, calls that need approval are asked about on the terminal. Without a terminal the run ends, and
    `toolspeak resume` continues it from the output of --json.
    """
    if options["explain"] and options["dry_run"]:
        raise click.UsageError("--explain and --dry-run exclude each other: use one of them")
    from ..images import with_images
    from ..terminal import answers

    prompt: list[Message] = [{"role": "user", "content": with_images(question(words), options.pop("images"))}]
    with answers() as out:
        from ..tool_sources import toolbox

        box = toolbox(files)
        if options["explain"]:
            _explain(out, prompt, box, options)
        elif options["dry_run"]:
            ctx.exit(_decide(out, prompt, box, options))
        elif code := _run(out, prompt, box, options):
            ctx.exit(code)


def _explain(out: Out, prompt: list[Message], box: Any, options: dict[str, Any]) -> None:
    from ...explain import explain
    from ...models.resolve import model
    from ...tool_results import jsonable

    chosen_model = model(options["model"], dialect=options["dialect"])
    explanation = explain(prompt, tools=box, model=chosen_model, system=options["system"], **sampling_of(options))
    if options["as_json"]:
        out.json(jsonable(explanation) | {"body": explanation.body.decode()})
    else:
        out.line(str(explanation))


def _decide(out: Out, prompt: list[Message], box: Any, options: dict[str, Any]) -> int:
    from ...verbs import decide
    from ..policy_file import policy_for
    from ..run_view import as_json, exit_code, show_hints, show_open
    from ..terminal import Progress, json_line

    policy = policy_for(options["policy_file"], box)
    model = model_by_name(options["model"], options["dialect"])
    progress = Progress()
    progress.waiting()
    try:
        reply = decide(
            prompt, tools=box, model=model, system=options["system"], limits=limits_of(options), **sampling_of(options)
        )
    finally:
        progress.ready()
    tools = tuple(box)
    decisions = [policy.decide(call, prompt, tools=tools) for call in reply.calls] if policy else []
    if options["as_json"]:
        out.json(as_json(reply, model.name, decisions))
    elif reply.calls:
        for at, call in enumerate(reply.calls):
            out.line(f"{call.name} {json_line(call.arguments)}")
            if decisions and decisions[at].verdict != "allow":
                progress.result(f"{UNRUN[decisions[at].verdict]}: {decisions[at].why}", failed=True)
    else:
        out.line(reply.text)
        show_hints(reply)
    show_open(reply)
    return exit_code(reply)


def _run(out: Out, prompt: list[Message], box: Any, options: dict[str, Any]) -> int:
    from ..call_approval import approver
    from ..policy_file import policy_for
    from ..run_view import Show, answer, as_json, exit_code, show_no_call, show_open
    from ..tool_sources import runnable

    policy = policy_for(options["policy_file"], box)
    approve = approver(policy, approve=options["approve"], as_json=options["as_json"])
    model = model_by_name(options["model"], options["dialect"])
    # Text before a call is not the answer, and only the end of a turn shows that. So piped text is held back until then.
    live = out.terminal or not len(box)
    show = Show(None if options["as_json"] else out, live=live, asks=approve is not None)
    try:
        reply = answer(
            prompt, runnable(box, ", or add --dry-run or --explain"), show, model=model, system=options["system"], approve=approve, policy=policy,
            limits=limits_of(options), **sampling_of(options),
        )  # fmt: skip
    finally:
        out.end_line()
    if options["as_json"]:
        out.json(as_json(reply, model.name))
    show_open(reply)
    if len(box) and not options["as_json"]:
        show_no_call(reply, model.name)
    return exit_code(reply)
