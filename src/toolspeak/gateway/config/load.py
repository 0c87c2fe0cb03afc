"""Reads the gateway's configuration file (TOML), and reports all errors at once, each with its line and place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ...dialects import get as get_dialect
from ...errors import TemplateError, ToolspeakError, UsageError
from ...files import read_text
from ...models.http.address import USERINFO, is_loopback
from ...models.resolve import model as named_model
from ...schema.suggestions import did_you_mean, near
from ...sources.dialect_files import load_dialect
from ...sources.mcp.config import check_there, with_names
from ...wire.dialect import Dialect
from ...wire.prompt.jinja import render_template
from ..access.keys import PREFIX
from ..hosted_tools import HOSTED_TYPES
from ..mcp_sources import PREFIX as MCP_PREFIX, box
from ..registry import Models
from .extras import missing_extras
from .fields import ENOUGH, File, Table, Unexpected, flag, many, number, one_of, text, top_table, whole
from .mcp_servers import granted, mcp_lines, read_mcp_server
from .policies import audit_lines, policy_lines, read_audit, read_call_policy
from .prices import check_budget, read_budget, read_price
from .settings import (
    Batches,
    GatewayLimits,
    GatewaySettings,
    Key,
    McpServer,
    ModelSettings,
    PageSettings,
    Rates,
    StoreSettings,
)

SLIP = 0.85
"""How similar, from 0 to 1, a name must be to a known one to count as a misspelling."""


def read_config(path: str) -> GatewaySettings:
    """Return the settings in a file. Raises UsageError, whose message has a line for every error."""
    file = Path(path)
    return parse_config(read_text(file), path, file.parent)


def parse_config(content: str, name: str = "the configuration", folder: Path = Path()) -> GatewaySettings:
    """Return the settings in the text of a file; relative paths in it start at `folder`."""
    top = top_table(content, name, folder)
    settings = _settings(top)
    _check(settings, top.file)
    top.file.done()
    return settings


def _settings(top: Table) -> GatewaySettings:
    server = top.table("server")
    models = {name: _model(name, table) for name, table in top.tables("models")}
    servers = {name: read_mcp_server(name, table) for name, table in top.tables("mcp")}
    keys = tuple(_key(name, table, models, servers) for name, table in top.tables("keys"))
    known = one_of(*models) if models else text
    named = top.table("aliases")
    aliases = {alias: named.take(alias, known, "") for alias in named.names()}
    running = top.table("hosted")
    hosted = {kind: running.take(kind, _source(servers), "") for kind in running.names()}
    for kind in hosted:
        if meant := _mistyped(kind):
            running.wrong(f"unknown type of tool.{did_you_mean(meant)}", kind)
    workers = server.take("workers", whole(1, 1024), 1)
    settings = GatewaySettings(
        models,
        host=server.take("host", text, "127.0.0.1"),
        port=server.take("port", whole(0, 65535), 8080),
        workers=workers,
        cors=server.take("cors", many(_origin), ()),
        limits=_limits(top.table("limits")),
        keys=keys,
        store=_store(top.table("store")) if top.has("store") else None,
        ui=_page(top, keys, workers),
        batches=_batches(top.table("batches")) if top.has("batches") else None,
        aliases=aliases,
        default=server.take("default_model", known, None),
        hosted=hosted,
        mcp=servers,
        offered=server.take("mcp", many(granted(servers)), ()),
        tool_turns=server.take("tool_turns", whole(1, 1000), 6),
        policy=read_call_policy(top.table("policy")) if top.has("policy") else None,
        audit=read_audit(top, _path),
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
        message = "expected either upstream or upstreams, got both" if table.has("upstream") else "expected an upstream"
        table.wrong(f'{message}, such as upstream = "ollama:NAME" or "http://host:8000/v1#NAME"')
    model = ModelSettings(
        name,
        several or (one,),
        mode=_word(table, "mode", "auto", "native", "chat", "raw"),
        dialect=table.take("dialect", lambda value: _dialect(value, table.file.folder), None),
        template=_template(table),
        arguments=_word(table, "arguments", "auto", "whole", "live"),
        tries=table.take("tries", whole(1, 10), 3),
        max_tools=table.take("shown", whole(0, 127), None),
        context=table.take("context", whole(1, ENOUGH), None),
        tool_tokens=table.take("shown_tokens", whole(1, ENOUGH), None),
        pinned=table.take("pinned", many(text), ()),
        repeats_noticed=table.take("repeats_noticed", whole(0, ENOUGH), 3),
        repeats_ended=table.take("repeats_ended", whole(0, ENOUGH), 10),
        result_tokens=table.take("result_tokens", whole(0, ENOUGH), None),
        clear_results=table.take("clear_results", whole(0, ENOUGH), 0),
        keep_results=table.take("keep_results", whole(1, ENOUGH), 5),
        price=read_price(table.table("price")) if table.has("price") else None,
        key=table.secret("key", optional=True),
        key_source=table.secret_source("key"),
    )
    table.close()
    return model


def _template(table: Table) -> str | None:
    """Return the text of a chat template. It is rendered once with a minimal conversation."""
    text = table.read("template")
    if text:
        try:
            render_template(text, [{"role": "user", "content": "Hi"}], None)
        except TemplateError as error:
            table.wrong(str(error), "template")
    return text


def _dialect(value: Any, folder: Path) -> Dialect:
    try:
        return load_dialect(text(value), folder)
    except ToolspeakError as error:
        raise Unexpected(f"the name of a dialect: {error}") from None


def _mistyped(kind: str) -> tuple[str, ...]:
    """Return the known type of hosted tool that a name misspells; nothing if it is known or may be a new one."""
    if any(f"{kind}_".startswith(f"{known}_") for known in HOSTED_TYPES):
        return ()
    return tuple(get_close_matches(kind, HOSTED_TYPES, 1, SLIP))


def _source(servers: Mapping[str, McpServer]) -> Callable[[Any], str]:
    """Return a type: a tool in place of a provider's, of a server in [mcp] or of another MCP server."""

    def take(value: Any) -> str:
        try:
            for server in box(text(value), servers).servers:
                check_there(server.address)
        except ToolspeakError as error:
            meant = did_you_mean(near(with_names(value.removeprefix(MCP_PREFIX))[0], servers))
            raise Unexpected(f"a tool of an MCP server: {error}{'.' if meant else ''}{meant}") from None
        return value

    return take


