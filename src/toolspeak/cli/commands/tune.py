"""`toolspeak tune`: find the best way to prompt a model on your own tools, and save it as a profile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...errors import ModelError, UsageError
from ..options import Command, complete_dialect, complete_file, complete_model, model_by_name, tools_option

if TYPE_CHECKING:
    from ...models.tuned_profiles import Profile
    from ...tuning import Outcome
    from ..terminal import Out


@click.command(cls=Command)
@click.argument("name", metavar="[MODEL]", required=False, shell_complete=complete_model)
@tools_option
@click.option(
    "-c",
    "--cases",
    metavar="FILE",
    multiple=True,
    shell_complete=complete_file,
    help="Use these cases (see toolspeak eval) instead of generated questions. Can be repeated.",
)
@click.option(
    "-d",
    "--dialect",
    "dialects",
    metavar="NAME",
    multiple=True,
    shell_complete=complete_dialect,
    help="Try this dialect instead of the usual ones. Can be repeated.",
)
@click.option(
    "-n",
    "--questions",
    "count",
    type=click.IntRange(8, 400),
    metavar="N",
    default=48,
    show_default=True,
    help="The number of questions to generate. Half of them are held out for the final comparison.",
)
@click.option(
    "-o",
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path("tuning"),
    show_default=True,
    help="The folder for the answers. If it has answers already, the run continues.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(1),
    metavar="N",
    help="The maximum number of tokens in a reply.  [default: 256 in process]",
)
@click.option("--seconds", type=click.FloatRange(0, min_open=True), metavar="N", help="The time limit of a decision.")
@click.option("--dry-run", is_flag=True, help="Save no profile.")
@click.option("--ask", is_flag=True, help="Print the questions, and send none.")
@click.option("--show", is_flag=True, help="Print the profile of the model; without MODEL, of all.")
@click.option("--forget", is_flag=True, help="Remove the profile of the model.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def tune(name: str | None, **options: Any) -> None:
    """Find the best way to prompt a model, on your own tools, and save it.

    \b
    toolspeak tune local --tools tools.py
    toolspeak tune ollama:NAME --tools tools.py --cases cases.jsonl
    toolspeak tune --show
    toolspeak tune local --forget

    Tries native tools, scoring by likelihood and several dialects: all on a few questions, the better ones on more, and
    the finalists on held-out questions. Your functions are not run.

    The result is saved as a profile, a small text file that toolspeak uses whenever you name no dialect.
    TOOLSPEAK_PROFILES is the folder of profiles, or `off` to ignore them.
    """
    if sum(options[flag] for flag in ("ask", "show", "forget")) > 1:
        raise click.UsageError("--ask, --show and --forget: expected one of them")
    from ..terminal import answers

    with answers() as out:
        if options["ask"]:
            _questions(out, options)
        elif options["show"]:
            _show(out, name, options["as_json"])
        elif name is None:
            raise click.UsageError("no model: expected toolspeak tune MODEL --tools FILE, such as tune local")
        elif options["forget"]:
            _forget(name)
        else:
            _tune(out, name, options)


def _tune(out: Out, name: str, options: dict[str, Any]) -> None:
    from ... import evals, tuning
    from ...models.resolve import bare
    from ..eval_view import ProgressReport
    from ..tool_sources import toolbox

    tools = list(toolbox(options["files"]))
    if not tools and not options["cases"]:
        raise UsageError("no tools: expected --tools FILE, a .py file with functions or a .json file with schemas")
    model = bare(name)
    if model.name == "local":
        model_by_name(name)  # download it now, before a time limit runs
    longest = options["max_tokens"] or (None if hasattr(model, "address") else tuning.IN_PROCESS)
    progress = ProgressReport(options["out"], 0)
    try:
        outcome = tuning.tune(
            name,
            tools,
            options["out"],
            cases=options["cases"],
            dialects=options["dialects"],
            count=options["count"],
            settings=evals.Settings(max_tokens=longest, seconds=options["seconds"]),
            on_record=progress.case_done,
        )
    except (ModelError, KeyboardInterrupt):
        progress.stopped()
        raise
    progress.close()
    page = evals.write_report(outcome.report_folder)
    _print_outcome(out, outcome, options["as_json"])
    click.echo(f"report: {page}", err=True)
    for one in outcome.without:
        click.echo(f"no questions for {one}", err=True)
    if not options["dry_run"]:
        click.echo(f"saved: {outcome.save()}", err=True)


def _print_outcome(out: Out, outcome: Outcome, as_json: bool) -> None:
    if as_json:
        profile = outcome.profile()
        out.json({"model": outcome.model, "chosen": outcome.chosen.strategy.label, **profile.measured})
        return
    from ..tune_view import table

    table(out, [one.as_dict() for one in outcome.tried], outcome.chosen.strategy.label)
    out.line(outcome.verdict)


def _questions(out: Out, options: dict[str, Any]) -> None:
    from ...tuning.questions import as_lines, questions
    from ..tool_sources import toolbox

    cases, without = questions(list(toolbox(options["files"])), options["count"])
    out.write(as_lines(cases))
    for one in without:
        click.echo(f"no questions for {one}", err=True)


def _show(out: Out, name: str | None, as_json: bool) -> None:
    from ...models import tuned_profiles
    from ...models.resolve import bare

    if name is None:
        known_profiles = tuned_profiles.every()
    else:
        one = tuned_profiles.recall(bare(name))
        known_profiles = [one] if one else []
    if as_json:
        out.json([{**one.record(), "path": str(one.path)} for one in known_profiles])
        return
    if not known_profiles:
        click.echo(f"{name or 'no model'} has {'no' if name else 'a'} profile", err=True)
    for one in known_profiles:
        _profile(out, one, whole=name is not None)


def _profile(out: Out, one: Profile, *, whole: bool) -> None:
    from ...api.json_stream import records
    from ..tune_view import table

    measured = one.measured
    out.line(f"{one.model}: {one.strategy.label} (tuned {measured.get('at', 'at no known time')})")
    if whole:
        out.line(f"{one.path}")
        out.line(f"on {measured.get('questions', 'questions unknown')}")
        table(out, records(measured.get("forms")), one.strategy.label)
        out.line(str(measured.get("verdict", "")))


def _forget(name: str) -> None:
    from ...models import tuned_profiles
    from ...models.resolve import bare

    gone = tuned_profiles.forget(bare(name))
    click.echo(f"removed {gone}" if gone else f"{name} has no profile", err=True)
