"""The APIs that a model over HTTP can have: path, codec and capabilities of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...api import anthropic, completions, embeddings, ollama, openai_chat, openai_responses
from ...api.stream_reader import StreamReader
from ..base import Capability

CONSTRAINTS: Mapping[str, Capability] = {"grammar_field": "grammar", "schema_field": "schema", "tag_field": "tags"}
"""The constraint that a server enforces, by the option that names its field."""


def able_by(fields: Mapping[str, str]) -> frozenset[Capability]:
    """Return the constraints that a server enforces, from the options with their fields.

    Only llama.cpp enforces a grammar of text and calls as fast as one of calls alone. Other servers have structural
    tags for that.
    """
    constraints: set[Capability] = {CONSTRAINTS[name] for name in fields if name in CONSTRAINTS}
    if fields.get("grammar_field") == "grammar":
        constraints.add("free")
    if "schema_field" in fields:
        constraints.add("enforced")
    return frozenset(constraints)


@dataclass(frozen=True, slots=True)
class Api:
    """How one API is used: its paths, its codec, and what a server with it can do.

    `key_header` is the header of the key, if not `Authorization`; `headers` are sent with every request. `sampling` are
    the supported settings of `Request.sampling`, None for all; `logprobs` and `thinks` say whether log probabilities
    can be requested and reasoning be switched. `constraints` are the options of `write` that name the server's fields for
    constraints.
    """

    path: str
    models_path: str
    default_path: str
    write: Callable[..., dict[str, Any]]
    reader: Callable[[Callable[[], str]], StreamReader]
    read_models: Callable[[dict[str, Any]], list[str]]
    native: frozenset[Capability]
    plain: frozenset[Capability] = frozenset()
    embed_path: str = "/embeddings"
    write_texts: Callable[..., dict[str, Any]] = embeddings.write_request
    key_header: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    sampling: frozenset[str] | None = None
    logprobs: bool = False
    thinks: bool = False
    constraints: tuple[str, ...] = ()


APIS: dict[str, Api] = {
    "openai": Api(
        "/chat/completions", "/models", "/v1", openai_chat.write_request, openai_chat.ReplyReader,
        openai_chat.read_models, frozenset({"tools", "schema"}), logprobs=True, thinks=True,
        constraints=("grammar_field", "tag_field"),
    ),
    "completions": Api(
        "/completions", "/models", "/v1", completions.write_request, completions.ReplyReader,
        openai_chat.read_models, frozenset({"prompt"}), frozenset({"prompt"}),
        sampling=frozenset(completions.SAMPLING), logprobs=True, constraints=tuple(CONSTRAINTS),
    ),
    "responses": Api(
        "/responses", "/models", "/v1", openai_responses.write_request, openai_responses.ReplyReader,
        openai_chat.read_models, frozenset({"tools", "schema"}), logprobs=True,
    ),
    "ollama": Api(
        "/api/chat", "/api/tags", "", ollama.write_request, ollama.ReplyReader,
        ollama.read_models, frozenset({"tools", "schema"}), frozenset(), "/api/embed", embeddings.write_ollama,
        sampling=ollama.SETTINGS, thinks=True,
    ),
    "anthropic": Api(
        "/v1/messages", "/v1/models", "", anthropic.write_request, anthropic.ReplyReader,
        openai_chat.read_models, frozenset({"tools", "schema"}),
        thinks=True, key_header="x-api-key", headers={"anthropic-version": "2023-06-01"},
    ),
}  # fmt: skip
