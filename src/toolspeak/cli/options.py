"""Options that commands share, the question from arguments and pipes, and the model by its name."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from ..errors import UsageError

if TYPE_CHECKING:
    from ..models.base import Model
    from ..verbs import Sampled
    from ..wire.dialect import Dialect

F = TypeVar("F", bound=Callable[..., Any])

DEBUG = "toolspeak.debug"
REPLAY = "recording"
"""The parameter of `--replay`. It is turned into a model before a command sees it."""
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
            help="Show the traceback of an error.",
        ),
    ]


class Command(click.Command):
    """A command with the switches that all commands have."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += switches()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and turn `--replay FILE` into the model `replay:FILE`."""
        rest = super().parse_args(ctx, args)
        recording = ctx.params.pop(REPLAY, None)
        if recording is not None:
            if ctx.params["model"] is not None or ctx.params.get("dialect") is not None:
                raise click.UsageError("--replay replaces the model: use no --model and no --dialect with it")
            ctx.params["model"] = f"replay:{recording}"
        return rest


def _debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta[DEBUG] = ctx.meta.get(DEBUG) or value


def _log(_: click.Context, __: click.Parameter, count: int) -> None:
    log = logging.getLogger("toolspeak")
    if not log.handlers:
        log.addHandler(logging.NullHandler())  # without a handler, Python prints warnings by itself
    warned = logging.getLogger(
        "toolspeak.models.tuned_profiles"
    )  # a profile changes how a model is prompted: say so even without --verbose
    warned.handlers.clear()
    if not count:
        handler = logging.StreamHandler()
        handler.setLevel(logging.WARNING)
        handler.setFormatter(logging.Formatter("warning: %(message)s"))
        warned.addHandler(handler)
        return
    log.setLevel(logging.DEBUG if count > 1 else logging.INFO)
    logging.getLogger("toolspeak.content.notes").setLevel(logging.DEBUG)  # such as why a model is asked again
    if not any(isinstance(handler, logging.StreamHandler) for handler in log.handlers):
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s", "%H:%M:%S"))
        log.addHandler(handler)


# ------------------------------------------------------------------ options of several commands


def complete_model(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the model names that complete the text, as far as they are known."""
    from ..models.http.providers import PROVIDERS

    names = ["local", "local:", *(f"{name}:" for name in PROVIDERS), "http://", "scripted:", "replay:"]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def complete_file(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete the name of a file."""
    return [CompletionItem(incomplete, type="file")]


def complete_dialect(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the dialect names that complete the text."""
    from ..dialects import names

    return [CompletionItem(name) for name in names() if name.startswith(incomplete)]


def _dialect(_: click.Context, __: click.Parameter, value: str | None) -> Dialect | None:
    """Return the dialect that an option names."""
    if value is None:
        return None
    from ..sources.dialect_files import load_dialect

    return load_dialect(value)


def dialect_option(about: str, *, required: bool = False) -> Callable[[F], F]:
    """Return a decorator that adds the option `--dialect`, whose value is a Dialect."""
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
    "Can be repeated.",
)


def model_option(command: F) -> F:
    """Add `--model` to a command, and `--replay` for a recording in its place."""
    for option in reversed(MODEL):
        command = option(command)
    return command


MODEL = (
    click.option(
        "-m",
        "--model",
        metavar="NAME",
        shell_complete=complete_model,
        help="local, local:FILE.gguf, ollama:NAME, openai:NAME, http://host:8000/v1#NAME, …  [default: $TOOLSPEAK_MODEL, else local]",
    ),
    click.option(
        "--replay",
        REPLAY,
        metavar="FILE",
        shell_complete=complete_file,
        help="Answer from a recording instead of a model: see `toolspeak serve --record` and toolspeak.record.",
    ),
)
schema_option = click.option(
    "--schema",
    metavar="FILE|MODULE:TYPE",
    shell_complete=complete_file,
    help="What to extract: a JSON Schema in a file, or a type in a module or a .py file.",
)
system_option = click.option("-s", "--system", metavar="TEXT", help="The system prompt.")


def extra_body(_: click.Context, __: click.Parameter, text: str | None) -> dict[str, Any] | None:
    """Parse an option that holds a JSON object. Raises click.BadParameter."""
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
    click.option("--temperature", type=float, metavar="NUMBER", help="0 always takes the most likely token."),
    click.option(
        "--top-p",
        type=float,
        metavar="NUMBER",
        help="Sample from the most likely tokens with this total probability, 0 to 1.",
    ),
    click.option("--top-k", type=int, metavar="N", help="Sample from the N most likely tokens."),
    click.option("--max-tokens", type=int, metavar="N", help="End each reply after N tokens."),
    click.option("--seed", type=int, metavar="N", help="Make sampling repeatable, if the model supports it."),
    click.option("--stop", multiple=True, metavar="TEXT", help="End each reply before this text. Can be repeated."),
    click.option(
        "--extra-body",
        metavar="JSON",
        callback=extra_body,
        help="""More fields for the model's server, such as '{"min_p": 0.1}'.""",
    ),
)


