"""The coding agents that `toolspeak launch` starts, and how each one is configured to use the gateway.

A setting consists of environment variables, arguments and files in a temporary folder; the user's own files are not
changed. In each of these agents, arguments and files take precedence over the user's settings. A variable is set twice,
in the environment and in the settings, if the agent's own settings can hold variables too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

KEY = "TOOLSPEAK_AGENT_KEY"
"""The variable with the gateway's key, for agents that are given the name of a variable."""
PROVIDER = "toolspeak"
REPLY = 8_192
"""Tokens that an agent reserves for a reply if it must be told the size of the context; at most a quarter of it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the gateway is: its address without /v1, the name and context of the model (None: unknown), the key, and
    the folder for the agent's files."""

    url: str
    model: str
    key: str
    folder: str
    context: int | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """Everything that an agent is started with. `removed` are variables that would send it to another server; `files`
    maps names to texts."""

    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    arguments: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Agent:
    """A program, the command that installs it, and a function that makes its setting for a place. `least` is the context
    in tokens from which it works; see docs/how-to/coding-agents.md."""

    program: str
    install: str
    setting: Callable[[Place], Setting]
    least: int = 0


def _claude(place: Place) -> Setting:
    variables = {
        "ANTHROPIC_BASE_URL": place.url,
        "ANTHROPIC_AUTH_TOKEN": place.key,
        "ANTHROPIC_MODEL": place.model,
        **{f"ANTHROPIC_DEFAULT_{size}_MODEL": place.model for size in ("OPUS", "SONNET", "HAIKU")},
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        # puts a line that differs in each request at the start of the prompt, so that no prefix cache would hit
        "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
    }
    if place.context:
        variables["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] = str(place.context)
        variables["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = str(_reply(place.context))
    clouds = ("BEDROCK", "VERTEX", "FOUNDRY", "MANTLE", "ANTHROPIC_AWS")
    return Setting(
        variables,
        ("--settings", f"{place.folder}/settings.json"),
        {"settings.json": _pretty({"env": variables, "model": place.model})},
        ("ANTHROPIC_API_KEY", "ANTHROPIC_SMALL_FAST_MODEL", *(f"CLAUDE_CODE_USE_{name}" for name in clouds)),
    )


def _codex(place: Place) -> Setting:
    server = f"model_providers.{PROVIDER}"
    values: dict[str, Any] = {
        "model": place.model,
        "model_provider": PROVIDER,
        f"{server}.name": PROVIDER,
        f"{server}.base_url": f"{place.url}/v1",
        f"{server}.wire_api": "responses",
        f"{server}.env_key": KEY,
    }
    if place.context:
        values["model_context_window"] = place.context
    # a JSON string or number is one in TOML too
    arguments = tuple(part for name, value in values.items() for part in ("-c", f"{name}={json.dumps(value)}"))
    return Setting({KEY: place.key}, arguments)


def _opencode(place: Place) -> Setting:
    model: dict[str, Any] = {"name": place.model}
    if place.context:
        model["limit"] = {"context": place.context, "output": _reply(place.context)}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": PROVIDER,
        "options": {"baseURL": f"{place.url}/v1", "apiKey": f"{{env:{KEY}}}"},
        "models": {place.model: model},
    }
    full = f"{PROVIDER}/{place.model}"
    config = {"provider": {PROVIDER: provider}, "model": full, "small_model": full}
    return Setting({KEY: place.key, "OPENCODE_CONFIG_CONTENT": json.dumps(config)})


def _aider(place: Place) -> Setting:
    full = f"openai/{place.model}"
    limits = {"max_input_tokens": place.context, "max_output_tokens": _reply(place.context)} if place.context else {}
    row = {
        **limits,
        "litellm_provider": "openai",
        "mode": "chat",
        "input_cost_per_token": 0,
        "output_cost_per_token": 0,
    }
    files = {
        "aider.env": f"OPENAI_API_BASE={place.url}/v1\nOPENAI_API_KEY={place.key}\n",
        "aider.json": _pretty({full: row}),
    }
    arguments = ("--env-file", f"{place.folder}/aider.env", "--model-metadata-file", f"{place.folder}/aider.json")
    models = ("--model", full, "--weak-model", full, "--editor-model", full)
    return Setting({}, (*arguments, *models, "--no-show-model-warnings", "--no-check-update"), files)


def _reply(context: int) -> int:
    return min(REPLY, context // 4)


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"


AGENTS: Mapping[str, Agent] = {
    "claude": Agent("claude", "npm install -g @anthropic-ai/claude-code", _claude, 40_000),
    "codex": Agent("codex", "npm install -g @openai/codex", _codex, 16_000),
    "opencode": Agent("opencode", "npm install -g opencode-ai", _opencode, 32_000),
    "aider": Agent("aider", "pipx install aider-chat", _aider),
}
"""By the names that the command takes."""
