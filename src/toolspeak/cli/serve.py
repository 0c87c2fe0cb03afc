"""`toolspeak serve`: the gateway."""

from __future__ import annotations

import click

from .base import Command


@click.command(cls=Command)
@click.option("-m", "--model", "models", metavar="[NAME=]SPEC", multiple=True, help="Serve a model, under a name.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen at this address.")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="Listen at this port.")
def serve(models: tuple[str, ...], host: str, port: int) -> None:
    """Serve models through the OpenAI and Anthropic APIs, with tools.

    \b
    toolspeak serve
    toolspeak serve --model small=ollama:gemma3 --model big=http://localhost:8000/v1#NAME
    """
    from ..gateway.server import listen
    from ..gateway.server import serve as serving
    from ..gateway.settings import ModelSettings, Settings

    named = {
        (name if sep else spec): (rest if sep else spec)
        for spec in models or ("local",)
        for name, sep, rest in [spec.partition("=")]
    }
    settings = Settings({name: ModelSettings(name, (spec,)) for name, spec in named.items()}, host=host, port=port)
    listening = listen(settings)
    address = f"http://{host}:{listening.getsockname()[1]}/v1"
    click.echo(f"serving {', '.join(named)} at {address}", err=True)
    click.echo(f"export OPENAI_BASE_URL={address} OPENAI_API_KEY=none", err=True)
    serving(settings, listening)
