"""What commands share: their switches, the question from words and pipes, the model by its name."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from ..errors import UsageError

if TYPE_CHECKING:
    from ..models.base import Model
    from ..toolbox import Approve
    from ..verbs import Sampled
    from ..wire.syntax import Dialect

F = TypeVar("F", bound=Callable[..., Any])

DEBUG = "toolspeak.debug"
NAMES = ("temperature", "top_p", "top_k", "max_tokens", "extra_body")
"""The options of sampling, as verbs call them."""


def switches() -> list[click.Parameter]:
    """`--verbose` and `--debug`, which every command takes, before its name or after it."""
    return [
        click.Option(
            ["-v", "--verbose"],
            count=True,
            expose_value=False,
            callback=_log,
            help="Log to standard error (-vv: more).",
        ),
        click.Option(
            ["--debug"],
            is_flag=True,
            expose_value=False,
            callback=_debug,
            help="Show a traceback where there is an error.",
        ),
    ]


class Command(click.Command):
    """A command with the switches that all commands have."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += switches()


def _debug(ctx: click.Context, _: click.Parameter, given: bool) -> None:
    ctx.meta[DEBUG] = ctx.meta.get(DEBUG) or given


def _log(_: click.Context, __: click.Parameter, count: int) -> None:
    log = logging.getLogger("toolspeak")
    if not log.handlers:
        log.addHandler(logging.NullHandler())  # without one Python itself would print warnings
    warned = logging.getLogger("toolspeak.models.profiles")  # what changes how a model is asked is told unasked
    warned.handlers.clear()
    if not count:
        handler = logging.StreamHandler()
        handler.setLevel(logging.WARNING)
        handler.setFormatter(logging.Formatter("warning: %(message)s"))
        warned.addHandler(handler)
        return
    log.setLevel(logging.DEBUG if count > 1 else logging.INFO)
    if not any(isinstance(handler, logging.StreamHandler) for handler in log.handlers):
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s", "%H:%M:%S"))
        log.addHandler(handler)


# ------------------------------------------------------------------ options of several commands


def complete_model(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of models, as far as they can be told."""
    from ..models.providers import PROVIDERS

    names = ["local", "local:", *(f"{name}:" for name in PROVIDERS), "http://", "scripted:"]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def complete_file(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Lets the shell complete a file's name."""
    return [CompletionItem(incomplete, type="file")]


def complete_dialect(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of dialects."""
    from ..dialects import names

    return [CompletionItem(name) for name in names() if name.startswith(incomplete)]


def _dialect(_: click.Context, __: click.Parameter, given: str | None) -> Dialect | None:
    """The dialect that an option names."""
    from ..sources.dialects import load_dialect

    return None if given is None else load_dialect(given)


def dialect_option(about: str, *, required: bool = False) -> Callable[[F], F]:
    """The option `--dialect`, whose value is a Dialect."""
    return click.option(
        "-d",
        "--dialect",
        metavar="NAME|FILE",
        required=required,
        callback=_dialect,
        shell_complete=complete_dialect,
        help=f"{about} A name (`toolspeak dialects` lists them), a .py file with a Dialect in it, or a .json file: a "
        "tokenizer_config.json or a response template.",
    )


prompt_dialect_option = dialect_option("Write the tools into the prompt in this dialect.")
read_in_option = dialect_option("The dialect.", required=True)
tools_option = click.option(
    "-t",
    "--tools",
    "files",
    metavar="FILE[:NAMES]",
    multiple=True,
    shell_complete=complete_file,
    help="Offer the public functions of a .py file, or those named (FILE:a,b); the operations of an OpenAPI document "
    "(openapi:FILE or openapi:URL); or what MCP servers offer (mcp:COMMAND, mcp:URL, or a .json file of mcpServers). "
    "May be given several times.",
)
model_option = click.option(
    "-m",
    "--model",
    metavar="NAME",
    shell_complete=complete_model,
    help="local, local:FILE.gguf, ollama:NAME, openai:NAME, http://host:8000/v1#NAME, …  [default: $TOOLSPEAK_MODEL, else local]",
)
system_option = click.option("-s", "--system", metavar="TEXT", help="What the model is told before the question.")


def extra_body(_: click.Context, __: click.Parameter, text: str | None) -> dict[str, Any] | None:
    """The JSON object that an option holds. Raises click.BadParameter."""
    if text is None:
        return None
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        value = error
    if not isinstance(value, dict):
        raise click.BadParameter(f'expected a JSON object such as {{"min_p": 0.1}}, received {text[:80]}')
    return cast("dict[str, Any]", value)


SAMPLING = (
    click.option("--temperature", type=float, metavar="NUMBER", help="0 takes the likeliest token each time."),
    click.option(
        "--top-p", type=float, metavar="NUMBER", help="Sample from the likeliest tokens of this share, 0 to 1."
    ),
    click.option("--top-k", type=int, metavar="N", help="Sample from the N likeliest tokens."),
    click.option("--max-tokens", type=int, metavar="N", help="End each reply after N tokens."),
    click.option("--seed", type=int, metavar="N", help="Sample the same way each time, where the model can."),
    click.option("--stop", multiple=True, metavar="TEXT", help="End each reply before this text; may be given again."),
    click.option(
        "--extra-body",
        metavar="JSON",
        callback=extra_body,
        help="""Further fields for the model's server, such as '{"min_p": 0.1}'.""",
    ),
)


