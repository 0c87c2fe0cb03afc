"""The servers that are known by name, each with its address, key variable and API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from ...errors import KeyRefused


@dataclass(frozen=True, slots=True)
class Provider:
    """A server known by name: its address, the environment variables of its key and address, and its peculiarities.

    `start` is advice if nothing answers; `writing` are options of the codec's `write_request`; `thinks`: a request may
    switch reasoning on and off; `engine` is what enforces its constraints (see `schema.portable`); `models` are
    prefixes of the names of models that only it serves.
    """

    name: str
    url: str
    key_variable: str = "TOOLSPEAK_API_KEY"
    url_variable: str = ""
    api: Literal["openai", "responses", "ollama", "completions", "anthropic"] = "openai"
    start: str = ""
    writing: Mapping[str, Any] = field(default_factory=dict[str, Any])
    thinks: bool = False
    engine: str = ""
    models: tuple[str, ...] = ()


ANY = Provider("http", "", thinks=True)

PROVIDERS: dict[str, Provider] = {
    row.name: row
    for row in (
        Provider("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL", writing={"max_tokens_field": "max_completion_tokens"}, engine="openai", models=("gpt-3", "gpt-4", "gpt-5", "chatgpt", "o1", "o3", "o4-")),
        Provider("openai-responses", "https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL", "responses", engine="openai"),
        Provider("ollama", "http://localhost:11434", "OLLAMA_API_KEY", "OLLAMA_HOST", "ollama", start="start it with `ollama serve`", thinks=True, engine="llama.cpp"),
        Provider("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "anthropic", thinks=True, models=("claude",)),
        Provider("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        Provider("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
        Provider("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
        Provider("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", writing={"thoughts": True}, models=("deepseek-chat", "deepseek-reasoner")),
        Provider("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", writing={"usage": False}, models=("mistral-large", "mistral-medium", "codestral", "magistral-medium")),
        Provider("fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
        Provider("vllm", "http://localhost:8000/v1", "VLLM_API_KEY", start="start it with `vllm serve MODEL`", thinks=True, engine="xgrammar"),
        Provider("sglang", "http://localhost:30000/v1", start="start it with `sglang serve`", thinks=True, engine="xgrammar"),
        Provider("llamacpp", "http://localhost:8080/v1", "LLAMA_API_KEY", start="start it with `llama-server -m FILE`", thinks=True, engine="llama.cpp"),
        Provider("lmstudio", "http://localhost:1234/v1", start="start it with `lms server start`", thinks=True),
    )
}  # fmt: skip

_HOSTED = {urlsplit(row.url).hostname: row.engine for row in PROVIDERS.values() if row.url.startswith("https:")}
"""The hosts of the known hosted APIs, with the engine that enforces their constraints if that is known."""


def hosted(url: str) -> bool:
    """Whether an address is that of a known hosted API, which separates text from control tokens by itself."""
    return urlsplit(url).hostname in _HOSTED


def refuse_without_key(provider: Provider, name: str, url: str) -> None:
    """Raises KeyRefused if `url` is the provider's own hosted API, which always needs a key."""
    if hosted(url) and urlsplit(url).hostname == urlsplit(provider.url).hostname:
        error = KeyRefused(
            f"{name}: {provider.key_variable} is not set, and no request was sent; set it, or in Python pass key=…"
        )
        error.reason = f"{provider.key_variable} is not set"
        raise error


def enforces_strict(url: str) -> bool:
    """Whether an address is that of a hosted API that is known to enforce the schemas of OpenAI's `strict` mode."""
    return bool(_HOSTED.get(urlsplit(url).hostname))