def _upstream(value: Any) -> str:
    try:
        named_model(text(value))
    except (ToolspeakError, OSError) as error:
        raise Unexpected(f"the name of a model: {error}") from None
    return value


def _word(table: Table, name: str, *words: str) -> Any:
    """Return the field's value, which is one of some words; the first is the default."""
    return table.take(name, one_of(*words), words[0])


def _key(name: str, table: Table, models: Mapping[str, ModelSettings], servers: Mapping[str, McpServer]) -> Key:
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
    policy = read_call_policy(table.table("policy")) if table.has("policy") else None
    limits = table.table("rates")
    rates = Rates(*(limits.take(one.name, whole(1, ENOUGH), None) for one in fields(Rates)))
    limits.close()
    budget = read_budget(table.table("budget"))
    metrics = _word(table, "metrics", "own", "all")
    tools = table.take("mcp", many(granted(servers)), None)
    table.close()
    return Key(name, digest, allowed, rates, policy, budget, metrics, tools)


def _limits(table: Table) -> GatewayLimits:
    usual = GatewayLimits()
    values: dict[str, Any] = {}
    for one in fields(GatewayLimits):
        value = getattr(usual, one.name)
        kind = number(0.001, 1e6) if isinstance(value, float) else whole(1, ENOUGH)
        values[one.name] = table.take(one.name, kind, value)
    table.close()
    return GatewayLimits(**values)


def _path(table: Table, what: str) -> str:
    """Return the path of a file or folder that will be created in an existing folder."""
    path = table.take("path", text, "")
    if not table.has("path"):
        table.wrong(f'expected path = "{what}"')
    full = table.file.folder / path
    if path and not full.parent.is_dir():
        table.wrong(f"{full.parent}: there is no such folder", "path")
    return str(full)


def _batches(table: Table) -> Batches:
    usual = Batches(_path(table, "FOLDER"))
    most = {"running": 1000, "concurrency": 1000}
    values = {
        one.name: table.take(one.name, whole(1, most.get(one.name, ENOUGH)), getattr(usual, one.name))
        for one in fields(Batches)
        if one.name not in ("path", "age")
    }
    batches = Batches(usual.path, **values, age=table.take("age", number(3600, 1e10), usual.age))
    table.close()
    return batches


def _store(table: Table) -> StoreSettings:
    usual = StoreSettings(_path(table, "FILE"))
    store = StoreSettings(
        usual.path,
        responses=table.take("responses", flag, usual.responses),
        size=table.take("size", whole(1_000_000, ENOUGH), usual.size),
        age=table.take("age", number(1, 1e10), usual.age),
    )
    table.close()
    return store


def _page(top: Table, keys: Sequence[Key], workers: int) -> PageSettings | None:
    if not top.has("ui"):
        return None
    table, names = top.table("ui"), [key.name for key in keys]
    page = PageSettings(
        live=table.take("live", whole(0, 10_000), 0),
        operators=table.take("operators", many(one_of(*names) if names else text), ()),
        reports=table.take("reports", lambda value: str(table.file.folder / text(value)), None),
    )
    if page.live and workers > 1:
        table.wrong("expected server.workers = 1: each process would keep only its own requests", "live")
    if all((page.reports, names, not page.operators)):
        table.wrong("expected `operators`, the keys that see the reports: no other key does", "reports")
    table.close()
    return page