def sampling_options(command: F) -> F:
    """Gives a command the options of SAMPLING."""
    for option in reversed(SAMPLING):
        command = option(command)
    return command


def sampling_of(given: Mapping[str, Any]) -> Sampled:
    """The sampling settings among a command's options, for a verb."""
    return cast(
        "Sampled", {name: given[name] for name in (*NAMES, "seed", "stop") if given.get(name) not in (None, ())}
    )


approve_option = click.option("--approve", is_flag=True, help="Ask before each call is run.")


def asked_model(name: str | None, dialect: Dialect | None = None) -> Model:
    """The model of that name, ready; its file, if it has to be fetched first, is fetched here."""
    from ..models.local import Local
    from ..models.names import model
    from ..models.speaker import Speaker
    from ..models.weights import ensure

    made = model(name, dialect=dialect)
    inner = made.model if isinstance(made, Speaker) else made
    if isinstance(inner, Local) and inner.path is None:
        ensure()
    return made


# ------------------------------------------------------------------ what people type and pipe


def question(words: Sequence[str]) -> str:
    """The words as one text; `-` among them, or no words at all and a pipe, stands for standard input."""
    if not words and (typed() or sys.stdin is None):  # pyright: ignore[reportUnnecessaryComparison]
        command = click.get_current_context().command_path
        raise click.UsageError(f'what is the question? Expected: {command} "…", or a text on standard input')
    if not words:
        words = ("-",)
    for word in words:
        if any("\ud800" <= letter <= "\udfff" for letter in word):
            raise UsageError(f"the question is not UTF-8: {word[:80]!a}")
    stdin = piped_text() if "-" in words else ""
    text = "\n\n".join(stdin if run == "-" else run for run in _runs(words)).strip()
    if not text:
        raise UsageError("the question is empty")
    return text


def _runs(words: Sequence[str]) -> list[str]:
    """Neighbouring words joined, each `-` by itself."""
    runs: list[str] = []
    for word in words:
        if word == "-" or not runs or runs[-1] == "-":
            runs.append(word)
        else:
            runs[-1] += " " + word
    return runs


def typed() -> bool:
    """Whether somebody types at standard input."""
    return sys.stdin is not None and sys.stdin.isatty()  # pyright: ignore[reportUnnecessaryComparison]


def piped_text() -> str:
    """All of standard input, which must be UTF-8."""
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise UsageError("standard input is closed")
    return as_utf8(sys.stdin.buffer.read(), "standard input")


def as_utf8(raw: bytes, what: str) -> str:
    """The text that bytes are, without a byte order mark. UsageError where they are not UTF-8."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{what} is not UTF-8: byte 0x{raw[error.start]:02x} at offset {error.start}. "
            "Convert it first, for example with iconv -t UTF-8"
        ) from None


def asker() -> Approve:
    """Asks on the terminal, call by call, whether it may be run. UsageError where there is no terminal.

    What was typed before a question is no answer to it and is thrown away.
    """
    name = os.ttyname(sys.stdin.fileno()) if typed() else os.ctermid()
    try:
        terminal = open(name, "r+b", buffering=0)  # noqa: SIM115 - open as long as the program is
    except OSError:
        raise UsageError("--approve asks on a terminal, and there is none here") from None

    def ask(call: Any) -> bool | str:
        import termios  # there is no other terminal than one that has it: see above

        from .screen import shown_json, visible

        termios.tcflush(terminal.fileno(), termios.TCIFLUSH)
        terminal.write(visible(f"run {call.name} {shown_json(call.json or call.arguments)} ? [y/N] ").encode())
        answer = terminal.readline().decode("utf-8", "replace").strip().lower()
        return True if answer in ("y", "yes") else "the user said no"

    return ask
