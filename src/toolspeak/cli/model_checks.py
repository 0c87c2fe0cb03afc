"""What `toolspeak doctor MODEL` looks at: what a model is, how it will be asked and why, what was tried, what to change."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from ..errors import ModelError, ToolspeakError, WeightsError
from ..schema.near import listed

if TYPE_CHECKING:
    from ..models.abilities import Abilities
    from ..models.base import Model
    from ..models.http import Http
    from ..models.local import Local

State = Literal["ok", "broken", "told"]
Row = tuple[str, State, str]
"""What was looked at, whether it is fine, and what was seen."""

START = {
    "llama.cpp": "start it with --jinja and, where the model's template knows no tools, --chat-template-file",
    "vllm": "start vLLM with --enable-auto-tool-choice and the --tool-call-parser of this model",
    "sglang": "start SGLang with the --tool-call-parser of this model",
}
"""What makes a server take tools."""
TUNE = "nothing has to be; `toolspeak tune {name} --tools FILE` measures other ways on your tools"


def strategy_line(model: Model, known: Abilities | None = None) -> str:
    """How a model is asked for calls, and why, in one line; `known` is what a probe of its server found."""
    from ..models.strategy import Strategy, known_of, strategy

    own: Strategy = getattr(model, "strategy", None) or strategy(known_of(model))
    return own.line if known is None or own.profile else strategy(known.known).line


def model_checks(name: str, *, offline: bool = False) -> Iterator[Row]:
    """A row for each thing that is looked at, as it is. Raises UnknownModel, UsageError for a name that means nothing."""
    from ..models.adaptive import calling
    from ..models.http import Http
    from ..models.local import Local
    from ..models.names import bare, model

    name = whole(name)
    inner = bare(name)
    if isinstance(inner, Http):
        yield from _server(name, inner, offline)
        return
    try:
        made = calling(model(name))
    except WeightsError as error:
        yield "model", "broken", str(error)
        return
    if isinstance(inner, Local):
        yield from _local(name, inner, made)
    else:
        yield "model", "ok", f"{inner.name}: replies that are known already"
        yield "asked", "told", strategy_line(made)


def whole(name: str) -> str:
    """The name of a model for a file and an address as people type them."""
    name = name.strip()
    match name.partition(":")[0]:
        case "localhost" | "127.0.0.1":
            return f"http://{name}"
        case "local" | "http" | "https":
            return name
        case _:
            return f"local:{name}" if name.endswith(".gguf") else name


# ------------------------------------------------------------------ in this process


def _local(name: str, inner: Local, made: Model) -> Iterator[Row]:
    import importlib.util

    from ..models import gguf, weights

    path = inner.path or weights.path_of()
    fetched = inner.path is not None or weights.present()
    about = gguf.metadata(path) if fetched else {}
    words = [about.get("general.name"), about.get("general.architecture"), about.get("general.size_label")]
    text = ", ".join(str(word) for word in words if word)
    size = f", {path.stat().st_size / 1e6:,.0f} MB" if fetched else ""
    kind = "a GGUF file" if inner.path else "the embedded model"
    yield "model", "ok", f"{kind}, run in this process: {path}"
    yield "about", "told", f"{text}{size}" if fetched else "not fetched yet; `toolspeak models pull` does"
    runs = importlib.util.find_spec("xllamacpp") is not None
    yield "llama.cpp", "ok" if runs else "broken", "installed" if runs else "missing: pip install 'toolspeak[local]'"
    template = str(about.get("tokenizer.chat_template", ""))
    yield "template", "told", _template(template) if fetched else "not known before it is fetched"
    yield "asked", "told", strategy_line(made)
    yield "tried", "told", "the head of the file was read; nothing was loaded"
    known = _dialect_of(template)
    unknown = (
        f"if you know how it writes calls, name it: --dialect NAME, or {TUNE.format(name=name).partition('; ')[2]}"
    )
    yield "change", "told", TUNE.format(name=name) if known or inner.path is None else unknown


def _template(template: str) -> str:
    if not template:
        return "there is none"
    known = _dialect_of(template)
    return f"it tells the dialect {known}" if known else "it tells no dialect of calls"


def _dialect_of(template: str) -> str:
    """The dialect that a chat template tells, "" for none."""
    from ..wire.detect import by_template

    found = by_template(template) if template else None
    return found.name if found else ""


# ------------------------------------------------------------------ behind a server


def _server(name: str, inner: Http, offline: bool) -> Iterator[Row]:
    from ..models.names import model
    from ..models.providers import PROVIDERS, hosted

    provider = PROVIDERS.get(name.partition(":")[0])
    is_hosted = hosted(inner.address.shown)
    kind = "a hosted provider" if is_hosted else "a server"
    yield "model", "ok", f"{inner.model or 'the one it has'}, behind {kind}: {inner.address.shown} ({inner.api} API)"
    variable = provider.key_variable if provider else "TOOLSPEAK_API_KEY"
    has_key = bool(os.environ.get(variable))
    if is_hosted and not has_key:
        yield "key", "broken", f"{variable} is not set"
    else:
        yield "key", "told", f"{variable} is set" if has_key else f"none; it would be {variable}"
    if offline or is_hosted:
        yield "asked", "told", strategy_line(model(name))
        yield "tried", "told", "nothing was sent" + (": a hosted provider is not probed" if is_hosted else "")
        if is_hosted:
            yield "change", "told", f"set {variable}" if not has_key else TUNE.format(name=name)
        return
    try:
        known = probed(inner)
    except ToolspeakError as error:
        yield "server", "broken", str(error)
        yield "asked", "told", "not known before it answers"
        if isinstance(error, ModelError):
            yield "change", "told", "mend what `server` says, then run this again"
        return
    yield from _seen(name, known, strategy_line(model(name), known))


def probed(inner: Http) -> Abilities:
    """What a server can do, by a probe, while the screen says that it is asked."""
    import asyncio

    from ..models.probe import abilities
    from .screen import Progress

    async def ask() -> Abilities:
        try:
            return await abilities(inner, anew=True)
        finally:
            await inner.aclose()

    progress = Progress()
    progress.waiting("asking")
    try:
        return asyncio.run(ask())
    finally:
        progress.ready()


def _seen(name: str, known: Abilities, line: str) -> Iterator[Row]:
    able = known.can("chat") or known.can("completions")
    yield "server", "ok" if able else "broken", f"{known.server or 'not known by name'}, model {known.model}"
    if len(known.models) > 1:
        yield "models", "told", listed(known.models, 8)
    yield "template", "told", _template(known.template) if known.template else "not told by the server"
    tools: Any = known.found.get("tools")
    tool_state: State = "ok" if known.can("tools") else "told"
    yield "tools", tool_state, "not asked" if tools is None else tools.evidence
    yield "asked", "told", line
    for answer in ("yes", "no", "unclear"):
        names = [one for one, finding in known.found.items() if finding.answer == answer]
        if names:
            yield f"tried: {answer}", "told", ", ".join(names)
    yield "change", "told", _advice(name, known)


def _advice(name: str, known: Abilities) -> str:
    if not (known.can("chat") or known.can("completions")):
        return "it answers neither a conversation nor a prompt: look at the server's own log"
    if known.can("tools"):
        return TUNE.format(name=name)
    if known.found["tools"].answer == "unclear":
        return "it could not be seen whether it takes tools (see `tools`): run this again when the server is less busy"
    start = START.get(known.server, "")
    other = "calls are read from the text meanwhile; if you know how the model writes them, name it: --dialect NAME"
    return f"for tools of the server's own {start}; {other}" if start else other
