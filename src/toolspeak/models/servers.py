"""What a server tells of itself: which program it is, its model's chat template, what it makes of tools.

It generates nothing for that, but says how likely some words are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..api import openai_chat
from ..api.payloads import Payload, record, records
from ..errors import ModelError, ModelUnreachable, UsageError
from ..types import Tool
from .abilities import GRAMMAR_FIELDS, SCHEMA_FIELDS, Abilities, Finding
from .http import Http
from .likelihood import find_way
from .strategy import SMALL

HIDDEN: Tool[..., Any] = Tool("zq7_probe", "A tool.", {"type": "object", "properties": {}})


async def glance(model: Http) -> Abilities | None:
    """What one cheap question tells: whether a llama.cpp lays offered tools out or drops them, which it does without a
    word where its model's template knows none. None for any other server. Generates nothing, but for a small model
    that gets no tools: that is asked how likely some words are. Raises ModelUnreachable."""
    if model.api != "openai":
        return None
    seen = Abilities(model.address.shown, model.model or "", model.api, server="llama.cpp")
    try:
        told = await model.fetch("/props", seconds=model.timeouts.connect, root=True)
        if "default_generation_settings" not in told:
            return None
        asked = {"messages": [{"role": "user", "content": "Hello"}], "tools": [openai_chat.write_tool(HIDDEN)]}
        laid_out = (await model.fetch("/apply-template", asked, root=True)).get("prompt")
        if not isinstance(laid_out, str):
            return None
        if HIDDEN.name in laid_out:
            return replace(seen, found={"tools": Finding("yes", "its llama.cpp lays them out in the prompt")})
        parameters = await parameters_of(model)
        way = (await find_way(model))[0] if 0 < parameters < SMALL else ""
    except ModelUnreachable:
        raise
    except ModelError:
        return None
    dropped = Finding("no", "its llama.cpp drops them, for its model's template knows none")
    found = dict.fromkeys(("chat", "completions", "schema"), Finding("yes")) | {"tools": dropped}
    (grammar_field,), (schema_field,) = GRAMMAR_FIELDS["llama.cpp"], SCHEMA_FIELDS["llama.cpp"]
    return replace(
        seen, found=found, template=_template([told]), grammar_field=grammar_field,
        schema_field=schema_field, score_way=way or "", slots=slots_of(told), parameters=parameters,
    )  # fmt: skip


async def parameters_of(model: Http) -> int:
    """How many parameters a llama.cpp says that its model has, 0 where it does not."""
    try:
        rows = records((await model.fetch("/models", seconds=5.0)).get("data"))
    except (ModelError, UsageError):
        return 0
    match [record(row.get("meta")).get("n_params") for row in rows]:
        case [int(count)]:
            return count
        case _:
            return 0


async def template_of(model: Http) -> str:
    """The chat template of a server's model where it tells it, else ""."""
    return (await program(model))[1]


async def program(model: Http) -> tuple[str, str, int]:
    """The program that answers, its model's chat template, and how many requests it works on at once, as far as it
    tells."""
    paths = {"llama.cpp": "/props", "sglang": "/get_model_info", "ollama": "/api/version", "vllm": "/version"}
    keys = {"llama.cpp": "default_generation_settings", "sglang": "model_path", "ollama": "version", "vllm": "version"}

    async def told(path: str) -> dict[str, Any]:
        try:
            return await model.fetch(path, seconds=5.0, root=True)
        except ModelError:
            return {}

    answers = dict(zip(paths, await asyncio.gather(*(told(path) for path in paths.values())), strict=True))
    server = next((name for name, told in answers.items() if keys[name] in told), "")
    return server, _template(answers.values()), slots_of(answers["llama.cpp"])


def _template(answers: Iterable[Payload]) -> str:
    return next((text for told in answers if isinstance(text := told.get("chat_template"), str)), "")


def slots_of(told: Payload) -> int:
    """How many requests a llama.cpp works on at once, by its `/props`."""
    slots = told.get("total_slots")
    return slots if isinstance(slots, int) and 0 < slots <= 256 else 1
