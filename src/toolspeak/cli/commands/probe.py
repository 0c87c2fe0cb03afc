"""`toolspeak probe`: find out what a server can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ...errors import UsageError
from ..options import Command

if TYPE_CHECKING:
    from ...models.http import Http
    from ...models.servers.capabilities import ServerCapabilities
    from ..terminal import Out


@click.command(cls=Command)
@click.argument("name", metavar="URL|NAME")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def probe(name: str, as_json: bool) -> None:
    """Find out what a server supports: tools, schemas, grammars, likelihoods.

    \b
    toolspeak probe http://localhost:8000/v1
    toolspeak probe ollama:NAME --json

    Sends about twenty-five small requests. The result is cached for a day and used by the gateway's mode `auto`. The key
    comes from the provider's variable, such as OPENAI_API_KEY, or from TOOLSPEAK_API_KEY.
    """
    from ...models.strategy import strategy
    from ..doctor_checks import probed
    from ..terminal import answers

    known = probed(_server(name))
    with answers() as out:
        if as_json:
            chosen = strategy(known.known)
            dialect = chosen.dialect.name if chosen.dialect else ""
            out.json({**known.as_dict(), "way": chosen.way, "dialect": dialect, "strategy": chosen.line})
        else:
            _table(out, known)


def _server(name: str) -> Http:
    from ...models.http import Http
    from ...models.resolve import bare
    from ..doctor_checks import whole

    http_model = bare(whole(name))  # the server itself, without a tuned profile
    if not isinstance(http_model, Http):
        raise UsageError(
            f"{name} runs in this process: expected a server, such as http://localhost:8000/v1 or ollama:NAME"
        )
    return http_model


def _table(out: Out, known: ServerCapabilities) -> None:
    from ...models.servers.capabilities import saved
    from ...models.strategy import strategy

    about = [known.address, known.model]
    if known.server:
        about.append(known.server)
    out.line("  ".join(about))
    marks = {"yes": ("✓", "green"), "no": ("✗", "red"), "unclear": ("?", "yellow")}
    for name, finding in known.findings.items():
        out.line(f"{name:<15} {finding.evidence}", before=marks[finding.answer])
    out.line(f"saved: {saved(known)}")
    out.line(f"asked: {strategy(known.known).line}")
