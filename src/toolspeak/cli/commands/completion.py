"""`toolspeak completion`: print the shell's completion script for commands, options, files and models."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from ..options import Command


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the shell completion script.

    \b
    bash:  toolspeak completion bash >> ~/.bashrc
    zsh:   toolspeak completion zsh >> ~/.zshrc
    fish:  toolspeak completion fish > ~/.config/fish/completions/toolspeak.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"nothing is known of the shell {shell}")
    script = kind(ctx.find_root().command, {}, "toolspeak", "_TOOLSPEAK_COMPLETE")
    click.echo(script.source_template % script.source_vars())  # source() would start a bash to find out its version
