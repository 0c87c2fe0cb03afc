"""The checks of `toolspeak doctor MODEL`: what the model is, how it is asked for calls and why, and what to change."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import ModelError, ToolspeakError, WeightsError
from ..schema.suggestions import listed, near

if TYPE_CHECKING:
    from ..models.base import Model
    from ..models.embedded.local import Local
    from ..models.http import Http
    from ..models.servers.capabilities import ServerCapabilities
    from ..models.strategy import Strategy

State = Literal["ok", "broken", "told"]
Row = tuple[str, State, str]
"""The name of a check, its state, and what it found."""

START = {
    "llama.cpp": "start it with --jinja and, where the model's template knows no tools, --chat-template-file",
    "vllm": "start vLLM with --enable-auto-tool-choice and the --tool-call-parser of this model",
    "sglang": "start SGLang with the --tool-call-parser of this model",
}
"""How to start a server of each kind so that it accepts tools."""
TUNE = "`toolspeak tune {name} --tools FILE` measures other ways on your tools"
NOTHING = f"no change is needed; {TUNE}"
NAME_IT = "if you know the dialect of its calls, give it: --dialect NAME (`toolspeak dialects` lists them)"


def strategy_of(model: Model, known: ServerCapabilities | None = None) -> Strategy:
    """Return how a model is asked for calls, and why; `known` is the result of probing its server."""
    from ..models.strategy import known_of, strategy

    own: Strategy = getattr(model, "strategy", None) or strategy(known_of(model))
    return own if known is None or own.profile else strategy(known.known)


def model_checks(name: str, *, offline: bool = False) -> Iterator[Row]:
    """Yield the rows of the report, each as soon as it is known. Raises UnknownModel and UsageError for an unknown
    name."""
    from ..models.embedded.local import Local
    from ..models.http import Http
    from ..models.resolve import bare, model
    from ..models.tool_calling import calling

    name = whole(name)
    inner = bare(name)
    if isinstance(inner, Http):
        yield from _server(name, inner, offline)
        return
    try:
        calling_model = calling(model(name))
    except WeightsError as error:
        yield "model", "broken", str(error)
        return
    if isinstance(inner, Local):
        yield from _local(name, inner, calling_model)
    else:
        yield "model", "ok", f"{inner.name}: fixed replies, for tests"
        yield "asked", "told", strategy_of(calling_model).line


def whole(name: str) -> str:
    """Return the full name of a model: a GGUF file gets `local:`, and an address on this machine gets `http://`."""
    name = name.strip()
    match name.partition(":")[0]:
        case "localhost" | "127.0.0.1":
            return f"http://{name}"
        case "local" | "http" | "https":
            return name
        case _:
            return f"local:{name}" if name.lower().endswith(".gguf") else name


# ------------------------------------------------------------------ in this process


def _local(name: str, inner: Local, model: Model) -> Iterator[Row]:
    import importlib.util

    from ..models.embedded import gguf_header, weights

    path = inner.path or weights.path_of()
    fetched = inner.path is not None or weights.present()
    about = gguf_header.metadata(path) if fetched else {}
    kind = "a GGUF file" if inner.path else "the embedded model"
    yield "model", "ok", f"{kind}, run in this process: {path}"
    yield "about", "told", _about(inner, path, about) if fetched else "not fetched yet; `toolspeak models pull` does"
    runs = importlib.util.find_spec("xllamacpp") is not None
    yield "llama.cpp", "ok" if runs else "broken", "installed" if runs else "missing: pip install 'toolspeak[local]'"
    template = str(about.get("tokenizer.chat_template", ""))
    yield "template", "told", _template(template) if fetched else "not known before it is fetched"
    yield "asked", "told", strategy_of(model).line
    yield "tried", "told", "the header of the file was read; no weights were loaded"
    change = NOTHING if inner.path is None or _is_known(strategy_of(model)) else f"{NAME_IT}; {TUNE}"
    yield "change", "told", change.format(name=name)


def _about(inner: Local, path: Path, head: Mapping[str, Any]) -> str:
    words = [str(head[key]) for key in ("general.name", "general.architecture") if head.get(key)]
    if count := inner.known.parameters:
        words.append(f"{count / 1e6:,.0f} million parameters")
    return ", ".join([*words, f"{path.stat().st_size / 1e6:,.0f} MB"])


def _is_known(chosen: Strategy) -> bool:
    """Whether the model's format of calls is known."""
    from ..wire.detect import ANY

    return chosen.label not in ("scored", ANY)


def _template(template: str) -> str:
    if not template:
        return "there is none"
    known = _dialect_of(template)
    return f"it declares the dialect {known}" if known else "it declares no known dialect"


def _dialect_of(template: str) -> str:
    """Return the dialect that a chat template implies, "" for none."""
    from ..wire.detect import by_template

    dialect = by_template(template) if template else None
    return dialect.name if dialect else ""


# ------------------------------------------------------------------ behind a server


def _hosted(name: str, variable: str, has_key: bool) -> Iterator[Row]:
    from ..models.resolve import model

    yield ("key", "told", f"{variable} is set") if has_key else ("key", "broken", f"{variable} is not set")
    yield "asked", "told", strategy_of(model(name)).line
    yield "tried", "told", "nothing was sent: a hosted provider is not probed"
    yield "change", "told", NOTHING.format(name=name) if has_key else f"set {variable}"


