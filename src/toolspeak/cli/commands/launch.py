"""`toolspeak launch`: start a coding agent on any model, with a gateway that runs as long as the agent."""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import shutil
import signal
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from ...errors import BadRequest, KeyRefused, MissingExtra, ModelError, ToolspeakError, UnknownModel, UsageError
from ...schema.suggestions import did_you_mean, listed, near
from ..coding_agents import AGENTS, Place, Setting
from ..options import Command, complete_file, dialect_option, model_option
from ..terminal import Progress
from .serve import address_of, name_of, read_settings, serve

if TYPE_CHECKING:
    from ...gateway.app import Gateway
    from ...gateway.config.settings import GatewaySettings
    from ...models.fallback import Adaptive
    from ...models.http import Http
    from ...wire.dialect import Dialect

FORWARDED = (signal.SIGTERM, signal.SIGHUP)
"""Signals that are passed on to the agent. Ctrl-C reaches it from the terminal."""
SILENT = 1.0
"""Seconds of waiting for the model's server before that is shown."""
PORT = 8080
"""Where `toolspeak serve` listens, for a setting that is only printed."""


@click.command(cls=Command)
@click.argument("agent", type=click.Choice(list(AGENTS)))
@click.argument("arguments", metavar="[-- ARGS]", nargs=-1, type=click.UNPROCESSED)
@model_option
@dialect_option("Write the tools into the prompt of --model in this dialect.")
@click.option(
    "-c", "--config", metavar="FILE", shell_complete=complete_file, help="Read the gateway's configuration from a file."
)
@click.option(
    "--print", "only_print", is_flag=True, help="Print the settings for a running gateway, and start nothing."
)
def launch(
    agent: str,
    arguments: tuple[str, ...],
    model: str | None,
    dialect: Dialect | None,
    config: str | None,
    only_print: bool,
) -> None:
    """Start a coding agent on any model.

    A gateway serves the model on a free port as long as the agent runs. The agent is configured by environment
    variables and arguments; its own settings do not change. ARGS go to the agent. A summary goes to standard
    error at the end.

    \b
    toolspeak launch aider --model ollama:NAME
    toolspeak launch codex --model http://gpu:8000/v1#NAME -- exec "Fix the test"
    toolspeak launch codex --model http://gpu:8000/v1#NAME --dialect tool-json
    toolspeak launch opencode --print
    """
    from ...gateway.serve.server import check_installed

    settings, name, serving = _served(model, dialect, config)
    if only_print:
        key = "YOUR_KEY" if settings.keys else "none"
        place = Place(f"http://127.0.0.1:{PORT}", name, key, "toolspeak-agent", settings.models[name].context)
        click.echo("\n".join(_script(agent, place, arguments, serving)))
        return
    check_installed()
    launcher = AGENTS[agent]
    program = shutil.which(launcher.program)
    if program is None:
        raise MissingExtra(f"{launcher.program} is not installed or not on the PATH. Install it: {launcher.install}")
    code = _launch(agent, [program, *arguments], settings, name)
    raise click.exceptions.Exit(code)


def _served(model: str | None, dialect: Dialect | None, config: str | None) -> tuple[GatewaySettings, str, str]:
    """Return the gateway's settings, the name of the model that answers, and the `toolspeak serve` command that does
    the same. Raises UsageError."""
    from ...models.resolve import DEFAULT, VARIABLE

    options = [one for one in serve.params if isinstance(one, click.Option)]
    flags: dict[str, Any] = {str(one.name): () if one.multiple else None for one in options}
    flags |= {"config": config, "host": "127.0.0.1", "port": 0, "workers": 1, "insecure": False}
    file = ["--config", config] if config else []
    settings = read_settings(flags) if config else None
    if settings and (name := _configured(settings, model, dialect)):
        return replace(settings, default=name), name, shlex.join(["toolspeak", "serve", *file, "--default", name])
    spec = model or os.environ.get(VARIABLE, DEFAULT)
    name = name_of(spec)
    try:
        settings = read_settings(flags | {"models": (f"{name}={spec}",), "default": name, "dialect": dialect})
    except UnknownModel as error:
        raise _with_models(error, spec, config, settings) from None
    command = ["toolspeak", "serve", *file, "--model", f"{name}={spec}", "--default", name]
    return settings, name, shlex.join([*command, *(["--dialect", _dialect_label(dialect)] if dialect else [])])


def _configured(settings: GatewaySettings, model: str | None, dialect: Dialect | None) -> str:
    """Return the name of the model that answers if the configuration has it, else "". Raises UsageError if --dialect is
    given for it."""
    name = model or settings.default or next(iter(settings.models))
    if name not in settings.models:
        return ""
    if dialect:
        raise UsageError("--dialect applies to the model of --model: in a configuration, set `dialect` of the model")
    return name


def _with_models(error: UnknownModel, spec: str, config: str | None, settings: GatewaySettings | None) -> UnknownModel:
    """Return the error for a name that means no model, with the models of the configuration if there is one."""
    if settings is None:
        return error
    return UnknownModel(
        f"{config} has no model {spec[:100]!r}.{did_you_mean(near(spec, settings.models))} It has {listed(settings.models)}. "
        f"Any other model needs its full name: {error}"
    )


def _dialect_label(dialect: Dialect) -> str:
    """The name of a dialect; one that a file declares has none that others know."""
    from ...dialects import names

    return dialect.name if dialect.name in names() else "FILE"


