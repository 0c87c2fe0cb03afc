"""`toolspeak eval`: measure how well models call functions, and compare runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from ...errors import ModelError, UsageError
from ..options import (
    Command,
    WholeSummaries,
    complete_dialect,
    complete_file,
    complete_model,
    model_by_name,
    switches,
    tools_option,
)

OWN = "own"
"""The value of --dialect that stands for the model's own strategy."""


class Eval(WholeSummaries):
    """The group of subcommands. `run` is the default if none is named."""

    command_class = Command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = not args or args[0] in (*self.commands, "-h", "--help")
        return super().parse_args(ctx, args if named else ["run", *args])


@click.group(cls=Eval, params=switches())
def eval() -> None:  # noqa: A001 - the command's name
    """Measure how well models call functions, on your cases or a leaderboard's.

    \b
    toolspeak eval cases.jsonl --tools tools.py --model local --model ollama:NAME
    toolspeak eval "bfcl:simple[100:150]" --out before
    toolspeak eval diff before after

    `eval CASES …` is short for `eval run CASES …`.
    """


@eval.command("run")
@click.argument("cases", nargs=-1, metavar="CASES...", shell_complete=complete_file)
@click.option(
    "-m",
    "--model",
    "models",
    metavar="NAME",
    multiple=True,
    shell_complete=complete_model,
    help="Measure this model. Can be repeated.  [default: $TOOLSPEAK_MODEL, else local]",
)
@click.option(
    "-d",
    "--dialect",
    "dialects",
    metavar="NAME",
    multiple=True,
    shell_complete=complete_dialect,
    help="Prompt every model in this dialect. Can be repeated. `own` is the model's default.",
)
@tools_option
@click.option(
    "-o",
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path("evaluation"),
    show_default=True,
    help="The folder for the results. If it has results already, the run continues.",
)
@click.option("--split", metavar="WORD", help="Run only the cases of this split.")
@click.option(
    "--plain-names",
    is_flag=True,
    help="Rename the leaderboard's functions from a.b to a_b, for servers that allow no dots.",
)
@click.option(
    "--temperature", metavar="NUMBER", default="0", show_default=True, help="`default` leaves it to the model."
)
@click.option("--seed", type=int, metavar="NUMBER", help="The seed for sampling, if the temperature is not 0.")
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="The maximum number of tokens in a reply.")
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    help="The time limit of a decision. A decision that takes longer is wrong.",
)
@click.option(
    "--tries",
    type=click.IntRange(1),
    metavar="N",
    default=1,
    show_default=True,
    help="The most attempts to get a valid reply.",
)
@click.option(
    "--parallel",
    "at_once",
    type=click.IntRange(1),
    metavar="N",
    default=1,
    show_default=True,
    help="The number of concurrent cases, for servers.",
)
@click.option(
    "--price",
    "prices",
    metavar="[MODEL=]IN,OUT",
    multiple=True,
    help="The price of a million input and output tokens.",
)
@click.option("--errors-again", is_flag=True, help="Run the cases again that ended in an error.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def run_(
    cases: tuple[str, ...],
    models: tuple[str, ...],
    dialects: tuple[str, ...],
    files: tuple[str, ...],
    out: Path,
    split: str | None,
    plain_names: bool,
    temperature: str,
    prices: tuple[str, ...],
    errors_again: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Run cases on models, one decision each, and report how many are right.

    CASES are files of JSON lines, each with a question and the calls expected, and parts of the Berkeley leaderboard:
    bfcl:simple, bfcl:multiple[:100], bfcl:parallel[100:150], …

    \b
    toolspeak eval cases.jsonl --tools tools.py
    toolspeak eval "bfcl:simple[100:150]" --dialect own --dialect tool-json

    Your functions are not run. Each case is appended to DIR/cases.jsonl with its exact prompts, and DIR/report.html
    shows the results.
    """
    if not cases:
        raise click.UsageError(
            "no cases: expected a file of JSON lines, or bfcl:CATEGORY, such as bfcl:simple[100:110]"
        )
    from ... import evals
    from ...models.resolve import DEFAULT, VARIABLE
    from ..eval_view import ProgressReport, results
    from ..terminal import answers
    from ..tool_sources import toolbox

    chosen = evals.Settings(_temperature(temperature), prices=dict(map(_price, prices)), **settings)
    with answers() as to:
        tools = list(toolbox(files)) if files else None
        every = evals.load(*cases, tools=tools, split=split, plain_names=plain_names)
        names = list(models) or [os.environ.get(VARIABLE) or DEFAULT]
        for name in names:
            model_by_name(name)  # download it now, before a time limit runs
        measured = evals.contenders(names, [None if name == OWN else name for name in dialects])
        progress = ProgressReport(out, len(every) * len(measured))
        try:
            records = evals.run(
                every, measured, out, chosen, sources=cases, on_record=progress.case_done, errors_again=errors_again
            )
        except (ModelError, KeyboardInterrupt):
            progress.stopped()
            raise
        progress.close()
        results(to, out, records, as_json)


@eval.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def report(folder: Path, as_json: bool) -> None:
    """Print a run's results and write its page again, also while it runs.

    \b
    toolspeak eval report evaluation
    """
    from ...evals import read
    from ..eval_view import results
    from ..terminal import answers

    with answers() as to:
        records = read(folder)
        if not records:
            raise UsageError(f"{folder} has no results yet")
        results(to, folder, records, as_json)


@eval.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="[B]", required=False)
@click.option(
    "-n",
    "--cases",
    "limit",
    type=click.IntRange(0),
    metavar="N",
    default=20,
    show_default=True,
    help="The number of changed cases to show.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def diff(first: str, second: str | None, limit: int, as_json: bool) -> None:
    """Compare two runs on the same cases, with a significance test.

    A and B are folders of results; DIR#CONTENDER names one of several in a folder. A folder with two contenders needs
    no second.

    \b
    toolspeak eval diff before after
    toolspeak eval diff "evaluation#local" "evaluation#local · tool-json"
    """
    from ...evals import compare_folders
    from ..eval_view import compared, difference
    from ..terminal import answers

    with answers() as to:
        comparison = compare_folders(first, second)
        if as_json:
            to.json([difference(one) for one in comparison])
            return
        for one in comparison:
            compared(to, one, limit)


# ------------------------------------------------------------------ what is given


def _temperature(text: str) -> float | None:
    if text == "default":
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value <= 100:
        raise click.UsageError(f"--temperature: expected a number from 0 on, or default, received {text!r}")
    return value


def _price(text: str) -> tuple[str, tuple[float, float]]:
    name, _, pair = text.rpartition("=")
    try:
        sent, received = (float(part) for part in pair.split(","))
        if not (sent >= 0 and received >= 0):
            raise ValueError
    except ValueError:
        raise click.UsageError(
            f"--price: expected IN,OUT or MODEL=IN,OUT, such as 0.15,0.60, received {text!r}"
        ) from None
    return name, (sent, received)