def _server(name: str, inner: Http, offline: bool) -> Iterator[Row]:
    from ..models.http.providers import PROVIDERS, hosted
    from ..models.resolve import model

    provider = PROVIDERS.get(name.partition(":")[0])
    is_hosted = hosted(inner.address.public)
    variable = provider.key_variable if provider else "TOOLSPEAK_API_KEY"
    has_key = bool(os.environ.get(variable))
    kind = "a hosted provider" if is_hosted else "a server"
    yield "model", "ok", f"{inner.model or 'the one it has'}, behind {kind}: {inner.address.public} ({inner.api} API)"
    if is_hosted:
        yield from _hosted(name, variable, has_key)
        return
    yield "key", "told", f"{variable} is set" if has_key else f"none; it would be {variable}"
    if offline:
        yield "asked", "told", strategy_of(model(name)).line
        yield "tried", "told", "nothing was sent"
        return
    yield "probing", "told", "about twenty-five small requests are sent; a slow server takes minutes, three at most"
    try:
        known = probed(inner)
    except ToolspeakError as error:
        yield "server", "broken", str(error)
        yield "asked", "told", "not known before it answers"
        if isinstance(error, ModelError):
            yield "change", "told", "fix the problem in the row `server`, then run this again"
        return
    yield from _seen(name, known, strategy_of(model(name), known))


def probed(inner: Http) -> ServerCapabilities:
    """Probe a server and return what it can do. A spinner is shown meanwhile."""
    import asyncio

    from ..models.servers.probe import server_capabilities
    from .terminal import Progress

    async def ask() -> ServerCapabilities:
        try:
            return await server_capabilities(inner, anew=True)
        finally:
            await inner.aclose()

    progress = Progress()
    progress.waiting("asking")
    try:
        return asyncio.run(ask())
    finally:
        progress.ready()


def _seen(name: str, known: ServerCapabilities, chosen: Strategy) -> Iterator[Row]:
    from ..models.servers.capabilities import saved

    yield _server_row(known)
    if {*known.models} - {known.model}:
        yield "models", "told", listed(known.models, 8)
    yield "template", "told", _template(known.template) if known.template else "the server does not report it"
    yield _tools_row(known)
    yield "asked", "told", chosen.line
    for answer in ("yes", "no", "unclear"):
        names = [one for one, finding in known.findings.items() if finding.answer == answer]
        if names:
            yield f"tried: {answer}", "told", ", ".join(names)
    yield "saved", "told", saved(known)
    change = _advice(name, known, chosen)
    yield "change", "told", change if _is_listed(known) else f"{_named(name, known)}; as long as you do not: {change}"


def _server_row(known: ServerCapabilities) -> Row:
    program = known.server or "not known by name"
    if not _answers(known):
        return "server", "broken", f"{program}, model {known.model}"
    if _is_listed(known):
        return "server", "ok", f"{program}, model {known.model}"
    return "server", "told", f"{program}, model {known.model}, which the server does not list (see `models`)"


def _tools_row(known: ServerCapabilities) -> Row:
    tools = known.findings.get("tools")
    if tools is None:
        return "tools", "told", "not asked"
    return "tools", "ok" if tools and not _no_call(known) else "told", tools.evidence


def _answers(known: ServerCapabilities) -> bool:
    return known.can("chat") or known.can("completions")


def _no_call(known: ServerCapabilities) -> bool:
    """Whether the model reads tools, and called none of them."""
    from ..models.servers.tool_evidence import NO_CALL

    return known.findings["tools"].evidence.endswith(NO_CALL)


def _is_listed(known: ServerCapabilities) -> bool:
    """Whether the server lists the model by its name, or lists none."""
    return not known.models or not {known.model, f"{known.model}:latest"}.isdisjoint(known.models)


def _named(name: str, known: ServerCapabilities) -> str:
    """How to name the model as its server lists it."""
    from ..models.strategy import by_its_name

    own = [*near(known.model, known.models, at_most=1), *known.models][0]
    spoken = None if by_its_name(known.model) else by_its_name(own)
    why = f" (the name tells the dialect of its calls, {spoken.name})" if spoken else ""
    return f"the server lists no model of this name: use {name.partition('#')[0]}#{own}{why}"


def _advice(name: str, known: ServerCapabilities, chosen: Strategy) -> str:
    from ..models.servers.tool_evidence import NO_CALL

    if not _answers(known):
        return "it answers neither chat nor completion requests: look at the server's log"
    tools = known.findings["tools"]
    server = "vllm" if "--enable-auto-tool-choice" in tools.evidence else known.server
    start = START.get(server, "")
    if tools:
        return _native_advice(name, known, start)
    meanwhile = "decided by likelihood" if chosen.way == "scored" else "read from the text"
    other = f"calls are {meanwhile} meanwhile{'' if _is_known(chosen) else f'; {NAME_IT}'}"
    if tools.answer == "unclear":
        if not tools.evidence.startswith(("said ", NO_CALL)):
            return "the probe could not tell whether it accepts tools (see `tools`): run this again when the server is less busy"
        tune = TUNE.format(name=name)
        other = f"the model was offered tools and answered in text, so the server may ignore them; {other}; {tune}"
    return f"for tools of the server's own, {start}; {other}" if start else other


def _native_advice(name: str, known: ServerCapabilities, start: str) -> str:
    """What to do with a server that takes tools."""
    from ..models.strategy import by_its_name

    if not _no_call(known):
        return NOTHING.format(name=name)
    spoken = by_its_name(known.model)
    dialect = spoken.name if spoken else "NAME"
    server = start or "start the server with the parser of this model"
    return (
        "no call was seen, though tools were offered and one was required: ask a question that needs a tool, with "
        f"--verbose; if no call comes, {server}, or let toolspeak read the calls: --dialect {dialect}"
    )