def _script(agent: str, place: Place, arguments: tuple[str, ...], serving: str) -> Iterator[str]:
    """Yield the setting as lines of a shell script."""
    setting = AGENTS[agent].setting(place)
    yield f"# the gateway, in another terminal: {serving}"
    if setting.removed:
        yield f"unset {' '.join(setting.removed)}"
    for name, value in setting.variables.items():
        yield f"export {name}={shlex.quote(value)}"
    if setting.files:
        yield f"mkdir -p {shlex.quote(place.folder)}"
    for name, text in setting.files.items():
        yield f"cat > {shlex.quote(f'{place.folder}/{name}')} <<'END'\n{text}END"
    yield shlex.join([AGENTS[agent].program, *setting.arguments, *arguments])


# ------------------------------------------------------------------ running


def _launch(agent: str, command: list[str], settings: GatewaySettings, name: str) -> int:
    """Run the agent beside a gateway, print a summary of its requests, and return the agent's exit code."""
    from ...gateway.access.keys import digest
    from ...gateway.config.settings import Key
    from ...gateway.registry import servers_of
    from ...gateway.serve.server import listen, serve_while
    from ...gateway.telemetry.client_summary import Tally
    from ...models.context import context_of

    key = secrets.token_urlsafe(
        24
    )  # a key, because other users of this machine could otherwise spend the model's money
    settings = replace(settings, keys=(Key("agent", digest(key)),))
    listening = listen(settings)
    tally = Tally()
    url = address_of(settings, listening.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="toolspeak-") as folder:

        async def work(gateway: Gateway) -> int:
            model = gateway.models.served[name].model
            servers = servers_of(model)
            await _until_ready(gateway, servers)
            await _check_usable(servers)
            context = settings.models[name].context or context_of(model)
            for line in (*_problems(servers), *_too_small(agent, context)):
                click.echo(line, err=True)
            setting = AGENTS[agent].setting(Place(url, name, key, folder, context))
            for file, text in setting.files.items():
                Path(folder, file).write_text(text, "utf-8")
            with _interrupts_are_the_agents():
                return await _run([command[0], *setting.arguments, *command[1:]], setting)

        code = serve_while(settings, listening, tally, work)
    for line in tally.summary(name):
        click.echo(line, err=True)
    return code


async def _until_ready(gateway: Gateway, servers: list[Adaptive]) -> None:
    """Wait until the gateway is ready, which takes a slow server's probe a while. What is waited for is shown."""
    ready = asyncio.create_task(gateway.readiness.loaded.wait())
    if (await asyncio.wait((ready,), timeout=SILENT))[0]:
        return
    progress = Progress()
    waiting = [server.http.address.public for server in servers if not server.decided.is_set()]
    text = f"asking {', '.join(waiting)} whether the model gets tools; a slow server takes about a minute"
    text = text if waiting else "loading the model"
    if not progress.fancy:
        click.echo(text, err=True)
    progress.waiting(text)
    try:
        await ready
    finally:
        progress.ready()


async def _check_usable(servers: list[Adaptive]) -> None:
    """Raises the error of a server that refuses the key or has no model of that name, if no other one is left: the agent
    would only repeat its requests."""
    failures = [server.failure for server in servers if server.failure and _is_final(server.failure)]
    if failures and len(failures) == len(servers):
        raise await _unknown_model(servers[0].http, failures[0])


def _is_final(failure: ToolspeakError) -> bool:
    """Whether a server will refuse each request in the same way."""
    missing = failure.code == 404 if isinstance(failure, BadRequest) else False
    return missing or isinstance(failure, KeyRefused | UsageError)


async def _unknown_model(http: Http, failure: ToolspeakError) -> ToolspeakError:
    """Return the failure; as an error with the models that the server lists, similar names first, if the model is none of
    them."""
    if not isinstance(failure, BadRequest):
        return failure
    try:
        name, names = str(http.model), await http.models()
    except (ModelError, UsageError):
        return failure
    if name in (names or [name]):
        return failure
    similar = near(name, names)
    every = listed(dict.fromkeys((*similar, *names)))
    return UnknownModel(f"{http.address.public} has no model {name[:100]!r}.{did_you_mean(similar)} It has {every}.")


def _problems(servers: list[Adaptive]) -> Iterator[str]:
    """Yield a warning for each server that did not answer, or not in time."""
    for server in servers:
        address = server.http.address.public
        if server.problem:
            yield f"warning: {address}: {server.problem}. Requests fail until it answers."
        elif not server.decided.is_set():
            yield f"warning: {address} is slow: whether its model gets tools is not known yet. Requests wait for that."


def _too_small(agent: str, context: int | None) -> Iterator[str]:
    """Yield a warning if the context is known and smaller than the agent needs."""
    least = AGENTS[agent].least
    if context in range(1, least):
        yield (
            f"warning: the model's context has {context:,} tokens, and {agent} works from {least:,}: it may fail or compact "
            "the conversation without end."
        )


async def _run(command: list[str], setting: Setting) -> int:
    """Run the agent with this process's input, output and terminal. Return its exit code, or 128 plus the number of the
    signal that ended it."""
    inherited = {name: value for name, value in os.environ.items() if name not in setting.removed}
    process = await asyncio.create_subprocess_exec(*command, env={**inherited, **setting.variables})
    loop = asyncio.get_running_loop()
    for number in FORWARDED:
        loop.add_signal_handler(number, _pass_on, process, number)
    code = await process.wait()
    return code if code >= 0 else 128 - code


def _pass_on(process: asyncio.subprocess.Process, number: int) -> None:
    if process.returncode is None:
        process.send_signal(number)


@contextmanager
def _interrupts_are_the_agents() -> Generator[None]:
    """Leave Ctrl-C to the agent: the terminal sends the signal to both processes.

    The handler does nothing. SIG_IGN would do the same here, but the agent would inherit it.
    """

    def nothing(_: int, __: FrameType | None) -> None: ...

    before = signal.signal(signal.SIGINT, nothing)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
