"""The group of all commands, each imported when it is used, and how a command ends.

This module holds the rules for every command: exit codes, errors on one line, a traceback only with `--debug`, and no
complaint when the reader of a pipe closes it.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from .. import __version__
from ..errors import ToolspeakError
from ..schema.suggestions import did_you_mean, near
from .exit_codes import EPILOG, FAILED, INTERRUPTED, code_of
from .options import DEBUG, WholeSummaries, switches

COMMANDS = (
    "ask",
    "chat",
    "resume",
    "policy",
    "ui",
    "serve",
    "launch",
    "mcp",
    "call",
    "tools",
    "route",
    "extract",
    "batch",
    "models",
    "dialects",
    "parse",
    "render",
    "grammar",
    "detect",
    "eval",
    "cases",
    "tune",
    "probe",
    "doctor",
    "completion",
)


class Root(WholeSummaries):
    """The group of all commands. Turns an exception that ends a command into an exit code and an error line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        return getattr(importlib.import_module(f"{__package__}.commands.{name}"), name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise click.UsageError(f"{error.message}{did_you_mean(near(args[0], COMMANDS))}", ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            code = INTERRUPTED
        except BrokenPipeError:  # the reader of our output closed the pipe, as `head` does
            _drop_output()
            code = 0
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:  # noqa: BLE001 - the last place to catch it: any error becomes one line
            code = _report_error(error, debug=bool(ctx.meta.get(DEBUG)))
        raise click.exceptions.Exit(code)


@click.group(
    cls=Root,
    params=switches(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EPILOG,
)
@click.version_option(__version__, prog_name="toolspeak", message="%(prog)s %(version)s")
def root() -> None:
    """Any language model can call your functions.

    \b
    toolspeak ask "What is the weather in Xiamen?" --tools weather.py
    toolspeak chat --tools weather.py --model ollama:NAME
    toolspeak call weather.py:forecast '{"city": "Xiamen"}'

    The default model is $TOOLSPEAK_MODEL, or else a small one in this process.
    """


def run(args: Sequence[str] | None) -> int:
    """Run a command line (None: the arguments of this process) and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None if the stream was closed before the start
            stream.reconfigure(errors="backslashreplace")
    try:
        outcome = root.main(args=args, prog_name="toolspeak", standalone_mode=False)
        code = outcome if isinstance(outcome, int) else 0
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    code = _flushed(code)
    if code == INTERRUPTED:
        os._exit(code)  # skips waiting for threads that still work on what was interrupted
    return code


def _report_error(error: Exception, *, debug: bool) -> int:
    from .terminal import to_stderr

    if debug:
        traceback.print_exception(error)
    if isinstance(error, (ToolspeakError, OSError)):
        to_stderr(f"error: {error}")
    else:
        hint = "" if debug else " (use --debug to see the traceback)"
        to_stderr(f"error: {type(error).__name__}: {error}{hint}")
    return code_of(error)


def _flushed(code: int) -> int:
    """Flush the output and return the exit code: FAILED if the output could not be written."""
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except BrokenPipeError:
        _drop_output()
    except OSError as error:
        _drop_output()
        click.echo(f"error: standard output: {error}", err=True)
        return code or FAILED
    return code


def _drop_output() -> None:
    """Point standard output at the null device, so that flushing it at exit raises no error."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