def sampling_options(command: F) -> F:
    """Add the options of SAMPLING to a command."""
    for option in reversed(SAMPLING):
        command = option(command)
    return command


def sampling_of(options: Mapping[str, Any]) -> Sampled:
    """Return the sampling settings among a command's options, for a verb."""
    return cast(
        "Sampled", {name: options[name] for name in (*NAMES, "seed", "stop") if options.get(name) not in (None, ())}
    )


LIMITS = (
    click.option("--steps", type=click.IntRange(1), metavar="N", help="End the run after N replies.  [default: 16]"),
    click.option(
        "--seconds", type=click.FloatRange(0, min_open=True), metavar="N", help="End the run after N seconds."
    ),
    click.option(
        "--tokens", type=click.IntRange(1), metavar="N", help="End the run after N tokens in all its replies."
    ),
    click.option("--calls", type=click.IntRange(1), metavar="N", help="End the run after N calls."),
)


def limits_options(command: F) -> F:
    """Add the options of LIMITS to a command."""
    for option in reversed(LIMITS):
        command = option(command)
    return command


def limits_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits of a run among a command's options, for a verb."""
    return {name: options[name] for name in ("steps", "seconds", "tokens", "calls") if options[name] is not None}


class WholeSummaries(click.Group):
    """A group whose help shows the whole first sentence of each command."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their first sentences."""
        every = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, command.get_short_help_str(1000)) for name, command in every if command and not command.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class CommandGroup(WholeSummaries):
    """A command with subcommands, and the switches that all commands have."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += switches()


image_option = click.option(
    "-i",
    "--image",
    "images",
    metavar="FILE",
    multiple=True,
    help="Show the model an image with the question. Can be repeated.",
)
approve_option = click.option("--approve", is_flag=True, help="Ask before each call is run.")
policy_option = click.option(
    "--policy",
    "policy_file",
    metavar="FILE",
    help="Which calls run, need approval or are refused (TOML; see toolspeak policy).",
)


def model_by_name(name: str | None, dialect: Dialect | None = None) -> Model:
    """Return the model of that name, ready to use. Its file is downloaded if necessary."""
    from ..models.embedded.local import Local
    from ..models.resolve import model
    from ..models.speaker import Speaker

    ready = model(name, dialect=dialect)
    inner = ready.model if isinstance(ready, Speaker) else ready
    if isinstance(inner, Local) and inner.path is None:
        inner.fetch()
    return ready


def model_of_saved(data: object, name: str | None, dialect: Dialect | None) -> Model:
    """Return the model that a saved conversation names, or the model `name`, if given. Standard error says which one
    answers in place of the saved one. Raises UsageError if the saved one is not available."""
    saved = cast("Mapping[str, Any]", data).get("model") if isinstance(data, Mapping) else None
    if not isinstance(saved, str):
        return model_by_name(name, dialect)
    if name is None:
        try:
            return model_by_name(saved, dialect)
        except UsageError as error:
            raise UsageError(
                f"the saved conversation is with {saved[:100]!r}: {error}. Name a model: --model"
            ) from None
    ready = model_by_name(name, dialect)
    if ready.name != saved:
        click.echo(f"{ready.name} continues a conversation with {saved[:100]}", err=True)
    return ready


# ------------------------------------------------------------------ what people type and pipe


SURROGATE = re.compile("[\ud800-\udfff]").search
"""Characters by which Python represents bytes of an argument that are not UTF-8."""


def question(words: Sequence[str]) -> str:
    """Return the words as one text. `-` among them, or a pipe without any words, stands for standard input."""
    if not words and (typed() or sys.stdin is None):  # pyright: ignore[reportUnnecessaryComparison]
        command = click.get_current_context().command_path
        raise click.UsageError(f'no question: expected {command} "…", or a text on standard input')
    if not words:
        words = ("-",)
    for word in filter(SURROGATE, words):
        raise UsageError(f"the question is not UTF-8: {word[:80]!a}")
    stdin = piped_text() if "-" in words else ""
    text = "\n\n".join(stdin if run == "-" else run for run in _runs(words)).strip()
    if not text:
        raise UsageError("the question is empty")
    return text


def _runs(words: Sequence[str]) -> list[str]:
    """Join neighboring words; each `-` stays by itself."""
    runs: list[str] = []
    for word in words:
        if word == "-" or not runs or runs[-1] == "-":
            runs.append(word)
        else:
            runs[-1] += " " + word
    return runs


def typed() -> bool:
    """Whether standard input is a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()  # pyright: ignore[reportUnnecessaryComparison]


def piped_text() -> str:
    """Return all of standard input, which must be UTF-8."""
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise UsageError("standard input is closed")
    return as_utf8(sys.stdin.buffer.read(), "standard input")


def as_utf8(raw: bytes, what: str) -> str:
    """Decode bytes, without a byte order mark. Raises UsageError if they are not UTF-8."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{what} is not UTF-8: byte 0x{raw[error.start]:02x} at offset {error.start}. "
            "Convert it first, for example with iconv -t UTF-8"
        ) from None
