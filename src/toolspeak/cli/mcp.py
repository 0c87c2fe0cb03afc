"""`toolspeak mcp`: a file's functions as an MCP server; and what MCP servers offer, accepted anew."""

from __future__ import annotations

from typing import Any

import click

from .base import Command, switches, tools_option


class Group(click.Group):
    """A command with commands of its own, and the switches that all commands have."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += switches()


@click.group(cls=Group, invoke_without_command=True, subcommand_metavar="[accept …]")
@tools_option
@click.option("--http", "where", metavar="HOST:PORT", help="Serve streamable HTTP on this machine, not standard input.")
@click.option("--name", default="toolspeak", show_default=True, help="What the server calls itself.")
@click.pass_context
def mcp(ctx: click.Context, files: tuple[str, ...], where: str | None, name: str) -> None:
    """Serve tools to any MCP client, over standard input and output or HTTP.

    \b
    toolspeak mcp --tools weather.py
    toolspeak mcp --tools weather.py --http 127.0.0.1:8000

    A client starts the first by itself: give it the command line. Calls are checked before they run, and what a tool
    raises is told to the client. What tools print goes to standard error.
    """
    if ctx.invoked_subcommand:
        if files or where:
            raise click.UsageError(f"--tools and --http serve; {ctx.invoked_subcommand} does not")
        return
    if not files:
        raise click.UsageError("which tools are to be served? Expected --tools FILE, such as --tools weather.py")
    from ..sources.mcp import serve
    from .files import runnable, toolbox

    with serve.quiet():
        box = runnable(toolbox(files))
    if where is None:
        serve.serve_stdio(box, name)
        return
    listening = serve.listen(where)
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    click.echo(f"serving {', '.join(tool.name for tool in box)} at http://{shown}:{port}{serve.PATH}", err=True)
    serve.serve_http(box, listening, name)


@mcp.command(cls=Command)
@click.argument("server", metavar="SERVER")
@click.argument("tools", metavar="[TOOL]...", nargs=-1)
@click.option("--pins", metavar="FILE", help="The lock file.  [default: $TOOLSPEAK_PINS, else the user's own]")
def accept(server: str, tools: tuple[str, ...], pins: str | None) -> None:
    """Accept what an MCP server offers now.

    \b
    toolspeak mcp accept "npx -y @modelcontextprotocol/server-everything"
    toolspeak mcp accept http://127.0.0.1:8000/mcp search

    A definition that has changed since it was accepted is refused; this prints the changes and accepts them, of the
    tools named or of all.
    """
    from ..sources.mcp import accept as accepted
    from ..sources.mcp.address import with_names
    from .files import MCP
    from .screen import answers

    with answers() as out:
        where, only = with_names(server.removeprefix(MCP))
        found = accepted(where, *tools, pins=pins or True, only=only)
        for name, difference in found.items():
            out.line(f"accepted {name}" + (f"\n{difference}" if difference else ""))
        if not found:
            out.line("nothing has changed")
