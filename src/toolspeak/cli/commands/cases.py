"""`toolspeak cases`: turn a recording into cases for `toolspeak eval`, or cases into a test."""

from __future__ import annotations

from pathlib import Path

import click

from ...errors import UsageError
from ..options import Command, complete_file, complete_model


@click.command(cls=Command)
@click.argument(
    "file", metavar="FILE", shell_complete=complete_file, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option("--only", "names", metavar="ID", multiple=True, help="Only the case with this id. Can be repeated.")
@click.option(
    "--failed",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Only the cases that failed in this folder of `toolspeak eval`.",
)
@click.option(
    "--test",
    metavar="TEST.py",
    type=click.Path(path_type=Path),
    help="Write a pytest file with the cases and the recorded answers of the model.",
)
@click.option(
    "-m",
    "--model",
    metavar="NAME",
    shell_complete=complete_model,
    help="The model that the test uses when it is recorded again.  [default: the one that answered]",
)
def cases(file: Path, names: tuple[str, ...], failed: Path | None, test: Path | None, model: str | None) -> None:
    """Turn a recording into cases for `toolspeak eval`, or cases into a test.

    \b
    toolspeak cases recorded/small.jsonl > cases.jsonl
    toolspeak cases recorded/small.jsonl --only small-3 --test test_weather.py
    toolspeak cases cases.jsonl --failed evaluation --test tests/test_failures.py

    FILE is a recording made by `toolspeak serve --record` or toolspeak.record, or a file of cases. Each case expects the
    calls that were recorded: correct those that are wrong. The test replays the recorded answers, so it needs no model.
    """
    from ...evals.recording_cases import case_line, cases_of, chosen, write_test
    from ..terminal import answers, to_stderr

    with answers() as out:
        every, others = cases_of(file, failed)
        selected = chosen(every, names)
        for why in () if names else others:
            to_stderr(f"no case: {why}")
        if not selected:
            raise UsageError(f"{file}: there is no case" + (f" that failed in {failed}" if failed else ""))
        if test is None:
            for one in selected:
                out.line(case_line(one.case))
            return
        exchange = selected[0].exchange
        name = model or (exchange.model["name"] if exchange else "local")
        for path in write_test(test, selected, file.name, name):
            to_stderr(f"wrote {path}")
