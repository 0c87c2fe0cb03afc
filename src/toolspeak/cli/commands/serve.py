"""`toolspeak serve`: run the gateway."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ...errors import UsageError
from ..options import Command, complete_file, dialect_option

if TYPE_CHECKING:
    from ...gateway.config.settings import GatewaySettings, ModelSettings
    from ...wire.dialect import Dialect

KEY_VARIABLE = "TOOLSPEAK_GATEWAY_KEY"


@click.command(cls=Command)
@click.option("-m", "--model", "models", metavar="[NAME=]SPEC", multiple=True, help="Serve a model under this name.")
@dialect_option("Prompt the models of --model in this dialect.")
@click.option(
    "-c", "--config", metavar="FILE", shell_complete=complete_file, help="Read the configuration from a file."
)
@click.option(
    "--alias", "aliases", metavar="PATTERN=NAME", multiple=True, help="Also answer to other names: 'large-*=small'."
)
@click.option("--default", metavar="NAME", help="Use this model for any other name.")
@click.option("--host", metavar="ADDRESS", help="Listen at this address.  [default: 127.0.0.1]")
@click.option("--port", metavar="PORT", type=click.IntRange(0, 65535), help="Listen at this port.  [default: 8080]")
@click.option(
    "--api-key",
    metavar="KEY",
    help=f"Require this key from clients. Better set ${KEY_VARIABLE}, which other users cannot see.",
)
@click.option(
    "--cors", metavar="ORIGIN", multiple=True, help="Allow requests from web pages of this origin; * for any."
)
@click.option("--workers", metavar="N", type=click.IntRange(1, 1024), help="The number of processes.  [default: 1]")
@click.option(
    "--record",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Record the requests and replies of each model, in one file per model.",
)
@click.option(
    "--replay",
    metavar="DIR|FILE",
    type=click.Path(),
    shell_complete=complete_file,
    help="Answer from recordings; each replaces the model with its name.",
)
@click.option("--insecure", is_flag=True, help="Allow requests from other machines without a key.")
@click.option(
    "--check", metavar="FILE", shell_complete=complete_file, help="Check a configuration file, with the other options."
)
@click.option("--new-key", metavar="NAME", help="Create a key, and print the lines for the configuration.")
@click.option("--sample", is_flag=True, help="Print a configuration with comments.")
def serve(check: str | None, new_key: str | None, sample: bool, **flags: Any) -> None:
    """Serve models through the OpenAI, Anthropic and Ollama APIs, with tools.

    \b
    toolspeak serve
    toolspeak serve --model s=ollama:NAME --model big=http://gpu:8000/v1#NAME
    toolspeak serve --sample > gateway.toml; toolspeak serve --config gateway.toml

    The default is the small embedded model. Options override the configuration file.
    """
    if sample:
        _print_sample()
    elif new_key is not None:
        _print_key(new_key, flags["config"])
    elif check is not None:
        _check(flags, check)
    else:
        _serve(flags)


def _serve(flags: dict[str, Any]) -> None:
    from ...gateway.serve.server import check_installed, listen, serve as serving

    check_installed()
    settings = read_settings(flags)
    listening = listen(settings)
    if settings.record:
        click.echo(f"note: requests and replies are recorded in {settings.record}, with their full text", err=True)
    for line in _hello(settings, listening.getsockname()[1]):
        click.echo(line, err=True)
    serving(settings, listening, partial(_read_again, flags) if flags["config"] else None)


def read_settings(flags: dict[str, Any]) -> GatewaySettings:
    """Read the file and apply the flags over it. Raises UsageError for settings that cannot be served."""
    from ...gateway.access.host_check import check_openness
    from ...gateway.config.load import check_origins, read_config
    from ...gateway.config.settings import GatewaySettings
    from ...gateway.registry import Models

    settings = read_config(flags["config"]) if flags["config"] else GatewaySettings({})
    without_model = () if flags["models"] else settings.models
    if flags["dialect"] and without_model:
        raise UsageError("--dialect applies to the models of --model: in a configuration, set `dialect` of each model")
    models = {**settings.models, **models_of(flags["models"], flags["dialect"])}
    if flags["replay"] is not None:
        models |= _replayed(flags["replay"], models)
    overrides = {name: flags[name] for name in ("host", "port", "workers") if flags[name] is not None}
    settings = replace(
        settings,
        models=models or models_of(("local",), flags["dialect"]),
        cors=check_origins(flags["cors"]) or settings.cors,
        insecure=flags["insecure"],
        record=flags["record"],
        keys=_with_key(settings, flags["api_key"]),
        aliases={**_aliases(flags["aliases"]), **settings.aliases},
        default=flags["default"] or settings.default,
        **overrides,
    )
    check_openness(settings)
    Models(settings.models, aliases=settings.aliases, default=settings.default, record=settings.record)
    return settings


def _read_again(flags: dict[str, Any]) -> GatewaySettings:
    """Read the file again. Raises UsageError if it has no model: it may be only half written."""
    from ...gateway.config.load import read_config

    if not any((flags["models"], flags["replay"], read_config(flags["config"]).models)):
        raise UsageError(f"{flags['config']}: expected a model, such as [models.NAME]")
    return read_settings(flags)


def _replayed(path: str, configured: Mapping[str, ModelSettings]) -> dict[str, ModelSettings]:
    """Return a model for each recording, with the settings that the configuration has for its name."""
    from ...gateway.config.settings import ModelSettings
    from ...gateway.registry import recordings

    models: dict[str, ModelSettings] = {}
    for name, file in recordings(path).items():
        usual = configured.get(name) or ModelSettings(name, ())
        models[name] = replace(usual, upstreams=(f"replay:{file}",), mode="auto", dialect=None, template=None, key=None)
    return models


def models_of(specs: tuple[str, ...], dialect: Dialect | None) -> dict[str, ModelSettings]:
    """Return the settings of the models `[NAME=]SPEC`. Raises UsageError for a wrong one, and for a name used twice."""
    from ...gateway.config.settings import ModelSettings
    from ...models.resolve import begins_a_name

    models: dict[str, ModelSettings] = {}
    for spec in specs:
        name, equals, rest = (part.strip() for part in spec.partition("="))
        if not equals or begins_a_name(name):  # an address may contain = in its query, and a scripted reply anywhere
            name, rest = name_of(spec), spec.strip()
        if not (name and rest):
            raise UsageError(f"expected --model NAME=SPEC, such as small=ollama:NAME, got {spec[:100]!r}")
        if name in models:
            raise UsageError(
                f"two models are called {name[:100]!r}: name each of them (--model NAME=SPEC); for several servers of "
                "one model use a file (--sample)"
            )
        models[name] = ModelSettings(name, (rest,), dialect=dialect)
    return models


def name_of(spec: str) -> str:
    """Return a short name for a model: the last part of its specification, without characters that agents reject. An
    address alone stands for the only model of its server."""
    last = re.split("[#/]", re.sub(r"^(https?:[^#]*|\w+:)", "", spec.strip()))[-1]
    name = re.sub(r"[^\w.-]+", "-", last, flags=re.ASCII).strip("-.")[:64]
    return name or "model"


def _aliases(specs: tuple[str, ...]) -> dict[str, str]:
    aliases: dict[str, str] = {}
    for spec in specs:
        alias, _, name = (part.strip() for part in spec.partition("="))
        if not (alias and name):
            raise UsageError(f"expected --alias PATTERN=NAME, such as 'large-*=small', got {spec[:100]!r}")
        aliases[alias] = name
    return aliases


def _with_key(settings: GatewaySettings, option: str | None) -> Any:
    """Return the keys of the file, and the one from the flag or the environment."""
    import os

    from ...gateway.access.keys import digest
    from ...gateway.config.settings import Key

    key = option if option is not None else os.environ.get(KEY_VARIABLE, "").strip()
    if option is not None:
        click.echo(f"note: other users of this machine can see --api-key; set ${KEY_VARIABLE} instead", err=True)
    elif not key:
        return settings.keys
    if any(one.name == "default" for one in settings.keys):
        raise UsageError(
            "[keys.default] is reserved for the key from --api-key or the environment: choose another name"
        )
    return (*settings.keys, Key("default", digest(key)))


def address_of(settings: GatewaySettings, port: int) -> str:
    """Return the address at which a client on this machine reaches the gateway, without /v1."""
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(settings.host, settings.host)  # noqa: S104
    return f"http://{f'[{host}]' if ':' in host and host[0] != '[' else host}:{port}"


def _hello(settings: GatewaySettings, port: int) -> list[str]:
    """Return the lines that are printed at the start: the address, commands to paste, and what is missing."""
    from ...gateway.config.extras import missing_extras

    address = address_of(settings, port)
    key = "YOUR_KEY" if settings.keys else "none"
    model = next(iter(settings.models))
    header = f' -H "Authorization: Bearer {key}"' if settings.keys else ""
    body = f'{{"model": "{model}", "messages": [{{"role": "user", "content": "Hi"}}]}}'
    return [
        f"serving {', '.join(settings.models)} at {address}",
        f"  export OPENAI_BASE_URL={address}/v1 OPENAI_API_KEY={key} "
        f"ANTHROPIC_BASE_URL={address} ANTHROPIC_API_KEY={key}",
        f"  curl {address}/v1/chat/completions{header} -H 'Content-Type: application/json' -d '{body}'",
        *missing_extras(settings),
    ]


# ------------------------------------------------------------------ what only prints


def _check(flags: dict[str, Any], path: str) -> None:
    """Read a configuration, apply the flags over it, and print a summary of the result."""
    from ...gateway.config.load import summary

    if flags["config"]:
        raise UsageError("--check reads the file that follows it: leave out --config")
    settings = read_settings({**flags, "config": path})
    click.echo("\n".join([f"{path} is valid", *summary(settings)]))


def _print_key(name: str, config: str | None) -> None:
    """Print the lines for the file to standard output, so that they can be appended; the key goes to standard error.
    Raises UsageError if the file `config` has a key of that name."""
    from ...gateway.access.keys import hashed, new_key
    from ...gateway.config.fields import quoted
    from ...gateway.config.parts import key_names

    if config and name in key_names(config):
        raise UsageError(
            f"{config} already has a key {name[:100]!r}: choose another name, or remove [keys.{quoted(name)}]"
        )

    if not name.strip():
        raise UsageError("expected a name for the key, such as --new-key alice")
    key = new_key()
    click.echo(f"\n[keys.{quoted(name)}]\nhash = {quoted(hashed(key), always=True)}")
    click.echo(f"\nthe key of {name}, shown this once: {key}", err=True)


def _print_sample() -> None:
    from importlib.resources import files

    click.echo(files("toolspeak.gateway").joinpath("sample.toml").read_text("utf-8"), nl=False)
