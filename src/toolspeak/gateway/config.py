"""The gateway's configuration file (TOML): read whole, every mistake told at once with its line and its place."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..dialects import get as get_dialect
from ..errors import TemplateError, ToolspeakError, UsageError
from ..models.address import USERINFO
from ..models.names import model as named_model
from ..sources.dialects import load_dialect
from ..wire.syntax import Dialect
from ..wire.templates.engine import render_template
from .fields import ENOUGH, File, Table, Unexpected, flag, many, number, one_of, text, whole
from .hosted import box
from .keys import PREFIX
from .models import Models
from .settings import Key, Limits, ModelSettings, Rates, Settings, Store


def read_config(path: str) -> Settings:
    """The settings that a file holds. Raises UsageError, whose message has a line for every mistake."""
    file = Path(path)
    try:
        content = file.read_text("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: it is not UTF-8 (byte {error.start})") from None
    return parse_config(content, path, file.parent)


def parse_config(content: str, name: str = "the configuration", folder: Path = Path()) -> Settings:
    """The settings in the text of a file; paths in it are from `folder` on."""
    try:
        values = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name}: it is not TOML: {error}") from None
    file = File(name, content, folder)
    settings = _settings(Table(file, (), values))
    _check(settings, file)
    file.done()
    return settings


def _settings(top: Table) -> Settings:
    server = top.table("server")
    models = {name: _model(name, table) for name, table in top.tables("models")}
    keys = tuple(_key(name, table, models) for name, table in top.tables("keys"))
    known = one_of(*models) if models else text
    named = top.table("aliases")
    aliases = {alias: named.take(alias, known, "") for alias in named.names()}
    running = top.table("hosted")
    hosted = {kind: running.take(kind, _source, "") for kind in running.names()}
    settings = Settings(
        models,
        host=server.take("host", text, "127.0.0.1"),
        port=server.take("port", whole(0, 65535), 8080),
        workers=server.take("workers", whole(1, 1024), 1),
        cors=server.take("cors", many(_origin), ()),
        limits=_limits(top.table("limits")),
        keys=keys,
        store=_store(top.table("store")) if top.has("store") else None,
        aliases=aliases,
        default=server.take("default_model", known, None),
        hosted=hosted,
    )
    server.close()
    top.close()
    return settings


def _model(name: str, table: Table) -> ModelSettings:
    if not 0 < len(name) <= 256:
        table.wrong("expected a name of 1 to 256 characters")
    several = table.take("upstreams", many(_upstream), ())
    one = table.take("upstream", _upstream, "")
    if table.has("upstream") == table.has("upstreams"):
        said = "expected either upstream or upstreams, got both" if table.has("upstream") else "expected an upstream"
        table.wrong(f'{said}, such as upstream = "ollama:NAME" or "http://host:8000/v1#NAME"')
    made = ModelSettings(
        name,
        several or (one,),
        mode=_word(table, "mode", "auto", "native", "chat", "raw"),
        dialect=table.take("dialect", lambda value: _dialect(value, table.file.folder), None),
        template=_template(table),
        arguments=_word(table, "arguments", "whole", "live"),
        tries=table.take("tries", whole(1, 10), 3),
        shown=table.take("shown", whole(0, 127), None),
        context=table.take("context", whole(1, ENOUGH), None),
        shown_tokens=table.take("shown_tokens", whole(1, ENOUGH), None),
        pinned=table.take("pinned", many(text), ()),
        repeats_noticed=table.take("repeats_noticed", whole(0, ENOUGH), 3),
        repeats_ended=table.take("repeats_ended", whole(0, ENOUGH), 10),
        clear_results=table.take("clear_results", whole(0, ENOUGH), 0),
        keep_results=table.take("keep_results", whole(1, ENOUGH), 5),
        key=table.secret("key"),
    )
    table.close()
    return made


def _template(table: Table) -> str | None:
    """The text of a chat template, tried on the shortest of conversations."""
    found = table.read("template")
    if found:
        try:
            render_template(found, [{"role": "user", "content": "Hi"}], None)
        except TemplateError as error:
            table.wrong(str(error), "template")
    return found


def _dialect(value: Any, folder: Path) -> Dialect:
    try:
        return load_dialect(text(value), folder)
    except ToolspeakError as error:
        raise Unexpected(f"the name of a dialect: {error}") from None


def _source(value: Any) -> str:
    """A tool that stands for one of a provider's."""
    try:
        box(text(value))
    except ToolspeakError as error:
        raise Unexpected(f"a tool of an MCP server: {error}") from None
    return value


def _upstream(value: Any) -> str:
    try:
        named_model(text(value))
    except (ToolspeakError, OSError) as error:
        raise Unexpected(f"the name of a model: {error}") from None
    return value


def _word(table: Table, name: str, *words: str) -> Any:
    """One of some words, the first where none is given."""
    return table.take(name, one_of(*words), words[0])


