"""Reads what a server reports about itself: program, models, chat template, context size. It generates nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ...api import openai_chat
from ...api.json_stream import Payload, record, records
from ...errors import BadRequest, ModelError, ModelUnreachable, UsageError
from ...types import Tool
from ..http import Http
from ..strategy import SMALL
from .capabilities import PROGRAMS, Finding, ServerCapabilities
from .logprob_scorer import find_score_method

LOADED = {
    "/api/ps": ("models", "name", "context_length"),
    "/api/v0/models": ("data", "id", "loaded_context_length"),
}
"""Where Ollama and LM Studio tell the context of models that are loaded: by the path, in which list, by whose name."""
HIDDEN: Tool[..., Any] = Tool("zq7_probe", "A tool.", {"type": "object", "properties": {}})


async def described(model: Http) -> ServerCapabilities:
    """What a server tells of itself: its program, its model's chat template, its slots, its models, and of the one that
    is asked its parameters and context. What it does not tell stays empty."""
    *rows, listed = await asyncio.gather(
        *(_reported(model, program.path, root=True) for program in PROGRAMS.values()),
        _reported(model, model.models_path),
    )
    server = next((name for (name, program), one in zip(PROGRAMS.items(), rows, strict=True) if program.key in one), "")
    return _described(model, server, rows, listed)


def _described(model: Http, server: str, bodies: Iterable[Payload], listed: Payload) -> ServerCapabilities:
    """What the programs' own paths and the list of models tell."""
    rows = records(listed.get("data"))
    own = [row for row in rows if row.get("id") == model.model] if len(rows) > 1 else rows
    row = own[0] if len(own) == 1 else {}
    props = next((one for one in bodies if "default_generation_settings" in one), Payload())
    slots = _count(props.get("total_slots"))
    settings = record(props.get("default_generation_settings"))
    context = max(_count(row.get("max_model_len")), _count(settings.get("n_ctx")))
    return ServerCapabilities(
        model.address.public, model.model or "", model.api, server=server, models=tuple(model.names_in(listed)),
        template=next((text for one in bodies if isinstance(text := one.get("chat_template"), str)), ""),
        slots=slots if 0 < slots <= 256 else 1, parameters=parameters_of(row), context=context,
    )  # fmt: skip


async def server_context(model: Http) -> int:
    """How many tokens the server's model reads and writes at once; 0 where it does not tell."""
    if model.api not in ("openai", "completions", "ollama"):
        return 0
    listed, props, *loaded = await asyncio.gather(
        _reported(model, model.models_path),
        *(_reported(model, path, root=True) for path in (PROGRAMS["llama.cpp"].path, *LOADED)),
    )
    names = (model.model, f"{model.model}:latest")
    limits = [
        row.get(key)
        for (rows, name, key), one in zip(LOADED.values(), loaded, strict=True)
        for row in records(one.get(rows))
        if row.get(name) in names
    ]
    return max(map(_count, [_described(model, "", (props,), listed).context, *limits]))


async def quick_look(model: Http, *, scoring: bool = True) -> ServerCapabilities | None:
    """Return what cheap requests reveal about a llama.cpp server; None for any other server.

    They show whether the server puts offered tools into the prompt, drops them silently (if its model's template has no
    place for tools) or refuses them. Nothing is generated, with one exception: with `scoring`, a small model that gets
    no tools is asked for the likelihood of some words. Raises ModelUnreachable.
    """
    if model.api != "openai":
        return None
    llama = PROGRAMS["llama.cpp"]
    try:
        props = await model.fetch(llama.path, seconds=model.timeouts.connect, root=True)
        tools = await _laid_out(model) if llama.key in props else None
        if tools is None:
            return None
        listed = {} if tools else await _reported(model, model.models_path, seconds=model.timeouts.connect)
        seen = _described(model, "llama.cpp", (props,), listed)
        seen = replace(seen, findings={"tools": tools}, grammar_field=llama.grammar[0], schema_field=llama.schema[0])
        if tools:
            return seen
        way = (await find_score_method(model))[0] if scoring and 0 < seen.parameters < SMALL else ""
    except ModelUnreachable:
        raise
    except ModelError:
        return None
    findings = {**dict.fromkeys(("chat", "completions", "schema"), Finding("yes")), **seen.findings}
    return replace(seen, findings=findings, score_way=way or "")


async def _laid_out(model: Http) -> Finding | None:
    """Whether a llama.cpp lays tools out in the prompt; None where it does not tell."""
    body = {"messages": [{"role": "user", "content": "Hello"}], "tools": [openai_chat.write_tool(HIDDEN)]}
    try:
        prompt = (await model.fetch("/apply-template", body, root=True)).get("prompt")
    except BadRequest as error:
        return Finding("no", f"its llama.cpp refuses them: {error.reason}") if error.tools_refused else None
    if not isinstance(prompt, str):
        return None
    if HIDDEN.name in prompt:
        return Finding("yes", "its llama.cpp lays them out in the prompt")
    return Finding("no", "its llama.cpp drops them, for its model's template knows none")


async def _reported(model: Http, path: str, *, root: bool = False, seconds: float = 5.0) -> Payload:
    """What a server answers at a path, nothing where it does not."""
    try:
        return await model.fetch(path, seconds=seconds, root=root)
    except (ModelError, UsageError):
        return {}


def parameters_of(row: Payload) -> int:
    """How many parameters a model has by its row in llama.cpp's list, 0 where that does not tell."""
    return _count(record(row.get("meta")).get("n_params"))


def _count(value: Any) -> int:
    """A number of things, 0 for what is none."""
    return max(0, value) if type(value) is int else 0
