"""`toolspeak ui`: a page in the browser that shows the prompts and output of a model."""

from __future__ import annotations

import webbrowser
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ..options import Command, policy_option, tools_option

if TYPE_CHECKING:
    from ...gateway.config.settings import GatewaySettings

KEY = "page"
LIVE = 200
"""Requests through this server that are kept to be seen."""


@click.command(cls=Command)
@click.option(
    "-m",
    "--model",
    "models",
    metavar="[NAME=]SPEC",
    multiple=True,
    help="Offer a model under this name.  [default: $TOOLSPEAK_MODEL, else local]",
)
@tools_option
@policy_option
@click.option(
    "--reports",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    default=".",
    show_default=True,
    help="List the reports in this folder.",
)
@click.option("--port", metavar="PORT", type=click.IntRange(0, 65535), default=0, help="Listen at this port.")
@click.option("--open", "opened", is_flag=True, help="Open the page in the browser.")
def ui(
    models: tuple[str, ...], files: tuple[str, ...], policy_file: str | None, reports: str, port: int, opened: bool
) -> None:
    """Show the prompts and the output of a model on a page in the browser.

    \b
    toolspeak ui
    toolspeak ui --model ollama:NAME --model local --tools weather.py --open

    Prints the address of the page. The server listens only on this machine, and the address contains its key. The page
    can run only the tools given here: one by one by hand, or with --policy as the policy says. Calls that need
    approval are asked about on the page.
    """
    from ...gateway.serve.server import check_installed, listen, serve

    check_installed()
    settings, key = _settings(models, files, policy_file, reports, port)
    listening = listen(settings)
    server = f"http://{settings.host}:{listening.getsockname()[1]}"
    address = f"{server}/ui/#key={key}"
    click.echo(address)
    click.echo(f"To see what a client sends: OPENAI_BASE_URL={server}/v1 OPENAI_API_KEY={key}", err=True)
    click.echo("Anyone with this address can use the models and tools; Ctrl-C ends it.", err=True)
    if opened:
        webbrowser.open(address)
    serve(settings, listening)


def _settings(
    models: tuple[str, ...], files: tuple[str, ...], policy_file: str | None, reports: str, port: int
) -> tuple[GatewaySettings, str]:
    """Return the settings of a gateway for this page alone, and the key that opens it. Raises UsageError."""
    from ...gateway.access.keys import digest, new_key
    from ...gateway.config.settings import GatewaySettings, Key, PageSettings
    from ...gateway.registry import Models
    from ..policy_file import policy_for
    from ..tool_sources import runnable, toolbox
    from .serve import models_of

    key = new_key()
    tools = runnable(toolbox(files)) if policy_file else toolbox(files)
    policy = policy_for(policy_file, tools)
    page = PageSettings(live=LIVE, operators=(KEY,), tools=tools, policy=policy, reports=reports)
    settings = GatewaySettings(models_of(models or (default_model(),), None), port=port, ui=page)
    Models(settings.models)  # a wrong one is an error before there is an address
    return replace(settings, keys=(Key(KEY, digest(key)),)), key


def default_model() -> str:
    """Return the name of the model that is used if none is given."""
    import os

    return os.environ.get("TOOLSPEAK_MODEL", "").strip() or "local"
