"""`toolspeak mcp`: serve a file's functions as an MCP server; accept changed definitions of MCP servers; log in at
them."""

from __future__ import annotations

import threading
import webbrowser
from types import ModuleType
from typing import TYPE_CHECKING

import click

from ...errors import MissingExtra, UsageError
from ...schema.phrases import number_of
from ..options import Command, CommandGroup, complete_file, policy_option, tools_option

if TYPE_CHECKING:
    from ...sources.mcp.config import McpAddress


@click.group(cls=CommandGroup, invoke_without_command=True, subcommand_metavar="[accept|login|logout …]")
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
    run, and errors of tools are returned to the client. The output of tools goes to standard error.

    With --policy a call runs if the policy allows it, or if the policy asks and the client's user accepts it; the client
    must support elicitation for that. `after_untrusted` has no effect, because the server does not see the client's
    conversation.
    """
    if ctx.invoked_subcommand:
        if files or where:
            raise click.UsageError(f"--tools and --http serve; {ctx.invoked_subcommand} does not")
        return
    if not files:
        raise click.UsageError("no tools: expected --tools FILE, such as --tools weather.py")
    from ...sources.mcp import server as serve
    from ..policy_file import policy_for
    from ..tool_sources import runnable, toolbox

    with serve.quiet():
        box = runnable(toolbox(files))
    policy = policy_for(policy_file, box)
    if where is None:
        serve.serve_stdio(box, name, policy)
        return
    listening = serve.listen(where)
    host, port = listening.getsockname()[:2]
    address = f"[{host}]" if ":" in host else host
    click.echo(f"serving {', '.join(tool.name for tool in box)} at http://{address}:{port}{serve.PATH}", err=True)
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

    toolspeak refuses a tool whose definition changed since it was accepted. This command prints the changes and
    accepts them, for the named tools or for all.
    """
    from ...sources.mcp import accept as accepted
    from ...sources.mcp.config import with_names
    from ..terminal import answers
    from ..tool_sources import MCP

    with answers() as out:
        where, only = with_names(server.removeprefix(MCP))
        accepted_changes = accepted(where, *tools, pins=pins or True, only=only)
        for name, difference in accepted_changes.items():
            out.line(f"accepted {name}" + (f"\n{difference}" if difference else ""))
        if not accepted_changes:
            out.line("nothing has changed")


server_argument = click.argument("server", metavar="URL|FILE.json:NAME|NAME")
config_option = click.option(
    "-c",
    "--config",
    metavar="FILE",
    shell_complete=complete_file,
    help="The gateway's configuration, with a table [mcp.NAME].",
)


@mcp.command(cls=Command)
@server_argument
@config_option
@click.option(
    "--port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    default=0,
    help="The port on this machine that the browser is redirected to.  [default: any free port]",
)
@click.option("--no-browser", is_flag=True, help="Print the address only; do not open a browser.")
def login(server: str, config: str | None, port: int, no_browser: bool) -> None:
    """Log in at an MCP server with the browser, by OAuth.

    \b
    toolspeak mcp login https://mcp.example.com/mcp
    toolspeak mcp login servers.json:notes
    toolspeak mcp login notes --config gateway.toml

    The login is stored in a file that only you can read ($TOOLSPEAK_LOGINS, else a file in your state folder). It is
    renewed when it expires, and used wherever toolspeak connects to that server.
    """
    from ...sources import background_loop
    from ...sources.mcp.logins import Logins, default_path
    from ..terminal import answers, to_stderr

    def tell(url: str) -> None:
        to_stderr(f"Log in with a browser on this machine at:\n{url}")
        if not no_browser:
            # Some browsers run in the terminal until the user quits them. The redirect must be served meanwhile.
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()

    address = _address(server, config)
    with answers() as out:
        count = background_loop.wait(_oauth().log_in(address, Logins(default_path()), tell, port=port))
        out.line(f"logged in at {address.description}: {number_of(count, 'tool')}")


@mcp.command(cls=Command)
@server_argument
@config_option
def logout(server: str, config: str | None) -> None:
    """Delete the login at an MCP server, and revoke it at the server if the server supports that.

    \b
    toolspeak mcp logout https://mcp.example.com/mcp
    """
    from ...sources import background_loop
    from ...sources.mcp.logins import Logins, default_path
    from ..terminal import answers

    address = _address(server, config)
    with answers() as out:
        problem = background_loop.wait(_oauth().log_out(address, Logins(default_path())))
        out.line(f"logged out at {address.description}")
        if problem:
            click.echo(
                f"note: the server did not revoke the login ({problem}); the login stays valid until it expires",
                err=True,
            )


def _oauth() -> ModuleType:
    """Return the module that logs in and out. Raises MissingExtra if the MCP SDK is not installed."""
    try:
        from ...sources.mcp import login
    except ImportError as error:
        raise MissingExtra("MCP servers need the official SDK: pip install 'toolspeak[mcp]'") from error
    return login


def _address(server: str, config: str | None) -> McpAddress:
    """Return the address of the named server. Raises UsageError for a command line, which needs no login."""
    from ...sources.mcp.config import address, read_servers, with_names
    from ..tool_sources import MCP

    if config is not None:
        server_address = _configured(server, config)
    elif server.endswith(".json") or ".json:" in server:
        path, name = (server, "") if server.endswith(".json") else server.rsplit(":", 1)
        servers = read_servers(path)
        if name not in servers:
            raise UsageError(f"which server of {path}? Expected {path}:NAME with one of {', '.join(servers)}")
        server_address = address(servers[name])
    else:
        server_address = address(with_names(server.removeprefix(MCP))[0])
    if not server_address.url:
        raise UsageError(
            f"{server_address.description} is a command line: only an MCP server at an http(s) address has a login. A server of a "
            "gateway is named with --config FILE"
        )
    return server_address


def _configured(name: str, config: str) -> McpAddress:
    """Return the server in the table [mcp.NAME] of the gateway's configuration."""
    from ...gateway.config.parts import mcp_server
    from ...gateway.mcp_sources import connector

    return connector(mcp_server(config, name)).servers[0].address
