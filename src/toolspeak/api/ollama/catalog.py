"""Writes Ollama's answers that are no replies of a model: lists of models, the server's version, and embeddings."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ...types import Schema
from ..embeddings import BODY as EMBEDDINGS, Texts, Vectors, as_array
from ..field_schemas import FLAG, MODEL
from ..incoming import Stamp
from ..json_stream import Payload
from ..openai_chat.writer import CREATED
from .writer import moment

VERSION = "0.13.5"
"""The version that `/api/version` reports. Clients check it for features of the API."""
DETAILS: Payload = {
    "parent_model": "", "format": "", "family": "", "families": [], "parameter_size": "", "quantization_level": "",
}  # fmt: skip
"""The details of a model, which are unknown."""
RUNNING = b"Ollama is running"
"""The response to `/`, which Ollama's client requests before each command."""
FOREVER = datetime(2300, 1, 1, tzinfo=UTC)
"""When a model is unloaded: never. Ollama's client shows that for a time more than a hundred years away."""
SHOW_BODY: Schema = {
    "type": "object",
    "additionalProperties": True,
    "properties": {"model": MODEL, "name": MODEL},
}
"""The body of a request for one model. Ollama's client puts the name into `name`, and leaves `model` empty."""
EMBED_BODY: Schema = {
    "type": "object",
    "additionalProperties": True,
    "required": ["model", "input"],
    "properties": {
        **{name: EMBEDDINGS["properties"][name] for name in ("model", "input", "dimensions")},
        "truncate": FLAG,
        "options": {"type": ["object", "null"]},
    },
}
"""The body of a request for embeddings. A text that is too long is refused, whatever `truncate` says."""


def write_models(names: Sequence[str]) -> Payload:
    """Return the body of `GET /api/tags`. The digest is made from the name, because clients identify models by it."""
    return {"models": [_model(name) for name in names]}


def _model(name: str) -> Payload:
    digest = hashlib.sha256(name.encode()).hexdigest()
    return {
        "name": name, "model": name, "modified_at": moment(CREATED), "size": 0, "digest": digest, "details": DETAILS,
    }  # fmt: skip


def write_running(contexts: Mapping[str, int | None]) -> Payload:
    """Return the body of `GET /api/ps`: all models count as loaded, each with its context in tokens, 0 if unknown."""
    expires = moment(int(FOREVER.timestamp()))
    return {
        "models": [
            {**_model(name), "expires_at": expires, "size_vram": 0, "context_length": context or 0}
            for name, context in contexts.items()
        ]
    }


def write_model(context: int | None) -> Payload:
    """Return the body of `POST /api/show`; `context` is the model's context in tokens."""
    info: Payload = {"general.architecture": "toolspeak"}
    if context:
        info["toolspeak.context_length"] = context
    return {
        "modelfile": "", "parameters": "", "template": "", "details": DETAILS, "model_info": info,
        "capabilities": ["completion", "tools"], "modified_at": moment(CREATED),
    }  # fmt: skip


def write_version(own: str) -> Payload:
    """Return the body of `GET /api/version`: the version of the API, and in `toolspeak` the gateway's own."""
    return {"version": VERSION, "toolspeak": own}


def read_texts(body: Mapping[str, Any]) -> Texts:
    """Parse a body that matches EMBED_BODY."""
    texts: str | list[str] = body["input"]
    known = EMBED_BODY["properties"]
    return Texts(
        body["model"], (texts,) if isinstance(texts, str) else tuple(texts), body.get("dimensions"),
        ignored=tuple(sorted(name for name in body if name not in known or name in ("truncate", "options"))),
    )  # fmt: skip


def write_vectors(vectors: Vectors, texts: Texts, stamp: Stamp) -> Payload:
    """Return the vectors in the format that the client wants."""
    return {
        "model": texts.model,
        "embeddings": [as_array(row) for row in vectors.rows],
        "total_duration": max(1, round(stamp.times()[1] * 1e9)),
        "load_duration": 0,
        "prompt_eval_count": vectors.tokens,
    }
