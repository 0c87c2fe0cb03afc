"""One cheap look at a server of one's own before the first request with tools."""

from __future__ import annotations

from typing import Any

from ..api import openai_chat
from ..api.payloads import record, records
from ..errors import ModelError, ModelUnreachable, UsageError
from ..types import Tool
from .abilities import GRAMMAR_FIELDS, SCHEMA_FIELDS, Abilities, Finding
from .http import Http
from .likelihood import find_way, slots_of
from .strategy import SMALL

PROBE: Tool[..., Any] = Tool("zq7_probe", "A tool.", {"type": "object", "properties": {}})


async def glance(model: Http) -> Abilities | None:
    """What one cheap question tells: whether a llama.cpp lays offered tools out or drops them, which it does without a
    word where its model's template knows none. None for any other server. Generates nothing, but for a small model
    that gets no tools: that is asked how likely some words are. Raises ModelUnreachable."""
    if model.api != "openai":
        return None
    try:
        told = await model.fetch("/props", seconds=model.timeouts.connect, root=True)
        if "default_generation_settings" not in told:
            return None
        asked = {"messages": [{"role": "user", "content": "Hello"}], "tools": [openai_chat.write_tool(PROBE)]}
        laid_out = (await model.fetch("/apply-template", asked, root=True)).get("prompt")
        if not isinstance(laid_out, str):
            return None
        if PROBE.name in laid_out:
            seen = Finding("yes", "its llama.cpp lays them out in the prompt")
            return Abilities(model.address.shown, model.model or "", model.api, {"tools": seen}, "llama.cpp")
        parameters = await parameters_of(model)
        way = (await find_way(model))[0] if 0 < parameters < SMALL else None
    except ModelUnreachable:
        raise
    except ModelError:
        return None
    found = {
        "chat": Finding("yes"), "completions": Finding("yes"), "schema": Finding("yes"),
        "tools": Finding("no", "its llama.cpp drops them, for its model's template knows none"),
    }  # fmt: skip
    (grammar_field,), (schema_field,) = GRAMMAR_FIELDS["llama.cpp"], SCHEMA_FIELDS["llama.cpp"]
    template = told.get("chat_template")
    return Abilities(
        model.address.shown, model.model or "", model.api, found, "llama.cpp",
        template=template if isinstance(template, str) else "", grammar_field=grammar_field, schema_field=schema_field,
        score_way=way or "", slots=slots_of(told), parameters=parameters,
    )  # fmt: skip


async def parameters_of(model: Http) -> int:
    """How many parameters a llama.cpp says that its model has, 0 where it does not."""
    try:
        rows = records((await model.fetch("/models", seconds=5.0)).get("data"))
    except (ModelError, UsageError):
        return 0
    counts = [record(row.get("meta")).get("n_params") for row in rows]
    return counts[0] if len(counts) == 1 and isinstance(counts[0], int) else 0