def _origin(value: Any) -> str:
    """An origin as browsers send it: a scheme, a host, perhaps a port, and nothing else."""
    if isinstance(value, str) and is_origin(value):
        return value
    raise Unexpected(f'an origin such as "https://example.org", or "*", got {value!r:.80}')


def is_origin(value: str) -> bool:
    """Whether a text is an origin as browsers send it, or `*`."""
    scheme, separator, host = value.partition("://")
    plain = value.isascii() and value.isprintable() and value == value.lower() and scheme.isalpha()
    return value == "*" or (plain and bool(separator and host) and not set("/ ?#@*,") & set(host))


def bare(upstream: str) -> str:
    """Return an upstream's name without the parts that may be secret: user, password, query."""
    address, hash_, model = USERINFO.sub("//", upstream).partition("#")
    return address.partition("?")[0] + hash_ + model


def _check(settings: GatewaySettings, file: File) -> None:
    """Find errors across fields, such as unknown names and a key that occurs twice."""
    for name, model in settings.models.items():
        try:
            Models({name: model} if all(model.upstreams) else {})
        except (ToolspeakError, OSError) as error:
            file.wrong(("models", name), str(error))
    seen: dict[bytes, str] = {}
    for key in settings.keys:
        if (other := seen.get(key.digest)) and key.digest:
            file.wrong(("keys", key.name, "hash"), f"this is also the key of {other}")
        seen[key.digest] = key.name
        check_budget(key, settings, file)


def check_origins(origins: tuple[str, ...]) -> tuple[str, ...]:
    """Return the origins. Raises UsageError for one that no browser sends."""
    for origin in origins:
        if not is_origin(origin):
            raise UsageError(f"expected an origin such as https://example.org, or *, got {origin[:100]!r}")
    return origins


def _names(settings: GatewaySettings) -> list[str]:
    """Return the summary lines of aliases, the default model and hosted tools."""
    lines = [f"alias   {alias}: {name}" for alias, name in settings.aliases.items()]
    lines += [f"default {settings.default}"] if settings.default else []
    return lines + [f"hosted  {kind}: {bare(source)}" for kind, source in settings.hosted.items()]


def _batch_lines(settings: GatewaySettings) -> list[str]:
    """Return the summary lines of batches."""
    if (batches := settings.batches) is None:
        return []
    return [f"batches {batches.path}: {batches.rows:,} lines each, {batches.running:,} at once in a process"]


def _page_lines(settings: GatewaySettings) -> list[str]:
    """Return the summary lines of the page at /ui."""
    page = settings.ui
    return [f"page    /ui, {page.live:,} requests kept"] if page else []


def _bounds(key: Key) -> list[str]:
    """Return the rates and budgets of a key, as texts."""
    amounts = (
        (key.rates.requests, "request", "a minute"),
        (key.rates.tokens, "token", "a minute"),
        (key.rates.running, "request", "at once"),
        (key.budget.tokens, "token", "a day"),
    )
    counts = [f"{count:,} {what}{'s' * (count != 1)} {text}" for count, what, text in amounts if count is not None]
    money = key.budget.money
    return counts if money is None else [*counts, f"{money:,} a day by the models' prices"]


def _key_lines(settings: GatewaySettings) -> list[str]:
    """Return the summary lines of keys: who can use the gateway."""
    if not settings.keys:
        where = "on this machine" if is_loopback(settings.host) else f"who can reach {settings.host or 'this machine'}"
        return [f"key     none: anyone {where} can use the gateway"]
    opened = ["all models" if key.models is None else ", ".join(key.models) or "no model" for key in settings.keys]
    return [
        f"key     {key.name}: {'; '.join([what, *_bounds(key)])}"
        for key, what in zip(settings.keys, opened, strict=True)
    ]


def summary(settings: GatewaySettings) -> list[str]:
    """Return a summary of the settings, one line per item, without secrets."""
    workers = "1 worker" if settings.workers == 1 else f"{settings.workers} workers"
    lines = [f"server  {settings.host}:{settings.port}, {workers}"]
    for name, model in settings.models.items():
        spoken = f", dialect {get_dialect(model.dialect).name}" if model.dialect else ""
        lines.append(f"model   {name}: {', '.join(map(bare, model.upstreams))} ({model.mode}{spoken})")
    lines += _names(settings)
    lines += _key_lines(settings)
    lines += policy_lines(settings) + audit_lines(settings) + mcp_lines(settings)
    lines += [f"origin  {origin}" for origin in settings.cors]
    if settings.store:
        responses = (
            f"responses up to {settings.store.size:,} bytes and {settings.store.age:,.15g} s"
            if settings.store.responses
            else "no responses"
        )
        lines.append(f"store   {settings.store.path}: counts of keys, {responses}")
    return lines + _batch_lines(settings) + _page_lines(settings) + missing_extras(settings)
