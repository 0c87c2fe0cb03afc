"""`toolspeak route`: rank tools for a question, or measure the ranking on examples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...errors import UsageError
from ...schema.phrases import number_of
from ..options import Command, complete_file, model_option, prompt_dialect_option, question, tools_option

if TYPE_CHECKING:
    from ...search import ToolIndex
    from ...toolbox import Toolbox
    from ..terminal import Out

MORE = 3
"""How many tools are printed beyond those that the model sees."""
MISSED = 10
"""The default of -k with `--eval`: a tool that is not among the first so many is a miss."""


@click.command(cls=Command)
@click.argument("words", metavar="[QUESTION]", nargs=-1)
@tools_option
@model_option
@prompt_dialect_option
@click.option(
    "--embed",
    metavar="minilm|URL",
    help="Rank by meaning too, with an embedding model: minilm in this process, or an endpoint such as http://host:8000/v1#NAME.",
)
@click.option(
    "-k",
    type=click.IntRange(1),
    metavar="N",
    help=f"The number of tools to list. With --eval, a tool that is not among the first N is a miss.  [default: those that the model sees "
    f"and {MORE} more; {MISSED}]",
)
@click.option(
    "--eval",
    "examples",
    metavar="FILE",
    type=click.Path(path_type=Path),
    shell_complete=complete_file,
    help='Measure the ranking on examples: JSON lines of {"question": …, "tools": [names it needs]}, or cases of toolspeak eval.',
)
@click.option(
    "-o",
    "--out",
    metavar="FILE.html",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --eval, write the table, a picture and the misses to this page.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def route(words: tuple[str, ...], files: tuple[str, ...], **options: Any) -> None:
    """Show which of many tools a model sees for a question.

    \b
    toolspeak route "Will it rain in Xiamen?" --tools tools.json
    toolspeak route "Will it rain in Xiamen?" --tools mcp.json --embed minilm
    toolspeak route --eval examples.jsonl --tools tools.json --out recall.html

    `-` is standard input. The model gets no question: it only counts the tokens of the tools, if it can.
    """
    if options["examples"] and words:
        raise click.UsageError("a question and --eval: expected one of the two")
    if page := options["out"]:
        if not options["examples"]:
            raise click.UsageError("--out is the page of --eval FILE: use both or neither")
        if page.suffix not in (".html", ".htm") or not page.parent.is_dir():
            raise click.UsageError(f"--out: expected a file FILE.html in an existing folder, received {page}")
    text = "" if options["examples"] else question(words)
    from ..terminal import answers
    from ..tool_sources import toolbox

    with answers() as out:
        box = toolbox(files)
        if not len(box):
            raise UsageError(
                "no tools: expected --tools FILE, a .py file with functions, a .json file, mcp:… or openapi:…"
            )
        if options["examples"]:
            _measure(out, box, options)
        else:
            _route(out, text, box, options)


def _index(box: Toolbox, embed: str | None) -> ToolIndex:
    from ...search import ToolIndex
    from ..terminal import Progress

    progress = Progress()
    progress.waiting("reading the tools")
    try:
        return ToolIndex(box, embed=embed)
    finally:
        progress.ready()


# ------------------------------------------------------------------ one question


def _route(out: Out, question: str, box: Toolbox, options: dict[str, Any]) -> None:
    from ...models.resolve import model
    from ..route_view import print_routing, routed

    routing = routed(question, _index(box, options["embed"]), model(options["model"], dialect=options["dialect"]))
    k = options["k"] or len(routing.selected) + MORE
    if options["as_json"]:
        out.json(routing.as_json(k))
    else:
        print_routing(out, routing, k)


# ------------------------------------------------------------------ many, with what they need


def _measure(out: Out, box: Toolbox, options: dict[str, Any]) -> None:
    from ...evals import recall, recall_page
    from ...models.resolve import model
    from ...models.tool_calling import calling
    from ..route_view import misses

    k = options["k"] or MISSED
    examples, left = recall.load(options["examples"], [tool.name for tool in box])
    chosen = calling(model(options["model"], dialect=options["dialect"]))
    ways = {"words": None} | ({f"words and {options['embed']}": options["embed"]} if options["embed"] else {})
    measured = [recall.measure(examples, _index(box, embed), chosen, by) for by, embed in ways.items()]
    about = f"{number_of(len(examples), 'question')} of {options['examples'].name}, {number_of(len(box), 'tool')}, shown to {chosen.name}"
    if options["as_json"]:
        out.json([recall_page.as_json(one, k) for one in measured])
    else:
        from ..eval_view import print_table

        out.line(about)
        print_table(out, *recall_page.table(measured, k))
        for one in measured:
            misses(out, one, k)
    if left:
        click.echo(f"left out, because they need no tool: {left} line{'s' * (left > 1)}", err=True)
    if options["out"]:
        options["out"].write_text(recall_page.page(measured, k, about), "utf-8")
        click.echo(f"report: {options['out']}", err=True)
