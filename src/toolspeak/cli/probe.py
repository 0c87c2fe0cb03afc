"""`toolspeak probe`: what a server really can do."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from ..errors import UsageError
from .base import Command

if TYPE_CHECKING:
    from ..models.abilities import Abilities
    from ..models.http import Http
    from .screen import Out


@click.command(cls=Command)
@click.argument("name", metavar="URL|NAME")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def probe(name: str, as_json: bool) -> None:
    """Ask a server what it really can do: tools, schemas, grammars, likelihoods.

    \b
    toolspeak probe http://localhost:8000/v1
    toolspeak probe ollama:NAME --json

    Sends some twenty-five small requests. What is found is remembered for a day, for the gateway's mode `auto`.
    The key is taken from the provider's variable, such as OPENAI_API_KEY, or TOOLSPEAK_API_KEY.
    """
    import asyncio

    from ..models.probe import abilities
    from ..models.strategy import strategy
    from .screen import Progress, answers

    model = _server(name)

    async def asked() -> Abilities:
        try:
            return await abilities(model, anew=True)
        finally:
            await model.aclose()

    progress = Progress()
    progress.waiting("asking")
    try:
        known = asyncio.run(asked())
    finally:
        progress.ready()
    with answers() as out:
        if as_json:
            chosen = strategy(known.known)
            dialect = chosen.dialect.name if chosen.dialect else ""
            out.json({**asdict(known), "way": chosen.way, "dialect": dialect, "strategy": chosen.line})
        else:
            _table(out, known)


def _server(name: str) -> Http:
    from ..models.http import Http
    from ..models.names import bare, model, over_http

    if "://" not in name and name.partition(":")[0] in ("localhost", "127.0.0.1"):
        name = f"http://{name}"  # an address as people type it
    if not over_http(name):
        model(name)  # a name that means nothing is told so
        raise UsageError(
            f"{name} is in this process: expected a server, such as http://localhost:8000/v1 or ollama:NAME"
        )
    made = bare(name)  # the server itself, whatever it was tuned to
    if not isinstance(made, Http):
        raise UsageError(f"expected a server, such as http://localhost:8000/v1 or ollama:NAME, got {name}")
    return made


def _table(out: Out, known: Abilities) -> None:
    from ..models.strategy import strategy

    about = [known.address, known.model]
    if known.server:
        about.append(known.server)
    out.line("  ".join(about))
    marks = {"yes": ("✓", "green"), "no": ("✗", "red"), "unclear": ("?", "yellow")}
    for name, finding in known.found.items():
        out.line(f"{name:<15} {finding.evidence}", before=marks[finding.answer])
    out.line(f"asked: {strategy(known.known).line}")
