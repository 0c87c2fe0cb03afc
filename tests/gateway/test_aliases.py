"""Models that clients ask for by names of their own: aliases, patterns of them, and a default."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from toolspeak.errors import Refused, UsageError
from toolspeak.gateway.config.load import parse_config
from toolspeak.gateway.config.settings import GatewaySettings
from toolspeak.gateway.registry import Models
from toolspeak.models.scripted import Scripted

CONFIG = """
[server]
default_model = "big"
[models.small]
upstream = "scripted:small"
[models.big]
upstream = "scripted:big"
[aliases]
"claude-haiku-*" = "small"
"claude-*" = "big"
"gpt-5" = "small"
"""


def test_the_first_alias_that_fits_counts_and_a_name_goes_before_all() -> None:
    settings = parse_config(CONFIG)
    models = Models(settings.models, aliases=settings.aliases, default=settings.default)
    found = {
        name: models.find(name).settings.name
        for name in ("small", "claude-haiku-4-5-20251001", "claude-opus-4-8", "gpt-5", "gpt-5-mini", "anything")
    }
    assert list(found.values()) == ["small", "small", "big", "small", "big", "big"]
    assert models.names(lambda _: True) == ["small", "big", "gpt-5"]
    assert models.names(lambda name: name == "big") == ["big"]
    assert models.find("gpt-5", lambda name: name == "big").settings.name == "big"  # by the default: it may be seen


@pytest.mark.parametrize(
    ("keyed", "advice"),
    [(True, "ask the gateway's operator."), (False, "[aliases] or `default_model` in its configuration.")],
)
def test_only_a_client_that_can_is_advised_to_serve_another_model(keyed: bool, advice: str) -> None:
    models = Models({"small": parse_config(CONFIG).models["small"]}, keyed=keyed)
    with pytest.raises(Refused, match="one that is served: small; or") as caught:
        models.find("none")
    assert str(caught.value).endswith(advice)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('[aliases]\n"claude-*" = "bigg"', "Did you mean 'big'"),
        ('[server]\ndefault_model = "none"', 'one of small, big, got "none"'),
        ('[aliases]\n"claude-*" = 5', "one of small, big"),
    ],
)
def test_an_alias_of_no_model_is_told_with_its_place(line: str, said: str) -> None:
    models = CONFIG[CONFIG.index("[models.small]") : CONFIG.index("[aliases]")]
    with pytest.raises(UsageError) as caught:
        parse_config(f"{models}\n{line}\n")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/v1/messages", {"max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}, {"anthropic-version": "2023-06-01"}),
        ("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "Hi"}]}, {"anthropic-version": "2023-06-01"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}, {}),
        ("/v1/responses", {"input": "Hi", "store": False}, {}),
    ],
)  # fmt: skip
def test_a_name_of_the_clients_own_is_answered_and_becomes_no_label(
    serve_models: Callable[..., Any], path: str, body: Any, headers: dict[str, str]
) -> None:
    settings = parse_config(CONFIG)
    more = {"aliases": settings.aliases, "default": settings.default}
    models = {name: Scripted([name]) for name in settings.models}

    async def go() -> None:
        async with serve_models(settings=more, **models) as running, aiohttp.ClientSession(headers=headers) as session:
            async with session.post(running.url + path, json={"model": "claude-opus-4-8", **body}) as answer:
                told = await answer.json()
                assert answer.status == 200, told
                assert told.get("model", "claude-opus-4-8") == "claude-opus-4-8"
            async with session.get(running.url + "/v1/models/claude-opus-4-8") as answer:
                assert answer.status == 200
            async with session.get(running.url + "/v1/models") as answer:
                assert [row["id"] for row in (await answer.json())["data"]] == ["small", "big", "gpt-5"]
            async with session.get(running.url + "/metrics") as answer:
                text = await answer.text()
            assert 'model="big"' in text
            assert "claude" not in text

    asyncio.run(go())


def test_settings_without_either_are_as_before() -> None:
    assert (GatewaySettings({}).aliases, GatewaySettings({}).default) == ({}, None)
