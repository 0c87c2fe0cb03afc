"""`toolspeak mcp`: a file's functions as an MCP server; and what MCP servers offer, accepted anew."""

from __future__ import annotations

import click

from ..options import Command, Group, policy_option, tools_option


@click.group(cls=Group, invoke_without_command=True, subcommand_metavar="[accept …]")
@tools_option
@click.option(
    "--http",
    "where",
    metavar="HOST:PORT",
    help="Serve streamable HTTP on this machine instead of standard input and output.",
)
@policy_option
@click.option("--name", default="toolspeak", show_default=True, help="The server's name.")
@click.pass_context
def mcp(ctx: click.Context, files: tuple[str, ...], where: str | None, name: str, policy_file: str | None) -> None:
    """Serve tools to any MCP client, over standard input and output or HTTP.

    \b
    toolspeak mcp --tools weather.py
    toolspeak mcp --tools weather.py --http 127.0.0.1:8000

    For standard input and output, give the command to the client, which starts it. Calls are checked before they
    run, and errors of tools are returned to the client. The output of tools goes to standard error. With --policy only the
    calls that it allows run: nobody is there to be asked, and a client's conversation is not known.
    """
    if ctx.invoked_subcommand:
        if files or where:
            raise click.UsageError(f"--tools and --http serve; {ctx.invoked_subcommand} does not")
        return
    if not files:
        raise click.UsageError("which tools are to be served? Expected --tools FILE, such as --tools weather.py")
    from ...sources.mcp import server as serve
    from ..files import runnable, toolbox
    from ..policy_file import read_policy

    policy = read_policy(policy_file) if policy_file else None
    with serve.quiet():
        box = runnable(toolbox(files))
    if where is None:
        serve.serve_stdio(box, name, policy)
        return
    listening = serve.listen(where)
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    click.echo(f"serving {', '.join(tool.name for tool in box)} at http://{shown}:{port}{serve.PATH}", err=True)
    serve.serve_http(box, listening, name, policy)


@mcp.command(cls=Command)
@click.argument("server", metavar="SERVER")
@click.argument("tools", metavar="[TOOL]...", nargs=-1)
@click.option("--pins", metavar="FILE", help="The lock file.  [default: $TOOLSPEAK_PINS, else the user's own]")
def accept(server: str, tools: tuple[str, ...], pins: str | None) -> None:
    """Accept what an MCP server offers now.

    \b
    toolspeak mcp accept "npx -y @modelcontextprotocol/server-everything"
    toolspeak mcp accept http://127.0.0.1:8000/mcp search

    A definition that changed since it was accepted is refused. This command prints the changes and accepts them,
    for the named tools or for all.
    """
    from ...sources.mcp import accept as accepted
    from ...sources.mcp.config import with_names
    from ..files import MCP
    from ..terminal import answers

    with answers() as out:
        where, only = with_names(server.removeprefix(MCP))
        found = accepted(where, *tools, pins=pins or True, only=only)
        for name, difference in found.items():
            out.line(f"accepted {name}" + (f"\n{difference}" if difference else ""))
        if not found:
            out.line("nothing has changed")
