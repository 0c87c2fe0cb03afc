"""`toolspeak batch`: send every row of a table to a model. No row is lost, and no row is written twice."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..batch_view import BatchProgress
from ..options import (
    Command,
    complete_file,
    model_option,
    policy_option,
    prompt_dialect_option,
    sampling_of,
    sampling_options,
    schema_option,
    system_option,
    tools_option,
)

if TYPE_CHECKING:
    from ...batch.summary import Summary
    from ...wire.dialect import Dialect
    from ..terminal import Out


@click.command(cls=Command)
@click.argument("source", metavar="INPUT", shell_complete=complete_file)
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path))
@click.option(
    "-p",
    "--prompt",
    metavar="TEXT",
    default="text",
    show_default=True,
    help="A column, or a template with columns in braces.",
)
@click.option("--id", "id_column", metavar="COLUMN", default="id", show_default=True, help="The column with the id.")
@click.option("--no-id", is_flag=True, help="Make the id from the content of the row.")
@click.option(
    "--verb",
    type=click.Choice(["decide", "extract", "run"]),
    help="What to do with a row.  [default: extract with --schema, else decide]",
)
@tools_option
@schema_option
@model_option
@prompt_dialect_option
@system_option
@click.option(
    "--concurrency",
    type=click.IntRange(1, 10_000),
    metavar="N",
    default=16,
    show_default=True,
    help="The maximum number of concurrent rows.",
)
@click.option("--tries", type=click.IntRange(1), metavar="N", help="The most attempts to get a valid reply.")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), metavar="N", help="The time limit of a row.")
@click.option("--retry-errors", is_flag=True, help="Repeat the rows whose record is an error.")
@click.option(
    "--may-have-run",
    type=click.Choice(["error", "again"]),
    default="error",
    show_default=True,
    help="With --verb run: what to do with a row whose calls were running when the process died.",
)
@click.option(
    "--format",
    "form",
    metavar="NAME",
    help="The format of the output: jsonl or parquet.  [default: as INPUT, else jsonl]",
)
@click.option(
    "--shard",
    type=click.IntRange(1, 10_000_000),
    metavar="N",
    default=10_000,
    show_default=True,
    help="Rows in one file of the output.",
)
@click.option("--ray", "on_ray", is_flag=True, help="Distribute the rows over a Ray cluster.")
@click.option(
    "--address",
    metavar="HOST:PORT",
    help="With --ray: the address of the cluster.  [default: $RAY_ADDRESS, else a new one on this machine]",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="With --ray: the number of workers.  [default: one per machine]",
)
@click.option("--price", metavar="IN,OUT", help="The price of a million input and output tokens.")
@sampling_options
@policy_option
@click.option("-q", "--quiet", is_flag=True, help="Write no progress.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def batch(
    source: str,
    out: Path,
    id_column: str,
    no_id: bool,
    files: tuple[str, ...],
    schema: str | None,
    model: str | None,
    dialect: Dialect | None,
    seconds: float | None,
    form: str | None,
    price: str | None,
    on_ray: bool,
    address: str | None,
    workers: int | None,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Ask a model about every row of a table, and write one record per row.

    \b
    toolspeak batch tickets.csv out --tools tools.py
    toolspeak batch tickets.csv out --prompt "{body}" --schema ticket.py:Ticket
    toolspeak batch tickets.jsonl out --retry-errors

    INPUT is a file of JSON lines (.jsonl), CSV (.csv, .tsv) or Parquet (.parquet), or JSON lines in OpenAI's Batch
    format, which bring their own tools. OUT is a folder that gets one file for every 10,000 rows.

    No row is lost or written twice: after Ctrl-C, a crash or a kill, run the same command to continue. A row that
    fails becomes a record with an error. The exit code is 1 if any record has an error.
    """
    from ...batch.verbs import batch as run_batch
    from ..options import model_by_name
    from ..policy_file import policy_for
    from ..terminal import answers
    from ..tool_sources import kind_of, toolbox

    settings = {
        name: options[name] for name in ("concurrency", "tries", "retry_errors", "may_have_run", "shard", "system")
    }
    if not on_ray and (address or workers):
        raise click.UsageError("--address and --workers need --ray")
    with answers() as to:
        kind = kind_of(schema) if schema else None
        tools = toolbox(files) if files else ()
        settings["policy"] = policy_for(options["policy_file"], tools)
        model_by_name(model, dialect)  # download it now, before a time limit runs
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with _interruptible(to, as_json, BatchProgress(quiet=quiet)) as view:
            summary = (_on_cluster(address, workers) if on_ray else run_batch)(
                source, out, options["prompt"], None if no_id else id_column,
                verb=options["verb"] or ("extract" if schema else "decide"),
                tools=tools, kind=kind, model=model, dialect=dialect, limits={"seconds": seconds}, format=form,
                price=_price(price), progress=view.update, **settings, **sampling_of(options),
            )  # fmt: skip
        _write(to, summary, as_json)
    if summary.errors + summary.standing:
        raise click.exceptions.Exit(1)


def _on_cluster(address: str | None, workers: int | None) -> Callable[..., Summary]:
    """The batch on a cluster. Ray prints its warnings on standard output, which belongs to the summary here."""
    from ...ray.driver import batch as cluster_batch

    def run(*args: Any, **options: Any) -> Summary:
        with contextlib.redirect_stdout(sys.stderr):
            return cluster_batch(*args, address=address, workers=workers, **options)

    return run


@contextlib.contextmanager
def _interruptible(to: Out, as_json: bool, view: BatchProgress) -> Generator[BatchProgress]:
    """Yield the view of the progress. After Ctrl-C, write the summary as far as the batch got."""
    try:
        with view:
            yield view
    except KeyboardInterrupt:
        if view.summary is not None:
            _write(to, view.summary, as_json)
        click.echo("interrupted: run the same command to continue", err=True)
        raise


def _write(to: Out, summary: Summary, as_json: bool) -> None:
    from ...schema.phrases import beginning
    from ..terminal import LINE, to_stderr

    to.json(summary.as_dict()) if as_json else to.line(str(summary))
    if summary.first_error:
        to_stderr(f"the first error: {beginning(summary.first_error, LINE)}")


def _price(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        sent, received = (float(part) for part in text.split(","))
    except ValueError:
        raise click.UsageError(f"--price: expected IN,OUT, such as 0.15,0.60, received {text!r}") from None
    return sent, received