def _key(name: str, table: Table, models: Mapping[str, ModelSettings]) -> Key:
    hashed = table.take("hash", text, "")
    digits = hashed.removeprefix(PREFIX)
    try:
        digest = bytes.fromhex(digits)
    except ValueError:
        digest = b""
    if len(digest) != 32:
        table.wrong(
            f'expected hash = "{PREFIX}…" with 64 hexadecimal digits. '
            f"toolspeak serve --new-key {name} makes a key and prints its hash"
        )
    allowed = table.take("models", many(one_of(*models) if models else text), None)
    limits = table.table("rates")
    rates = Rates(*(limits.take(one.name, whole(1, ENOUGH), None) for one in fields(Rates)))
    limits.close()
    table.close()
    return Key(name, digest, allowed, rates)


def _limits(table: Table) -> Limits:
    usual = Limits()
    given: dict[str, Any] = {}
    for one in fields(Limits):
        value = getattr(usual, one.name)
        kind = number(0.001, 1e6) if isinstance(value, float) else whole(1, ENOUGH)
        given[one.name] = table.take(one.name, kind, value)
    table.close()
    return Limits(**given)


def _store(table: Table) -> Store:
    path = table.take("path", text, "")
    if not table.has("path"):
        table.wrong('expected path = "FILE"')
    usual = Store(str(table.file.folder / path))
    if path and not Path(usual.path).parent.is_dir():
        table.wrong(f"{Path(usual.path).parent}: there is no such folder", "path")
    made = Store(
        usual.path,
        responses=table.take("responses", flag, usual.responses),
        size=table.take("size", whole(1_000_000, ENOUGH), usual.size),
        age=table.take("age", number(1, 1e10), usual.age),
    )
    table.close()
    return made


def _origin(value: Any) -> str:
    """An origin as browsers send it: a scheme, a host, perhaps a port, and nothing else."""
    if isinstance(value, str) and is_origin(value):
        return value
    raise Unexpected(f'an origin such as "https://example.org", or "*", got {value!r:.80}')


def is_origin(value: str) -> bool:
    """Whether a text is an origin as browsers send it, or `*`."""
    scheme, found, host = value.partition("://")
    plain = value.isascii() and value.isprintable() and value == value.lower() and scheme.isalpha()
    return value == "*" or (plain and bool(found and host) and not set("/ ?#@*,") & set(host))


def bare(upstream: str) -> str:
    """An upstream's name without what may be secret in it: user, password, query."""
    address, hash_, model = USERINFO.sub("//", upstream).partition("#")
    return address.partition("?")[0] + hash_ + model


def _check(settings: Settings, file: File) -> None:
    """Finds what is wrong beyond the form: names that mean nothing, two keys that are one."""
    for name, model in settings.models.items():
        try:
            Models({name: model} if all(model.upstreams) else {})
        except (ToolspeakError, OSError) as error:
            file.wrong(("models", name), str(error))
    seen: dict[bytes, str] = {}
    for key in settings.keys:
        if (other := seen.get(key.digest)) and key.digest:
            file.wrong(("keys", key.name, "hash"), f"it is the key of {other} too")
        seen[key.digest] = key.name


def check_origins(origins: tuple[str, ...]) -> tuple[str, ...]:
    """The origins themselves. Raises UsageError for one that no browser sends."""
    for origin in origins:
        if not is_origin(origin):
            raise UsageError(f"expected an origin such as https://example.org, or *, got {origin[:100]!r}")
    return origins


def _names(settings: Settings) -> list[str]:
    """What stands for names that clients use."""
    lines = [f"alias   {alias}: {name}" for alias, name in settings.aliases.items()]
    lines += [f"default {settings.default}"] if settings.default else []
    return lines + [f"hosted  {kind}: {bare(source)}" for kind, source in settings.hosted.items()]


def summary(settings: Settings) -> list[str]:
    """What the settings come to, a line for each thing; no secrets."""
    workers = "1 worker" if settings.workers == 1 else f"{settings.workers} workers"
    lines = [f"server  {settings.host}:{settings.port}, {workers}"]
    for name, model in settings.models.items():
        spoken = f", dialect {get_dialect(model.dialect).name}" if model.dialect else ""
        lines.append(f"model   {name}: {', '.join(map(bare, model.upstreams))} ({model.mode}{spoken})")
    lines += _names(settings)
    for key in settings.keys:
        rates = [
            f"{value:,} {text}"
            for value, text in zip(
                (key.rates.requests, key.rates.tokens, key.rates.running),
                ("requests a minute", "tokens a minute", "requests at once"),
                strict=True,
            )
            if value is not None
        ]
        opened = "all models" if key.models is None else ", ".join(key.models) or "no model"
        lines.append(f"key     {key.name}: {'; '.join([opened, *rates])}")
    if not settings.keys:
        lines.append("key     none: anybody on this machine may ask")
    lines += [f"origin  {origin}" for origin in settings.cors]
    if settings.store:
        kept = (
            f"responses up to {settings.store.size:,} bytes and {settings.store.age:g} s"
            if settings.store.responses
            else "no responses"
        )
        lines.append(f"store   {settings.store.path}: counts of keys, {kept}")
    return lines
